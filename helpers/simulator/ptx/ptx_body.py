"""Parses the body of one PTX function: declarations, labels, instructions and their lines."""

from __future__ import annotations

import dataclasses
import functools
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
# An instruction that begins here, up to its semicolon: no label, no directive, no block.
_INSTRUCTION = re.compile(r'([@A-Za-z][^;:"]*(?:::[^;:"]*)*);')
_GUARD = re.compile(r"@\s*(!?)\s*([\w$%]+)\s+(.*)", re.S)
_PARTS = re.compile(r"([\w.:]+)\s*(.*)", re.S)
_MEMORY = re.compile(r"^([\w$%.]+)\s*([+-])?\s*(-?\w+)?$")
_SPACE = re.compile(r"[\s;]*")
_LABELS = re.compile(r"(?:^|[\s;{}])([A-Za-z_$][\w$]*)\s*:")


@functools.lru_cache(maxsize=4096)
def _name(text: str) -> tuple[str, tuple[str, ...]]:
    """The opcode and the modifiers of a mnemonic."""
    opcode, *modifiers = text.replace("::", "__").split(".")
    return opcode, tuple(modifiers)


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
        # What texts mean as operands, of each scope that declares something.
        self.known: list[dict[str, object]] = [{}]

    def declare(self, type_: str, names: str) -> None:
        size = 0 if type_ == "pred" else TYPE_SIZES[type_]
        self.known[-1] = {}
        scope = self.scopes.maps[0]
        for name in split_operands(names):
            m = re.match(r"^([\w$%]+)<(\d+)>$", name)
            wanted = [f"{m.group(1)}{i}" for i in range(int(m.group(2)))] if m else [name]
            for slot, n in enumerate(wanted, len(self.registers)):
                scope[n] = Reg(slot, size, n)
            self.registers += [(n, size) for n in wanted]

    def operand(self, text: str):
        """What a text means as an operand; the same text of a scope always means the same."""
        known = self.known[-1]
        if text not in known:
            known[text] = self._operand(text.strip())
        return known[text]

    def _operand(self, text: str):
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
        m = _MEMORY.match(text)
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
            m = _GUARD.fullmatch(rest)
            reg = self.scopes.get(m.group(2)) if m else None
            if reg is None:
                raise self.parser.error(f"cannot read '{text}'", self.line)
            predicate = Reg(reg.slot, 0, reg.name, m.group(1) == "!")
            rest = m.group(3)
        m = _PARTS.match(rest)
        if not m:
            raise self.parser.error(f"cannot read the statement '{text}'", self.line)
        opcode, modifiers = _name(m[1])
        parts = split_operands(m[2])
        pair = bool(parts) and "|" in parts[0]
        if pair:
            parts[:1] = parts[0].split("|")
        self.instructions.append(
            Instruction(
                opcode, modifiers, tuple(map(self.operand, parts)), predicate, self.line,
                " ".join(text.split()), len(self.instructions), pair,
                used_bytes=self.used_bytes,
            )
        )  # fmt: skip
        self.used_bytes = None

    def parse(self, text: str) -> None:
        pos, end = _SPACE.match(text).end(), len(text)
        while pos < end:
            pos = _SPACE.match(text, self._next(text, pos)).end()

    def _next(self, text: str, pos: int) -> int:
        """Read what begins at `pos`; returns where it ends."""
        if m := _INSTRUCTION.match(text, pos):
            return self._read(m[1], m.end())
        if m := _LOC.match(text, pos):
            self.line = self.parser.resolve_line(m, self.line)
            return m.end()
        if text[pos] == "{":
            inner = {}
            close = matching(text, pos)
            for label in _LABELS.findall(text, pos, close):
                if label in self.labels:
                    inner[label] = f"{label}@{pos}"
            self.scopes = self.scopes.new_child()
            self.label_scopes = self.label_scopes.new_child(inner)
            self.known.append({} if inner else self.known[-1])
            return pos + 1
        if text[pos] == "}":
            self.scopes, self.label_scopes = self.scopes.parents, self.label_scopes.parents
            self.known.pop()
            return pos + 1
        if m := LABEL.match(text, pos):
            self.labels[self.rename(m.group(1))] = len(self.instructions)
            self.last_label = m.group(1)
            return m.end()
        stop = statement_end(text, pos)
        return self._read(text[pos:stop], stop + 1)

    def _read(self, statement: str, end: int) -> int:
        try:
            self.statement(statement.strip())
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            # Of inline assembly there is no end of odd forms.
            what = f"cannot read '{statement.strip()}'"
            raise self.parser.error(what, self.line) from error
        return end

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
