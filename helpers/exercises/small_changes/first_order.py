"""Mistakes that hold for whole families of kernels: small changes of a text, and what they mean.

A change goes both ways. Made in the solution, it gives a mistake that an answer is compared with;
made in an answer, it may put the answer right, and then the answer has made the mistake. Either way
a sentence says what is confused with what.
"""

import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from .flow_rules import FLOW_RULES
from .index_rules import INDEX_RULES, PAIRS, exchanged
from .statements import Replaced, Statement, statements


@dataclass(frozen=True)
class Change:
    """A small change of a text.

    Attributes:
        text: the text after it.
        mistake: what is said if the text after it is the wrong one; empty if nothing true is known.
        mended: what is said if the text before it is the wrong one; or empty.
        line: where it is, in the text before it.
    """

    text: str
    mistake: str
    mended: str
    line: int


_OFF_BY_ONE = "The comparisons are off by one: they decide wrongly where both sides are equal."
_NO_TRANS = "Whether a matrix is transposed is wrong in each call of ldmatrix."
# What may be wrong in every comparison at once: what is replaced, by what, and what is said.
_ALL = (
    (r"(>=|<) (\w+)(?! - 1)\b", r"\1 \2 - 1", "The comparisons leave out the last index."),
    (r"(>=|<) (\w+) - 1\b", r"\1 \2", "The comparisons leave out the last index."),
    (r"(?<![<-])(<|>)(?![<>=])", r"\1=", _OFF_BY_ONE),
    (r"(?<![<>])(<|>)=", r"\1", _OFF_BY_ONE),
    (r"\b(ldmatrix_x[124])_trans\b", r"\1", _NO_TRANS),
    (r"\b(ldmatrix_x[124])\b", r"\1_trans", _NO_TRANS),
)


def changes(text: str, lines: Collection[int], words: Collection[str]) -> list[Change]:
    """All small changes of some lines of a text.

    Args:
        text: a kernel's source.
        lines: numbers of the lines that may be changed.
        words: names of sizes, such as `N` and `d`.
    """
    made: dict[str, Change] = {}
    found = list(statements(text, lines, words))
    for one in found:
        for rule in (*INDEX_RULES, *FLOW_RULES):
            for pieces, mistake, mended in rule(one):
                _keep(made, text, pieces, mistake, mended)
    for pieces, said in (pair for group in _groups(found) for pair in _everywhere(group)):
        said, *names = said.split("|")  # of two names, the right one first
        _keep(made, text, pieces, said.format(*names[::-1]), said.format(*names))
    return list(made.values())


def _keep(made, text, pieces, mistake, mended) -> None:
    changed = text
    for start, end, new in sorted(pieces, reverse=True):
        changed = f"{changed[:start]}{new}{changed[end:]}"
    if changed == text:
        return
    line = text.count("\n", 0, min(start for start, *_ in pieces)) + 1
    if (known := made.get(changed)) is not None:  # another rule has come to the same text
        mistake, mended, line = known.mistake or mistake, known.mended or mended, known.line
    made[changed] = Change(changed, mistake, mended, line)


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
            yield pieces, f"{a} and {b} are exchanged throughout."
        for old, new in ((a, b), (b, a)):
            hits = [piece for piece in pieces if piece[2] == new]
            if len(hits) > 1:
                yield hits, f"{{}} is used throughout where {{}} belongs.|{old}|{new}"
    for pattern, new, said in _ALL:
        hits = [(one, m) for one in found for m in re.finditer(pattern, one.code)]
        if len(hits) > 1 and not any(one.code.startswith("for") for one, _ in hits):
            yield [(o.start + m.start(), o.start + m.end(), m.expand(new)) for o, m in hits], said
    both = [p for one in found for a, b in PAIRS[:2] for p in exchanged(one, a, b)]
    if len({new for *_, new in both}) > 2:
        yield both, "x and y are exchanged throughout, in threadIdx as in blockIdx."
