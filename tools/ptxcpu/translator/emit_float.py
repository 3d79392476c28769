# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Floating-point arithmetic: single, double, and the half types computed through double."""

from .registry import ROUND, emits
from .types import HALVES, Unsupported
from .emit_integer import emit_integer_arithmetic

_DIRECTED = {"rm": 1, "rp": 2, "rz": 3}  # the MXCSR rounding-control codes
_INFIX = {"add": "+", "sub": "-", "mul": "*"}
_ALLOWED = ROUND + " ftz sat relu NaN xorsign abs approx full lo hi wide cc noftz"


def _directed(instruction):
    return next((_DIRECTED[m] for m in instruction.modifiers if m in _DIRECTED), 0)


def _basic(instruction, x, mode):
    """add, sub, mul, div, fma and square root, which exist with directed rounding."""
    opcode = instruction.opcode
    single = instruction.type == "f32"
    if opcode == "mad":
        opcode = "fma"
    if opcode == "rcp":
        opcode, x = "div", ["1.0f" if single else "1.0", x[0]]
    if mode:
        return f"{opcode}_directed<{mode}>({', '.join(x)})"
    if opcode in _INFIX:
        return f"({x[0]} {_INFIX[opcode]} {x[1]})"
    if opcode == "div":
        return f"({x[0]} / {x[1]})"
    if opcode == "sqrt":
        return f"std::sqrt({x[0]})"
    return f"__builtin_fma{'f' if single else ''}({', '.join(x)})"


def _unary(instruction, x):
    opcode, single = instruction.opcode, instruction.type == "f32"
    if opcode == "neg":
        return f"(-{x})"
    if opcode == "abs":
        return f"std::fabs({x})"
    if opcode == "rsqrt":
        return f"approx_rsqrt({x})"
    if single and opcode in ("ex2", "lg2", "sin", "cos", "tanh"):
        return f"approx_{opcode}({x})"
    raise Unsupported(instruction.full_opcode)


def _min_max(instruction, x):
    name = f"float_{instruction.opcode}{'_nan' if instruction.has('NaN') else ''}"
    expression = f"{name}({x[0]}, {x[1]})"
    return f"{name}({expression}, {x[2]})" if len(x) == 3 else expression


def _emit_float(context, instruction):
    if instruction.has("xorsign") or instruction.has("relu") or instruction.has("cc"):
        raise Unsupported(instruction.full_opcode)
    ptx_type = instruction.type
    x = [context.read(operand, ptx_type) for operand in instruction.operands[1:]]
    flush = instruction.has("ftz")
    if flush:
        x = [f"flush({value})" for value in x]
    if instruction.opcode in ("add", "sub", "mul", "div", "fma", "mad", "sqrt", "rcp"):
        expression = _basic(instruction, x, _directed(instruction))
    elif instruction.opcode in ("min", "max"):
        expression = _min_max(instruction, x)
    elif instruction.opcode == "copysign":
        expression = f"std::copysign({x[1]}, {x[0]})"
    else:
        expression = _unary(instruction, x[0])
    if flush:
        expression = f"flush({expression})"
    if instruction.has("sat"):
        expression = f"saturate({expression})"
    return context.write(instruction.operands[0], ptx_type, expression)


def _half_expression(instruction, x):
    opcode = instruction.opcode
    if opcode in _INFIX:
        return f"({x[0]} {_INFIX[opcode]} {x[1]})"
    if opcode == "fma":
        return f"std::fma({', '.join(x)})"
    if opcode in ("min", "max"):
        return _min_max(instruction, x)
    if opcode in ("ex2", "tanh"):
        return f"std::{'exp2' if opcode == 'ex2' else 'tanh'}({x[0]})"
    return _unary(instruction, x[0])


def _emit_half(context, instruction):
    """Halves are exact in double, and one rounding at the end is the device's single rounding."""
    ptx_type = instruction.type
    if _directed(instruction) or instruction.has("xorsign") or instruction.has("cc"):
        raise Unsupported(instruction.full_opcode)
    to_double, from_double = (("bf16_to_float", "to_bf16") if ptx_type.startswith("bf")
                              else ("half_to_float", "to_half"))

    def one(words):
        values = [f"(double){to_double}({word})" for word in words]
        expression = _half_expression(instruction, values)
        if instruction.has("relu"):
            expression = f"float_max(0.0, {expression})"
        if instruction.has("sat"):
            expression = f"saturate({expression})"
        return f"{from_double}({expression})"

    if not ptx_type.endswith("x2"):
        words = [context.read(operand, "b16") for operand in instruction.operands[1:]]
        return context.write(instruction.operands[0], "b16", one(words))
    words = [context.read(operand, "b32") for operand in instruction.operands[1:]]
    low = one([f"(uint16_t){word}" for word in words])
    high = one([f"(uint16_t)({word} >> 16)" for word in words])
    return context.write(instruction.operands[0], "b32", f"(uint32_t){low} | ((uint32_t){high} << 16)")


def _emit_pair(context, instruction):
    """f32x2: two single operations on the halves of a 64-bit register."""
    if instruction.opcode not in ("add", "sub", "mul", "fma") or instruction.has("sat"):
        raise Unsupported(instruction.full_opcode)
    mode = _directed(instruction)
    single = type(instruction)(instruction.opcode, ["f32"], [], None, 0, "")
    words = [context.read(operand, "b64") for operand in instruction.operands[1:]]
    halves = []
    for shift in (0, 32):
        x = [f"as_f32((uint32_t)({word} >> {shift}))" for word in words]
        if instruction.has("ftz"):
            x = [f"flush({value})" for value in x]
        value = _basic(single, x, mode)
        halves.append(f"flush({value})" if instruction.has("ftz") else value)
    return context.write(instruction.operands[0], "b64",
                         f"(uint64_t)bits_of({halves[0]}) | ((uint64_t)bits_of({halves[1]}) << 32)")


@emits("add sub mul div min max mad fma neg abs sqrt rsqrt rcp ex2 lg2 sin cos tanh copysign", _ALLOWED)
def emit_arithmetic(context, instruction):
    ptx_type = instruction.type
    if ptx_type in HALVES:
        return _emit_half(context, instruction)
    if ptx_type == "f32x2":
        return _emit_pair(context, instruction)
    if ptx_type in ("f32", "f64"):
        return _emit_float(context, instruction)
    return emit_integer_arithmetic(context, instruction)
