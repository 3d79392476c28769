# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""PTX scalar types and the C++ types that carry them."""


class Unsupported(Exception):
    """The PTX uses something the translator does not know. Never guessed around."""


# Size in bytes of every type name that may end an opcode or a declaration.
SIZE = {
    "pred": 1,
    "b8": 1, "u8": 1, "s8": 1,
    "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "f32x2": 8,
    "b128": 16,
}

# The C++ type in which a value of the PTX type is computed. Half types travel as bit patterns.
C_TYPE = {
    "pred": "bool",
    "b8": "uint8_t", "u8": "uint8_t", "s8": "int8_t",
    "b16": "uint16_t", "u16": "uint16_t", "s16": "int16_t", "f16": "uint16_t", "bf16": "uint16_t",
    "b32": "uint32_t", "u32": "uint32_t", "s32": "int32_t", "f32": "float",
    "f16x2": "uint32_t", "bf16x2": "uint32_t", "tf32": "uint32_t",
    "b64": "uint64_t", "u64": "uint64_t", "s64": "int64_t", "f64": "double", "f32x2": "uint64_t",
    "b128": "u128",
}

UNSIGNED = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t", 16: "u128"}

FLOATS = ("f16", "bf16", "f32", "f64")
HALVES = ("f16", "bf16", "f16x2", "bf16x2")


def is_signed(ptx_type):
    return ptx_type[0] == "s"


def register_type(ptx_type):
    """Registers hold bit patterns: the unsigned type of the same width."""
    return "bool" if ptx_type == "pred" else UNSIGNED[SIZE[ptx_type]]


def align_up(value, alignment):
    return (value + alignment - 1) // alignment * alignment


def parse_integer(text):
    """A PTX integer literal: decimal, 0x hexadecimal or 0-prefixed octal, optional U suffix."""
    text = text.rstrip("U")
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("-")
    if len(digits) > 1 and digits[0] == "0" and digits[1] not in "xXbB":
        return sign * int(digits, 8)
    return sign * int(digits, 0)
