"""Small changes of an answer that may put it right, and what is wrong in it if they do."""

import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ...simulator.compile.source_text import line_of
from .flow_rules import FLOW_NAMES, FLOW_RULES
from .index_rules import INDEX_NAMES, INDEX_RULES, PAIRS, exchanged
from .statements import Replaced, Statement, statements


@dataclass(frozen=True)
class Change:
    """A small change of a text.

    Attributes:
        text: the text after it.
        said: what is wrong in the text before it, if the text after it is right; or empty.
        lines: where it is, in the text before it.
    """

    text: str
    said: str
    lines: tuple[int, ...]


_FEW = (*INDEX_RULES, *FLOW_RULES)
_MANY = (*INDEX_NAMES, *FLOW_NAMES)
_OFF_BY_ONE = "The comparisons are off by one: they decide wrongly where both sides are equal."
_NO_TRANS = "Whether a matrix is transposed is wrong in each call of ldmatrix."
# What may be wrong in every comparison at once: what is replaced, by what, and what is said.
_ALL = (
    (r"(>=|<) (\w+)(?! - 1)\b", r"\1 \2 - 1", "The comparisons let one index too many through."),
    (r"(>=|<) (\w+) - 1\b", r"\1 \2", "The comparisons leave out the last index."),
    (r"(?<![<-])(<|>)(?![<>=])", r"\1=", _OFF_BY_ONE),
    (r"(?<![<>])(<|>)=", r"\1", _OFF_BY_ONE),
    (r"\b(ldmatrix_x[124])_trans\b", r"\1", _NO_TRANS),
    (r"\b(ldmatrix_x[124])\b", r"\1_trans", _NO_TRANS),
)


def changes(
    text: str, lines: Collection[int], words: Collection[str]
) -> tuple[list[Change], list[Change]]:
    """Small changes of some lines of a text: a few of each; and one name for another, many.

    Args:
        text: a kernel's source.
        lines: numbers of the lines that may be changed.
        words: names of sizes, such as `N` and `d`.
    """
    found = list(statements(text, lines, words))
    few: dict[str, Change] = {}
    many: dict[str, Change] = {}
    for made, rules in ((few, _FEW), (many, _MANY)):
        for one in found:
            for rule in rules:
                for pieces, said in rule(one):
                    _keep(made, text, pieces, said)
    for pieces, said in (pair for group in _groups(found) for pair in _everywhere(group)):
        _keep(few, text, pieces, said)
    return list(few.values()), [many[text] for text in many if text not in few]


def _keep(made: dict[str, Change], text: str, found: list[Replaced], said: str) -> None:
    changed = text
    for start, end, new in sorted(found, reverse=True):
        changed = f"{changed[:start]}{new}{changed[end:]}"
    if said and changed != text:
        lines = {line_of(text, start) for start, *_ in found}
        made.setdefault(changed, Change(changed, said, tuple(sorted(lines))))


def _groups(found: list[Statement]) -> list[list[Statement]]:
    """All of the lines; and where several stand together, those."""
    groups: list[list[Statement]] = []
    for one in found:
        if groups and one.line - groups[-1][-1].line <= 2:
            groups[-1].append(one)
        else:
            groups.append([one])
    pairs = [[a, b] for a, b in itertools.pairwise(found)]
    return [found, *groups, *pairs]


def _everywhere(found: list[Statement]) -> Iterator[tuple[list[Replaced], str]]:
    """Two indices exchanged in all of the lines."""
    sizes = itertools.combinations(found[0].words if found else (), 2)
    for a, b in (*PAIRS, *sizes):
        pieces = [piece for one in found for piece in exchanged(one, a, b)]
        if len({new for *_, new in pieces}) > 1:
            yield pieces, f"{a} and {b} are exchanged in the marked lines."
        for old, new in ((a, b), (b, a)):
            hits = [piece for piece in pieces if piece[2] == new]
            if len(hits) > 1:
                yield hits, f"{old} is used in the marked lines, and {new} belongs there."
    for pattern, new, said in _ALL:
        hits = [(one, m) for one in found for m in re.finditer(pattern, one.code)]
        if len(hits) > 1 and not any(one.code.startswith("for") for one, _ in hits):
            yield [(o.start + m.start(), o.start + m.end(), m.expand(new)) for o, m in hits], said
    yield from _same_number(found)
    both = [p for one in found for a, b in PAIRS[:2] for p in exchanged(one, a, b)]
    if len({new for *_, new in both}) > 2:
        yield both, "x and y are exchanged, in threadIdx as in blockIdx."


def _same_number(found: list[Statement]) -> Iterator[tuple[list[Replaced], str]]:
    """A number that is twice or half of what it should be, in all of the lines."""
    hits: dict[int, list[Replaced]] = {}
    for one in found:
        for m in re.finditer(r"(?<![\w.])(\d+)(?![\w.])", one.code):
            at = one.start + m.start(), one.start + m.end(), m[1]
            hits.setdefault(int(m[1]), []).append(at)
    for value, at in hits.items():
        for new in (value // 2, value * 2) if value > 1 and len(at) > 1 else ():
            said = f"{value} is not the right number in the marked lines."
            yield [(a, b, str(new)) for a, b, _ in at], said
