"""Small changes of conditions, loops and values: bounds, levels, factors, signs and steps."""

import re
from collections.abc import Iterator

from .statements import Found, Replaced, Statement, split

_COMPARE = re.compile(r"(?<![<>=!-])(<=|>=|<|>)(?![<>=])")
_SIDE = re.compile(r"[\w.+\-*/% \[\]]+")
_LOOP = re.compile(
    r"\bfor\s*\(\s*(?:unsigned |const )*(?:int |unsigned |auto )?\s*"
    r"(?P<name>\w+)\s*=\s*(?P<first>[^;]+);"
    r"\s*(?P=name)\s*(?P<compare><=|>=|<|>|!=)\s*(?P<bound>[^;]+);(?P<step>[^;{]*?)\)(?=\s|$|\{)"
)
_BELOW = re.compile(r">= *0(?![\w.])|> *-1\b|(?<![\w.])0 *<=")  # asks for what is not below 0
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
        yield [(*at, {"<": ">", ">": "<", "<=": ">=", ">=": "<="}[found[1]])], said, said
        end = one.start + found.end() + len(right[0].rstrip())
        last = f"The comparison of {a} with {{}} leaves out the last index."
        yield [(end, end, " - 1")], last.format(f"{b} - 1"), ""
        if less := re.search(r"\s*- 1$", right[0].rstrip()):
            start = one.start + found.end() + less.start()
            yield (
                [(start, end, "")],
                f"The comparison of {a} with {b[:-4]} lets one index too many through.",
                (last.format(b)),
            )


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
            if _BELOW.search(one.code[slice(*gone)]):
                said = f"The {what} lets an index below 0 through."
            pieces = [(one.start + whole[0], one.start + whole[1], one.code[slice(*kept)])]
            whole_part = " ".join(one.code[slice(*gone)].split())
            yield pieces, said, f"The {what} asks for {whole_part} as well, and it should not."


def _only_if(one: Statement) -> Iterator[Found]:
    """A condition on a whole step that should not be there."""
    found = re.match(r"if \((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\) ?(?=[^;\s{])", one.code)
    if found and not re.search(r"\b(?:return|break|continue)\b", one.code):
        said = f"The condition leaves out what belongs to the result, in {one.what()}."
        missing = "A condition is missing: what is done there is not for every index."
        if re.search(r"[<>]", found[0]) and not re.search(r"[!=]=", found[0]):
            missing = "A guard is missing: nothing stops at the edge."
        yield [(one.start, one.start + found.end(), "")], missing, said


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
    yield piece("first", f"{first} + 1"), begin, ""
    if first.endswith("1"):
        yield piece("first", first[:-1] + "0"), "", begin
    yield from _ends(one, found, piece)
    if one.code[found.end() :].lstrip().startswith("{"):
        end = one.start + one.code.index("{", found.end()) + 1
        once = f"There is no loop over {name}: only its first turn is made."
        yield [(one.start + found.start(), end, f"{{ const int {name} = {first};")], once, ""
    said = f"The loop over {name} does not start where it should."
    for word in (*one.scope, "0"):
        if word not in (first, name) and (word == "0" or first.isalnum()):
            yield piece("first", word), said, said
    said = f"The loop over {name} has the wrong step."
    step = found["step"].strip()
    steps = [f" {name} += {word}" for word in one.scope if word != name] + [f" {name}++"]
    for new in steps if re.fullmatch(r"\w+\+\+|\+\+\w+|\w+ \+= \w+", step) else ():
        yield piece("step", new), said, said


def _ends(one: Statement, found: re.Match, piece) -> Iterator[Found]:
    name, bound = found["name"], found["bound"].strip()
    last = f"The loop over {name} leaves out its last turn."
    more = f"The loop over {name} makes one turn too many."
    short = f"The loop over {name} does not go far enough."
    far = f"The loop over {name} goes too far."
    if found["compare"] in ("<", "<="):
        yield piece("bound", f"{bound} - 1"), last, more
        yield piece("bound", f"{bound} + 1"), more, last
        if bound.endswith("- 1"):
            yield piece("bound", bound[:-3].strip()), more, last
    parts = split(bound, "+")
    for n in range(len(parts) if len(parts) > 1 else 0):
        yield piece("bound", "+".join(parts[:n] + parts[n + 1 :]).strip()), short, far
    for factor in re.finditer(r"\b\d+ \* (?=\w)", bound):
        yield piece("bound", bound[: factor.start()] + bound[factor.end() :]), short, far
    said = f"The loop over {name} does not end where it should."
    for word in one.scope if bound.isidentifier() else ():
        yield piece("bound", word), said, said


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


def _operators(one: Statement) -> Iterator[Found]:
    """A term that overwrites; the least for the largest; division for remainder; a wrong sign."""
    target = one.target or "the result"
    if one.target and (m := one.assignment):
        at = one.start + m.start(1), one.start + m.end(1)
        lost = f"{target} is set anew each time, and what it held before is lost."
        added = f"{target} is added to, and it should be set."
        if m[1] in ("+=", "-="):
            said = f"A sign is wrong where {target} is added to."
            yield [(*at, "-=" if m[1] == "+=" else "+=")], said, said
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
    """A factor or a division that is left out, or one too many, or one for the other."""
    if not one.assignment or one.code.startswith("for"):
        return
    begin = one.assignment.end()
    factor = r" ([*/]) (?:\w+\((?:[^()]|\([^()]*\))*\)|\([^()]*\)|\w+(?:\[[^\]]*\])*)(?=[;\s)\]])"
    for found in re.finditer(factor, one.code[begin:]):
        at = one.start + begin + found.start()
        where = one.what(begin + found.start())
        what = "division" if found[1] == "/" else "factor"
        missing = f"A {what} is missing in {where}."
        much = f"There is a {what} too many in {where}."
        yield [(at, one.start + begin + found.end(), "")], missing, much
        if not one.in_index(begin + found.start()):
            other = "*" if found[1] == "/" else "/"
            said = f"Multiplication and division are taken for each other in {where}."
            yield [(at + 1, at + 2, other)], said, said
    for found in re.finditer(
        r"\b\d+ \* (?=\w)|\b(?!return)[A-Za-z_]\w* \* (?=\w)", one.code[begin:]
    ):
        at = one.start + begin + found.start()
        where = one.what(begin + found.start())
        missing, much = (
            f"A factor is missing in {where}.",
            f"There is a factor too many in {where}.",
        )
        yield [(at, at + len(found[0]), "")], missing, much


def _signs(one: Statement) -> Iterator[Found]:
    """Plus for minus."""
    if not one.assignment or one.code.startswith("for"):
        return
    for found in re.finditer(r"(?<=[\w)\]]) ([+-]) (?=[\w(])", one.code):
        if found.start() > one.assignment.end() or one.in_index(found.start()):
            at = one.start + found.start(1)
            said = f"A sign is wrong in {one.what(found.start())}."
            yield [(at, at + 1, "-" if found[1] == "+" else "+")], said, said


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
    for found in re.finditer(r" (\^) (?=\(|\w)", one.code):
        at = one.start + found.start(1)
        for sign, name in (("|", "An or"), ("&", "An and")):
            said = (
                f"{name} stands for an XOR in {one.what(found.start())}: two columns of a row may "
            )
            yield [(at, at + 1, sign)], f"{said}get one place.", ""
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
    yield [(one.start, one.end, ";")], f"A step is missing: {re.sub('^the ', 'a ', what)}.", ""


FLOW_RULES = (
    _joined, _only_if, _comparisons, _loops, _operators, _words, _factors, _signs, _steps,
    _numbers,
)  # fmt: skip
