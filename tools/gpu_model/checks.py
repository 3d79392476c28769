# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""What a kernel must not do. Each check yields one sentence per violation."""
import os

# The loops over tiles: every access of these files is meant to be perfect.
TILE_FILES = ("pair_tile.cuh", "pair_tile_mma.cuh", "cost_tile.cuh")

MIB = 1 << 20
INFONCE = {"n": 4096, "d": 32, "loaded": 20 * MIB, "stored": 8 * 4096 * 32 * 4}  # stores: at most 8 parts of (n, d)


TENSOR_CORES = ("Tf32", "Bf16")    # below 80 such a kernel is a stub: a Context refuses the precision
NEVER_LAUNCHED = ("probe_kernel",)  # only asked for its attributes


def spills(resources):
    for kernel in resources.values():
        for arch, stack in sorted(kernel.stack.items()):
            stub = arch < 80 and any(name in kernel.name for name in TENSOR_CORES)
            if kernel.ours and stack and not stub:
                yield f"{kernel.name} has {stack} bytes of stack on sm_{arch}: spilled registers or a local array"


def in_tiles(kernels, files):
    for kernel in kernels:
        for site in kernel.sites:
            if os.path.basename(site["file"]) in files:
                yield kernel, site


def unseen(kernels, files):
    """A tile file without a counted access would pass every check: it was renamed, or its workload is gone."""
    seen = {os.path.basename(site["file"]) for _, site in in_tiles(kernels, files)}
    for file in files:
        if file not in seen:
            yield f"{file}: no access was counted, so nothing was checked"


def uncoalesced(kernels, files=TILE_FILES):
    yield from unseen(kernels, files)
    for kernel, site in in_tiles(kernels, files):
        if site.get("sectors", 0) > 1.02 * site.get("ideal_sectors", 0):
            yield (f"{kernel.name}: {site['opcode']} at {os.path.basename(site['file'])}:{site['line']} moves "
                   f"{site['sectors'] / site['global_requests']:.1f} sectors per request, "
                   f"{site['ideal_sectors'] / site['global_requests']:.1f} would do")


def bank_conflicts(kernels, files=TILE_FILES):
    yield from unseen(kernels, files)
    for kernel, site in in_tiles(kernels, files):
        if site.get("wavefronts", 0) > 1.02 * site.get("ideal_wavefronts", 0):
            yield (f"{kernel.name}: {site['opcode']} at {os.path.basename(site['file'])}:{site['line']} needs "
                   f"{site['wavefronts'] / site['shared_requests']:.1f} wavefronts per request, "
                   f"{site['ideal_wavefronts'] / site['shared_requests']:.1f} would do")


SWEEPS = tuple(f"infonce_{kernel}_kernel<{tile}<32>>" for tile in ("Fp32Tile", "Tf32Tile", "Bf16Tile")
               for kernel in ("lse", "apply"))


def traffic(kernels, sweeps=SWEEPS, limits=None):
    limits = limits or INFONCE
    found = {kernel.name: kernel for kernel in kernels}
    for name in sweeps:
        if name not in found:
            yield f"{name} was not executed"
            continue
        for what, used in (("loaded", found[name].loaded), ("stored", found[name].stored)):
            if used > limits[what]:
                yield (f"{name} at n = {limits['n']}, d = {limits['d']}: {used / MIB:.1f} MiB {what}, at most "
                       f"{limits[what] / MIB:.1f} are allowed")


def unexecuted(kernels, resources):
    names = {kernel.name for kernel in kernels}
    for kernel in resources.values():
        if kernel.ours and kernel.name not in names and kernel.name not in NEVER_LAUNCHED:
            yield f"{kernel.name} is in the binary, but was never executed"
