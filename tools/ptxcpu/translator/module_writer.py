# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Writes a whole translated module: globals, functions, tables, registration."""

import bisect
import re

from .function import FunctionEmitter
from .operands import symbol_name
from .parser import parse_module
from .types import SIZE, Unsupported, parse_integer

PREAMBLE = """// Generated from PTX by tools/ptxcpu; do not edit.
#include "device.h"
using namespace ptxcpu;
"""


class Tables:
    """Instruction sites and counted units of a module."""

    def __init__(self):
        self.sites = []
        self.units = []
        self._index = {}

    def add_site(self, line, opcode):
        key = (line, opcode)
        if key not in self._index:
            self._index[key] = len(self.sites)
            self.sites.append(key)
        return self._index[key]


def _quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def initial_bytes(variable):
    """Initial contents, and the places where addresses of other symbols must be filled in."""
    data, relocations = bytearray(), []
    items = [item.strip() for item in re.sub(r"[{}]", "", variable.init).split(",") if item.strip()]
    size = SIZE[variable.type]
    for item in items:
        symbol = re.fullmatch(r"(?:generic\()?([A-Za-z_$][\w$]*)\)?(?:\+(\d+))?", item)
        if symbol:
            relocations.append((len(data), symbol.group(1), int(symbol.group(2) or 0)))
            data += bytes(size)
        elif re.match(r"0[fF][0-9a-fA-F]{8}$", item):
            data += int(item[2:], 16).to_bytes(4, "little")
        elif re.match(r"0[dD][0-9a-fA-F]{16}$", item):
            data += int(item[2:], 16).to_bytes(8, "little")
        else:
            data += (parse_integer(item) & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
    return data, relocations


class ModuleWriter:
    def __init__(self, text, digest, toolkit):
        self.module = parse_module(text, toolkit)
        self.digest = digest
        self.tables = Tables()
        self.unsupported = []  # (function, reason)
        self.kernels = []  # (function, shared bytes)
        self.device_shared = 0
        self.relocations = []

    def write(self):
        bodies = self._translate_functions()
        parts = [PREAMBLE, self._globals(), self._forward_declarations(), *bodies, self._register()]
        return "\n".join(parts) + "\n"

    def _translate_functions(self):
        bodies = []
        for function in self.module.functions:
            emitter = FunctionEmitter(self.module, function, self.tables)
            try:
                bodies.append(emitter.emit())
            except Unsupported as error:
                self.unsupported.append((function.name, str(error)))
                if not function.is_entry:
                    bodies.append(self._refusing_function(function))
                continue
            if function.is_entry:
                self.kernels.append((function, emitter.shared_end))
            else:
                self.device_shared = max(self.device_shared, emitter.shared_end)
        return bodies

    @staticmethod
    def _refusing_function(function):
        return (f"static void fn_{symbol_name(function.name)}(Thread* T, uint8_t* const*, uint8_t* const*) {{\n"
                f'  fault(T, -1, Fault::kTrap, "device function %s was not translated", {_quote(function.name)});\n}}')

    def _globals(self):
        lines = []
        for variable in self.module.globals.values():
            size, text = max(variable.size, 1), ""
            if variable.init is not None:
                data, relocations = initial_bytes(variable)
                size = max(size, len(data))
                text = " = {" + ",".join(map(str, data)) + "}"
                self.relocations += [(variable.name, *relocation) for relocation in relocations]
            lines.append(f"alignas({max(variable.align, 16)}) static uint8_t {symbol_name(variable.name)}[{size}]{text};")
        return "\n".join(lines)

    def _forward_declarations(self):
        return "\n".join(
            f"static void fn_{symbol_name(f.name)}(Thread* T, uint8_t* const* results, uint8_t* const* args);"
            for f in self.module.signatures.values() if not f.is_entry and f.statements is not None)

    def _site_rows(self):
        starts = [line for line, _, _ in self.module.locations]
        for line, opcode in self.tables.sites:
            index = bisect.bisect_right(starts, line) - 1
            file, source_line = self.module.locations[index][1:] if index >= 0 else ("?", 0)
            yield f"{{{_quote(opcode)}, {_quote(file)}, {source_line}, {line}}}"

    def _unit_tables(self):
        names = sorted({name for unit in self.tables.units for name in unit})
        index = {name: i for i, name in enumerate(names)}
        rows = [f"{{{number}, {index[name]}, {count}}}"
                for number, unit in enumerate(self.tables.units) for name, count in unit.items()]
        return [_quote(name) for name in names], rows

    def _kernel_rows(self):
        for function, shared in self.kernels:
            name = symbol_name(function.name)
            yield (f"{{{_quote(function.name)}, kernel_{name}, params_{name}, {len(function.params)}, "
                   f"{function.param_bytes}, {max(shared, self.device_shared)}, {function.max_threads}}}")

    def _register(self):
        lines = []
        for function, _ in self.kernels:
            rows = "".join(f"{{{p.offset}, {p.size}}}, " for p in function.params)
            lines.append(f"static const ParamInfo params_{symbol_name(function.name)}[] = {{{rows}{{0, 0}}}};")
        variables = [f"{{{_quote(v.name)}, {symbol_name(v.name)}, sizeof({symbol_name(v.name)})}}"
                     for v in self.module.globals.values()]
        classes, units = self._unit_tables()
        refused = [f"{{{_quote(name)}, {_quote(reason)}}}" for name, reason in self.unsupported]
        for c_type, name, rows, end in (
            ("KernelInfo", "kernels", list(self._kernel_rows()), "{}"),
            ("VariableInfo", "variables", variables, "{}"),
            ("SiteInfo", "sites", list(self._site_rows()), "{}"),
            ("const char*", "classes", classes, "nullptr"),
            ("UnitInfo", "units", units, "{}"),
            ("RefusedInfo", "refused", refused, "{}"),
        ):
            body = "".join(f"  {row},\n" for row in rows)
            const = "" if c_type.endswith("*") else "const "
            lines.append(f"static {const}{c_type} table_{name}[] = {{\n{body}  {end}}};")
            lines.append(f"enum {{ count_{name} = {len(rows)} }};")
        lines.append(self._module_record())
        return "\n".join(lines)

    def _module_record(self):
        fixups = "".join(
            f"  poke<uint64_t>({symbol_name(name)} + {offset}, (uint64_t){symbol_name(target)} + {addend});\n"
            for name, offset, target, addend in self.relocations)
        return f"""static const ModuleInfo module_info = {{
  0x{self.digest:016x}ull, {self.module.target}, kModuleFlags, {len(self.tables.units)},
  table_kernels, count_kernels, table_variables, count_variables, table_sites, count_sites,
  table_classes, count_classes, table_units, count_units, table_refused, count_refused}};
__attribute__((constructor)) static void register_translated_module() {{
{fixups}  register_module(&module_info);
}}"""


def translate(text, digest=0, toolkit=""):
    """Returns the C++ text, the kernels' names, and what was refused as (function, reason)."""
    writer = ModuleWriter(text, digest, toolkit)
    source = writer.write()
    return source, [function.name for function, _ in writer.kernels], writer.unsupported
