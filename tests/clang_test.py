#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Every source of the project is clean with clang too: clang_test.py COMPILER WORK, a directory to configure in.

Takes the flags of the preset cpu, so all SIMD targets and the benchmarks are seen, which a build with sanitizers leaves
out; warnings are errors. Makes no code: a fraction of the time of a build."""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def command_of(entry):
    words = shlex.split(entry["command"])
    at = words.index("-o")
    return [w for w in words[:at] + words[at + 2:] if w != "-c"] + ["-fsyntax-only", "-Werror"]


def check(entry):
    done = subprocess.run(command_of(entry), cwd=entry["directory"], capture_output=True, text=True)
    return done.returncode, done.stderr


def main():
    compiler, work = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    root = pathlib.Path(__file__).resolve().parent.parent
    subprocess.run(["cmake", "--fresh", "--preset", "cpu", "-B", work, f"-DCMAKE_CXX_COMPILER={compiler}"], cwd=root,
                   stdout=subprocess.DEVNULL, check=True)
    entries = [e for e in json.loads((work / "compile_commands.json").read_text())
               if work not in pathlib.Path(e["file"]).parents]  # not what only includes a header
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, entries))
    for code, errors in results:
        if code:
            print(errors)
    failed = sum(code != 0 for code, _ in results)
    print(f"{len(entries) - failed} of {len(entries)} sources are clean")
    sys.exit(failed > 0)


main()
