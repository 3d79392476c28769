# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Matrix instructions: mma.sync, ldmatrix/stmatrix and wmma."""

import re

from .emit_memory import space_of
from .operands import vector_items
from .registry import SPACE, emits, is_shape
from .types import UNSIGNED, Unsupported

_ELEMENT = {"f16": "kHalf", "bf16": "kBf16", "tf32": "kTf32", "s8": "kInt8", "u8": "kUint8", "f64": "kDouble"}
_WMMA_SIZE = {"tf32": 4, "f32": 4, "s32": 4, "f16": 2, "bf16": 2, "s8": 1, "u8": 1}


def _shape(instruction):
    text = next(m for m in instruction.modifiers if is_shape(m))
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _matrix_pointer(context, instruction, operand, count):
    generic = "true" if space_of(instruction) == "generic" else "false"
    kind = "kFragmentRead" if instruction.opcode == "ldmatrix" else "kWrite"
    return (f"m.row = matrix_row(T, {context.site(instruction)}, {context.address(operand)}, {count}, "
            f"{generic}, Access::{kind}); ")


@emits("ldmatrix stmatrix", f"sync aligned m8n8 x1 x2 x4 trans {SPACE}")
def emit_matrix_access(context, instruction):
    if instruction.type != "b16" or not instruction.has("m8n8"):
        raise Unsupported(instruction.full_opcode)
    count = int(instruction.one_of("x1", "x2", "x4")[1])
    load = instruction.opcode == "ldmatrix"
    registers, address = instruction.operands if load else reversed(instruction.operands)
    registers = vector_items(registers)
    transposed = "true" if instruction.has("trans") else "false"
    code = f"MatrixSlot m; m.count = {count}; m.transposed = {transposed}; "
    code += _matrix_pointer(context, instruction, address, count)
    if not load:
        code += "".join(f"m.value[{i}] = {context.read(r, 'b32')}; " for i, r in enumerate(registers))
    code += f"{'load' if load else 'store'}_matrix(T, {context.site(instruction)}, &m); "
    if load:
        code += "".join(context.write(r, "b32", f"m.value[{i}]") for i, r in enumerate(registers))
    return code


def _supported_mma(shape, instruction, a, b):
    if shape == (8, 8, 4):
        return a == b == "f64"
    if shape[:2] != (16, 8) or not (instruction.has("row") and instruction.has("col")):
        return False
    depths = {"f16": (8, 16), "bf16": (8, 16), "tf32": (4, 8), "s8": (16, 32), "u8": (16, 32)}
    return shape[2] in depths.get(a, ()) and (a == b or {a, b} == {"s8", "u8"})


@emits("mma", "sync aligned row col shape satfinite")
def emit_mma(context, instruction):
    shape, types = _shape(instruction), instruction.types
    if len(types) != 4 or instruction.has("satfinite"):
        raise Unsupported(instruction.full_opcode)
    d, a, b, c = types
    if not _supported_mma(shape, instruction, a, b):
        raise Unsupported(instruction.full_opcode)
    halves = f"{'true' if c == 'f16' else 'false'}, {'true' if d == 'f16' else 'false'}"
    code = (f"MmaSlot m; m.k = {shape[2]}; m.a_type = Element::{_ELEMENT[a]}; m.b_type = Element::{_ELEMENT[b]}; "
            f"set_accumulators(m, {halves}); ")
    wide = a == "f64"
    for name, operand in (("a", instruction.operands[1]), ("b", instruction.operands[2]), ("c", instruction.operands[3])):
        for i, register in enumerate(vector_items(operand)):
            value = context.read(register, "b64" if wide else "b32")
            code += f"m.{name}[{i}] = {value}; "
    code += f"multiply_matrices(T, {context.site(instruction)}, &m); "
    for i, register in enumerate(vector_items(instruction.operands[0])):
        code += context.write(register, "b64" if wide else "b32", f"m.d[{i}]")
    return code


def _emit_wmma_multiply(context, instruction):
    shape, types = _shape(instruction), instruction.types
    d, a, c = (types[0], "f16", types[1]) if len(types) == 2 else (types[0], types[1], types[3])
    if a not in ("f16", "bf16", "tf32", "s8", "u8"):
        raise Unsupported(instruction.full_opcode)
    code = f"WmmaSlot m; m.m = {shape[0]}; m.n = {shape[1]}; m.k = {shape[2]}; m.type = Element::{_ELEMENT[a]}; "
    code += f"m.c_half = {'true' if c == 'f16' else 'false'}; m.d_half = {'true' if d == 'f16' else 'false'}; "
    for name, operand in zip("abc", instruction.operands[1:4]):
        for i, register in enumerate(vector_items(operand)):
            code += f"m.{name}[{i}] = {context.read(register, 'b32')}; "
    code += f"multiply_wmma(T, {context.site(instruction)}, &m); "
    for i, register in enumerate(vector_items(instruction.operands[0])):
        code += context.write(register, "b32", f"m.d[{i}]")
    return code


def _emit_wmma_access(context, instruction):
    """Fragments have a layout of our own: element e of the tile lives in lane e % 32, slot e / 32."""
    m, n, k = _shape(instruction)
    load = instruction.has("load")
    matrix = instruction.one_of("a", "b", "c", "d")
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[matrix]
    row_major = instruction.one_of("row", "col") == "row"
    size = _WMMA_SIZE[instruction.type]
    fragment, address = instruction.operands[:2] if load else reversed(instruction.operands[:2])
    registers = vector_items(fragment)
    stride = (context.read(instruction.operands[2], "u32") if len(instruction.operands) > 2
              else str(columns if row_major else rows))
    space = space_of(instruction)
    code = "uint32_t fragment[16] = {}; "
    if not load:
        code += "".join(f"fragment[{i}] = {context.read(r, 'b32')}; " for i, r in enumerate(registers))
    function = f"{'load' if load else 'store'}_fragment<{UNSIGNED[size]}>"
    code += (f"{function}(T, {context.site(instruction)}, access_{space}, {context.address(address)}, {stride}, "
             f"{rows}, {columns}, {'true' if row_major else 'false'}, fragment); ")
    if load:  # PTX fragments of a and b may be wider than the tile: upper registers repeat
        used = max(1, rows * columns // 32 * size // 4)
        code += "".join(context.write(r, "b32", f"fragment[{i % used}]") for i, r in enumerate(registers))
    return code


@emits("wmma", f"load store mma a b c d sync aligned row col shape {SPACE}")
def emit_wmma(context, instruction):
    if instruction.modifiers[0] == "mma":
        return _emit_wmma_multiply(context, instruction)
    if instruction.type not in _WMMA_SIZE:
        raise Unsupported(instruction.full_opcode)
    return _emit_wmma_access(context, instruction)
