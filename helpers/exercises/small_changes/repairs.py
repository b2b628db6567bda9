"""Small changes of an answer that may put it right, beside those of `first_order`: what they say.

A change that makes an answer right at every case shows what was wrong in it. The sentence tells
what is wrong in the line as it stands, and not what it should be.
"""

import re
from collections.abc import Callable, Collection, Iterator

from .copies import groups_of_copies, own_conditions, units
from .first_order import Change
from .flow_rules import in_one_lane, root
from .statements import Found, Replaced, Statement, statements, terms

_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Z_]+)[ \t]+\d", re.MULTILINE)
_BUILT_IN = {
    "threadIdx": "is a thread's place in its block",
    "blockIdx": "is the number of one block",
    "blockDim": "is how many threads one block has",
    "gridDim": "is how many blocks there are",
}
_ALL_THREADS = "gridDim.x * blockDim.x"
_LEAVES = (
    "Threads leave the kernel here that are needed below: they have a part of the block's work to "
    "do, or a barrier to pass."
)
_KEEPS = "Where the condition does not hold, nothing is stored: there {} holds what it held before."
_PLAIN = re.compile(r"(?!(?:for|if|while|else|return|break|continue|__sync\w*)\b)[^{}?]*;$")


def repairs(
    text: str, lines: Collection[int], words: Collection[str]
) -> tuple[list[Change], list[Change]]:
    """Changes of some lines of an answer: likely ones, and others.

    Args:
        text: the answer.
        lines: numbers of the lines that may be changed.
        words: names of sizes.
    """
    words = [*words, *(w for w in _MACRO.findall(text) if w not in words)]
    found = list(statements(text, lines, words))
    likely: dict[str, Change] = {}
    later: dict[str, Change] = {}

    def keep(made: dict[str, Change], pieces: list[Replaced], said: str, line: int) -> None:
        changed = text
        for start, end, new in sorted(pieces, reverse=True):
            changed = f"{changed[:start]}{new}{changed[end:]}"
        if changed != text:
            made.setdefault(changed, Change(changed, said, (line,)))

    for pieces, said, line in _keeps(found):  # many students forget the zeros
        keep(likely, pieces, said, line)
    for made, rules in ((likely, _RULES), (later, _LATER)):
        for rule in rules:
            for one in found:
                for pieces, said in rule(one):
                    keep(made, pieces, said, one.line)
    for several in _SEVERAL if found else ():
        for pieces, said, line in several(found):
            keep(likely, pieces, said, line)
    return list(likely.values()), list(later.values())


def _equal(one: Statement) -> Iterator[Found]:
    for m in re.finditer(r"([\w.]+) == ([\w.]+(?: - 1)?)", one.code):
        at = one.start + m.start() + len(m[1]) + 1
        said = f"The condition holds where {m[1]} is equal to {m[2]}, and for none beyond that."
        if one.is_guard:
            yield [(at, at + 2, ">=")], said
        if "?" in one.code[m.end() :] and m[1] == one.target and not m[2].endswith("1"):
            said = f"{m[1]} goes on to {m[2]} before it begins again, one too far."
            yield [(one.start + m.end(), one.start + m.end(), " - 1")], said
        yield [(at, at + 2, "!=")], f"The comparison of {m[1]} with {m[2]} is the wrong way round."


def _leaving(one: Statement) -> Iterator[Found]:
    for word, other, said in (
        ("break", "continue", "`break` ends the loop for good, and only one turn is to be left "
         "out."),
        ("return", "continue", "`return` ends the thread for good, and only one turn is to be left "
         "out."),
    ):  # fmt: skip
        for m in re.finditer(rf"\b{word};", one.code):
            yield [(one.start + m.start(), one.start + m.end() - 1, other)], said
    if re.match(r"if \(.*\) return;$", one.code):
        yield [(one.start, one.end, ";")], _LEAVES


def _built_in(one: Statement) -> Iterator[Found]:
    for m in re.finditer(r"\b(threadIdx|blockIdx|blockDim|gridDim)\.([xyz])", one.code):
        at = one.start + m.start(), one.start + m.end()
        said = f"`{m[0]}` {_BUILT_IN[m[1]]}, and another number belongs here."
        others = [f"{name}.{m[2]}" for name in _BUILT_IN if name != m[1]]
        if m[1].endswith("Dim"):
            others.insert(0, f"({_ALL_THREADS})")
        names = [n for n in one.scope if n != one.target]
        for new in (*names, *others):
            yield [(*at, new)], said


def _steps(one: Statement) -> Iterator[Found]:
    loop = re.match(r"for \([^;]*;[^;]*;([^;{]*)\)(?=\s|$|\{)", one.code)
    news = (_ALL_THREADS, "blockDim.x", *one.words)
    if loop:
        begin, step = loop.start(1), loop[1]
        m = re.match(r"\s*(?:(\w+)\+\+|\+\+(\w+)|(\w+) \+= ([^,]+))$", step)
        if m:
            name = m[1] or m[2] or m[3]
            for new in news:
                piece = (one.start + begin, one.start + loop.end(1), f" {name} += {new}")
                yield [piece], f"The loop over {name} has the wrong step."
    elif m := re.match(r"(\w+) \+= ([^;]+);$|(\w+)\+\+;$", one.code):
        name = m[1] or m[3]
        if name in one.scope:
            for new in news:
                yield (
                    [(one.start, one.end, f"{name} += {new};")],
                    f"{name} goes on by the wrong number.",
                )


def _ends(one: Statement) -> Iterator[Found]:
    """A guard that looks at one end only."""
    for m in re.finditer(r"([A-Za-z_]\w*(?: \+ \w+)?) < [\w.]+", one.code):
        if not one.code.startswith("for"):
            at = one.start + m.start()
            said = f"The guard looks at one end only: {m[1]} may be less than 0."
            yield [(at, at, f"{m[1]} >= 0 && ")], said
            for access in one.accesses if at < one.start + one.code.find("?") else ():
                a, b = access.indices[-1]
                said = f"The guard looks at one end only: the index of {access.name} may be "
                yield [(at, at, f"{one.code[a:b]} >= 0 && ")], f"{said}less than 0."


def _guards(one: Statement) -> Iterator[Found]:
    """A guard that is missing, or looks at one index of two."""
    guarded = re.match(r"if \(", one.code)
    sizes = [w for w in one.words]
    if not (one.assignment and one.accesses) or re.match(r"for\b|while\b", one.code):
        return
    if guarded or "?" in one.code:
        close = one.code.find(") ") if guarded else one.code.find(" ?")
        names = [
            n for n in one.scope if n not in sizes and not re.search(rf"\b{n}\b", one.code[:close])
        ]
        for name in names if close > 0 else ():
            for size in sizes:
                piece = (one.start + close, one.start + close, f" && {name} < {size}")
                yield [piece], f"The guard does not look at {name}."
        for a, b in one.accesses[0].indices if not guarded else ():
            for size in sizes:
                said = f"A guard is missing: nothing stops at the end of {one.accesses[0].name}."
                yield [(one.start, one.start, f"if ({one.code[a:b]} < {size}) ")], said
        return
    if one.is_declaration:
        return
    said = "A guard is missing: nothing stops at the edge."
    for access in one.accesses:
        for a, b in access.indices:
            index = one.code[a:b]
            if index.isdigit():
                continue
            for size in sizes:
                yield [(one.start, one.start, f"if ({index} < {size}) ")], said
            if parts := terms(index):
                row, width, rest = parts
                if rest:
                    both = f"if (({row}) < {width} && ({rest}) < {width}) "
                    yield [(one.start, one.start, both)], said


def _index_terms(one: Statement) -> Iterator[Found]:
    """A term or a factor that is missing where an index or an address is computed."""
    for a, b, where in _sums(one):
        index = one.code[a:b]
        if "?" in index or index.isdigit():
            continue
        end = one.start + b
        for word in one.scope:
            if not re.search(rf"\b{word}\b", index):
                said = f"{where[0].upper()}{where[1:]} does not depend on {word}, and it should."
                yield [(end, end, f" + {word}")], said
        unit = "4" if "float4" in one.whole else "2" if "float2" in one.whole else ""
        for m in re.finditer(r"(?<![\w.])[a-z]\w*(?![\w.(\[])", index if unit else ""):
            at = one.start + a + m.start(), one.start + a + m.end()
            said = f"{m[0]} is counted in another unit than {where} needs: floats or vectors."
            yield [(*at, f"({unit} * {m[0]})")], said
            yield [(*at, f"({m[0]} / {unit})")], said
        for word in one.words:
            yield [(end, end, f" - {word}")], f"A term is missing in {where}."
            for m in re.finditer(r"\b\w+ \* \w+\b", index):
                at = one.start + a + m.end()
                yield [(at, at, f" * {word}")], f"A factor is missing in {where}."


def _sums(one: Statement) -> Iterator[tuple[int, int, str]]:
    for access in one.accesses:
        for a, b in access.indices:
            yield a, b, f"the index of {access.name}"
    if m := re.match(r"(?:const )?(?:int|unsigned|size_t|\w+\*) \w+ = ([^;]*);", one.code):
        yield m.start(1), m.end(1), one.what()


def _types(one: Statement) -> Iterator[Found]:
    m = re.match(r"(?:const )?(int|unsigned)(?= \w+ = )", one.code)
    if m and one.target:
        at = one.start + m.start(1), one.start + m.end(1)
        said = f"{one.target} is an integer, which cuts off what stands behind the point."
        yield [(*at, "float")], said


def _asks(one: Statement) -> Iterator[Found]:
    """A guard that asks about something else."""
    m = re.match(r"if \((.*)\) (?:return|break|continue);$", one.code)
    for name in one.scope if m else ():
        for size in one.words:
            if name != size and not re.search(rf"\b{name} \S+ {size}\b", m[1]):
                piece = (one.start + m.start(1), one.start + m.end(1), f"{name} >= {size}")
                yield [piece], f"`{m[1]}` is not what decides whether there is something to do."


def _looked_at(one: Statement) -> Iterator[Found]:
    """A guard of a copy that looks at another index than the copy uses."""
    if one.code.startswith("for") or not (one.is_guard or re.search(r"\bbool\b", one.code)):
        return
    for m in re.finditer(r"(?<![\w.])([a-z]\w*)(?= (?:<|>=) \w)", one.code):
        said = f"The condition looks at {m[1]}, and another index is what it is about."
        for name in one.scope:
            if name not in (m[1], one.target) and name not in one.words:
                yield [(one.start + m.start(), one.start + m.end(), name)], said


def _rounded(one: Statement) -> Iterator[Found]:
    """A number of turns that is rounded down, in a kernel with a guard or one that gets it."""
    m = re.match(r"(?:const )?(?:int|unsigned) \w+ = ([\w.]+) / (\(.*\)|[\w.]+);", one.code)
    if not m:
        return
    said = f"The division is rounded down: what is left over of {m[1]} at the end is nobody's."
    at = one.start + m.start(1), one.start + m.end(1)
    up = (*at, f"({m[1]} + {m[2]} - 1)")
    yield [up], said
    for store in re.finditer(r"(?<=[;{}\n])[ \t]*(\w+)\[([^\[\]]+)\] = [^;\n]*;", one.whole):
        begin = store.start() + len(store[0]) - len(store[0].lstrip())
        if begin > one.end:
            yield [up, (begin, begin, f"if ({store[2]} < {m[1]}) ")], said


def _other_way(one: Statement) -> Iterator[Found]:
    """A quotient that is rounded down where it has to be rounded up, or the other way round."""
    if one.code.startswith("for"):
        return
    for m in re.finditer(r"(?<![\w.)*/] )(?<![\w.])([a-z]\w*) / (\w+)", one.code):
        up = f"({m[1]} + {m[2]} - 1) / {m[2]}"
        said = f"`{m[0]}` is rounded down, and it has to be rounded up."
        yield [(one.start + m.start(), one.start + m.end(), up)], said
    for m in re.finditer(r"\((\w+) \+ (?:\w+ - )?1\) / (\w+)", one.code):
        said = f"`{m[0]}` is rounded up, and it has to be rounded down."
        yield [(one.start + m.start(), one.start + m.end(), f"{m[1]} / {m[2]}")], said


def _kept_out(one: Statement) -> Iterator[Found]:
    """A condition around a block that all threads are needed in."""
    if m := re.match(r"(if \(.*\)) ?\{$", one.code):
        said = f"`{m[1]}` keeps threads out that are needed there."
        if "_sync(" in m[1]:  # the same for all lanes
            said = f"`{m[1]}` leaves out turns in which something has to be done."
        yield [(one.start, one.start + len(m[1]), "")], said


def _own_place(one: Statement) -> Iterator[Found]:
    """The row or column of the thread itself, where another element is meant."""
    if not one.accesses and not one.is_integer:
        return
    for m in re.finditer(r"\bint (\w+) = [^;\n]*\+ (\w+|threadIdx\.\w);", one.whole):
        hits = [h for h in re.finditer(rf"(?<![\w.]){m[1]}(?![\w.])", one.code)]
        for name in one.scope if hits and one.target != m[1] else ():
            if name not in (m[1], m[2]) and name not in one.words:
                new = f"({m[1]} - {m[2]} + {name})"
                pieces = [(one.start + h.start(), one.start + h.end(), new) for h in hits]
                said = f"{m[1]} is where the thread itself stands, and the element is another one."
                yield pieces, said


def _too_many(one: Statement) -> Iterator[Found]:
    if one.assignment and _PLAIN.match(one.code) and not one.is_declaration:
        said = f"There is a step too many: {one.what()}."
        yield [(one.start, one.end, ";")], said


def _order(found: list[Statement]) -> Iterator[tuple[list[Replaced], str, int]]:
    """Two neighbouring steps in the other order; one that belongs into a loop, or before it."""
    for a, b in zip(found, found[1:], strict=False):
        if _PLAIN.match(a.code) and _PLAIN.match(b.code) and a.code != b.code:
            said = f"Two steps stand in the wrong order: {a.what()} comes before {b.what()}."
            yield [(a.start, a.end, b.code), (b.start, b.end, a.code)], said, a.line
        bar = [x for x in (a, b) if x.code == "__syncthreads();"]
        if len(bar) == 1:
            other = a if bar[0] is b else b
            said = f"The barrier stands on the wrong side of line {other.line}."
            if other.code == "}":
                ends = f"the block that ends in line {other.line}"
                said = f"The barrier stands behind {ends}, and has to be in it."
                if other is b:
                    said = f"The barrier stands within {ends}, and has to be behind it."
            yield [(a.start, a.end, b.code), (b.start, b.end, a.code)], said, bar[0].line
    for n, a in enumerate(found):
        if not (a.assignment and a.target and _PLAIN.match(a.code)):
            continue
        for b in found[n + 1 : n + 6]:
            if b.code.startswith("for") and b.code.endswith("{"):
                said = (
                    f"{a.target} is set once, before the loop: in later turns it still holds what "
                    "the turn before has left."
                )
                yield [(a.start, a.end, ""), (b.end, b.end, f" {a.code}")], said, a.line
        above = found[n - 1] if n else None
        if above and above.code.startswith("for") and above.code.endswith("{"):
            said = f"{a.target} is set anew in each turn of the loop, so what it held is lost."
            yield [(a.start, a.end, ""), (above.start, above.start, f"{a.code} ")], said, a.line


def _before_barrier(found: list[Statement]) -> Iterator[tuple[list[Replaced], str, int]]:
    """A step that stands before a barrier, of the answer or given, and belongs behind it."""
    for a in found:
        m = re.compile(r"\s*(__sync\w+\(\);)").match(a.whole, a.end)
        if m and _PLAIN.match(a.code) and a.assignment:
            said = f"Line {a.line} comes before the barrier, and has to wait for other threads."
            yield [(a.start, a.end, ""), (m.end(), m.end(), f" {a.code}")], said, a.line


def _not_asked(found: list[Statement]) -> Iterator[tuple[list[Replaced], str, int]]:
    """An edge that the condition around a block does not look at."""
    for n, a in enumerate(found):
        if not (m := re.match(r"if \(.*(\)) ?\{$", a.code)):
            continue
        parts = [
            part.strip("() ")
            for b in found[n + 1 : n + 4]
            for access in b.accesses
            if (row := terms(b.code[slice(*access.indices[-1])]))
            for part in (row[0], row[2])
        ]
        for part in dict.fromkeys(p for p in parts if re.fullmatch(r"\w+(?: \+ \w+)*", p)):
            for size in a.words:
                at = a.start + m.start(1)
                yield [(at, at, f" && {part} < {size}")], (
                    f"The condition does not look at {part}."), a.line  # fmt: skip


def _numbers(found: list[Statement]) -> Iterator[tuple[list[Replaced], str, int]]:
    """A number that stands for a name, in all calls."""
    hits: dict[str, list[tuple[int, int, int]]] = {}
    for one in found:
        for m in re.finditer(r"(?<=, )(\d+)(?=\))", one.code):
            at = one.start + m.start(1), one.start + m.end(1), one.line
            hits.setdefault(m[1], []).append(at)
    for number, places in hits.items():
        for name in found[0].scope:
            pieces = [(a, b, name) for a, b, _ in places]
            yield pieces, f"It is always {number} here, and it should change.", places[0][2]


def _keeps(found: list[Statement]) -> Iterator[tuple[list[Replaced], str, int]]:
    """Elements of tiles that are not set past the edges."""
    pieces, names = [], []
    for one in found:
        m = re.match(r"(?:if \(.*\) )?(s_\w+|\w*tile\w*)((?:\[[^\]]*\])+) = [^;]*;$", one.code)
        alone = re.search(r"\bif \([^;{}]*\) ?\{\s*$", one.whole[: one.start])
        end = re.compile(r"\s*\}").match(one.whole, one.end) if alone else None
        if m and (end or m.start(1)):
            at = end.end() if end else one.end
            pieces.append((at, at, f" else {m[1]}{m[2]} = 0.0f;"))
            names.append((m[1], one.line))
    if pieces:
        listed = " or ".join(dict.fromkeys(name for name, _ in names))
        yield pieces, _KEEPS.format(listed), names[0][1]


_RULES: tuple[Callable[[Statement], Iterator[Found]], ...] = (
    _equal, _leaving, _types, _rounded, _other_way, _kept_out, _steps, _looked_at, _own_place,
    _asks, _built_in, root, in_one_lane,
)  # fmt: skip
_SEVERAL = (
    groups_of_copies, own_conditions, units, _numbers, _order, _before_barrier, _not_asked,
)  # fmt: skip
_LATER = (_ends, _guards, _index_terms, _too_many)
