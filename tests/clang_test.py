#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Every source of the tests is clean with clang too: clang_test.py BUILD, a build tree configured with clang.

Reads the sources with the flags of that tree, warnings as errors, and makes no code: a tenth of the time of a build."""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def command_of(entry):
    words = shlex.split(entry["command"])
    while "clang" not in os.path.basename(words[0]):  # a launcher
        words = words[1:]
    at = words.index("-o")
    return [w for w in words[:at] + words[at + 2:] if w != "-c"] + ["-fsyntax-only", "-Werror"]


def check(entry):
    done = subprocess.run(command_of(entry), cwd=entry["directory"], capture_output=True, text=True)
    return done.returncode, done.stderr


def main():
    build = pathlib.Path(sys.argv[1])
    tests = pathlib.Path(__file__).resolve().parent
    entries = [e for e in json.loads((build / "compile_commands.json").read_text()) if tests in pathlib.Path(e["file"]).parents]
    if not entries:
        sys.exit(f"clang_test: {build} compiles none of the tests")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, entries))
    for code, errors in results:
        if code:
            print(errors)
    failed = sum(code != 0 for code, _ in results)
    print(f"{len(entries) - failed} of {len(entries)} sources are clean")
    sys.exit(failed > 0)


main()
