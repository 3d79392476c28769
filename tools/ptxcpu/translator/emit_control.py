# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Moves, branches, calls and the end of threads."""

from .operands import symbol_name, vector_items
from .registry import emits
from .types import SIZE, Unsupported


@emits("mov")
def emit_mov(context, instruction):
    """Also packs `{a, b}` into a wider register, and unpacks one."""
    target, source = instruction.operands
    ptx_type = instruction.type
    bits = 8 * SIZE[ptx_type]
    wide = "u128" if bits == 128 else "uint64_t"
    if target.startswith("{"):
        parts = vector_items(target)
        width = bits // len(parts)
        code = f"const {wide} v = {context.read(source, f'b{bits}')}; "
        for i, part in enumerate(parts):
            if part != "_":
                code += context.write(part, f"b{width}", f"(uint{width}_t)(v >> {i * width})")
        return code
    if source.startswith("{"):
        parts = vector_items(source)
        width = bits // len(parts)
        terms = [f"(({wide}){context.read(part, f'b{width}')} << {i * width})" for i, part in enumerate(parts)]
        return context.write(target, f"b{bits}", " | ".join(terms))
    return context.write(target, ptx_type, context.read(source, ptx_type))


@emits("bra", "uni")
def emit_branch(context, instruction):
    return f"goto {context.label(instruction.operands[0])};"


@emits("brx", "idx uni")
def emit_indexed_branch(context, instruction):
    targets = context.branch_tables[instruction.operands[1]]
    cases = " ".join(f"case {i}: goto {context.label(t)};" for i, t in enumerate(targets))
    return f"switch ({context.read(instruction.operands[0], 'u32')}) {{ {cases} default: __builtin_unreachable(); }}"


@emits("ret exit", "uni")
def emit_return(context, instruction):
    if instruction.opcode == "exit" and not context.function.is_entry:
        return "exit_thread(T);"
    return "return;"


@emits("trap brkpt")
def emit_trap(context, instruction):
    if instruction.opcode == "brkpt":
        return ";"
    return f'fault(T, {context.site(instruction)}, Fault::kTrap, "trap instruction");'


def _call_parts(instruction):
    operands = list(instruction.operands)
    results = []
    if operands[0].startswith("("):
        results = [r.strip() for r in operands.pop(0)[1:-1].split(",") if r.strip()]
    name = operands.pop(0)
    arguments = []
    if operands and operands[0].startswith("("):
        arguments = [a.strip() for a in operands[0][1:-1].split(",") if a.strip()]
    return results, name, arguments


@emits("call", "uni")
def emit_call(context, instruction):
    results, name, arguments = _call_parts(instruction)
    pointers = [context.local_symbols[a] for a in arguments]
    if name == "vprintf":
        return f"device_printf(peek<uint64_t>({pointers[0]}), peek<uint64_t>({pointers[1]}));"
    if name == "__assertfail":
        return (f'fault(T, {context.site(instruction)}, Fault::kAssert, "device assertion `%s` failed", '
                f"(const char*)peek<uint64_t>({pointers[0]}));")
    if name in context.module.signatures and name not in ("malloc", "free"):
        target = "fn_" + symbol_name(name)
    elif context.find_register(name):
        target = f"((DeviceFunction){context.read(name, 'u64')})"
    else:
        raise Unsupported("call of " + name)
    result_list = "".join(context.local_symbols[r] + ", " for r in results)
    argument_list = "".join(p + ", " for p in pointers)
    return (f"uint8_t* results_[] = {{{result_list}nullptr}}; uint8_t* args_[] = {{{argument_list}nullptr}}; "
            f"{target}(T, results_, args_);")
