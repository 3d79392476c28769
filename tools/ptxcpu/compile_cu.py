# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Compiles one .cu file for the ptxcpu runtime: nvcc's host object plus its PTX as C++, as one object.

    compile_cu.py source.cu output.o --nvcc nvcc --cxx clang++ --arch 80 --depfile output.d \
        [--check] [--count] [--allow-unsupported] [--optimize 1] [--nvcc-flag=F]... [--launcher ccache]
"""

import argparse
import glob
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Generated code holds bit patterns in registers and follows PTX in wrapping and in every rounding.
CXX_FLAGS = ["-std=c++20", "-march=x86-64-v3", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv",
             "-fno-exceptions", "-fPIC", "-w", f"-I{HERE / 'runtime'}"]


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("output")
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--arch", required=True)
    parser.add_argument("--depfile", required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--allow-unsupported", action="store_true")
    parser.add_argument("--optimize", default="1")
    parser.add_argument("--launcher", default="")
    parser.add_argument("--nvcc-flag", action="append", default=[])
    return parser.parse_args()


def run(command):
    result = subprocess.run(command, check=False)
    if result.returncode != 0:
        sys.exit(result.returncode)


def host_command(arguments, directory, host_object):
    arch = f"compute_{arguments.arch}"
    return [arguments.nvcc, f"-gencode=arch={arch},code={arch}", "-cudart", "none", "-lineinfo", "-Xcompiler", "-fPIC",
            "--keep", "--keep-dir", directory, "-MD", "-MF", arguments.depfile, "-MT", arguments.output,
            *arguments.nvcc_flag, "-c", arguments.source, "-o", host_object]


def is_current(command, stamp, depfile, host_object):
    """Whether nvcc would produce what is there: same command, nothing it read has changed since."""
    try:
        if pathlib.Path(stamp).read_text() != "\n".join(command):
            return False
        built = os.path.getmtime(host_object)
        prerequisites = pathlib.Path(depfile).read_text().replace("\\\n", " ").split(":", 1)[1].split()
        return all(os.path.getmtime(path) < built for path in prerequisites)
    except OSError:
        return False


def compile_host(arguments, directory, host_object):
    """nvcc's host object; the PTX and the fat binary are kept beside it.

    A change of the translator or the runtime runs this script again, but not nvcc.
    """
    command, stamp = host_command(arguments, directory, host_object), f"{directory}/command"
    if is_current(command, stamp, arguments.depfile, host_object):
        return
    for stale in glob.glob(f"{directory}/*.ptx") + glob.glob(f"{directory}/*.fatbin"):
        os.remove(stale)
    run(command)
    pathlib.Path(stamp).write_text("\n".join(command))


def toolkit_headers(nvcc):
    """The directory above nvcc's, which file names in its PTX begin with."""
    return str(pathlib.Path(nvcc).resolve().parent.parent)


def main():
    arguments = parse_arguments()
    directory = arguments.output + ".d"
    os.makedirs(directory, exist_ok=True)
    host_object, device_source, device_object = (f"{directory}/{name}" for name in ("host.o", "device.cpp", "device.o"))
    compile_host(arguments, directory, host_object)
    (ptx,), (fatbin,) = glob.glob(f"{directory}/*.ptx"), glob.glob(f"{directory}/*.fatbin")
    translate = [sys.executable, "-B", "-m", "translator", ptx, device_source, "--fatbin", fatbin,
                 "--toolkit", toolkit_headers(arguments.nvcc)]
    if arguments.allow_unsupported:
        translate.append("--allow-unsupported")
    environment = dict(os.environ, PYTHONPATH=str(HERE))
    result = subprocess.run(translate, env=environment, check=False)
    if result.returncode != 0:
        sys.exit(result.returncode)
    launcher = [arguments.launcher] if arguments.launcher else []
    run([*launcher, arguments.cxx, f"-O{arguments.optimize}", *CXX_FLAGS, f"-DPTXCPU_CHECK={int(arguments.check)}",
         f"-DPTXCPU_COUNT={int(arguments.count)}", "-c", device_source, "-o", device_object])
    # One object, so that an archive member which is needed for its host code brings its kernels.
    run(["ld", "-r", host_object, device_object, "-o", arguments.output])


if __name__ == "__main__":
    main()
