# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Parser: PTX text to a Module of variables, functions and statements."""

import os
import re
from dataclasses import dataclass, field

from .types import SIZE, Unsupported, align_up


@dataclass
class Variable:
    name: str
    type: str
    align: int
    count: int
    init: str | None

    @property
    def size(self):
        return SIZE[self.type] * self.count


@dataclass
class Param:
    name: str
    offset: int
    size: int


@dataclass
class Statement:
    kind: str  # "open", "close", "label" or "code"
    text: str
    line: int


@dataclass
class Function:
    name: str
    is_entry: bool
    params: list = field(default_factory=list)
    param_bytes: int = 0
    returns: list = field(default_factory=list)
    max_threads: int = 0
    statements: list | None = None  # None: declared only


@dataclass
class Instruction:
    opcode: str
    modifiers: list
    operands: list
    predicate: str | None
    line: int
    text: str

    @property
    def full_opcode(self):
        return ".".join([self.opcode, *self.modifiers])

    @property
    def types(self):
        return [m for m in self.modifiers if m in SIZE]

    @property
    def type(self):
        types = self.types
        return types[-1] if types else None

    def has(self, modifier):
        return modifier in self.modifiers

    def one_of(self, *choices, default=None):
        for modifier in self.modifiers:
            if modifier in choices:
                return modifier
        if default is None:
            raise Unsupported(f"{self.full_opcode}: none of {'/'.join(choices)}")
        return default

    @property
    def vector_width(self):
        return int(self.one_of("v2", "v4", "v8", default="v1")[1])


@dataclass
class Module:
    target: int = 0
    files: dict = field(default_factory=dict)
    locations: list = field(default_factory=list)  # (ptx line, file, source line), ascending
    toolkit: str = ""  # directory of the CUDA headers
    globals: dict = field(default_factory=dict)
    shared: dict = field(default_factory=dict)  # name -> offset, or None for dynamic
    shared_bytes: int = 0
    functions: list = field(default_factory=list)
    signatures: dict = field(default_factory=dict)

    def add_shared(self, variable):
        if variable.size == 0:
            self.shared[variable.name] = None
            return
        offset = align_up(self.shared_bytes, variable.align)
        self.shared[variable.name] = offset
        self.shared_bytes = offset + variable.size


def split_operands(text):
    """Splits at the commas that stand outside every bracket."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        if char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    tail = text[start:].strip()
    return parts + [tail] if tail else parts


def parse_instruction(text, line):
    predicate = None
    match = re.match(r"@(!?)\s*([\w$%]+)\s+(.*)", text, re.S)
    body = text
    if match:
        predicate, body = match.group(1) + match.group(2), match.group(3)
    match = re.match(r"([\w.:]+)\s*(.*)", body, re.S)
    if not match:
        raise Unsupported("statement " + text[:80])
    opcode, *modifiers = match.group(1).split(".")
    operands = split_operands(re.sub(r"\s+", " ", match.group(2)))
    return Instruction(opcode, modifiers, operands, predicate, line, re.sub(r"\s+", " ", text))


def parse_variable(text):
    """`.global .align 4 .b8 name[16] = {...}` and its relatives in other state spaces."""
    init = None
    if "=" in text:
        text, init = (part.strip() for part in text.split("=", 1))
    align = re.search(r"\.align\s+(\d+)", text)
    text = re.sub(r"\.align\s+\d+|\.attribute\([^)]*\)", "", text)
    words = re.findall(r"\.(\w+)", text)
    ptx_type = next((word for word in words if word in SIZE), None)
    if ptx_type is None:
        raise Unsupported("declaration " + text[:80])
    vector = next((int(word[1]) for word in words if word in ("v2", "v4")), 1)
    match = re.search(r"([\w$%]+)((?:\s*\[[^\]]*\])*)\s*$", text.strip())
    count = vector
    for dimension in re.findall(r"\[([^\]]*)\]", match.group(2)):
        count *= int(dimension, 0) if dimension.strip() else 0
    alignment = int(align.group(1)) if align else SIZE[ptx_type] * vector
    return Variable(match.group(1), ptx_type, alignment, count, init)


def _parse_params(text):
    params, offset = [], 0
    for item in split_operands(text):
        item = re.sub(r"\.ptr( \.\w+)?( \.align \d+)?", "", item)
        variable = parse_variable(item)
        offset = align_up(offset, variable.align)
        params.append(Param(variable.name, offset, variable.size))
        offset += variable.size
    return params, offset


_ENTRY = re.compile(r"\.entry ([\w$]+) ?(?:\((.*?)\))?(?= |$|\.)")
_FUNC = re.compile(r"\.func ?(?:\(([^)]*)\))? ?([\w$]+) ?(?:\((.*?)\))?(?= ?\.|$| )")


def parse_signature(header):
    header = re.sub(r"\s+", " ", header)
    if ".entry" in header:
        match = _ENTRY.search(header)
        function = Function(match.group(1), True)
        params = match.group(2)
    else:
        match = _FUNC.search(header)
        function = Function(match.group(2), False)
        params = match.group(3)
        function.returns = [parse_variable(r).name for r in split_operands(match.group(1) or "")]
    function.params, function.param_bytes = _parse_params(params or "")
    bound = re.search(r"\.maxntid (\d+)(?:, ?(\d+))?(?:, ?(\d+))?", header)
    if bound:
        x, y, z = (int(value or 1) for value in bound.groups())
        function.max_threads = x * y * z
    return function


def _matching_brace(text, position):
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, position):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    raise Unsupported("unbalanced braces")


_BODY_TOKEN = re.compile(r'"[^"]*"|[;{}:]')


def parse_body(text, line):
    """Splits a function body into statements; `{` opens a scope only where a statement may start."""
    statements, start, counted, position = [], 0, 0, 0
    while match := _BODY_TOKEN.search(text, position):
        token, at = match.group(), match.start()
        position = match.end()
        pending = text[start:at]
        line += text.count("\n", counted, at)
        counted = at
        first_line = line - pending.lstrip().count("\n")
        if token == ";":
            statements.append(Statement("code", pending.strip(), first_line))
        elif token in "{}" and not pending.strip():
            statements.append(Statement("open" if token == "{" else "close", "", line))
        elif token == "{":  # vector operand
            position = _matching_brace(text, at) + 1
            continue
        elif token == ":" and re.fullmatch(r"\s*[\w$%]+\s*", pending) and text[position:position + 1] != ":":
            statements.append(Statement("label", pending.strip(), first_line))
        else:  # string literal, or the "::" of a modifier
            continue
        start = position
    return statements


def _strip_comments(text):
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
_IGNORED = re.compile(r"\.(version|address_size|file|pragma)\b|@@")


class _Locations:
    """Source positions; what was inlined from the toolkit's headers counts where it was called."""

    def __init__(self, module):
        self._module = module
        self._callers = {}
        self._toolkit_files = {}  # file number -> bool

    def resolve(self, match):
        numbers = [int(group) for group in match.groups() if group]
        position, caller = tuple(numbers[:3]), tuple(numbers[3:])
        self._callers.setdefault(position, caller)
        while caller and self._is_toolkit(position):
            position = caller
            caller = self._callers.get(position)
        return self._file(position), position[1]

    def _file(self, position):
        return self._module.files.get(position[0], "?")

    def _is_toolkit(self, position):
        if position[0] not in self._toolkit_files:
            path = os.path.realpath(self._file(position))
            is_toolkit = bool(self._module.toolkit) and path.startswith(self._module.toolkit + os.sep)
            self._toolkit_files[position[0]] = is_toolkit
        return self._toolkit_files[position[0]]


def _strip_directives(module, text):
    """Takes out what carries no code (and keeps line numbers): file table, .loc, debug sections."""
    for match in re.finditer(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', text, re.M):
        module.files[int(match.group(1))] = match.group(2)
    lines, in_section, locations = [], False, _Locations(module)
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped.startswith(".section"):
            in_section = True
        keep = not in_section
        if in_section and "}" in stripped:
            in_section = False
        if loc := _LOC.match(stripped):
            module.locations.append((number, *locations.resolve(loc)))
            keep = False
        elif target := re.match(r"\.target\s+sm_(\d+)", stripped):
            module.target = int(target.group(1))
            keep = False
        elif _IGNORED.match(stripped):
            keep = False
        lines.append(line if keep else "")
    return "\n".join(lines)


def _parse_top_level(module, text):
    if re.search(r"\.(entry|func)\b", text):
        function = parse_signature(text)
        module.signatures[function.name] = function
    elif re.search(r"\.shared\b", text):
        module.add_shared(parse_variable(text))
    elif re.search(r"\.(global|const)\b", text):
        variable = parse_variable(text)
        module.globals[variable.name] = variable
    elif not text.startswith((".extern", ".alias")):
        raise Unsupported("top level: " + text[:80])


_TOP_TOKEN = re.compile(r'"[^"]*"|[;{]')


def parse_module(text, toolkit=""):
    module = Module(toolkit=toolkit)
    text = _strip_directives(module, _strip_comments(text))
    start = position = 0
    while match := _TOP_TOKEN.search(text, position):
        token, at = match.group(), match.start()
        position = match.end()
        pending = text[start:at].strip()
        if token == ";":
            if pending:
                _parse_top_level(module, pending)
            start = position
        elif token == "{":
            close = _matching_brace(text, at)
            position = close + 1
            if "=" in pending:  # the initialiser of a variable; its ';' follows
                continue
            function = parse_signature(pending)
            line = text.count("\n", 0, at) + 1
            function.statements = parse_body(text[at + 1:close], line)
            module.signatures[function.name] = function
            module.functions.append(function)
            start = position
    return module
