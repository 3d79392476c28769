# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Occupancy and the time that the busiest unit needs: a lower bound by model, not a measurement."""

REGISTER_UNIT = 256      # registers are given to warps in such portions
RESERVED_SHARED = 1024   # bytes the driver keeps per block


def occupancy(device, registers, threads, shared_bytes):
    """(resident blocks per multiprocessor, share of its threads)"""
    warps = (threads + 31) // 32
    per_warp = -(-max(registers, 1) * 32 // REGISTER_UNIT) * REGISTER_UNIT
    blocks = min(device.blocks, device.threads // (32 * warps), device.registers // (per_warp * warps))
    if shared_bytes:
        blocks = min(blocks, device.shared_kib * 1024 // (shared_bytes + RESERVED_SHARED))
    return blocks, blocks * warps * 32 / device.threads


def times(device, kernel):
    """Microseconds of one launch by unit. Fewer blocks than multiprocessors leave some idle."""
    sms = min(device.sms, max(1.0, kernel.blocks))
    clock = sms * device.ghz * 1e3  # multiprocessor clocks per microsecond
    share = sms / device.sms
    result = {
        "fp32": kernel.count("fma", "fp32") / (device.fp32_lanes * clock),
        "mufu": kernel.count("mufu") / (device.mufu_lanes * clock),
        "issue": sum(kernel.instructions.values()) / 32 / (device.schedulers * clock),
        "shared": kernel.total("wavefronts") / clock,
        "L2": 32 * kernel.total("sectors") / (device.l2_bytes * clock),
    }
    for operand, tflops in (("tf32", device.tf32_tflops), ("bf16", device.bf16_tflops)):
        flop = kernel.mma_flop(operand)
        if flop:
            result["mma"] = flop / (tflops * 1e6 * share) if tflops else float("inf")
    return result


def roofline(device, kernel):
    """(unit, microseconds, microseconds if every sector came from DRAM)"""
    by_unit = times(device, kernel)
    unit = max(by_unit, key=by_unit.get)
    cold = max(by_unit[unit], 32 * kernel.total("sectors") / (device.dram_gbps * 1e3))
    return unit, by_unit[unit], cold
