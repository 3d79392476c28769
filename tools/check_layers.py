#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Checks what a compiler does not: which layer includes which, and the shape of files.

    kernels -> host -> datasets -> models -> {bench, tests, tools}

Each layer may include what stands to its left; bench, tests and tools never include one another. Headers of the
project are included by relative path. CUDA's appear under kernels/cuda and in bench, HDF5's in datasets/hdf5_* and
in the tests' reader of golden files and writer of hostile ones. The libraries never print or end the process. Sources
have at most 400 lines and two licence lines, READMEs at most 40. Nothing else is tracked at the top.

    tools/check_layers.py [root]        prints one line per violation; exit status 1 if there is any
"""
import os
import re
import subprocess
import sys

LAYER = {"kernels": 0, "host": 1, "datasets": 2, "models": 3, "bench": 4, "tests": 4, "tools": 4}
LIBRARIES = ("kernels", "host", "datasets", "models")
TOP_FILES = ("CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "CHANGELOG.md")
SOURCES = (".h", ".cpp", ".cu", ".cuh")
LICENSED = SOURCES + (".py", ".sh", ".cmake", "CMakeLists.txt")
LICENCE = ("SPDX-License-Identifier: MIT", "Copyright (c) 2026 The pwdice authors")
MAX_LINES, MAX_README_LINES = 400, 40

# What a foreign header is, and where it may be included. ptxcpu stands in for the CUDA runtime: it and the tests
# that talk to it are CUDA programs.
FOREIGN = (
    (re.compile(r"^(cuda|cublas|curand|cusparse|cub/|thrust/|cutlass|cute/|nccl|nvtx|mma\.h|cooperative_groups)"),
     re.compile(r"^(kernels/cuda/|bench/|tools/ptxcpu/|tests/(ptxcpu|cuda)/)"),
     "CUDA headers belong under kernels/cuda and bench"),
    (re.compile(r"^(hdf5|H5[A-Z]\w*)\.h$"),
     re.compile(r"^(datasets/hdf5_\w+\.(h|cpp)|tests/golden\.cpp|tests/hdf5_library\.h)$"), "HDF5 headers belong in datasets/hdf5_*"),
)
INSTALLED = re.compile(r"^tests/consumer/")  # users' programs: they see the installed headers, not the tree
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
# A member or a function of another namespace may be called exit; snprintf, and fprintf to a file, are fine.
PRINTS_OR_EXITS = re.compile(
    r"\bstd::w?(?:cout|cerr|clog)\b|\b(?:stdout|stderr|STDOUT_FILENO|STDERR_FILENO)\b|"
    r"(?<![\w.>:])(?:std)?(?:::)?(?:v?printf|puts|putchar|perror|_?exit|_Exit|quick_exit|abort|terminate|assert)\s*\(")
STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//.*')


def files_of(root):
    for layer in LAYER:
        for directory, folders, names in os.walk(os.path.join(root, layer)):
            folders[:] = sorted(f for f in folders if f not in ("build", "__pycache__") and not f.startswith("."))
            for name in sorted(names):
                yield os.path.relpath(os.path.join(directory, name), root).replace(os.sep, "/")


def include_violation(path, quoted, angled, exists):
    """Why this include is not allowed, or None."""
    name = quoted or angled
    if INSTALLED.match(path):
        return None
    for header, place, sentence in FOREIGN:
        if header.match(name) and not place.match(path) and not (quoted and exists(path, quoted)):
            return f'includes "{name}": {sentence}'
    if not quoted:
        first = name.split("/")[0]
        return f"includes <{name}>: headers of the project are included by relative path" if first in LAYER else None
    target = os.path.normpath(os.path.join(os.path.dirname(path), quoted)).replace(os.sep, "/")
    if not exists(path, quoted):
        if quoted.split("/")[0] in LAYER or quoted.startswith("."):
            return f'includes "{quoted}", which is not there; paths are relative to the including file'
        return None  # a library's header in quotes
    mine, other = path.split("/")[0], target.split("/")[0]
    if other not in LAYER or LAYER[other] > LAYER[mine] or (LAYER[other] == LAYER[mine] and other != mine):
        return f'includes "{target}": {mine} may not include {other}'
    return None


def violations_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    name = os.path.basename(path)
    if name == "README.md" and len(lines) > MAX_README_LINES:
        yield 1, f"has {len(lines)} lines, a README at most {MAX_README_LINES}"
    if path.endswith(LICENSED):
        head = "\n".join(lines[:3])
        if not all(line in head for line in LICENCE):
            yield 1, "does not begin with the two licence lines"
        if not name.endswith(".cmake") and len(lines) > MAX_LINES:
            yield MAX_LINES, f"has {len(lines)} lines, at most {MAX_LINES} are allowed"
    if not path.endswith(SOURCES):
        return

    def exists(source, quoted):
        return os.path.isfile(os.path.join(root, os.path.dirname(source), quoted))

    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        sentence = include_violation(path, found.group(1), found.group(2), exists) if found else None
        if sentence:
            yield number, sentence
        found = path.split("/")[0] in LIBRARIES and PRINTS_OR_EXITS.search(STRING_OR_COMMENT.sub('""', line))
        if found:
            yield number, f"{found.group().rstrip(' (')}: a library neither prints nor ends the process"


def strangers_of(root):
    """What git tracks at the top and should not; nothing where the tree is not a checkout."""
    done = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, "ls-files"], capture_output=True, text=True,
                          check=False)
    tracked = [line.strip('"').split("/") for line in done.stdout.splitlines()]
    return sorted({parts[0] for parts in tracked
                   if not parts[0].startswith(".") and parts[0] not in (LAYER if len(parts) > 1 else TOP_FILES)})


def main():
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
    count = checked = 0
    for name in strangers_of(root):
        count += 1
        print(f"{name}:1: does not belong at the top, where {', '.join(LAYER)} and {', '.join(TOP_FILES)} are")
    for path in files_of(root):
        checked += 1
        for number, sentence in violations_of(root, path):
            count += 1
            print(f"{path}:{number}: {sentence}")
    if checked == 0:
        print(f"{root} holds none of {', '.join(LAYER)}")
        return 1
    print(f"{checked} files, {count} violations")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
