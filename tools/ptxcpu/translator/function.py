# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Translates one PTX function: scopes, labels, declarations, and the loop over its instructions."""

import re

from . import emit_control, emit_convert, emit_float, emit_integer, emit_logic  # noqa: F401
from . import emit_matrix, emit_memory, emit_warp  # noqa: F401
from .classify import instruction_class
from .operands import OperandContext, register_name, symbol_name
from .parser import parse_instruction, parse_variable
from .registry import find_emitter
from .types import Unsupported, align_up, register_type

_TRANSLATION_ERRORS = (KeyError, IndexError, TypeError, AttributeError, ValueError, StopIteration)
_SCHEDULING_BREAKS = ("bra", "brx", "ret", "exit", "trap", "call")


class FunctionEmitter(OperandContext):
    def __init__(self, module, function, tables):
        super().__init__(module)
        self.function = function
        self.tables = tables  # module-wide: instruction sites and counted units
        self.lines = []
        self.shared_end = module.shared_bytes
        self.scope_ids = [0]
        self.branch_tables = {}
        self.last_label = None
        self.unit = None  # the counted run of instructions being filled

    # -- entry -----------------------------------------------------------------------------------

    def emit(self):
        self._emit_header()
        self._collect_labels()
        next_scope = 0
        for statement in self.function.statements:
            if statement.kind == "open":
                next_scope += 1
                self.scope_ids.append(next_scope)
                self.scopes.append({})
                self.lines.append("{")
            elif statement.kind == "close":
                self.scope_ids.pop()
                self.scopes.pop()
                self.lines.append("}")
            elif statement.kind == "label":
                self.last_label = statement.text
                self.unit = None
                self.lines.append(f"{self._labels[(self.scope_ids[-1], statement.text)]}:;")
            else:
                self._emit_guarded(statement)
        self.lines.append("}")
        return "\n".join(self.lines)

    def _emit_header(self):
        name = symbol_name(self.function.name)
        if self.function.is_entry:
            self.lines.append(f"static void kernel_{name}(Thread* T) {{")
            sources = [(p.name, f"T->block->params + {p.offset}") for p in self.function.params]
        else:
            self.lines.append(
                f"static void fn_{name}(Thread* T, uint8_t* const* results, uint8_t* const* args) {{")
            sources = [(p.name, f"args[{i}]") for i, p in enumerate(self.function.params)]
            sources += [(r, f"results[{i}]") for i, r in enumerate(self.function.returns)]
        for param, expression in sources:
            self.local_symbols[param] = symbol_name(param)
            self.lines.append(f"  [[maybe_unused]] uint8_t* const {symbol_name(param)} = {expression};")
        self.lines.append("  [[maybe_unused]] bool carry = false;")

    def _emit_guarded(self, statement):
        where = f"(ptx line {statement.line}: {statement.text[:140]})"
        try:
            if statement.text.startswith("."):
                self._emit_directive(re.sub(r"\s+", " ", statement.text))
            else:
                self._emit_instruction(parse_instruction(statement.text, statement.line))
        except _TRANSLATION_ERRORS as error:
            raise Unsupported(f"cannot translate: {type(error).__name__} {error} {where}") from error
        except Unsupported as error:
            raise Unsupported(f"{error} {where}") from error

    # -- labels ----------------------------------------------------------------------------------

    def _collect_labels(self):
        self._labels, self._parents = {}, {0: None}
        current, next_scope = [0], 0
        for statement in self.function.statements:
            if statement.kind == "open":
                next_scope += 1
                self._parents[next_scope] = current[-1]
                current.append(next_scope)
            elif statement.kind == "close":
                current.pop()
            elif statement.kind == "label":
                cleaned = re.sub(r"\W", "_", statement.text)
                self._labels[(current[-1], statement.text)] = f"L{current[-1]}_{cleaned}"

    def label(self, name):
        scope = self.scope_ids[-1]
        while scope is not None:
            if (scope, name) in self._labels:
                return self._labels[(scope, name)]
            scope = self._parents[scope]
        raise Unsupported("label " + name)

    # -- declarations ----------------------------------------------------------------------------

    def _emit_directive(self, text):
        if match := re.match(r"\.reg \.(\w+) (.*)", text):
            self._declare_registers(match.group(1), match.group(2))
        elif re.match(r"\.(extern )?\.?shared\b", text):
            self._declare_shared(parse_variable(text))
        elif re.match(r"\.(local|param)\b", text):
            self._declare_local(parse_variable(text))
        elif re.match(r"\.(global|const)\b", text):
            variable = parse_variable(text)
            self.module.globals[variable.name] = variable
        elif match := re.match(r"\.branchtargets (.*)", text):
            self.branch_tables[self.last_label] = [t.strip() for t in match.group(1).split(",")]
        elif not re.match(r"\.(pragma|callprototype|calltargets)\b", text):
            raise Unsupported("directive " + text[:60])

    def _scope_suffix(self):
        return "" if len(self.scope_ids) == 1 else f"_s{self.scope_ids[-1]}"

    def _declare_registers(self, ptx_type, declarations):
        for item in declarations.split(","):
            item = item.strip()
            ranged = re.fullmatch(r"([\w$%]+)<(\d+)>", item)
            names = [f"{ranged.group(1)}{i}" for i in range(int(ranged.group(2)))] if ranged else [item]
            for name in names:
                self.scopes[-1][name] = (register_name(name) + self._scope_suffix(), ptx_type)
            for start in range(0, len(names), 32):
                chunk = ", ".join(self.scopes[-1][name][0] for name in names[start:start + 32])
                self.lines.append(f"  [[maybe_unused]] {register_type(ptx_type)} {chunk};")

    def _declare_shared(self, variable):
        if variable.size == 0:
            self.module.shared[variable.name] = None
            return
        offset = align_up(self.shared_end, variable.align)
        self.local_shared[variable.name] = offset
        self.shared_end = offset + variable.size

    def _declare_local(self, variable):
        name = symbol_name(variable.name) + self._scope_suffix()
        self.local_symbols[variable.name] = name
        alignment, size = max(variable.align, 8), max(variable.size, 8)
        self.lines.append(f"  alignas({alignment}) uint8_t {name}[{size}];")

    # -- instructions ----------------------------------------------------------------------------

    def site(self, instruction):
        """Number under which reports and counters know this instruction."""
        return self.tables.add_site(instruction.line, instruction.full_opcode)

    def _emit_instruction(self, instruction):
        code = find_emitter(instruction)(self, instruction)
        before, inside = self._count(instruction)
        if before:
            self.lines.append("  " + before)
        if instruction.predicate:
            negated = instruction.predicate.startswith("!")
            name, ptx_type = self.find_register(instruction.predicate.lstrip("!"))
            if ptx_type != "pred":
                raise Unsupported("guard " + instruction.predicate)
            self.lines.append(f"  if ({'!' if negated else ''}{name}) {{ {inside}{code} }}")
        else:
            self.lines.append(f"  {{ {code} }}")

    def _count(self, instruction):
        """Counting code to put before the instruction and inside its guard.

        A run of unguarded instructions shares one counter (a unit); a guarded one has its own,
        except a branch, which is issued whether taken or not.
        """
        before = inside = ""
        if instruction.predicate and instruction.opcode != "bra":
            unit, inside = self._new_unit()
        else:
            if self.unit is None:
                self.unit, before = self._new_unit()
            unit = self.unit
        kind = instruction_class(instruction)
        self.tables.units[unit][kind] = self.tables.units[unit].get(kind, 0) + 1
        if instruction.opcode in _SCHEDULING_BREAKS:
            self.unit = None
        return before, inside

    def _new_unit(self):
        self.tables.units.append({})
        unit = len(self.tables.units) - 1
        return unit, f"PTXCPU_COUNT_UNIT({unit}); "
