"""Parses a PTX file: its functions, its variables, and where its lines come from."""

import math
import re

from ..errors import SimulatorError
from .ptx_body import Body
from .ptx_text import COMMENT, immediate, matching, split_operands, statement_end
from .syntax import SPACES, TYPE_SIZES, Function, Imm, Module, Param, Sym, Variable

_LINKAGE = r"(?:\.(?:visible|weak|extern|common)\s+)*"
_FUNCTION = re.compile(_LINKAGE + r"\.(entry|func)\b")
_VARIABLE = re.compile(_LINKAGE + r"\.(global|const|shared)\b")
# what a function returns, its name, its parameters, directives such as .maxntid, and what follows
_HEAD = re.compile(
    r"\s*(?:\(([^)]*)\))?\s*([\w$]+)\s*(?:\(([^)]*)\))?((?:\s*\.\w+[\d,\s]*)*)\s*([{;])"
)


class Parser:
    def __init__(self, text: str, main_file: str | None):
        self.text = COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)
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
        what = " ".join(what.split())
        return SimulatorError(
            "unsupported", f"line {line}: the simulator {what}; check the inline PTX there.", line
        )

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
        space, align, element, name, dims = "", 0, "b8", "", []
        for word in re.findall(r"\.align\s+\d+|\[\s*\d*\s*\]|[.\w$]+", head):
            key = word[1:]
            if word.startswith(".align"):
                align = int(word.split()[1])
            elif word.startswith("["):
                dims.append(int(word.strip("[] ") or 0))
            elif key in TYPE_SIZES:
                element = key
            elif key in SPACES:
                space = key
            elif key in ("v2", "v4"):
                dims.append(int(key[1:]))
            elif not word.startswith("."):
                name = name or word
        size = TYPE_SIZES[element] * math.prod(dims)
        variable = Variable(name, space, align or TYPE_SIZES[element], size, element)
        tail = tail.strip()
        if tail:
            variable.initial = self._initialiser(tail)
        return variable

    def _initialiser(self, text: str) -> list:
        flat: list = []
        for part in split_operands(text.strip().strip("{}").replace("{", "").replace("}", "")):
            part = part.strip()
            imm = immediate(part)
            if imm is not None:
                flat.append(imm)
                continue
            m = re.match(r"^(?:generic\()?([\w$]+)\)?\s*(?:\+\s*(\d+))?\)?$", part)
            flat.append(Sym(m.group(1), int(m.group(2) or 0)) if m else Imm(0))
        return flat

    def params(self, text: str) -> list[Param]:
        variables = [self.variable(part) for part in split_operands(text) if part]
        return [Param(v.name, v.element, v.size, v.align) for v in variables]

    def module(self) -> Module:
        functions: dict[str, Function] = {}
        variables: dict[str, Variable] = {}
        pos, text = 0, self.text
        while pos < len(text):
            if text[pos].isspace() or text[pos] == ";":
                pos += 1
                continue
            if text.startswith(".section", pos):
                pos = matching(text, text.index("{", pos)) + 1
                continue
            m = _FUNCTION.match(text, pos)
            if m:
                pos = self.function(m, functions)
                continue
            m = _VARIABLE.match(text, pos)
            if m:
                stop = statement_end(text, pos)
                if "extern" not in m.group() or m.group(1) == "shared":  # else of no file here
                    variable = self.variable(text[pos:stop])
                    variables[variable.name] = variable
                pos = stop + 1
                continue
            if text.startswith((".alias", ".pragma"), pos):
                pos = statement_end(text, pos) + 1
                continue
            newline = text.find("\n", pos)
            pos = len(text) if newline < 0 else newline + 1
        serial = 0
        for function in functions.values():
            for instruction in function.instructions:
                instruction.serial = serial
                serial += 1
        target = re.search(r"^\s*\.target\s+(\w+)", text, re.M)
        return Module(functions, variables, self.files, target[1] if target else "")

    def function(self, m: re.Match, functions: dict[str, Function]) -> int:
        text = self.text
        head = _HEAD.match(text, m.end())
        if head is None:
            line = text[m.start() : text.find("\n", m.end())]
            raise self.error(f"cannot read the head of a function, '{line}'", None)
        returns, name, params, directives, follows = head.groups(default="")
        if follows == ";":
            return head.end()
        bounds = {
            key: math.prod(map(int, re.findall(r"\d+", numbers)))
            for key, numbers in re.findall(r"\.(\w+)([\d,\s]*)", directives)
        }
        pos = head.end() - 1
        close = matching(text, pos)
        body = Body(self, name)
        fault = None
        try:
            body.parse(text[pos + 1 : close])
        except SimulatorError as error:  # tells who launches this function, and nobody else
            fault = error
        functions[name] = Function(
            name, m.group(1) == "entry", self.params(params), self.params(returns), body.registers,
            body.instructions, body.labels, body.variables, body.tables, body.nounroll, bounds,
            fault,
        )  # fmt: skip
        return close + 1


def parse(text: str, main_file: str | None = None) -> Module:
    """Parse PTX text.

    `main_file` is the name that the source had when it was compiled; lines of other files (headers)
    are mapped to the line of the main file that they were inlined at. A function with a statement
    that cannot be read has a `fault`, the SimulatorError ("unsupported") to raise if it is needed.
    Raises SimulatorError where a function's head cannot be read.
    """
    return Parser(text, main_file).module()
