# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""What is known of a kernel: the counters of its executed PTX, and what ptxas made of it for each architecture."""
import json
import os
import re
import subprocess
from dataclasses import dataclass, field

import names

MMA = re.compile(r"mma\.m(\d+)n(\d+)k(\d+)\.(\w+)")


@dataclass
class Kernel:
    """Counts are of one launch, all blocks: those of the executed ones, scaled."""
    name: str
    ours: bool
    launches: int
    blocks: float
    threads: int
    shared_bytes: int
    instructions: dict
    sites: list

    def count(self, *prefixes):
        return sum(n for name, n in self.instructions.items() if name.startswith(prefixes))

    def mma_flop(self, operand):
        shapes = ((MMA.match(name), n) for name, n in self.instructions.items())
        return sum(2 * int(m[1]) * int(m[2]) * int(m[3]) * n / 32 for m, n in shapes if m and m[4].startswith(operand))

    def total(self, key, kinds=("",)):
        """A counter over all memory instructions whose opcode begins with one of kinds."""
        return sum(site.get(key, 0) for site in self.sites if site["opcode"].startswith(tuple(kinds)))

    @property
    def loaded(self):
        return self.total("global_bytes", ("ld", "cp", "atom"))

    @property
    def stored(self):
        return self.total("global_bytes", ("st", "red"))


def load_counters(path):
    with open(path, encoding="utf-8") as file:
        return [kernel_of(entry) for entry in json.load(file)]


def kernel_of(entry):
    launches = entry["launches"]
    scale = entry["blocks"] / max(1, entry["executed_blocks"]) / launches
    numbers = ("global_requests", "global_bytes", "sectors", "ideal_sectors", "shared_requests", "shared_bytes",
               "wavefronts", "ideal_wavefronts")
    sites = [{key: value * scale if key in numbers else value for key, value in site.items()} for site in entry["sites"]]
    return Kernel(names.short(entry["kernel"]), names.is_ours(entry["kernel"]), launches, entry["blocks"] / launches,
                  entry["threads"], entry["shared_bytes"],
                  {name: n * scale for name, n in entry["instructions"].items()}, sites)


@dataclass
class Resources:
    """registers and stack bytes (a spill, or an array that found no registers) by architecture."""
    name: str
    ours: bool
    registers: dict = field(default_factory=dict)
    stack: dict = field(default_factory=dict)


def find_cuobjdump(hint=""):
    here = os.path.dirname(os.path.abspath(__file__))
    venv = os.path.join(here, "..", "..", "build", "venv", "lib")
    places = [hint, "/usr/local/cuda/bin/cuobjdump"]
    for directory, _, files in os.walk(venv):
        if "cuobjdump" in files and os.path.basename(directory) == "bin":
            places.append(os.path.join(directory, "cuobjdump"))
    places += [os.path.join(d, "cuobjdump") for d in os.environ.get("PATH", "").split(os.pathsep)]
    for place in places:
        if place and os.access(place, os.X_OK):
            return place
    raise FileNotFoundError("cuobjdump is not found; tools/setup.sh --cuda installs it")


def load_resources(binary, cuobjdump):
    text = subprocess.run([cuobjdump, "-res-usage", binary], capture_output=True, text=True, check=True).stdout
    return parse_resources(text)


def parse_resources(text):
    """{short name: Resources} from the output of cuobjdump -res-usage."""
    entries, arch, symbol = [], 0, ""
    for line in text.splitlines():
        if line.startswith("arch = sm_"):
            arch = int(re.sub(r"\D", "", line))
        elif line.startswith(" Function "):
            symbol = line[len(" Function "):].rstrip(":")
        elif symbol and "REG:" in line:
            used = dict(re.findall(r"(REG|STACK|LOCAL):(\d+)", line))
            entries.append((symbol, arch, int(used["REG"]), int(used["STACK"]) + int(used["LOCAL"])))
            symbol = ""
    result = {}
    for name, (_, arch, registers, stack) in zip(names.demangled([e[0] for e in entries]), entries):
        kernel = result.setdefault(names.short(name), Resources(names.short(name), names.is_ours(name)))
        kernel.registers[arch] = max(registers, kernel.registers.get(arch, 0))
        kernel.stack[arch] = max(stack, kernel.stack.get(arch, 0))
    return result
