"""Small changes of indices that may put an answer right: other names, terms too many."""

import itertools
import re
from collections.abc import Iterator

from .statements import Found, Replaced, Statement, split, terms

PAIRS = (
    ("threadIdx.x", "threadIdx.y"), ("blockIdx.x", "blockIdx.y"), ("tx", "ty"), ("x", "y"),
    ("row", "col"), ("first_row", "first_col"), ("block_row", "block_col"),
)  # fmt: skip


def exchanged(one: Statement, a: str, b: str) -> list[Replaced]:
    """All of one name by the other, and the other way round."""
    other = {a: b, b: a}
    pattern = rf"(?<![\w.]){re.escape(a)}(?![\w.])|(?<![\w.]){re.escape(b)}(?![\w.])"
    found = [m for m in re.finditer(pattern, one.code) if not one.declares(m.start())]
    return [(one.start + m.start(), one.start + m.end(), other[m[0]]) for m in found]


def _names(one: Statement) -> Iterator[Found]:
    """Two names of one kind exchanged in a line, or one in the place of the other."""
    header = re.match(r"for \([^)]*\)", one.code)
    for a, b in PAIRS:
        pieces = exchanged(one, a, b)
        if len({new for *_, new in pieces}) > 1:
            said = f"{a} and {b} are exchanged in {one.what()}."
            yield pieces, said
        for start, end, new in pieces:
            if header and start - one.start < header.end():
                continue  # see the rules of loops
            old = one.code[start - one.start : end - one.start]
            where = _capital(one.what(start - one.start))
            yield [(start, end, new)], f"{where} uses {old}, where another index belongs."


def _two_indices(one: Statement) -> Iterator[Found]:
    for access in one.accesses:
        if len(access.indices) < 2:
            continue
        (a, b), (c, d) = access.indices[-2:]
        first, second = one.code[a:b], one.code[c:d]
        if first.strip() == second.strip():
            continue
        said = f"The two indices of {access.name} are exchanged where it is {access.role}: rows "
        said += "and columns are taken for each other."
        yield (
            [(one.start + a, one.start + b, second), (one.start + c, one.start + d, first)],
            said,
        )


def _flat_index(one: Statement) -> Iterator[Found]:
    """`row * width + column`: the two exchanged, or another width."""
    for access in one.accesses:
        start, end = access.indices[-1]
        found = terms(one.code[start:end])
        if found is None:
            continue
        row, width, rest = found
        at = one.start + start, one.start + end
        exchanged = f"Row and column are exchanged in the index of {access.name}."
        turned = f"{access.name} is {access.role} as if its transpose lay in memory."
        if rest:
            yield [(*at, f"({rest}) * {width} + {row}")], exchanged
        for other in one.words:
            if other != width and (width in one.words or width.isupper()):
                said = f"The index of {access.name} takes {width} for the length of a row, which "
                said += "it is not."
                yield [(*at, f"({row}) * {other} + {rest or 0}")], said
                if rest:
                    yield [(*at, f"({rest}) * {other} + {row}")], turned


def _order_of_numbers(one: Statement) -> Iterator[Found]:
    """`a * n + b` for `b * m + a`, where an index is declared: things numbered in another order."""
    if not (one.is_declaration and one.is_integer and (m := one.assignment)):
        return
    begin, end = m.end() + 1, one.code.find(";", m.end())
    found = terms(one.code[begin:end]) if end > 0 else None
    if found is None or not found[2]:
        return
    row, _, rest = found
    parts = [part.strip() for part in split(rest, "+")]
    said = f"{one.target} numbers things in another order: what is multiplied and what is added "
    said += "there are exchanged."
    for part in parts if re.fullmatch(r"[\w.]+", row) else ():
        others = "".join(f"{other} + " for other in parts if other != part)
        for word in one.words if re.fullmatch(r"[a-z]\w*(?:\.\w)?", part) else ():
            new = f"{others}{part} * {word} + {row}"
            yield [(one.start + begin, one.start + end, new)], said


def _one_further(one: Statement) -> Iterator[Found]:
    said = "The index of {} is one too {}."
    for access in one.accesses:
        for start, end in access.indices[-2:]:
            index = one.code[start:end]
            name, at = access.name, (one.start + start, one.start + end)
            if index.isdigit() and access.name.startswith("r_"):
                continue
            yield [(*at, f"{index} + 1")], said.format(name, "small")
            yield [(*at, f"{index} - 1")], said.format(name, "large")


def _registers(one: Statement) -> Iterator[Found]:
    """Elements of one array, numbered, exchanged."""
    numbered = [
        (access.name, *access.indices[-1])
        for access in one.accesses
        if one.code[slice(*access.indices[-1])].strip().isdigit()
    ]
    for (name, a, b), (other, c, d) in itertools.combinations(numbered, 2):
        first, second = one.code[a:b], one.code[c:d]
        if name == other and first != second:
            said = f"Two elements of {name} are exchanged in {one.what()}."
            pieces = [(one.start + a, one.start + b, second), (one.start + c, one.start + d, first)]
            yield pieces, said


def _terms(one: Statement) -> Iterator[Found]:
    """A term of an index that is one too many."""
    for start, end, where in _sums(one):
        parts = split(one.code[start:end], "+")
        for n, part in enumerate(parts if len(parts) > 1 else ()):
            rest = "+".join(parts[:n] + parts[n + 1 :]).strip()
            much = f"There is a term too many in {where}: {' '.join(part.split())}."
            yield [(one.start + start, one.start + end, rest)], much
        for less in re.finditer(r" - \w+(?: \* \w+)?", one.code[start:end]):
            at = one.start + start + less.start()
            much = f"There is a term too many in {where}: {less[0].strip()}."
            yield [(at, at + len(less[0]), "")], much


def _sums(one: Statement) -> Iterator[tuple[int, int, str]]:
    """Where indices are computed: from, to, and what it is in words."""
    for access in one.accesses:
        for start, end in access.indices:
            yield start, end, f"the index of {access.name}"
    if one.is_integer and (m := one.assignment):
        end = one.code.find(";", m.end())
        if end > 0 and not one.code.startswith("for"):
            yield m.end() + 1, end, one.what()


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _other_names(one: Statement) -> Iterator[Found]:
    """An index, a size or a number in the place of another one."""
    header = re.match(r"for \([^)]*\)", one.code)
    for found in re.finditer(
        r"(?<![\w.])(?:[A-Za-z_]\w*|\d+|\(\w+ \+ \w+\))(?![\w.(\[])", one.code
    ):
        old, at = found[0], found.start()
        plain = old in one.scope
        if one.declares(at) or (header and at < header.end()):
            continue
        if not plain and not (one.in_index(at) or one.in_call(at)):
            continue
        where = _capital(one.what(at))
        for new in one.scope:
            if new == old or new == one.target:
                continue
            kind = "size" if old in one.words or old.isupper() else "index"
            kind = "number" if old.isdigit() or old[0] == "(" else kind
            piece = (one.start + at, one.start + found.end(), new)
            yield [piece], f"{where} uses {old}, where another {kind} belongs."


def _other_arrays(one: Statement) -> Iterator[Found]:
    """One array in the place of another."""
    for access in one.accesses:
        for other in one.arrays:
            if other != access.name:
                at = one.start + access.start
                said = f"{access.name} stands where another array belongs, in {one.what()}."
                yield [(at, at + len(access.name), other)], said


def _other_index(one: Statement) -> Iterator[Found]:
    """An index that is computed and has to be a plain one, or a plain one that is a number."""
    for access in one.accesses:
        for start, end in access.indices[-3:]:
            index = one.code[start:end].strip()
            said = f"The index of {access.name} is not the one that belongs there."
            for new in one.scope:
                if new != index and (index.isdigit() or not index.isidentifier()):
                    yield [(one.start + start, one.start + end, new)], said
            if index.isdigit() and access.name.islower() and len(index) == 1:
                for new in sorted(set("01234567") - {index}):
                    yield [(one.start + start, one.start + end, new)], said


def _members(one: Statement) -> Iterator[Found]:
    """Another member of a float4, or all numbers of an array's elements further on."""
    for found in re.finditer(r"(?<=[\w\])])\.([xyzw])\b", one.code):
        before = re.search(r"\w+$", one.code[: found.start()])
        if before and before[0].endswith(("Idx", "Dim")):
            continue
        at = one.start + found.start(1)
        said = f"Another member of {before[0] if before else 'it'} belongs in {one.what()}."
        for new in sorted(set("xyzw") - {found[1]}):
            yield [(at, at + 1, new)], said
    for name in one.arrays:
        at = [a.indices[-1] for a in one.accesses if a.name == name]
        if len(at) < 2 or not all(one.code[a:b].isdigit() for a, b in at):
            continue
        said = f"Other elements of {name} belong in {one.what()}."
        for step in (-2, -1, 1, 2):
            new = [int(one.code[a:b]) + step for a, b in at]
            if min(new) >= 0:
                pairs = zip(at, new, strict=True)
                yield [(one.start + a, one.start + b, str(n)) for (a, b), n in pairs], said


INDEX_RULES = (_two_indices, _flat_index, _order_of_numbers, _names, _registers, _terms)
INDEX_NAMES = (_other_names, _other_index, _one_further, _other_arrays, _members)
