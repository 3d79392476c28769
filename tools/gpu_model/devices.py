# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""One device per architecture, from data sheets: what the roofline is computed with."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    name: str
    sms: int
    ghz: float
    fp32_lanes: int        # per multiprocessor and clock
    tf32_tflops: float     # dense; what mma.sync reaches is less from 90 on
    bf16_tflops: float
    dram_gbps: float
    threads: int           # resident per multiprocessor
    blocks: int
    shared_kib: int
    registers: int = 65536
    mufu_lanes: int = 16
    l2_bytes: int = 64     # per multiprocessor and clock
    schedulers: int = 4    # warp instructions per multiprocessor and clock


DEVICES = {
    75: Device("T4", 40, 1.59, 64, 0, 0, 320, 1024, 16, 64),
    80: Device("A100", 108, 1.41, 64, 156, 312, 1555, 2048, 32, 164),
    86: Device("A10", 72, 1.695, 128, 62.5, 125, 600, 1536, 16, 100),
    87: Device("AGX Orin", 16, 1.3, 128, 21, 42, 205, 1536, 16, 164),
    89: Device("L4", 58, 2.04, 128, 60, 121, 300, 1536, 24, 100),
    90: Device("H100", 132, 1.98, 128, 495, 990, 3350, 2048, 32, 228),
    100: Device("B200", 148, 1.96, 128, 1100, 2250, 8000, 2048, 32, 228),
    120: Device("RTX 5090", 170, 2.41, 128, 105, 209, 1792, 1536, 24, 100),
}
