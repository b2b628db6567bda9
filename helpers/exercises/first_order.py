"""Mistakes that hold for whole families of kernels: small changes of a text, and what they mean.

A change goes both ways. Made in the solution, it gives a mistake that an answer is compared with;
made in an answer, it may put the answer right, and then the answer has made the mistake. Either way
a sentence says what is confused with what.
"""

import itertools
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from .statements import Statement, statements, terms

Replaced = tuple[int, int, str]  # from, to, by what


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


Found = tuple[list[Replaced], str, str]  # pieces, mistake, mended
Rule = Callable[[Statement], Iterator[Found]]

_PAIRS = (
    ("threadIdx.x", "threadIdx.y"), ("blockIdx.x", "blockIdx.y"), ("tx", "ty"), ("x", "y"),
    ("row", "col"), ("first_row", "first_col"), ("block_row", "block_col"),
)  # fmt: skip
_OFF_BY_ONE = "The comparisons are off by one: they decide wrongly where both sides are equal."
# What may be wrong in every comparison at once: what is replaced, by what, and what is said.
_ALL = (
    (r"(>=|<) (\w+)(?! - 1)\b", r"\1 \2 - 1", "The comparisons leave out the last index."),
    (r"(>=|<) (\w+) - 1\b", r"\1 \2", "The comparisons leave out the last index."),
    (r"(?<![<-])(<|>)(?![<>=])", r"\1=", _OFF_BY_ONE),
    (r"(?<![<>])(<|>)=", r"\1", _OFF_BY_ONE),
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
        for rule in RULES:
            for pieces, mistake, mended in rule(one):
                _keep(made, text, pieces, mistake, mended, one.line)
    for pieces, said in _everywhere(found):
        _keep(made, text, pieces, said, said, found[0].line)
    return list(made.values())


def _keep(made, text, pieces, mistake, mended, line) -> None:
    changed = text
    for start, end, new in sorted(pieces, reverse=True):
        changed = f"{changed[:start]}{new}{changed[end:]}"
    if changed != text:
        made.setdefault(changed, Change(changed, mistake, mended, line))


def _everywhere(found: list[Statement]) -> Iterator[tuple[list[Replaced], str]]:
    """Two indices exchanged in all of the lines."""
    for a, b in _PAIRS:
        pieces = [piece for one in found for piece in _exchanged(one, a, b)]
        lines = {piece[0] for piece in pieces}
        if len(lines) > 1:
            yield pieces, f"{a} and {b} are exchanged throughout."
    for pattern, new, said in _ALL:
        hits = [(one, m) for one in found for m in re.finditer(pattern, one.code)]
        if len(hits) > 1 and not any(one.code.startswith("for") for one, _ in hits):
            yield [(o.start + m.start(), o.start + m.end(), m.expand(new)) for o, m in hits], said
    both = [p for one in found for a, b in _PAIRS[:2] for p in _exchanged(one, a, b)]
    if len(both) > 1:
        yield both, "x and y are exchanged throughout, in threadIdx as in blockIdx."


def _exchanged(one: Statement, a: str, b: str) -> list[Replaced]:
    """All of one name by the other, and the other way round."""
    other = {a: b, b: a}
    pattern = rf"(?<![\w.]){re.escape(a)}(?![\w.])|(?<![\w.]){re.escape(b)}(?![\w.])"
    found = [m for m in re.finditer(pattern, one.code) if not one.declares(m.start())]
    if {m[0] for m in found} == {a} and "Idx" not in a:
        return []
    return [(one.start + m.start(), one.start + m.end(), other[m[0]]) for m in found]


# ------------------------------------------------------------------ indices


def _names(one: Statement) -> Iterator[Found]:
    """Two names of one kind exchanged in a line, or one in the place of the other."""
    for a, b in _PAIRS:
        pieces = _exchanged(one, a, b)
        if not pieces:
            continue
        if len(pieces) > 1:
            said = f"{a} and {b} are exchanged in {one.what()}."
            yield pieces, said, said
        for start, end, new in pieces:
            old = one.code[start - one.start : end - one.start]
            where = one.what(start - one.start)
            where = f"{where[0].upper()}{where[1:]}"
            said = "{} uses {}, where another index belongs."
            yield [(start, end, new)], said.format(where, new), said.format(where, old)


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
            yield [(*at, f"({rest}) * {width} + {row}")], exchanged, exchanged
        for other in one.words:
            if other != width and (width in one.words or width.isupper()):
                said = f"The index of {access.name} takes {{}} for the length of a row, which it "
                said += "is not."
                yield (
                    [(*at, f"({row}) * {other} + {rest or 0}")],
                    said.format(other),
                    said.format(width),
                )
                if rest:
                    yield [(*at, f"({rest}) * {other} + {row}")], turned, turned


def _one_further(one: Statement) -> Iterator[Found]:
    said = "The index of {} is one too {}."
    for access in one.accesses:
        for start, end in access.indices[-2:]:
            index = one.code[start:end]
            name, at = access.name, (one.start + start, one.start + end)
            if index.isdigit() and access.name.startswith("r_"):
                continue
            yield [(*at, f"{index} + 1")], said.format(name, "large"), said.format(name, "small")
            yield [(*at, f"{index} - 1")], said.format(name, "small"), said.format(name, "large")


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
            yield pieces, said, said


# ------------------------------------------------------------------ conditions and loops

_COMPARE = re.compile(r"(?<![<>=!-])(<=|>=|<|>)(?![<>=])")
_SIDE = re.compile(r"[\w.+\-*/% \[\]]+")
_LOOP = re.compile(
    r"\bfor\s*\(\s*(?:unsigned |const )*(?:int |unsigned |auto )?\s*"
    r"(?P<name>\w+)\s*=\s*(?P<first>[^;]+);"
    r"\s*(?P=name)\s*(?P<compare><=|>=|<|>|!=)\s*(?P<bound>[^;]+);(?P<step>[^;{]*?)\)(?=\s|$|\{)"
)
_WIDER = {"<": "<=", ">=": ">", "<=": "<", ">": ">="}


def _comparisons(one: Statement) -> Iterator[Found]:
    loop = _LOOP.search(one.code)
    for found in _COMPARE.finditer(one.code):
        if loop and loop.start() <= found.start() < loop.end():
            continue
        if one.code[: found.start()].rstrip().endswith(("template", "mma_m16n8k16", "wait")):
            continue
        left = _SIDE.findall(one.code[: found.start()])
        right = _SIDE.match(one.code, found.end())
        if not left or right is None:
            continue
        a, b = left[-1].strip(), right[0].strip()
        at = one.start + found.start(1), one.start + found.end(1)
        said = f"The comparison of {a} with {b} is off by one: it decides wrongly where they are "
        said += "equal."
        yield [(*at, _WIDER[found[1]])], said, said
        turned = {"<": ">=", ">=": "<", "<=": ">", ">": "<="}[found[1]]
        said = f"The comparison of {a} with {b} is the wrong way round."
        yield [(*at, turned)], said, said
        end = one.start + found.end() + len(right[0].rstrip())
        last = f"The comparison of {a} with {{}} leaves out the last index."
        yield [(end, end, " - 1")], last.format(f"{b} - 1"), ""
        if less := re.search(r"\s*- 1$", right[0].rstrip()):
            start = one.start + found.end() + less.start()
            yield [(start, end, "")], "", last.format(b)


def _joined(one: Statement) -> Iterator[Found]:
    both = "The condition asks that both hold, and it is enough that one does."
    either = "The condition is content if one of the two holds, and both have to."
    for found in re.finditer(r"&&|\|\|", one.code):
        at = one.start + found.start(), one.start + found.end()
        if found[0] == "&&":
            yield [(*at, "||")], either, both
        else:
            yield [(*at, "&&")], both, either
        left, right = one.condition_around(found.start(), found.end())
        for kept, gone in ((left, right), (right, left)):
            name = _SIDE.match(one.code[slice(*gone)].strip().lstrip("("))
            whole = min(left[0], right[0]), max(left[1], right[1])
            what = "guard" if one.is_guard else "condition"
            said = f"The {what} does not look at {name[0].strip() if name else 'one edge'}."
            pieces = [(one.start + whole[0], one.start + whole[1], one.code[slice(*kept)])]
            yield pieces, said, ""


def _loops(one: Statement) -> Iterator[Found]:
    found = _LOOP.search(one.code)
    if not found:
        return

    def piece(group: str, new: str) -> list[Replaced]:
        return [(one.start + found.start(group), one.start + found.end(group), new)]

    name, first, bound = found["name"], found["first"].strip(), found["bound"].strip()
    compare = found["compare"]
    if re.search(r"/=|>>=|\*=|<<=", found["step"]):
        yield from _tree(found, piece)
        return
    last = f"The loop over {name} leaves out its last turn."
    begin = f"The loop over {name} leaves out its first turn."
    more = f"The loop over {name} makes one turn too many."
    if compare in ("<", "<="):
        yield piece("bound", f"{bound} - 1"), last, more
        yield piece("bound", f"{bound} + 1"), more, last
        if bound.endswith("- 1"):
            yield piece("bound", bound[:-3].strip()), more, last
    yield piece("first", f"{first} + 1"), begin, ""
    if first.endswith("1"):
        yield piece("first", first[:-1] + "0"), "", begin
    step = re.search(r"\+=\s*(\w+)", found["step"])
    for word in one.words if step else ():
        at = one.start + found.start("step") + step.start(1)
        said = f"The loop over {name} has the wrong step."
        yield [(at, at + len(step[1]), word)], said, said


def _tree(found: re.Match, piece) -> Iterator[Found]:
    """A loop whose step doubles or halves: the levels of a tree."""
    first, bound, compare = found["first"].strip(), found["bound"].strip(), found["compare"]
    falls = re.search(r"/=|>>=", found["step"])
    start = "The first level of the tree is missing."
    end = "The last level of the tree is missing."
    wide = "The tree begins with a level too many."
    yield piece("first", f"({first}) / 2"), start if falls else wide, wide if falls else start
    yield piece("first", f"({first}) * 2"), wide if falls else start, start if falls else wide
    many = "The tree has a level too many at its end."
    if falls and compare in (">=", ">") and bound.isdigit():
        least = int(bound) + (compare == ">")
        yield piece("bound", str(2 * int(bound)) if int(bound) else "1"), end, many
        yield piece("bound", str(least // 2 - (compare == ">"))), many, end
    elif not falls and compare in ("<", "<="):
        yield piece("bound", f"({bound}) / 2"), end, many
        yield piece("bound", f"({bound}) * 2"), many, end


# ------------------------------------------------------------------ values


def _operators(one: Statement) -> Iterator[Found]:
    """A term that overwrites; the least for the largest; division for remainder; a wrong sign."""
    target = one.target or "the result"
    if one.target and (m := one.assignment):
        at = one.start + m.start(1), one.start + m.end(1)
        lost = f"{target} is set anew each time, and what it held before is lost."
        added = f"{target} is added to, and it should be set."
        if m[1] in ("+=", "*="):
            yield [(*at, "=")], lost, added
        elif m[1] == "=" and not one.is_declaration:
            yield [(*at, "+=")], added, lost
    for found in re.finditer(r"\bf(max|min)f(?=\()", one.code):
        at, least = one.start + found.start(), found[1] == "min"
        small = "The smaller one is taken, and the larger one is wanted."
        large = "The larger one is taken, and the smaller one is wanted."
        name = "fmaxf" if least else "fminf"
        yield [(at, at + 5, name)], large if least else small, small if least else large
    for found in re.finditer(r"(?<=\w |\w\)|\) )([/%])(?= ?\w)", one.code):
        at = one.start + found.start(1)
        said = f"Division and remainder are taken for each other in {one.what(found.start())}."
        yield [(at, at + 1, "%" if found[1] == "/" else "/")], said, said
    for found in re.finditer(r"\bexpf\(([\w.\[\]]+) - ([\w.\[\]]+)\)", one.code):
        said = "The difference in the exponent has the wrong sign."
        a, b = one.start + found.start(1), one.start + found.end(2)
        yield [(a, b, f"{found[2]} - {found[1]}")], said, said


def _factors(one: Statement) -> Iterator[Found]:
    """A factor or a division that is left out."""
    if not one.assignment or one.is_integer:
        return
    begin = one.assignment.end()
    for found in re.finditer(
        r" ([*/]) (?:\w+\((?:[^()]|\([^()]*\))*\)|\w+)(?=[;\s)])", one.code[begin:]
    ):
        at = begin + found.start()
        if one.in_index(at):
            continue
        what = "division" if found[1] == "/" else "factor"
        said = f"A {what} is missing in {one.what()}."
        yield [(one.start + at, one.start + begin + found.end(), "")], said, ""


def _numbers(one: Statement) -> Iterator[Found]:
    """A power of two that is twice or half of what it should be."""
    loop = _LOOP.search(one.code)
    for found in re.finditer(r"(?<![\w.])(\d+)(?![\w.])", one.code):
        value = int(found[1])
        if value not in (2, 4, 8, 16, 32, 64) or (
            loop and loop.start() < found.start() < loop.end()
        ):
            continue
        at = one.start + found.start(), one.start + found.end()
        said = f"{{}} is not the right number in {one.what(found.start())}."
        for new in (value * 2, value // 2):
            yield [(*at, str(new))], said.format(new), said.format(value)


def _words(one: Statement) -> Iterator[Found]:
    """`.trans` forgotten; an XOR forgotten; zero for minus infinity."""
    lies = "ldmatrix has no .trans here: each 8 × 8 matrix comes with rows and columns exchanged."
    turns = "ldmatrix has .trans here, and the matrix is wanted as it lies."
    for found in re.finditer(r"\bldmatrix_x([124])(_trans)?\b", one.code):
        at = one.start + found.start(), one.start + found.end()
        name = f"ldmatrix_x{found[1]}"
        if found[2]:
            yield [(*at, name)], lies, turns
        else:
            yield [(*at, f"{name}_trans")], turns, lies
    for found in re.finditer(r" \^ (?:\([^()]*\)|\w+)", one.code):
        at = one.start + found.start(), one.start + found.end()
        said = f"An XOR is missing in {one.what(found.start())}: an element is looked for where it "
        yield [(*at, "")], f"{said}was not put.", ""
    zero = f"0 takes the place of minus infinity in {one.what()}."
    for found in re.finditer(r"minus_infinity\(\)|-INFINITY|-FLT_MAX", one.code):
        yield [(one.start + found.start(), one.start + found.end(), "0.0f")], zero, ""
    if one.target and (found := re.search(r"(?<== )-?0(?:\.0*)?f?(?=;)", one.code)):
        at = one.start + found.start(), one.start + found.end()
        if "fmaxf" in one.whole or "expf" in one.whole:
            yield [(*at, "__int_as_float(0xff800000)")], "", zero


def _steps(one: Statement) -> Iterator[Found]:
    """A whole step that is left out; what only lets threads wait is not one of them."""
    code = one.code.strip()
    if not code.endswith(";") or re.match(r"__sync|cp_async_(?:wait|commit)|return", code):
        return
    if re.match(r"if\b.*\b(?:return|break|continue);$", code):
        yield [(one.start, one.end, ";")], "A guard is missing: nothing stops at the edge.", ""
        return
    what = one.what()
    if one.is_declaration or not (one.target or "(" in code):
        return
    yield [(one.start, one.end, ";")], f"A step is missing: {what} is not there.", ""


RULES: tuple[Rule, ...] = (
    _two_indices, _flat_index, _names, _registers, _joined, _comparisons, _loops, _operators,
    _words, _factors, _steps, _numbers, _one_further,
)  # fmt: skip
