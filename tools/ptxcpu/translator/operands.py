# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Operands: names, immediates, special registers and addresses as C++ expressions."""

import re

from .types import C_TYPE, SIZE, Unsupported, parse_integer, register_type


def mangle(name, prefix):
    """A C++ identifier for a PTX name; other characters become their hexadecimal code."""
    return prefix + re.sub(r"[^A-Za-z0-9_]", lambda m: f"_{ord(m.group(0)):02x}", name)


def symbol_name(name):
    return mangle(name, "s_")


def register_name(name):
    return mangle(name[1:], "r_") if name.startswith("%") else mangle(name, "n_")


_AXES = {
    "%tid": "T->tid[{}]",
    "%ntid": "T->block->block_dim[{}]",
    "%ctaid": "T->block->block_id[{}]",
    "%nctaid": "T->block->grid_dim[{}]",
    # Every block is a cluster of its own.
    "%clusterid": "T->block->block_id[{}]",
    "%nclusterid": "T->block->grid_dim[{}]",
    "%cluster_ctaid": "0u",
    "%cluster_nctaid": "1u",
}

_SPECIAL = {
    "%laneid": "T->lane",
    "%warpid": "(T->index >> 5)",
    "%nwarpid": "((T->block->thread_count + 31) / 32)",
    "%smid": "0u",
    "%nsmid": "1u",
    "%gridid": "0ull",
    "%clock": "(uint32_t)clock_ticks()",
    "%clock_hi": "(uint32_t)(clock_ticks() >> 32)",
    "%clock64": "clock_ticks()",
    "%globaltimer": "clock_ticks()",
    "%globaltimer_lo": "(uint32_t)clock_ticks()",
    "%dynamic_smem_size": "T->block->dynamic_shared_bytes",
    "%total_smem_size": "T->block->shared_bytes",
    "%aggr_smem_size": "T->block->shared_bytes",
    "%lanemask_eq": "(1u << T->lane)",
    "%lanemask_lt": "((1u << T->lane) - 1)",
    "%lanemask_le": "((2u << T->lane) - 1)",
    "%lanemask_gt": "(~((2u << T->lane) - 1))",
    "%lanemask_ge": "(~((1u << T->lane) - 1))",
    "WARP_SZ": "32u",
    "%cluster_ctarank": "0u",
    "%cluster_nctarank": "1u",
    "%is_explicit_cluster": "0",
}


def special_register(name):
    match = re.fullmatch(r"(%\w+)\.([xyz])", name)
    if match and match.group(1) in _AXES:
        return _AXES[match.group(1)].format("xyz".index(match.group(2)))
    if re.fullmatch(r"%n?(tid|ctaid)\.w", name):
        return "0u"
    return _SPECIAL.get(name)


def immediate(text, ptx_type):
    """The literal as a C++ expression of the type, or None if the text is no literal."""
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
        value = f"as_f32(0x{text[2:]}u)"
        return f"(double){value}" if ptx_type == "f64" else value
    if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
        value = f"as_f64(0x{text[2:]}ull)"
        return f"(float){value}" if ptx_type == "f32" else value
    if re.fullmatch(r"-?\d+\.\d*([eE][-+]?\d+)?", text):
        return text + ("f" if ptx_type == "f32" else "")
    if not re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
        return None
    value = parse_integer(text)
    if ptx_type in ("f32", "f64"):
        return f"{value}.0" + ("f" if ptx_type == "f32" else "")
    if ptx_type == "pred":
        return "true" if value else "false"
    value &= (1 << (8 * min(SIZE[ptx_type], 8))) - 1
    return f"({C_TYPE[ptx_type]})0x{value:x}ull"


def vector_items(operand):
    operand = operand.strip()
    if not operand.startswith("{"):
        return [operand]
    return [item.strip() for item in operand[1:-1].split(",")]


class OperandContext:
    """Name lookup and typed access for one function. Subclassed by the function emitter."""

    def __init__(self, module):
        self.module = module
        self.scopes = [{}]  # register name -> (C++ name, PTX type)
        self.local_symbols = {}  # .param and .local names -> C++ pointer or array
        self.local_shared = {}  # .shared names declared in the body -> offset

    def find_register(self, name):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def symbol_address(self, name):
        """Address of a symbol; an offset into the shared window for shared variables."""
        if name in self.local_symbols:
            return f"(uint64_t){self.local_symbols[name]}"
        if name in self.local_shared:
            return f"{self.local_shared[name]}ull"
        if name in self.module.shared:
            offset = self.module.shared[name]
            return "(uint64_t)T->block->static_shared_bytes" if offset is None else f"{offset}ull"
        if name in self.module.globals:
            return f"(uint64_t){symbol_name(name)}"
        if name in self.module.signatures:
            return f"(uint64_t)&fn_{symbol_name(name)}"
        return None

    def read(self, operand, ptx_type):
        """The operand as a C++ expression of C_TYPE[ptx_type]."""
        operand = operand.strip()
        if operand.startswith("!"):
            return f"(!{self.read(operand[1:], ptx_type)})"
        if register := self.find_register(operand):
            name, declared = register
            if ptx_type == "pred":
                return name
            if ptx_type == "f32":
                return f"as_f32((uint32_t){name})" if SIZE[declared] != 4 else f"as_f32({name})"
            if ptx_type == "f64":
                return f"as_f64({name})"
            return f"({C_TYPE[ptx_type]}){name}"
        if special := special_register(operand):
            return f"({C_TYPE[ptx_type]}){special}"
        if (literal := immediate(operand, ptx_type)) is not None:
            return literal
        match = re.fullmatch(r"([\w$]+)\s*(?:\+\s*(\d+))?", operand)
        if match and (address := self.symbol_address(match.group(1))):
            return f"({C_TYPE[ptx_type]})({address} + {match.group(2) or 0})"
        raise Unsupported("operand " + operand)

    def write(self, operand, ptx_type, expression):
        """The statement that assigns an expression of C_TYPE[ptx_type] to the operand."""
        operand = operand.strip()
        if operand == "_":
            return f"(void)({expression});"
        register = self.find_register(operand)
        if not register:
            raise Unsupported("destination " + operand)
        name, declared = register
        if ptx_type in ("f32", "f64"):
            return f"{name} = bits_of({expression});"
        if ptx_type == "pred" or declared == "pred":
            return f"{name} = (bool)({expression});"
        return f"{name} = ({register_type(declared)})({C_TYPE[ptx_type]})({expression});"

    def address(self, operand):
        """`[base + offset]` as a 64-bit expression; 32-bit bases wrap in 32 bits as on the device."""
        match = re.fullmatch(r"\[\s*([\w$%.]+)\s*(?:\+\s*(-?\w+)|(-\s*\w+))?\s*\]", operand.strip())
        if not match:
            raise Unsupported("address " + operand)
        base = match.group(1)
        offset_text = match.group(2) or match.group(3)
        offset = parse_integer(offset_text.replace(" ", "")) if offset_text else 0
        if register := self.find_register(base):
            name, declared = register
            if not offset:
                return f"(uint64_t){name}"
            width = register_type(declared)
            return f"(uint64_t)({width})({name} + ({width}){offset})"
        value = self.symbol_address(base) or immediate(base, "u64")
        if value is None:
            raise Unsupported("address base " + base)
        return f"({value} + (uint64_t){offset}ll)" if offset else value
