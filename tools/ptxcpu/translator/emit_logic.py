# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Bit manipulation, comparison and selection."""

from .registry import COMPARE, emits
from .types import C_TYPE, SIZE, UNSIGNED, Unsupported, is_signed, parse_integer

_BITWISE = {"and": "&", "or": "|", "xor": "^"}
_RELATION = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}


@emits("and or xor")
def emit_bitwise(context, instruction):
    ptx_type = instruction.type
    x, y = (context.read(operand, ptx_type) for operand in instruction.operands[1:])
    operator = _BITWISE[instruction.opcode]
    if ptx_type == "pred" and operator == "^":
        operator = "!="
    return context.write(instruction.operands[0], ptx_type, f"{x} {operator} {y}")


@emits("not cnot")
def emit_not(context, instruction):
    value = context.read(instruction.operands[1], instruction.type)
    if instruction.opcode == "cnot":
        expression = f"({value} == 0) ? 1 : 0"
    else:
        expression = ("!" if instruction.type == "pred" else "~") + value
    return context.write(instruction.operands[0], instruction.type, expression)


@emits("shl shr")
def emit_shift(context, instruction):
    ptx_type = instruction.type
    c_type = UNSIGNED[SIZE[ptx_type]] if instruction.opcode == "shl" else C_TYPE[ptx_type]
    function = "shift_left" if instruction.opcode == "shl" else "shift_right"
    value = context.read(instruction.operands[1], ptx_type)
    amount = context.read(instruction.operands[2], "u32")
    return context.write(instruction.operands[0], ptx_type, f"{function}<{c_type}>({value}, {amount})")


def _b32_call(context, instruction, call, count):
    operands = ", ".join(context.read(operand, "u32") for operand in instruction.operands[1:1 + count])
    return context.write(instruction.operands[0], "b32", call.format(operands))


@emits("shf", "l r wrap clamp")
def emit_funnel_shift(context, instruction):
    left = "true" if instruction.has("l") else "false"
    wrap = "true" if instruction.has("wrap") else "false"
    return _b32_call(context, instruction, f"funnel_shift({left}, {wrap}, {{}})", 3)


@emits("lop3")
def emit_lop3(context, instruction):
    if instruction.modifiers != ["b32"]:
        raise Unsupported(instruction.full_opcode)
    table = parse_integer(instruction.operands[4])
    return _b32_call(context, instruction, f"logic3<{table}>({{}})", 3)


@emits("prmt")
def emit_permute(context, instruction):
    if instruction.modifiers != ["b32"]:
        raise Unsupported(instruction.full_opcode)
    return _b32_call(context, instruction, "permute_bytes({})", 3)


@emits("bmsk szext", "clamp wrap")
def emit_mask(context, instruction):
    wrap = "true" if instruction.has("wrap") else "false"
    if instruction.opcode == "bmsk":
        return _b32_call(context, instruction, f"bit_mask({wrap}, {{}})", 2)
    signed = "true" if is_signed(instruction.type) else "false"
    return _b32_call(context, instruction, f"extend_bits({signed}, {wrap}, {{}})", 2)


@emits("bfe bfi")
def emit_bit_field(context, instruction):
    ptx_type = instruction.type
    unsigned = UNSIGNED[SIZE[ptx_type]]
    values = [context.read(operand, ptx_type) for operand in instruction.operands[1:-2]]
    range_ = [context.read(operand, "u32") for operand in instruction.operands[-2:]]
    if instruction.opcode == "bfe":
        signed = "true" if is_signed(ptx_type) else "false"
        expression = f"extract_field<{unsigned}>({values[0]}, {range_[0]}, {range_[1]}, {signed})"
    else:
        expression = f"insert_field<{unsigned}>({values[0]}, {values[1]}, {range_[0]}, {range_[1]})"
    return context.write(instruction.operands[0], ptx_type, expression)


@emits("bfind", "shiftamt")
def emit_find_bit(context, instruction):
    ptx_type = instruction.type
    signed = "true" if is_signed(ptx_type) else "false"
    amount = "true" if instruction.has("shiftamt") else "false"
    value = context.read(instruction.operands[1], ptx_type)
    return context.write(instruction.operands[0], "u32",
                         f"find_top_bit<{UNSIGNED[SIZE[ptx_type]]}>({value}, {signed}, {amount})")


@emits("brev popc clz")
def emit_bit_count(context, instruction):
    ptx_type = instruction.type
    function = {"brev": "reverse_bits", "popc": "__builtin_popcountll", "clz": "leading_zeros"}[instruction.opcode]
    result = ptx_type if instruction.opcode == "brev" else "u32"
    value = context.read(instruction.operands[1], "u" + ptx_type[1:])
    return context.write(instruction.operands[0], result, f"{function}({value})")


def compare(context, instruction, relation, ptx_type, left, right):
    """A bool expression; ordered float relations are false and unordered ones true on NaN."""
    is_float = ptx_type in ("f16", "bf16", "f32", "f64")
    if ptx_type in ("f16", "bf16"):
        convert = "bf16_to_float" if ptx_type == "bf16" else "half_to_float"
        x, y = (f"{convert}({context.read(o, 'b16')})" for o in (left, right))
    else:
        x, y = context.read(left, ptx_type), context.read(right, ptx_type)
    if instruction.has("ftz") and ptx_type == "f32":
        x, y = f"flush({x})", f"flush({y})"
    if not is_float:
        return f"({x} {_RELATION[relation]} {y})"
    unordered = f"is_unordered({x}, {y})"
    if relation == "nan":
        return unordered
    if relation == "num":
        return "!" + unordered
    if relation == "ne":
        return f"(!{unordered} && {x} != {y})"
    if relation in _RELATION:
        return f"({x} {_RELATION[relation]} {y})"
    return f"({unordered} || {x} {_RELATION[relation[:-1]]} {y})"


@emits("setp", COMPARE + " and or xor ftz")
def emit_setp(context, instruction):
    if instruction.type in ("f16x2", "bf16x2", "pred"):
        raise Unsupported(instruction.full_opcode)
    relation = instruction.one_of(*COMPARE.split())
    operands = instruction.operands
    condition = compare(context, instruction, relation, instruction.type, operands[1], operands[2])
    code = f"const bool c = {condition}; "
    first, second = "c", "!c"
    combine = instruction.one_of("and", "or", "xor", default="none")
    if combine != "none":
        code += f"const bool q = {context.read(operands[3], 'pred')}; "
        operator = {"and": "&&", "or": "||", "xor": "!="}[combine]
        first, second = f"c {operator} q", f"(!c) {operator} q"
    destinations = operands[0].split("|")
    code += context.write(destinations[0], "pred", first)
    if len(destinations) > 1:
        code += context.write(destinations[1], "pred", second)
    return code


@emits("set", COMPARE + " ftz")
def emit_set(context, instruction):
    relation = instruction.one_of(*COMPARE.split())
    destination, source = instruction.types
    condition = compare(context, instruction, relation, source, *instruction.operands[1:3])
    one, kind = {"f16": ("0x3c00", "b16"), "bf16": ("0x3f80", "b16"), "f32": ("0x3f800000u", "b32"),
                 "u32": ("0xffffffffu", "b32"), "s32": ("0xffffffffu", "b32")}[destination]
    return context.write(instruction.operands[0], kind, f"{condition} ? {one} : 0")


@emits("selp")
def emit_selp(context, instruction):
    ptx_type = instruction.type
    x, y = (context.read(operand, ptx_type) for operand in instruction.operands[1:3])
    condition = context.read(instruction.operands[3], "pred")
    return context.write(instruction.operands[0], ptx_type, f"{condition} ? {x} : {y}")


@emits("slct", "ftz")
def emit_slct(context, instruction):
    destination, source = instruction.types
    x, y = (context.read(operand, destination) for operand in instruction.operands[1:3])
    selector = context.read(instruction.operands[3], source)
    return context.write(instruction.operands[0], destination, f"{selector} >= 0 ? {x} : {y}")


_TESTS = {
    "finite": "std::isfinite({})", "infinite": "std::isinf({})", "number": "!std::isnan({})",
    "notanumber": "std::isnan({})", "normal": "std::isnormal({})",
    "subnormal": "(std::fpclassify({}) == FP_SUBNORMAL)",
}


@emits("testp", " ".join(_TESTS))
def emit_testp(context, instruction):
    value = context.read(instruction.operands[1], instruction.type)
    return context.write(instruction.operands[0], "pred", _TESTS[instruction.one_of(*_TESTS)].format(value))
