# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Loads, stores, atomics, address conversion and asynchronous copies."""

from .operands import vector_items
from .registry import CACHE, ORDER, SCOPE, SPACE, VECTOR, emits
from .types import C_TYPE, SIZE, UNSIGNED, Unsupported, parse_integer

_CHECKED = {"global": "access_global", "shared": "access_shared", "generic": "access_generic"}


def space_of(instruction):
    for modifier in instruction.modifiers:
        name = modifier.split("::")[0]
        if name in ("global", "shared", "local", "param", "const"):
            return name
    return "generic"


def access(context, instruction, operand, size, kind):
    """Declares `p`, the host pointer behind a checked access of `size` bytes."""
    address = context.address(operand)
    space = space_of(instruction)
    if space in ("param", "local", "const"):
        return f"uint8_t* const p = (uint8_t*)({address}); "
    site = context.site(instruction)
    return f"uint8_t* const p = {_CHECKED[space]}(T, {site}, {address}, {size}, Access::{kind}); "


def _is_strong(instruction):
    return any(instruction.has(m) for m in ("volatile", "relaxed", "acquire", "release"))


@emits("ld ldu", f"{SPACE} {ORDER} {SCOPE} {CACHE} {VECTOR}")
def emit_load(context, instruction):
    ptx_type, width = instruction.type, instruction.vector_width
    size, c_type = SIZE[ptx_type], C_TYPE[ptx_type]
    targets = vector_items(instruction.operands[0])
    if len(targets) != width:
        raise Unsupported(instruction.full_opcode)
    strong = _is_strong(instruction)
    code = f"may_spin(T, {context.site(instruction)}); " if strong else ""
    code += access(context, instruction, instruction.operands[1], size * width, "kStrongRead" if strong else "kRead")
    # All elements are read before any register is written: a target may be the address register.
    code += "".join(f"const {c_type} v{i} = peek<{c_type}>(p + {i * size}); " for i in range(width))
    for i, target in enumerate(targets):
        if target != "_":
            code += context.write(target, ptx_type, f"v{i}")
    return code


@emits("st", f"{SPACE} {ORDER} {SCOPE} {CACHE} {VECTOR}")
def emit_store(context, instruction):
    ptx_type, width = instruction.type, instruction.vector_width
    size, c_type = SIZE[ptx_type], C_TYPE[ptx_type]
    sources = vector_items(instruction.operands[1])
    if len(sources) != width:
        raise Unsupported(instruction.full_opcode)
    kind = "kStrongWrite" if _is_strong(instruction) else "kWrite"
    code = access(context, instruction, instruction.operands[0], size * width, kind)
    for i, source in enumerate(sources):
        code += f"poke<{c_type}>(p + {i * size}, {context.read(source, ptx_type)}); "
    return code


@emits("cvta", SPACE + " to")
def emit_cvta(context, instruction):
    target, source = instruction.operands
    ptx_type = instruction.type
    if space_of(instruction) != "shared":
        return context.write(target, ptx_type, context.read(source, ptx_type))
    sign = "-" if instruction.has("to") else "+"
    return context.write(target, ptx_type, f"{context.read(source, 'u64')} {sign} (uint64_t)T->block->shared")


@emits("isspacep", SPACE)
def emit_isspacep(context, instruction):
    value = context.read(instruction.operands[1], "u64")
    space = space_of(instruction)
    if space not in ("shared", "local", "global"):
        raise Unsupported(instruction.full_opcode)
    return context.write(instruction.operands[0], "pred", f"is_{space}(T, {value})")


def _half_add(ptx_type, value):
    """Old value plus operand for f16/bf16 and their packed pairs."""
    to, back = (("bf16_to_float", "to_bf16") if ptx_type.startswith("bf") else ("half_to_float", "to_half"))

    def one(shift):
        return f"{back}((double){to}((uint16_t)(old >> {shift})) + {to}((uint16_t)({value} >> {shift})))"

    if SIZE[ptx_type] == 2:
        return one(0)
    return f"(uint32_t){one(0)} | ((uint32_t){one(16)} << 16)"


def _atomic_value(context, instruction, operation, ptx_type, value, operands):
    c_type = C_TYPE[ptx_type]
    if ptx_type in ("f16", "bf16", "f16x2", "bf16x2"):
        if operation != "add":
            raise Unsupported(instruction.full_opcode)
        return _half_add(ptx_type, value)
    if operation == "add" and ptx_type in ("f32", "f64"):
        return f"old + {value}"
    if operation == "add":
        unsigned = UNSIGNED[SIZE[ptx_type]]
        return f"({c_type})(({unsigned})old + ({unsigned}){value})"
    if operation in ("min", "max"):
        kind = "float" if ptx_type in ("f32", "f64") else "integer"
        return f"{kind}_{operation}<{c_type}>(old, {value})"
    if operation == "cas":
        return f"old == {value} ? {context.read(operands[2], ptx_type)} : old"
    return {
        "and": f"old & {value}", "or": f"old | {value}", "xor": f"old ^ {value}", "exch": value,
        "inc": f"old >= {value} ? 0 : old + 1",
        "dec": f"(old == 0 || old > {value}) ? {value} : old - 1",
    }[operation]


_OPERATIONS = "add min max inc dec cas exch and or xor"


@emits("atom red", f"{SPACE} {ORDER} {SCOPE} {VECTOR} {_OPERATIONS} noftz L2::cache_hint")
def emit_atomic(context, instruction):
    """Threads of one launch run on one host thread: a plain read-modify-write is atomic."""
    operands = list(instruction.operands)
    target = operands.pop(0) if instruction.opcode == "atom" else None
    ptx_type, width = instruction.type, instruction.vector_width
    operation = instruction.one_of(*_OPERATIONS.split())
    size, c_type = SIZE[ptx_type], C_TYPE[ptx_type]
    code = f"may_spin(T, {context.site(instruction)}); " if operation in ("cas", "exch") else ""
    code += access(context, instruction, operands[0], size * width, "kAtomic")
    sources = vector_items(operands[1])
    targets = vector_items(target) if target else [None] * width
    for i in range(width):
        value = _atomic_value(context, instruction, operation, ptx_type,
                              context.read(sources[i], ptx_type), operands)
        code += f"{{ const {c_type} old = peek<{c_type}>(p + {i * size}); "
        code += f"poke<{c_type}>(p + {i * size}, {value}); "
        if targets[i] and targets[i] != "_":
            code += context.write(targets[i], "b16" if ptx_type in ("f16", "bf16") else ptx_type, "old")
        code += "} "
    return code


@emits("cp", f"async commit_group wait_group wait_all {SPACE} {CACHE}")
def emit_cp_async(context, instruction):
    if not instruction.has("async"):
        raise Unsupported(instruction.full_opcode)
    if instruction.has("commit_group"):
        return "async_commit(T);"
    if instruction.has("wait_all"):
        return "async_wait(T, -1);"
    operands = instruction.operands
    if instruction.has("wait_group"):
        return f"async_wait(T, {parse_integer(operands[0])});"
    size = parse_integer(operands[2])
    if size not in (4, 8, 16):
        raise Unsupported(instruction.full_opcode)
    extra = operands[3:-1] if instruction.has("L2::cache_hint") else operands[3:]
    source_size = str(size)
    if extra:
        register = context.find_register(extra[0])
        if register and register[1] == "pred":  # ignore-src
            source_size = f"({register[0]} ? 0 : {size})"
        else:
            source_size = context.read(extra[0], "u32")
    site = context.site(instruction)
    return (f"async_copy(T, {site}, {context.address(operands[0])}, {context.address(operands[1])}, "
            f"{size}, {source_size});")


@emits("createpolicy", f"{SPACE} {CACHE} fractional range")
def emit_create_policy(context, instruction):
    return context.write(instruction.operands[0], "b64", "0")


@emits("membar fence", f"{SCOPE} {ORDER} gl sc proxy async alias {SPACE}")
def emit_fence(context, instruction):
    return "memory_fence(T);"


@emits("prefetch prefetchu discard applypriority", f"{SPACE} {CACHE} L1 L2")
def emit_cache_hint(context, instruction):
    return ";"
