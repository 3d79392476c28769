# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Command line: python3 -m translator in.ptx out.cpp [--fatbin file] [--toolkit dir] [--allow-unsupported]"""

import argparse
import sys

from .module_writer import translate
from .types import Unsupported


def fatbin_digest(data):
    """FNV-1a over the words of the fat binary; the runtime computes the same to find its module."""
    digest = 0xCBF29CE484222325
    for start in range(0, len(data) - len(data) % 8, 8):
        digest ^= int.from_bytes(data[start:start + 8], "little")
        digest = digest * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest


def main():
    parser = argparse.ArgumentParser(description="Translate PTX to C++ for the ptxcpu runtime.")
    parser.add_argument("ptx")
    parser.add_argument("output")
    parser.add_argument("--fatbin", help="the fat binary nvcc embedded, to bind host code to this module")
    parser.add_argument("--toolkit", default="", help="directory whose code is reported at the place it was inlined")
    parser.add_argument("--allow-unsupported", action="store_true",
                        help="translate the rest; launching a refused kernel fails at run time")
    arguments = parser.parse_args()
    with open(arguments.ptx, encoding="utf-8") as file:
        text = file.read()
    digest = 0
    if arguments.fatbin:
        with open(arguments.fatbin, "rb") as file:
            digest = fatbin_digest(file.read())
    try:
        source, _, refused = translate(text, digest, arguments.toolkit)
    except Unsupported as error:
        sys.exit(f"ptxcpu: {arguments.ptx}: {error}")
    for name, reason in refused:
        print(f"ptxcpu: {name}: {reason}", file=sys.stderr)
    if refused and not arguments.allow_unsupported:
        sys.exit(f"ptxcpu: {len(refused)} function(s) of {arguments.ptx} use PTX that is not supported")
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(source)


if __name__ == "__main__":
    main()
