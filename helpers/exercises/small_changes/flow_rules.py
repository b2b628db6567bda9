"""Small changes of conditions, loops and values that may put an answer right.

Each is told by what is wrong before it: bounds, levels, factors, signs.
"""

import itertools
import re
from collections.abc import Iterator

from .statements import Found, Replaced, Statement, split

_COMPARE = re.compile(r"(?<![<>=!-])(<=|>=|<|>)(?![<>=])")
_SIDE = re.compile(r"[\w.+\-*/% \[\]]+")
_LOOP = re.compile(
    r"\bfor\s*\(\s*(?:unsigned |const )*(?:int |unsigned |auto )?\s*"
    r"(?P<name>\w+)\s*=\s*(?P<first>[^;]+);"
    r"\s*(?P<again>(?P=name))\s*(?P<compare><=|>=|<|>|!=)\s*(?P<bound>[^;]+);(?P<step>[^;{]*?)\)(?=\s|$|\{)"
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
        yield [(*at, _WIDER[found[1]])], said
        said = f"The comparison of {a} with {b} is the wrong way round."
        yield [(*at, {"<": ">=", ">=": "<", "<=": ">", ">": "<="}[found[1]])], said
        yield [(*at, {"<": ">", ">": "<", "<=": ">=", ">=": "<="}[found[1]])], said
        end = one.start + found.end() + len(right[0].rstrip())
        narrow = found[1] in ("<", ">=")
        many = f"The comparison of {a} with {b} lets one index too many through."
        few = f"The comparison of {a} with {b} leaves out the last index."
        yield [(end, end, " - 1")], many if narrow else few
        if less := re.search(r"\s*- 1$", right[0].rstrip()):
            start = one.start + found.end() + less.start()
            yield [(start, end, "")], few if narrow else many


def _joined(one: Statement) -> Iterator[Found]:
    both = "The condition asks that both hold, and it is enough that one does."
    either = "The condition is content if one of the two holds, and both have to."
    for found in re.finditer(r"&&|\|\|", one.code):
        at = one.start + found.start(), one.start + found.end()
        yield ([(*at, "||")], both) if found[0] == "&&" else ([(*at, "&&")], either)
        left, right = one.condition_around(found.start(), found.end())
        for kept, gone in ((left, right), (right, left)) if found[0] == "&&" else ():
            whole = min(left[0], right[0]), max(left[1], right[1])
            what = "guard" if one.is_guard else "condition"
            pieces = [(one.start + whole[0], one.start + whole[1], one.code[slice(*kept)])]
            part = " ".join(one.code[slice(*gone)].split())
            yield pieces, f"The {what} asks for {part} as well, and it should not."


def _only_if(one: Statement) -> Iterator[Found]:
    """A condition on a whole step that should not be there."""
    found = re.match(r"if \((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\) ?(?=[^;\s{])", one.code)
    if found and not re.search(r"\b(?:return|break|continue)\b", one.code):
        said = f"The condition leaves out what belongs to the result, in {one.what()}."
        if call := re.match(r"(\w+)\(", one.code[found.end() :]):
            barrier = call[1].startswith("__sync")
            called = "the barrier" if barrier else f"the call of {call[1]}"
            said = f"The condition keeps threads from {called}."
        yield [(one.start, one.start + found.end(), "")], said


def _loops(one: Statement) -> Iterator[Found]:
    """A loop that has a turn too few or too many, starts or ends elsewhere, or has another step."""
    found = _LOOP.search(one.code)
    if not found:
        return

    def piece(group: str, new: str) -> list[Replaced]:
        return [(one.start + found.start(group), one.start + found.end(group), new)]

    if re.search(r"/=|>>=|\*=|<<=", found["step"]):
        yield from _tree(found, piece)
        return
    name, first = found["name"], found["first"].strip()
    begin = f"The loop over {name} leaves out its first turn."
    early = f"The loop over {name} starts one too early."
    if first.endswith("1"):
        yield piece("first", first[:-1] + "0"), begin
    if first != "0":
        yield piece("first", f"{first} - 1"), begin
    yield piece("first", f"{first} + 1"), early
    yield from _ends(one, found, piece)


def _loop_words(one: Statement) -> Iterator[Found]:
    """Another name where a loop starts or ends, or for its step."""
    found = _LOOP.search(one.code)
    if not found or re.search(r"/=|>>=|\*=|<<=", found["step"]):
        return

    def piece(group: str, new: str) -> list[Replaced]:
        return [(one.start + found.start(group), one.start + found.end(group), new)]

    name, first, bound = found["name"], found["first"].strip(), found["bound"].strip()
    said = f"The loop over {name} does not start where it should."
    for word in (*one.scope, "0"):
        if word not in (first, name):
            yield piece("first", word), said
    said = f"The loop over {name} has the wrong step."
    step = found["step"].strip()
    steps = [f" {name} += {word}" for word in one.scope if word != name] + [f" {name}++"]
    for new in steps if re.fullmatch(r"\w+\+\+|\+\+\w+|\w+ \+= [\w.]+", step) else ():
        yield piece("step", new), said
    said = f"The loop over {name} does not end where it should."
    for word in one.scope:
        if word not in (bound, name):
            yield piece("bound", word), said
    sizes = [word for word in one.words if word.isupper()]
    for a, b in itertools.permutations(sizes, 2):
        yield piece("bound", f"{a} / {b}"), said
    compared = f"The loop over {name} compares {name} with {bound}, and {name} is not the index."
    for index in dict.fromkeys(re.findall(r"\w\[([^\[\]]+)\]", one.whole)):
        if re.search(rf"\b{name}\b", index) and index.strip() != name:
            yield piece("again", index), compared


def _ends(one: Statement, found: re.Match, piece) -> Iterator[Found]:
    name, bound = found["name"], found["bound"].strip()
    last = f"The loop over {name} leaves out its last turn."
    more = f"The loop over {name} makes one turn too many."
    if found["compare"] in ("<", "<="):
        yield piece("bound", f"{bound} - 1"), more
        yield piece("bound", f"{bound} + 1"), last
        if bound.endswith("- 1"):
            yield piece("bound", bound[:-3].strip()), last
    far = f"The loop over {name} goes too far."
    parts = split(bound, "+")
    for n in range(len(parts) if len(parts) > 1 else 0):
        yield piece("bound", "+".join(parts[:n] + parts[n + 1 :]).strip()), far
    for factor in re.finditer(r"\b\d+ \* (?=\w)", bound):
        yield piece("bound", bound[: factor.start()] + bound[factor.end() :]), far


def _tree(found: re.Match, piece) -> Iterator[Found]:
    """A loop whose step doubles or halves: the levels of a tree."""
    first, bound, compare = found["first"].strip(), found["bound"].strip(), found["compare"]
    falls = re.search(r"/=|>>=", found["step"])
    start = "The first level of the tree is missing."
    end = "The last level of the tree is missing."
    wide = "The tree begins with a level too many."
    yield piece("first", f"({first}) / 2"), wide if falls else start
    yield piece("first", f"({first}) * 2"), start if falls else wide
    many = "The tree has a level too many at its end."
    if falls and compare in (">=", ">") and bound.isdigit():
        least = int(bound) + (compare == ">")
        yield piece("bound", str(2 * int(bound)) if int(bound) else "1"), many
        yield piece("bound", str(least // 2 - (compare == ">"))), end
    elif not falls and compare in ("<", "<="):
        yield piece("bound", f"({bound}) / 2"), many
        yield piece("bound", f"({bound}) * 2"), end


def _operators(one: Statement) -> Iterator[Found]:
    """A term that overwrites; the least for the largest; division for remainder; a wrong sign."""
    target = one.target or "the result"
    if one.target and (m := one.assignment):
        at = one.start + m.start(1), one.start + m.end(1)
        if m[1] in ("+=", "-="):
            said = f"`{m[1]}` is the wrong sign where {target} is set."
            yield [(*at, "-=" if m[1] == "+=" else "+=")], said
        if m[1] in ("+=", "*="):
            yield [(*at, "=")], f"{target} is added to, and it should be set."
        elif m[1] == "=" and not one.is_declaration:
            yield [(*at, "+=")], f"{target} is set anew each time, and what it held before is lost."
    for found in re.finditer(r"\bf(max|min)f(?=\()", one.code):
        at, least = one.start + found.start(), found[1] == "min"
        said = "The smaller one is taken, and the larger one is wanted."
        if not least:
            said = "The larger one is taken, and the smaller one is wanted."
        yield [(at, at + 5, "fmaxf" if least else "fminf")], said
    for found in re.finditer(r"\bexpf\(([\w.\[\]]+) - ([\w.\[\]]+)\)", one.code):
        a, b = one.start + found.start(1), one.start + found.end(2)
        yield (
            [(a, b, f"{found[2]} - {found[1]}")],
            "The difference in the exponent has the wrong sign.",
        )


def _signs(one: Statement) -> Iterator[Found]:
    """One operation for another."""
    if one.code.startswith("for"):
        return
    for found in re.finditer(r"(?<=[\w)\]]) ([-+*/%]) (?=[\w(])", one.code):
        at = one.start + found.start(1)
        where, sign = one.what(found.start()), found[1]
        if sign in "/%":
            said = f"Division and remainder are taken for each other in {where}."
            yield [(at, at + 1, "%" if sign == "/" else "/")], said
        if sign in "*/" and not one.in_index(found.start()):
            said = f"Multiplication and division are taken for each other in {where}."
            yield [(at, at + 1, "/" if sign == "*" else "*")], said
        if sign in "+-":
            said = f"A sign is wrong in {where}."
            yield [(at, at + 1, "-" if sign == "+" else "+")], said
        if (
            sign in "+*"
            and not re.search(r"\b1 $", one.code[: found.start() + 1])
            and (not re.match(r"1\b", one.code[found.end() :]))
        ):
            said = f"Addition and multiplication are taken for each other in {where}."
            yield [(at, at + 1, "+" if sign == "*" else "*")], said


def _factors(one: Statement) -> Iterator[Found]:
    """A factor or a division too many."""
    if not one.assignment or one.code.startswith("for"):
        return
    begin = one.assignment.end()
    factor = r" ([*/]) (?:\w+\((?:[^()]|\([^()]*\))*\)|\([^()]*\)|\w+(?:\[[^\]]*\])*)(?=[;\s)\]])"
    for found in re.finditer(f"(?=({factor}))", one.code[begin:]):  # one may be within another
        at = one.start + begin + found.start()
        what = "division" if found[2] == "/" else "factor"
        said = f"There is a {what} too many in {one.what(begin + found.start())}."
        yield [(at, one.start + begin + found.end(1), "")], said
    names = r"\b\d+ \* (?=\w)|\b(?!return)[A-Za-z_]\w* \* (?=\w)"
    for found in re.finditer(names, one.code[begin:]):
        at = one.start + begin + found.start()
        said = f"There is a factor too many in {one.what(begin + found.start())}."
        yield [(at, at + len(found[0]), "")], said


def _numbers(one: Statement) -> Iterator[Found]:
    """A number that is twice or half of what it should be, or one more or less."""
    loop = _LOOP.search(one.code)
    for found in re.finditer(r"(?<![\w.])(\d+)(?![\w.])", one.code):
        value = int(found[1])
        if loop and loop.start() < found.start() < loop.end():
            continue
        at = one.start + found.start(), one.start + found.end()
        said = f"{value} is not the right number in {one.what(found.start())}."
        for new in sorted({value * 2, value // 2, value - 1, value + 1} - {value, -1}):
            yield [(*at, str(new))], said


def _words(one: Statement) -> Iterator[Found]:
    """`.trans` forgotten; zero for minus infinity."""
    lies = "ldmatrix has no .trans here: each 8 × 8 matrix comes with rows and columns exchanged."
    turns = "ldmatrix has .trans here, and the matrix is wanted as it lies."
    for found in re.finditer(r"\bldmatrix_x([124])(_trans)?\b", one.code):
        at = one.start + found.start(), one.start + found.end()
        name = f"ldmatrix_x{found[1]}"
        yield ([(*at, name)], turns) if found[2] else ([(*at, f"{name}_trans")], lies)
    if one.target and (found := re.search(r"(?<== )-?0(?:\.0*)?f?(?=;)", one.code)):
        at = one.start + found.start(), one.start + found.end()
        if "fmaxf" in one.whole or "expf" in one.whole:
            said = f"0 takes the place of minus infinity in {one.what()}."
            yield [(*at, "__int_as_float(0xff800000)")], said


def root(one: Statement) -> Iterator[Found]:
    """A size in a denominator, where its root belongs."""
    for m in re.finditer(r"/ (?:\(float\) ?)?([A-Za-z_]\w*)(?=[;)* ])", one.code):
        if one.assignment and not one.is_integer and m[1] in one.words:
            piece = one.start + m.start(), one.start + m.end(), f"/ sqrtf((float){m[1]})"
            yield [piece], f"A square root is missing in {one.what(m.start())}."


def in_one_lane(one: Statement) -> Iterator[Found]:
    """A tree by which one lane gets the result, where all lanes use it."""
    said = "Only lane 0 gets the result of all lanes by __shfl_down_sync, and all lanes use it."
    pieces = [
        (one.start + m.start(), one.start + m.end(), "__shfl_xor_sync")
        for m in re.finditer(r"\b__shfl_down_sync\b", one.code)
    ]
    if pieces:
        yield pieces, said


FLOW_RULES = (
    _joined, _only_if, _comparisons, _loops, _operators, _words, _factors, _signs,
)  # fmt: skip
FLOW_NAMES = (_loop_words, _numbers)
