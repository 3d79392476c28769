# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Barriers and warp-wide operations."""

from .registry import emits
from .types import Unsupported, parse_integer


@emits("bar barrier", "sync arrive red popc and or aligned cta warp")
def emit_barrier(context, instruction):
    site = context.site(instruction)
    operands = instruction.operands
    if instruction.has("warp"):
        return f"warp_sync(T, {site}, {context.read(operands[0], 'u32')});"
    if instruction.has("red"):
        mode = instruction.one_of("popc", "and", "or")
        count = context.read(operands[2], "u32") if len(operands) > 3 else "0"
        value = context.read(operands[-1], "pred")
        call = f"barrier_reduce(T, {site}, {context.read(operands[1], 'u32')}, {count}, {value}, Reduce::k_{mode})"
        return context.write(operands[0], "u32" if mode == "popc" else "pred", call)
    name = context.read(operands[0], "u32") if operands else "0"
    count = context.read(operands[1], "u32") if len(operands) > 1 else "0"
    function = "barrier_arrive" if instruction.has("arrive") else "barrier_sync"
    return f"{function}(T, {site}, {name}, {count});"


def _write_pair(context, operand, ptx_type, value, predicate):
    """`d|p` destinations: the value, and a predicate that may be absent."""
    parts = operand.split("|")
    code = "" if parts[0].strip() == "_" else context.write(parts[0], ptx_type, value)
    if len(parts) > 1:
        code += context.write(parts[1], "pred", predicate)
    return code


@emits("shfl", "sync up down bfly idx")
def emit_shuffle(context, instruction):
    if not instruction.has("sync"):
        raise Unsupported("legacy " + instruction.full_opcode)
    mode = instruction.one_of("up", "down", "bfly", "idx")
    x = ", ".join(context.read(operand, "u32") for operand in instruction.operands[1:5])
    code = f"bool in_range; const uint32_t v = shuffle(T, {context.site(instruction)}, Shuffle::k_{mode}, {x}, &in_range); "
    return code + _write_pair(context, instruction.operands[0], "b32", "v", "in_range")


@emits("vote", "sync all any uni ballot")
def emit_vote(context, instruction):
    if not instruction.has("sync"):
        raise Unsupported("legacy " + instruction.full_opcode)
    mode = instruction.one_of("all", "any", "uni", "ballot")
    value = context.read(instruction.operands[1], "pred")
    mask = context.read(instruction.operands[2], "u32")
    return context.write(instruction.operands[0], "u32" if mode == "ballot" else "pred",
                         f"vote(T, {context.site(instruction)}, Vote::k_{mode}, {value}, {mask})")


@emits("match", "sync any all")
def emit_match(context, instruction):
    every = "true" if instruction.has("all") else "false"
    value = context.read(instruction.operands[1], instruction.type)
    mask = context.read(instruction.operands[2], "u32")
    code = f"bool equal; const uint32_t v = match(T, {context.site(instruction)}, {every}, {value}, {mask}, &equal); "
    return code + _write_pair(context, instruction.operands[0], "u32", "v", "equal")


@emits("redux", "sync add min max and or xor")
def emit_redux(context, instruction):
    operation = instruction.one_of("add", "min", "max", "and", "or", "xor")
    if operation in ("min", "max"):
        operation += f"_{instruction.type}"
    value = context.read(instruction.operands[1], "b32")
    mask = context.read(instruction.operands[2], "u32")
    return context.write(instruction.operands[0], "b32",
                         f"reduce(T, {context.site(instruction)}, Redux::k_{operation}, {value}, {mask})")


@emits("activemask")
def emit_active_mask(context, instruction):
    return context.write(instruction.operands[0], "u32", "active_mask(T)")


@emits("elect", "sync")
def emit_elect(context, instruction):
    mask = context.read(instruction.operands[1], "u32")
    code = f"const uint32_t first = __builtin_ctz(vote(T, {context.site(instruction)}, Vote::k_ballot, true, {mask})); "
    return code + _write_pair(context, instruction.operands[0], "u32", "first", "first == T->lane")


@emits("nanosleep")
def emit_nanosleep(context, instruction):
    return f"yield_spinning(T, {context.site(instruction)});"


@emits("setmaxnreg griddepcontrol pmevent", "inc dec sync aligned wait launch_dependents mask")
def emit_no_operation(context, instruction):
    if instruction.opcode == "pmevent":
        parse_integer(instruction.operands[0])
    return ";"
