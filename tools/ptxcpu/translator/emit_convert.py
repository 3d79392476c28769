# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""cvt: conversions between integers, floats and the half types."""

from .registry import ROUND, ROUND_INT, emits
from .types import C_TYPE, FLOATS, Unsupported

_ROUND_TO_INTEGER = {"rni": "std::nearbyint", "rzi": "std::trunc", "rmi": "std::floor", "rpi": "std::ceil"}
_DIRECTED = {"rm": 1, "rp": 2, "rz": 3}
_HALF_FROM = {"f16": "to_half", "bf16": "to_bf16"}
_HALF_TO = {"f16": "half_to_float", "bf16": "bf16_to_float"}


def _directed(instruction):
    return next((_DIRECTED[m] for m in instruction.modifiers if m in _DIRECTED), 0)


def _narrow(instruction, kind, value):
    """Rounds to a half type; only to nearest and toward zero exist there."""
    mode = _directed(instruction)
    if mode not in (0, 3):
        raise Unsupported(instruction.full_opcode)
    return f"{_HALF_FROM[kind]}{'_rz' if mode else ''}({value})"


def _emit_packed(context, instruction, destination):
    """Two singles into one register: the first operand becomes the upper half."""
    if instruction.types[1] != "f32":
        raise Unsupported(instruction.full_opcode)
    kind = destination[:-2]
    values = [context.read(operand, "f32") for operand in instruction.operands[1:3]]
    if instruction.has("relu"):
        values = [f"float_max(0.0f, {value})" for value in values]
    high, low = (_narrow(instruction, kind, value) for value in values)
    return context.write(instruction.operands[0], "b32", f"((uint32_t){high} << 16) | {low}")


def _float_to_float(context, instruction, destination, source, value):
    if rounding := next((_ROUND_TO_INTEGER[m] for m in instruction.modifiers if m in _ROUND_TO_INTEGER), None):
        value = f"{rounding}({value})"
    if instruction.has("relu"):
        value = f"float_max(({'double' if source == 'f64' else 'float'})0, {value})"
    if destination in _HALF_FROM:
        return context.write(instruction.operands[0], "b16", _narrow(instruction, destination, value))
    mode = _directed(instruction)
    if destination == "f32" and source == "f64" and mode:
        value = f"narrow_directed<{mode}>({value})"
    else:
        value = f"({C_TYPE[destination]}){value}"
    if instruction.has("sat"):
        value = f"saturate({value})"
    if instruction.has("ftz") and destination == "f32":
        value = f"flush({value})"
    return context.write(instruction.operands[0], destination, value)


def _integer_to_float(context, instruction, destination, source, value):
    if destination in _HALF_FROM:
        return context.write(instruction.operands[0], "b16", _narrow(instruction, destination, f"(double){value}"))
    mode = _directed(instruction)
    if mode and (destination == "f64" or source in ("u64", "s64")):
        raise Unsupported(instruction.full_opcode)
    if mode:
        value = f"narrow_directed<{mode}>((double){value})"
    return context.write(instruction.operands[0], destination, f"({C_TYPE[destination]}){value}")


@emits("cvt", f"{ROUND} {ROUND_INT} ftz sat relu satfinite")
def emit_cvt(context, instruction):
    if instruction.has("satfinite") and instruction.types[0] != "tf32":
        raise Unsupported(instruction.full_opcode)
    destination, source = instruction.types
    if destination in ("f16x2", "bf16x2"):
        return _emit_packed(context, instruction, destination)
    if destination == "tf32":
        function = f"to_tf32_{instruction.one_of('rna', 'rn')}"
        return context.write(instruction.operands[0], "b32", f"{function}({context.read(instruction.operands[1], 'f32')})")
    if source in _HALF_TO:
        value = f"{_HALF_TO[source]}({context.read(instruction.operands[1], 'b16')})"
    else:
        value = context.read(instruction.operands[1], source)
    if source == "f32" and instruction.has("ftz"):
        value = f"flush({value})"
    if source in FLOATS and destination in FLOATS:
        return _float_to_float(context, instruction, destination, source, value)
    if source in FLOATS:
        rounding = next((_ROUND_TO_INTEGER[m] for m in instruction.modifiers if m in _ROUND_TO_INTEGER), "std::trunc")
        return context.write(instruction.operands[0], destination,
                             f"float_to_integer<{C_TYPE[destination]}>({rounding}((double){value}))")
    if destination in FLOATS:
        return _integer_to_float(context, instruction, destination, source, value)
    if instruction.has("sat"):
        return context.write(instruction.operands[0], destination, f"clamp_to<{C_TYPE[destination]}>({value})")
    return context.write(instruction.operands[0], destination, f"({C_TYPE[destination]}){value}")
