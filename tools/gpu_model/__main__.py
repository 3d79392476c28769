# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""What the kernels would do on a GPU, modelled from executed PTX (ptxcpu) and from machine code (cuobjdump).

    python3 tools/gpu_model COUNTERS BINARY [--arch 80,90] [--kernel TEXT]     the tables
    python3 tools/gpu_model COUNTERS BINARY --check NAME                       exit status 1 if a kernel offends

COUNTERS is what gpu_model_workload wrote, BINARY any object, library or program with the machine code.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import checks  # noqa: E402
import kernels as data  # noqa: E402
from devices import DEVICES  # noqa: E402
from roofline import occupancy, roofline  # noqa: E402

CHECKS = ("spills", "uncoalesced", "bank_conflicts", "traffic", "unexecuted")


def ratio(a, b):
    return f"{a / b:.2f}" if b else "-"


def millions(count):
    return f"{count / 1e6:.3g}" if count else "-"


def print_table(head, rows):
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, ["-" * w for w in widths], *rows]:
        print("| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |")
    print()


def instruction_rows(kernels):
    for k in kernels:
        requests = k.total("global_requests")
        yield [k.name[:72], f"{k.blocks:.0f} x {k.threads}", millions(k.count("fma", "fp32")), millions(k.count("mma.") / 32),
               millions(k.count("mufu")), millions(k.total("shared_requests")), millions(requests),
               f"{k.loaded / checks.MIB:.2f}", f"{k.stored / checks.MIB:.2f}", ratio(k.total("sectors"), requests),
               ratio(k.total("sectors"), k.total("ideal_sectors")),
               ratio(k.total("wavefronts"), k.total("ideal_wavefronts")), "modelled"]


def device_rows(kernels, resources, arch):
    device = DEVICES[arch]
    for k in kernels:
        used = resources.get(k.name)
        if used is None or arch not in used.registers:
            continue
        blocks, share = occupancy(device, used.registers[arch], k.threads, k.shared_bytes)
        unit, time, cold = roofline(device, k)
        yield [k.name[:72], str(used.registers[arch]), str(used.stack[arch]), f"{k.shared_bytes / 1024:.1f}", str(blocks),
               f"{100 * share:.0f} %", unit, f"{time:.2f}", f"{cold:.2f}", "modelled"]


def print_model(kernels, resources, architectures):
    print("# Modelled, not measured: no GPU was used\n")
    print("Executed PTX of one launch; counts in millions (MMA, shared and global: of warps), bytes in MiB.\n")
    print_table(["kernel", "blocks x threads", "FP32", "MMA", "MUFU", "shared", "global", "loaded", "stored",
                 "sectors/request", "x ideal sectors", "x ideal wavefronts", "status"], list(instruction_rows(kernels)))
    for arch in architectures:
        rows = list(device_rows(kernels, resources, arch))
        if rows:
            print(f"sm_{arch} ({DEVICES[arch].name}): resources, occupancy, roofline in microseconds per launch; "
                  "cold: every sector from DRAM.\n")
            print_table(["kernel", "registers", "stack", "shared KiB", "blocks/SM", "occupancy", "bound by", "us",
                         "us cold", "status"], rows)


def violations(check, kernels, resources):
    if check == "spills":
        return checks.spills(resources)
    if check == "unexecuted":
        return checks.unexecuted(kernels, resources)
    return getattr(checks, check)(kernels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("counters")
    parser.add_argument("binary")
    parser.add_argument("--check", choices=CHECKS, action="append")
    parser.add_argument("--arch", default=",".join(map(str, DEVICES)))
    parser.add_argument("--kernel", default="", help="only kernels whose name contains this")
    parser.add_argument("--cuobjdump", default="")
    arguments = parser.parse_args()
    kernels = sorted(data.load_counters(arguments.counters), key=lambda k: k.name)
    resources = data.load_resources(arguments.binary, data.find_cuobjdump(arguments.cuobjdump))
    if not kernels or not resources:
        sys.exit("gpu_model: no kernel was counted, or the binary has no machine code")
    if not arguments.check:
        chosen = [k for k in kernels if arguments.kernel in k.name]
        print_model(chosen, resources, [int(a) for a in arguments.arch.split(",")])
        return
    found = [sentence for check in arguments.check for sentence in violations(check, kernels, resources)]
    for sentence in found:
        print(sentence)
    print(f"{len(kernels)} kernels executed, {len(resources)} in the binary, {len(found)} violations (modelled)")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
