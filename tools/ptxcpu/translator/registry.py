# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Which emitter handles which opcode, with which modifiers. What is not registered is refused."""

import re

from .types import SIZE, Unsupported

ROUND = "rn rz rm rp rna"
ROUND_INT = "rni rzi rmi rpi"
COMPARE = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"
SPACE = "global shared shared::cta local param param::entry param::func const"
SCOPE = "cta gpu sys"
ORDER = "volatile relaxed acquire release acq_rel weak"
CACHE = (
    "ca cg cs lu cv wb wt nc L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last "
    "L1::no_allocate L2::64B L2::128B L2::256B L2::cache_hint L2::evict_last L2::evict_normal "
    "L2::evict_first"
)
VECTOR = "v2 v4 v8"

_SHAPE = re.compile(r"m\d+n\d+k\d+")
_EMITTERS = {}


def emits(opcodes, modifiers=""):
    """Registers a function (context, instruction) -> C++ text for the opcodes.

    Type names are always allowed; the emitter itself must refuse the types it cannot handle.
    """
    allowed = frozenset(modifiers.split())

    def register(function):
        for opcode in opcodes.split():
            _EMITTERS[opcode] = (function, allowed)
        return function

    return register


def find_emitter(instruction):
    entry = _EMITTERS.get(instruction.opcode)
    if entry is None:
        raise Unsupported("opcode " + instruction.full_opcode)
    function, allowed = entry
    for modifier in instruction.modifiers:
        if modifier in allowed or modifier in SIZE:
            continue
        if "shape" in allowed and _SHAPE.fullmatch(modifier):
            continue
        raise Unsupported(f"modifier .{modifier} in {instruction.full_opcode}")
    return function


def is_shape(modifier):
    return _SHAPE.fullmatch(modifier) is not None
