"""Parses a PTX file: its functions, its variables, and where its lines come from."""

from __future__ import annotations

import re

from ..errors import SimulatorError
from .ptx_body import Body
from .ptx_text import COMMENT, immediate, matching, split_operands, statement_end
from .syntax import TYPE_SIZES, Function, Imm, Module, Param, Sym, Variable


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
        size = TYPE_SIZES[element]
        for n in dims:
            size *= n
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
        out = []
        for part in split_operands(text):
            if not part:
                continue
            variable = self.variable(part)
            out.append(Param(variable.name, variable.element, variable.size, variable.align))
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
                pos = matching(text, text.index("{", pos)) + 1
                continue
            m = head.match(text, pos)
            if m:
                pos = self.function(m, functions)
                continue
            m = linkage.match(text, pos)
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
        close = matching(text, pos)
        body = Body(self, name)
        fault = None
        try:
            body.parse(text[pos + 1 : close])
        except SimulatorError as error:  # tells who launches this function, and nobody else
            fault = error
        functions[name] = Function(
            name, m.group(1) == "entry", params, returns, body.registers, body.instructions,
            body.labels, body.variables, body.tables, body.nounroll, bounds,
            (body.min_line, body.max_line) if body.min_line else None, fault,
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
