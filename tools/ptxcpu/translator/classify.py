# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""The class under which an executed instruction is counted."""

from .registry import is_shape
from .types import HALVES

_MUFU = ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "tanh", "sin", "cos")
_MEMORY = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic"}
_FIXED = {
    "bar": "barrier", "barrier": "barrier",
    "shfl": "shuffle", "vote": "vote", "match": "vote", "redux": "redux", "activemask": "vote",
    "elect": "vote",
    "bra": "branch", "brx": "branch", "ret": "branch", "exit": "branch", "call": "branch",
    "setp": "compare", "set": "compare", "selp": "compare", "slct": "compare", "testp": "compare",
    "mov": "move", "cvta": "move", "isspacep": "move",
    "cvt": "convert",
    "membar": "fence", "fence": "fence",
    "ldmatrix": "ldmatrix", "stmatrix": "stmatrix",
    "cp": "async_copy",
}


def _space(instruction):
    for modifier in instruction.modifiers:
        name = modifier.split("::")[0]
        if name in ("global", "shared", "local", "param", "const"):
            return name
    return "generic"


def instruction_class(instruction):
    opcode, ptx_type = instruction.opcode, instruction.type
    if opcode == "bar" and "warp" in instruction.modifiers:
        return "syncwarp"
    if opcode in _FIXED:
        return _FIXED[opcode]
    if opcode in _MEMORY:
        return f"{_MEMORY[opcode]}.{_space(instruction)}"
    if opcode in ("mma", "wmma"):
        if opcode == "wmma" and "mma" not in instruction.modifiers:
            return "wmma_access"
        shape = next((m for m in instruction.modifiers if is_shape(m)), "")
        types = instruction.types
        operand = types[1] if len(types) == 4 else "f16"
        return f"mma.{shape}.{operand}"
    if opcode in _MUFU and ("approx" in instruction.modifiers or opcode in ("ex2", "lg2", "tanh")):
        return f"mufu.{opcode}"
    if ptx_type == "f32" or ptx_type == "f32x2":
        if opcode in ("fma", "mad"):
            return "fma"
        return f"fp32.{opcode}" if opcode in ("div", "sqrt", "rcp", "rsqrt") else "fp32"
    if ptx_type == "f64":
        return "fp64"
    if ptx_type in HALVES:
        return "fp16"
    return "integer"
