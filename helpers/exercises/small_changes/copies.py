"""Small changes of copies that may put an answer right: their conditions, units and groups."""

import itertools
import re
from collections.abc import Iterator

from .statements import Replaced, Statement, terms

_LEAVES = re.compile(r"\b(?:return|break|continue)\b")


def own_conditions(found: list[Statement]) -> Iterator[tuple[list[Replaced], str, int]]:
    """One condition for several copies, each of which has to look at its own element."""
    copies: dict[str, list[tuple[Replaced, ...]]] = {}
    first: dict[str, int] = {}
    for one in found:
        m = re.match(r"if \((.+?)\) [\w\[\]]+ = ", one.code)
        m = m or re.search(r"(?<!=)= \(?([^?=;]+?)\)? \?", one.code)
        parts = [terms(one.code[slice(*access.indices[-1])]) for access in one.accesses]
        parts = [p for p in parts if p and p[2]]
        if not m or len(parts) != 1 or _LEAVES.search(one.code):
            continue
        row, width, rest = parts[0]
        at = one.start + m.start(1), one.start + m.end(1)
        sizes = [word for word in one.words if not word.isupper() or len(word) == 1]
        ways = tuple((*at, f"({row}) < {size} && ({rest}) < {width}") for size in sizes)
        copies.setdefault(m[1], []).append(ways)
        first.setdefault(m[1], one.line)
    for condition, ways in copies.items():
        said = (
            f"`{condition}` is one condition for several copies, and each has to look at the "
            "indices of the element that it copies."
        )
        for pieces in itertools.product(*ways) if 1 < len(ways) < 4 else ():
            yield list(pieces), said, first[condition]


def units(found: list[Statement]) -> Iterator[tuple[list[Replaced], str, int]]:
    """A name that counts in floats where vectors are counted, or the other way round."""
    whole = found[0].whole
    unit = "4" if "float4" in whole else "2" if "float2" in whole else ""
    hits: dict[str, list[tuple[int, int, int]]] = {}
    for one in found if unit else ():
        for a, b in {access.indices[-1] for access in one.accesses}:
            for m in re.finditer(r"(?<![\w.])[a-z]\w*(?![\w.(\[])", one.code[a:b]):
                at = one.start + a + m.start(), one.start + a + m.end(), one.line
                hits.setdefault(m[0], []).append(at)
    for name, places in hits.items():
        said = f"{name} is counted in another unit than the indices need: floats or vectors."
        for new in (f"({name} / {unit})", f"({unit} * {name})"):
            if len(places) > 1:
                yield [(a, b, new) for a, b, _ in places], said, places[0][2]


def groups_of_copies(found: list[Statement]) -> Iterator[tuple[list[Replaced], str, int]]:
    """A commit under a condition that belongs behind it, or one for all that belongs to each."""
    for one in found:
        m = re.search(r"\b(?:cp_async_commit|__pipeline_commit)\(\);", one.code)
        if not m:
            continue
        at, whole = one.start + m.start(), one.whole
        gone = (at, at + len(m[0]), ";")
        if (end := whole.find("}", at)) >= 0:
            said = "No group is made where the condition does not hold, and the wait counts groups."
            yield [gone, (end + 1, end + 1, f" {m[0]}")], said, one.line
        if (end := whole.rfind("}", 0, at)) >= 0:
            said = "All these copies become one group, and the wait counts groups."
            yield [gone, (end, end, f" {m[0]} ")], said, one.line
