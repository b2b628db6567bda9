"""PTX text in, a program out: functions, variables and instructions with their source lines.

Only the syntax is dealt with here; what an instruction means is in the table of `instructions`
and in `steps`. The grammar is chapter 4 ("Syntax") and 5 ("State Spaces, Types, and Variables")
of the PTX ISA manual, as far as NVRTC and inline assembly use it.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from .errors import SimulatorError

TYPE_SIZES = {
    "pred": 1, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reg:
    """A register operand: its slot in the function, its type's size in bytes (0: predicate)."""

    slot: int
    size: int
    name: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Imm:
    """A literal. `value` is an int, or a float with `bits` when written as 0f… or 0d…."""

    value: int | float
    bits: int | None = None
    bits_size: int = 0


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as %tid.x."""

    name: str


@dataclass(frozen=True, slots=True)
class Sym:
    """The address of a variable, parameter or function, plus a constant."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Mem:
    """[base + offset]: base is a Reg, a Sym or None (an absolute address)."""

    base: Reg | Sym | None
    offset: int


@dataclass(frozen=True, slots=True)
class Vec:
    """{a, b, …}"""

    items: tuple


@dataclass(slots=True)
class Instruction:
    """One PTX instruction. `index` is its place in the function: the program counter."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple
    predicate: Reg | None
    line: int | None
    text: str
    index: int = 0
    column: int = 0
    file: int = 1
    pair: bool = False  # the first destination was written p|q
    serial: int = 0  # number in the module, for tallies
    # What ptxas makes of it (see `ptxas`): the (offset, bytes) that are really accessed here, or
    # None for the access as written; and whether a branch in front of it counts it.
    plan: tuple | None = None
    predicated_off: bool = False

    @property
    def name(self) -> str:
        """The full mnemonic, such as ld.global.f32."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(slots=True)
class Variable:
    """A module- or function-level variable in memory. `size` is in bytes, 0 for extern []."""

    name: str
    space: str
    align: int
    size: int
    element: str
    initial: list = field(default_factory=list)


@dataclass(slots=True)
class Param:
    """A parameter of a kernel or function: its size and alignment in bytes."""

    name: str
    type: str
    size: int
    align: int
    is_pointer: bool = False


@dataclass(slots=True)
class Function:
    """A kernel (`entry`) or device function."""

    name: str
    entry: bool
    params: list[Param]
    returns: list[Param]
    registers: list[tuple[str, int]]  # (name, size in bytes; 0 for predicates)
    instructions: list[Instruction]
    labels: dict[str, int]
    variables: dict[str, Variable]
    tables: dict[str, list[str]]  # .branchtargets
    nounroll: set[int]  # instruction indices in front of which .pragma "nounroll" stood
    bounds: dict[str, int]  # .maxntid and the like
    lines: tuple[int, int] | None = None


@dataclass(slots=True)
class Module:
    """A parsed PTX file."""

    functions: dict[str, Function]
    variables: dict[str, Variable]
    files: dict[int, str]


_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_LOC = re.compile(
    r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)"
    r"(?:\s*,\s*function_name\s+[^,\s]+\s*,\s*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?[^\n]*"
)
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_DECL = re.compile(r"^((?:\.\w+\s+|\.align\s+\d+\s+)+)([\w$%]+)?\s*(.*)$", re.S)
_INT = re.compile(r"^[+-]?\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)[uU]?[lL]*$")
_FLOAT = re.compile(r"^[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?$")


def _size(type_: str) -> int:
    return TYPE_SIZES[type_]


def split_operands(text: str) -> list[str]:
    """Split at commas that stand outside brackets and braces."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "[{(":
            depth += 1
        elif c in "]})":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    if last:
        parts.append(last)
    return parts


def parse_int(text: str) -> int | None:
    """An integer literal of PTX, or None."""
    m = _INT.match(text.strip())
    if not m:
        return None
    digits = m.group(1)
    if len(digits) > 1 and digits[0] == "0" and digits[1] not in "xXbB":
        value = int(digits, 8)
    else:
        value = int(digits, 0)
    return -value if text.lstrip().startswith("-") else value


def _immediate(text: str) -> Imm | None:
    if text[:2] in ("0f", "0F") and len(text) == 10:
        bits = int(text[2:], 16)
        return Imm(struct.unpack("<f", struct.pack("<I", bits))[0], bits, 4)
    if text[:2] in ("0d", "0D") and len(text) == 18:
        bits = int(text[2:], 16)
        return Imm(struct.unpack("<d", struct.pack("<Q", bits))[0], bits, 8)
    value = parse_int(text)
    if value is not None:
        return Imm(value)
    if _FLOAT.match(text):
        number = float(text)
        return Imm(number, struct.unpack("<Q", struct.pack("<d", number))[0], 8)
    return None


class _Body:
    """Parses one function body; holds the scopes of registers declared in inner braces."""

    def __init__(self, parser: _Parser, name: str):
        self.parser = parser
        self.name = name
        self.registers: list[tuple[str, int]] = []
        self.scopes: list[dict[str, Reg | tuple[str, int]]] = [{}]
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.label_scopes: list[dict[str, str]] = [{}]
        self.variables: dict[str, Variable] = {}
        self.tables: dict[str, list[str]] = {}
        self.nounroll: set[int] = set()
        self.line: int | None = None
        self.column = 0
        self.file = 1
        self.min_line: int | None = None
        self.max_line: int | None = None

    def declare(self, type_: str, names: str) -> None:
        size = 0 if type_ == "pred" else _size(type_)
        for name in split_operands(names):
            m = re.match(r"^([\w$%]+)<(\d+)>$", name)
            wanted = [f"{m.group(1)}{i}" for i in range(int(m.group(2)))] if m else [name]
            for n in wanted:
                self.scopes[-1][n] = Reg(len(self.registers), size, n)
                self.registers.append((n, size))

    def lookup(self, name: str) -> Reg | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def operand(self, text: str):
        text = text.strip()
        if text.startswith("{"):
            return Vec(tuple(self.operand(t) for t in split_operands(text[1:-1])))
        if text.startswith("("):
            return Vec(tuple(self.operand(t) for t in split_operands(text[1:-1])))
        if text.startswith("["):
            inner = split_operands(text[1:-1])
            if len(inner) != 1:
                return Vec(tuple(self.operand(t) for t in inner))
            return self.memory(inner[0])
        if text.startswith("!"):
            reg = self.operand(text[1:])
            return Reg(reg.slot, reg.size, reg.name, True)
        if text == "_":
            return None
        reg = self.lookup(text)
        if reg is not None:
            return reg
        imm = _immediate(text)
        if imm is not None:
            return imm
        if text.startswith("-"):
            reg = self.operand(text[1:])
            if isinstance(reg, Imm):
                return Imm(-reg.value)
        if text.startswith("%"):
            return Special(text[1:])
        m = re.match(r"^generic\((.*)\)$", text)
        if m:
            text = m.group(1)
        m = re.match(r"^([\w$]+)\s*(?:([+-])\s*(\S+))?$", text)
        if m:
            offset = parse_int(m.group(3)) if m.group(3) else 0
            return Sym(self.rename(m.group(1)), -offset if m.group(2) == "-" else offset)
        if text == "WARP_SZ":
            return Imm(32)
        raise self.parser.error(f"cannot read the operand '{text}'", self.line)

    def rename(self, name: str) -> str:
        for scope in reversed(self.label_scopes):
            if name in scope:
                return scope[name]
        return name

    def memory(self, text: str) -> Mem:
        m = re.match(r"^([\w$%.]+)\s*([+-])?\s*(-?\w+)?$", text)
        if not m:
            raise self.parser.error(f"cannot read the address '[{text}]'", self.line)
        offset = 0
        if m.group(2):
            offset = parse_int(m.group(3))
            if offset is None:
                raise self.parser.error(f"cannot read the address '[{text}]'", self.line)
            if m.group(2) == "-":
                offset = -offset
        base = parse_int(m.group(1))
        if base is not None:
            return Mem(None, base + offset)
        reg = self.lookup(m.group(1))
        if reg is not None:
            return Mem(reg, offset)
        return Mem(Sym(self.rename(m.group(1))), offset)

    def instruction(self, text: str) -> None:
        predicate = None
        rest = text
        if rest.startswith("@"):
            m = re.match(r"^@\s*(!?)\s*([\w$%]+)\s+(.*)$", rest, re.S)
            reg = self.lookup(m.group(2)) if m else None
            if reg is None:
                raise self.parser.error(f"cannot read '{text}'", self.line)
            predicate = Reg(reg.slot, 0, reg.name, m.group(1) == "!")
            rest = m.group(3)
        m = re.match(r"^([\w.:]+)\s*(.*)$", rest, re.S)
        if not m:
            raise self.parser.error(f"cannot read the statement '{text}'", self.line)
        opcode, *modifiers = m.group(1).replace("::", "__").split(".")
        parts = split_operands(m.group(2))
        pair = False
        operands = []
        for position, part in enumerate(parts):
            if position == 0 and "|" in part:
                pair = True
                operands += [self.operand(p) for p in part.split("|")]
            else:
                operands.append(self.operand(part))
        if self.line:
            self.min_line = min(self.min_line or self.line, self.line)
            self.max_line = max(self.max_line or self.line, self.line)
        self.instructions.append(
            Instruction(
                opcode, tuple(modifiers), tuple(operands), predicate, self.line,
                " ".join(text.split()), len(self.instructions), self.column, self.file, pair,
            )
        )  # fmt: skip

    def parse(self, text: str) -> None:
        pos, end = 0, len(text)
        while pos < end:
            c = text[pos]
            if c.isspace() or c == ";":
                pos += 1
            elif m := _LOC.match(text, pos):
                self.file, self.column = int(m.group(1)), int(m.group(3))
                self.line = self.parser.resolve_line(m, self.line)
                pos = m.end()
            elif c == "{":
                self.scopes.append({})
                inner = {}
                close = _matching(text, pos)
                for label in re.findall(r"(?:^|[\s;{}])([A-Za-z_$][\w$]*)\s*:", text[pos:close]):
                    if label in self.labels:
                        inner[label] = f"{label}@{pos}"
                self.label_scopes.append(inner)
                pos += 1
            elif c == "}":
                self.scopes.pop()
                self.label_scopes.pop()
                pos += 1
            else:
                m = _LABEL.match(text, pos)
                if m:
                    self.labels[self.rename(m.group(1))] = len(self.instructions)
                    pos = m.end()
                    self.last_label = m.group(1)
                    continue
                stop = _statement_end(text, pos)
                self.statement(text[pos:stop].strip())
                pos = stop + 1

    def statement(self, text: str) -> None:
        if not text.startswith("."):
            self.instruction(text)
        elif text.startswith(".reg"):
            m = re.match(r"^\.reg\s+\.(\w+)\s+(.*)$", text, re.S)
            self.declare(m.group(1), m.group(2))
        elif text.startswith(".pragma"):
            if "nounroll" in text:
                self.nounroll.add(len(self.instructions))
        elif text.startswith(".branchtargets"):
            self.tables[self.last_label] = split_operands(text[len(".branchtargets") :])
        elif text.startswith((".callprototype", ".calltargets")):
            pass
        elif text.startswith(".param"):
            pass  # call parameters: named buffers, created when first stored to
        else:
            variable = self.parser.variable(text)
            self.variables[variable.name] = variable


def _matching(text: str, pos: int) -> int:
    depth = 0
    quoted = False
    for i in range(pos, len(text)):
        c = text[i]
        if c == '"':
            quoted = not quoted
        if quoted:
            continue
        if c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                return i
    return len(text)


def _statement_end(text: str, pos: int) -> int:
    depth = 0
    for i in range(pos, len(text)):
        c = text[i]
        if c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
        elif c == ";" and depth == 0:
            return i
    return len(text)


class _Parser:
    def __init__(self, text: str, main_file: str | None):
        self.text = _COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)
        self.files = {
            int(i): name for i, name in re.findall(r'\.file\s+(\d+)\s+"([^"]*)"', self.text)
        }
        self.main = self._main_index(main_file)
        self.seen: dict[tuple[int, int, int], tuple[int, int, int] | None] = {}

    def _main_index(self, main_file: str | None) -> int:
        if main_file is not None:
            for index, name in self.files.items():
                if name.replace("\\", "/").split("/")[-1] == main_file.split("/")[-1]:
                    return index
        return 1

    def error(self, what: str, line: int | None) -> SimulatorError:
        return SimulatorError("unsupported", f"the simulator {what} (line {line})", line)

    def resolve_line(self, m: re.Match, previous: int | None) -> int | None:
        """The line of the main file: of code inlined from elsewhere, where it was inlined."""
        place = (int(m.group(1)), int(m.group(2)), int(m.group(3)))
        parent = (int(m.group(4)), int(m.group(5)), int(m.group(6))) if m.group(4) else None
        self.seen[place] = parent
        for _ in range(64):
            if place[0] == self.main:
                return place[1] or previous
            if parent is None:
                return previous
            place, parent = parent, self.seen.get(parent)
        return previous

    def variable(self, text: str) -> Variable:
        head, _, tail = text.partition("=")
        words = head.replace("[", " [").split()
        space, align, element, name, size = "", 0, "b8", "", None
        dims: list[int] = []
        i = 0
        while i < len(words):
            w = words[i]
            if w == ".align":
                i += 1
                align = int(words[i])
            elif w.startswith("."):
                key = w[1:]
                if key in TYPE_SIZES:
                    element = key
                elif key in ("shared", "global", "const", "local", "param"):
                    space = key
                elif key in ("v2", "v4"):
                    dims.append(int(key[1:]))
            elif w.startswith("["):
                inner = w.strip("[]")
                dims.append(int(inner) if inner else 0)
            elif not name:
                name = w
            i += 1
        size = _size(element)
        for n in dims:
            size *= n
        variable = Variable(name, space, align or _size(element), size, element)
        tail = tail.strip()
        if tail:
            variable.initial = self._initialiser(tail)
        return variable

    def _initialiser(self, text: str) -> list:
        flat: list = []
        for part in split_operands(text.strip().strip("{}").replace("{", "").replace("}", "")):
            part = part.strip()
            imm = _immediate(part)
            if imm is not None:
                flat.append(imm)
                continue
            m = re.match(r"^(?:generic\()?([\w$]+)\)?\s*(?:\+\s*(\d+))?\)?$", part)
            flat.append(Sym(m.group(1), int(m.group(2) or 0)) if m else Imm(0))
        return flat

    def params(self, text: str) -> list[Param]:
        out = []
        for part in split_operands(text):
            if not part:
                continue
            variable = self.variable(part)
            out.append(
                Param(
                    variable.name, variable.element, variable.size, variable.align, ".ptr" in part
                )
            )
        return out

    def module(self) -> Module:
        functions: dict[str, Function] = {}
        variables: dict[str, Variable] = {}
        pos, text = 0, self.text
        head = re.compile(r"(?:\.(?:visible|weak|extern|common)\s+)*\.(entry|func)\b")
        linkage = re.compile(r"(?:\.(?:visible|weak|extern|common)\s+)*\.(global|const|shared)\b")
        while pos < len(text):
            if text[pos].isspace() or text[pos] == ";":
                pos += 1
                continue
            if text.startswith(".section", pos):
                pos = _matching(text, text.index("{", pos)) + 1
                continue
            m = head.match(text, pos)
            if m:
                pos = self.function(m, functions)
                continue
            m = linkage.match(text, pos)
            if m:
                stop = _statement_end(text, pos)
                variable = self.variable(text[pos:stop])
                variables[variable.name] = variable
                pos = stop + 1
                continue
            if text.startswith((".alias", ".pragma"), pos):
                pos = _statement_end(text, pos) + 1
                continue
            newline = text.find("\n", pos)
            pos = len(text) if newline < 0 else newline + 1
        serial = 0
        for function in functions.values():
            for instruction in function.instructions:
                instruction.serial = serial
                serial += 1
        return Module(functions, variables, self.files)

    def function(self, m: re.Match, functions: dict[str, Function]) -> int:
        text = self.text
        pos = m.end()
        returns: list[Param] = []

        def skip(i: int) -> int:
            while text[i].isspace():
                i += 1
            return i

        pos = skip(pos)
        if text[pos] == "(":
            close = text.index(")", pos)
            returns = self.params(text[pos + 1 : close])
            pos = skip(close + 1)
        name = re.compile(r"[\w$]+").match(text, pos).group()
        pos = skip(pos + len(name))
        params: list[Param] = []
        if text[pos] == "(":
            close = text.index(")", pos)
            params = self.params(text[pos + 1 : close])
            pos = skip(close + 1)
        bounds = {}
        while text[pos] not in "{;":
            d = re.compile(r"\.(\w+)\s*([\d,\s]*)").match(text, pos)
            if not d:
                raise self.error(f"cannot read the head of function {name}", None)
            values = [int(v) for v in re.findall(r"\d+", d.group(2))]
            product = 1
            for v in values:
                product *= v
            bounds[d.group(1)] = product
            pos = skip(d.end())
        if text[pos] == ";":
            return pos + 1
        close = _matching(text, pos)
        body = _Body(self, name)
        body.parse(text[pos + 1 : close])
        functions[name] = Function(
            name, m.group(1) == "entry", params, returns, body.registers, body.instructions,
            body.labels, body.variables, body.tables, body.nounroll, bounds,
            (body.min_line, body.max_line) if body.min_line else None,
        )  # fmt: skip
        return close + 1


def parse(text: str, main_file: str | None = None) -> Module:
    """Parse PTX text.

    `main_file` is the name that the source had when it was compiled; lines of other files (headers)
    are mapped to the line of the main file that they were inlined at. Raises SimulatorError
    ("unsupported") on a statement that cannot be read.
    """
    return _Parser(text, main_file).module()
