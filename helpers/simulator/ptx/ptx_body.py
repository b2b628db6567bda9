"""Parses the body of one PTX function: declarations, labels, instructions and their lines."""

from __future__ import annotations

import dataclasses
import re
from collections import ChainMap
from typing import TYPE_CHECKING

from ..limits import LANES
from .ptx_text import LABEL, immediate, matching, parse_int, split_operands, statement_end
from .syntax import TYPE_SIZES, Imm, Instruction, Mem, Part, Reg, Special, Sym, Variable, Vec

if TYPE_CHECKING:
    from .ptx_parser import Parser

_REG = re.compile(r"\.reg\s*(\.v[24]\b)?\s*\.(\w+)\s+(.*)", re.S)
_LOC = re.compile(
    r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)"
    r"(?:\s*,\s*function_name\s+[^,\s]+\s*,\s*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?[^\n]*"
)


class Body:
    """Parses one function body; holds the scopes of registers declared in inner braces."""

    def __init__(self, parser: Parser, name: str):
        self.parser = parser
        self.name = name
        self.registers: list[tuple[str, int]] = []
        self.scopes: ChainMap[str, Reg] = ChainMap()  # the innermost first
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.label_scopes: ChainMap[str, str] = ChainMap()
        self.variables: dict[str, Variable] = {}
        self.tables: dict[str, list[str]] = {}
        self.nounroll: set[int] = set()
        self.used_bytes: int | None = None  # of the load that comes next
        self.line: int | None = None

    def declare(self, type_: str, names: str) -> None:
        size = 0 if type_ == "pred" else TYPE_SIZES[type_]
        for name in split_operands(names):
            m = re.match(r"^([\w$%]+)<(\d+)>$", name)
            wanted = [f"{m.group(1)}{i}" for i in range(int(m.group(2)))] if m else [name]
            for n in wanted:
                self.scopes[n] = Reg(len(self.registers), size, n)
                self.registers.append((n, size))

    def operand(self, text: str):
        text = text.strip()
        if text[:1] in ("{", "("):
            return Vec(tuple(map(self.operand, split_operands(text[1:-1]))))
        if text.startswith("["):
            inner = split_operands(text[1:-1])
            return Vec(tuple(map(self.operand, inner))) if inner[1:] else self.memory(inner[0])
        if text.startswith("!"):
            return dataclasses.replace(self.operand(text[1:]), negated=True)
        if text == "_":
            return None
        return self.scopes.get(text) or immediate(text) or self.named(text)

    def named(self, text: str):
        """An operand that is neither a plain register nor a plain literal."""
        if text.startswith("-") and isinstance(literal := self.operand(text[1:]), Imm):
            return Imm(-literal.value)
        m = re.match(r"^([\w$%]+)\.([bh])([0-3])$", text)
        if m and m.group(1) in self.scopes:
            size = 1 if m.group(2) == "b" else 2
            return Part(self.scopes[m.group(1)], size, 8 * size * int(m.group(3)))
        if text.startswith("%"):
            return Special(text[1:])
        if text == "WARP_SZ":
            return Imm(LANES)
        m = re.match(r"^generic\((.*)\)$", text)
        m = re.match(r"^([\w$]+)\s*(?:([+-])\s*(\S+))?$", m.group(1) if m else text)
        if m:
            offset = parse_int(m.group(3)) if m.group(3) else 0
            return Sym(self.rename(m.group(1)), -offset if m.group(2) == "-" else offset)
        raise self.parser.error(f"cannot read the operand '{text}'", self.line)

    def rename(self, name: str) -> str:
        return self.label_scopes.get(name, name)

    def memory(self, text: str) -> Mem:
        m = re.match(r"^([\w$%.]+)\s*([+-])?\s*(-?\w+)?$", text)
        if not m:
            raise self.parser.error(f"cannot read the address '[{text}]'", self.line)
        offset = parse_int(m.group(3)) if m.group(2) else 0
        if offset is None:
            raise self.parser.error(f"cannot read the address '[{text}]'", self.line)
        offset = -offset if m.group(2) == "-" else offset
        base = parse_int(m.group(1))
        if base is not None:
            return Mem(None, base + offset)
        return Mem(self.scopes.get(m.group(1)) or Sym(self.rename(m.group(1))), offset)

    def instruction(self, text: str) -> None:
        predicate = None
        rest = text
        if rest.startswith("@"):
            m = re.match(r"^@\s*(!?)\s*([\w$%]+)\s+(.*)$", rest, re.S)
            reg = self.scopes.get(m.group(2)) if m else None
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
        self.instructions.append(
            Instruction(
                opcode, tuple(modifiers), tuple(operands), predicate, self.line,
                " ".join(text.split()), len(self.instructions), pair,
                used_bytes=self.used_bytes,
            )
        )  # fmt: skip
        self.used_bytes = None

    def parse(self, text: str) -> None:
        pos, end = 0, len(text)
        while pos < end:
            c = text[pos]
            if c.isspace() or c == ";":
                pos += 1
            elif m := _LOC.match(text, pos):
                self.line = self.parser.resolve_line(m, self.line)
                pos = m.end()
            elif c == "{":
                self.scopes = self.scopes.new_child()
                inner = {}
                close = matching(text, pos)
                for label in re.findall(r"(?:^|[\s;{}])([A-Za-z_$][\w$]*)\s*:", text[pos:close]):
                    if label in self.labels:
                        inner[label] = f"{label}@{pos}"
                self.label_scopes = self.label_scopes.new_child(inner)
                pos += 1
            elif c == "}":
                self.scopes, self.label_scopes = self.scopes.parents, self.label_scopes.parents
                pos += 1
            else:
                m = LABEL.match(text, pos)
                if m:
                    self.labels[self.rename(m.group(1))] = len(self.instructions)
                    pos = m.end()
                    self.last_label = m.group(1)
                    continue
                stop = statement_end(text, pos)
                statement = text[pos:stop].strip()
                try:
                    self.statement(statement)
                except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                    # Of inline assembly there is no end of odd forms.
                    raise self.parser.error(f"cannot read '{statement}'", self.line) from error
                pos = stop + 1

    def statement(self, text: str) -> None:
        if not text.startswith("."):
            self.instruction(text)
        elif text.startswith(".reg"):
            m = _REG.fullmatch(text)
            if m is None or m[1] or m[2] not in TYPE_SIZES:
                raise self.parser.error(f"cannot declare registers by '{text}'", self.line)
            self.declare(m[2], m[3])
        elif text.startswith(".pragma"):
            if "nounroll" in text:
                self.nounroll.add(len(self.instructions))
            elif m := re.search(r"used_bytes_mask\s+(\w+)", text):
                self.used_bytes = parse_int(m.group(1))
        elif text.startswith(".branchtargets"):
            self.tables[self.last_label] = split_operands(text[len(".branchtargets") :])
        elif text.startswith((".callprototype", ".calltargets")):
            pass
        elif text.startswith(".param"):
            pass  # call parameters: named buffers, created when first stored to
        else:
            variable = self.parser.variable(text)
            self.variables[variable.name] = variable
