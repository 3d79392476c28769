# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Integer arithmetic, with and without carry."""

from .registry import emits
from .types import C_TYPE, SIZE, UNSIGNED, Unsupported, is_signed

_WIDE = {True: {2: "int32_t", 4: "int64_t", 8: "__int128"}, False: {2: "uint32_t", 4: "uint64_t", 8: "u128"}}


def _reads(context, instruction):
    return [context.read(operand, instruction.type) for operand in instruction.operands[1:]]


def _add_sub(context, instruction):
    ptx_type = instruction.type
    unsigned = UNSIGNED[SIZE[ptx_type]]
    x = _reads(context, instruction)
    sign = "+" if instruction.opcode == "add" else "-"
    if instruction.has("cc"):
        return _with_carry(context, instruction, x, sign, carry_in=False)
    if instruction.has("sat"):
        if ptx_type != "s32":
            raise Unsupported(instruction.full_opcode)
        return context.write(instruction.operands[0], ptx_type,
                             f"clamp_to<int32_t>((int64_t){x[0]} {sign} (int64_t){x[1]})")
    return context.write(instruction.operands[0], ptx_type, f"({unsigned}){x[0]} {sign} ({unsigned}){x[1]}")


def _with_carry(context, instruction, x, sign, carry_in):
    """The wide sum holds the carry (or borrow) in the bit above the register."""
    bits = 8 * SIZE[instruction.type]
    unsigned = UNSIGNED[bits // 8]
    carry = f" {sign} (u128)carry" if carry_in else ""
    code = f"const u128 wide = (u128)({unsigned}){x[0]} {sign} (u128)({unsigned}){x[1]}{carry}; "
    code += context.write(instruction.operands[0], instruction.type, f"({unsigned})wide")
    if instruction.has("cc"):
        code += f" carry = (bool)((wide >> {bits}) & 1);"
    return code


@emits("addc subc", "cc")
def emit_add_with_carry(context, instruction):
    sign = "+" if instruction.opcode == "addc" else "-"
    return _with_carry(context, instruction, _reads(context, instruction), sign, carry_in=True)


def _product(instruction, x):
    """The low, high or double-width product, and the type it has."""
    ptx_type = instruction.type
    size, signed = SIZE[ptx_type], is_signed(ptx_type)
    if instruction.has("wide"):
        wide = _WIDE[signed][size]
        return f"({wide}){x[0]} * ({wide}){x[1]}", ("s" if signed else "u") + str(size * 16)
    if instruction.has("hi"):
        wide = _WIDE[signed][size]
        return f"({C_TYPE[ptx_type]})((({wide}){x[0]} * ({wide}){x[1]}) >> {size * 8})", ptx_type
    return f"({C_TYPE[ptx_type]})((uint64_t){x[0]} * (uint64_t){x[1]})", ptx_type


def _mul_mad(context, instruction):
    x = [context.read(operand, instruction.type) for operand in instruction.operands[1:3]]
    value, ptx_type = _product(instruction, x)
    if instruction.has("sat"):
        raise Unsupported(instruction.full_opcode)
    if instruction.opcode in ("mad", "madc"):
        addend = context.read(instruction.operands[3], ptx_type)
        if instruction.has("cc") or instruction.opcode == "madc":
            return _with_carry(context, instruction, [f"({value})", addend], "+", instruction.opcode == "madc")
        unsigned = UNSIGNED[SIZE[ptx_type]]
        value = f"({unsigned})({value}) + ({unsigned}){addend}"
    elif instruction.has("cc"):
        raise Unsupported(instruction.full_opcode)
    return context.write(instruction.operands[0], ptx_type, value)


@emits("madc", "cc lo hi")
def emit_mad_with_carry(context, instruction):
    return _mul_mad(context, instruction)


def emit_integer_arithmetic(context, instruction):
    opcode, ptx_type = instruction.opcode, instruction.type
    if ptx_type is None or ptx_type[0] not in "us" or SIZE[ptx_type] > 8:
        raise Unsupported(instruction.full_opcode)
    if opcode in ("add", "sub"):
        return _add_sub(context, instruction)
    if opcode in ("mul", "mad"):
        return _mul_mad(context, instruction)
    x = _reads(context, instruction)
    c_type, unsigned = C_TYPE[ptx_type], UNSIGNED[SIZE[ptx_type]]
    if opcode in ("div", "min", "max"):
        value = f"integer_{opcode}<{c_type}>({x[0]}, {x[1]})"
        if instruction.has("relu"):
            value = f"integer_max<{c_type}>(0, {value})"
    elif opcode == "neg":
        value = f"({c_type})(0 - ({unsigned}){x[0]})"
    elif opcode == "abs":
        value = f"({x[0]} < 0 ? ({c_type})(0 - ({unsigned}){x[0]}) : {x[0]})"
    else:
        raise Unsupported(instruction.full_opcode)
    return context.write(instruction.operands[0], ptx_type, value)


@emits("rem")
def emit_remainder(context, instruction):
    x = _reads(context, instruction)
    return context.write(instruction.operands[0], instruction.type,
                         f"integer_rem<{C_TYPE[instruction.type]}>({x[0]}, {x[1]})")


@emits("mul24 mad24", "lo")
def emit_mul24(context, instruction):
    x = _reads(context, instruction)
    c_type = C_TYPE[instruction.type]
    narrow = [f"low_24<{c_type}>({value})" for value in x[:2]]
    value = f"({c_type})({narrow[0]} * {narrow[1]})"
    if instruction.opcode == "mad24":
        value = f"({c_type})({value} + {x[2]})"
    return context.write(instruction.operands[0], instruction.type, value)


@emits("sad")
def emit_sad(context, instruction):
    x, y, z = _reads(context, instruction)
    return context.write(instruction.operands[0], instruction.type,
                         f"{z} + ({x} < {y} ? {y} - {x} : {x} - {y})")


@emits("dp4a")
def emit_dp4a(context, instruction):
    types = [{"s32": "int8_t", "u32": "uint8_t"}[t] for t in instruction.types]
    x = [context.read(operand, "u32") for operand in instruction.operands[1:]]
    return context.write(instruction.operands[0], "u32",
                         f"dot_bytes<{types[0]}, {types[1]}>({x[0]}, {x[1]}, {x[2]})")
