"""What is wrong in a piece of an answer, in words that do not say what should stand there."""

import dataclasses
import re
from collections.abc import Sequence

from .statements import Statement
from .toward import Piece

_COMPARES = ("<", "<=", ">", ">=", "==", "!=")
_ARITHMETIC = ("+", "-", "*", "/", "%", "^", "&", "|", "<<", ">>")
_SETS = ("=", "+=", "-=", "*=", "/=")
_TERMS = {"+": "term", "-": "term", "*": "factor", "/": "division", "%": "remainder", "^": "XOR"}
_WIDER = {("<", "<="), ("<=", "<"), (">", ">="), (">=", ">")}
_LEAVES = re.compile(r"\b(?:return|break|continue)\b")
_NUMBER = re.compile(r"\d[\w.]*")
_TYPES = ("int", "unsigned", "size_t")
_WIDE = 40  # characters of an expression that is told as one
_SLIP = 4  # words and signs of a piece, to which it may be a slip of the pen beside another
_LONG = 6  # words and signs of a piece, from which on it is a line that is wrong as a whole
OTHERWISE = "The condition asks about other things than it should."
BARRIER = "A barrier is missing: threads go on before others are done with what they share."


def of_group(group: Sequence[Piece], lines: dict[int, Statement], others: int) -> str:
    """What is wrong in some pieces together; empty if no sentence says it.

    Args:
        group: the pieces.
        lines: the lines of the answer by their numbers.
        others: how many pieces there are beside; with more than one or two, an answer is written
            otherwise, and what two pieces of a solution say of it is not its own mistake.
    """
    if said := _exchanged(group, lines) or _moved(group):
        return said
    if others > 1 and any(p.old and p.new and p.size > _SLIP for p in group):
        return ""
    said = [of_piece(p, lines.get(p.line)) for p in group]
    both = list(dict.fromkeys(said))
    if len(both) > 1 and others <= 1 and (whole := _joined(group, lines)):
        return whole
    arrays = any("another array" in one for one in both)
    one_line = len({p.line for p in group}) == 1
    if len(both) > 1 and (others > 1 or arrays or one_line or any(p.size > _SLIP for p in group)):
        return _unset(group) or _of_condition(group, lines)
    told = " And: ".join(both) if all(said) and len(both) <= 2 else _unset(group)
    return told or _of_condition(group, lines)


def _of_condition(group: Sequence[Piece], lines: dict[int, Statement]) -> str:
    """A condition that is another one from end to end."""
    inside = all("condition" in _where(p, lines.get(p.line)) for p in group)
    leaves = any({";", "{", "}", "?"} & {*p.old, *p.new} for p in group)
    return OTHERWISE if inside and not leaves and len({p.line for p in group}) == 1 else ""


def _unset(group: Sequence[Piece]) -> str:
    """An array that is set in the pieces of the solution alone."""
    old = _set_in([w for p in group for w in p.old])
    new = _set_in([w for p in group for w in p.new])
    return f"A step is missing: a line that sets {min(new)}." if len(new) == 1 and not old else ""


def _set_in(words: Sequence[str]) -> set[str]:
    code = " ".join(words)
    return {m[1] for m in re.finditer(r"\b([A-Za-z_]\w*) \[[^=;{}]*\] [+*-]?= ", code)}


def of_piece(p: Piece, one: Statement | None) -> str:
    """The same of one piece; `one` is the line that it is in."""
    where = _where(p, one)
    if not p.old:
        return _missing(p, one, where)
    if not p.new:
        return _too_many(p, where)
    if len(p.old) == len(p.new) == 1:
        return _replaced(p, p.old[0], p.new[0], one, where)
    if said := _part_of_block(p, one, where):
        return said
    both = list(p.old), list(p.new)
    for few, many, missing in ((*both, True), (*both[::-1], False)):
        if len(many) - len(few) <= 3 and (said := _grown(few, many, missing, where)):
            return said
    if p.size > 2 * _LONG:
        return ""
    if ";" in p.old[:-1] or ";" in p.new[:-1] or one is None:
        return ""
    what = f"`{_text(p.old)}`"
    if re.fullmatch(r"the (?:condition|loop).*", where):
        return f"{what} is not what {where} should ask for." if "cond" in where else (
            f"{what} is wrong in {where}.")  # fmt: skip
    return f"{what} is not what belongs in {where}."


def _part_of_block(p: Piece, one: Statement | None, where: str) -> str:
    """A step that a block of several has in one of two texts, and not in the other."""
    old, new = ([w for w in words if w not in "{}"] for words in (p.old, p.new))
    for few, many, say in ((old, new, _missing), (new, old, _too_many)):
        more = len(many) - len(few)
        if few and more > 0 and few[-1] == ";":
            for extra in (
                many[:more] * (many[more:] == few),
                many[len(few) :] * (many[: len(few)] == few),
            ):
                piece = dataclasses.replace(p, old=(), new=())
                if extra and say is _missing:
                    return _missing(dataclasses.replace(piece, new=tuple(extra)), one, where)
                if extra:
                    return _too_many(dataclasses.replace(piece, old=tuple(extra)), where)
    return ""


def _grown(few: list[str], many: list[str], missing: bool, where: str) -> str:
    """A term or a factor at either end that the one has and the other has not."""
    for extra in (many[len(few) :] if many[: len(few)] == few else [],
                  many[: -len(few)][::-1] if many[-len(few) :] == few else []):  # fmt: skip
        if extra and extra[0] in _TERMS:
            kind = _TERMS[extra[0]]
            return f"A {kind} is missing in {where}." if missing else (
                f"There is a {kind} too many in {where}.")  # fmt: skip
    return ""


def _where(p: Piece, one: Statement | None) -> str:
    if one is None:
        return f"line {p.line}"
    inside = not p.old and p.new[0] in (*_TERMS, "&&", "||")
    at = min(max(p.start - one.start - inside, 0), len(one.code))
    loop = re.match(r"for \(([^;]*);([^;]*);", one.code)
    if loop and at <= one.code.find(")", loop.end()) + 1:
        name = re.search(r"(\w+)\s*=", loop[1])
        what = "start" if at < loop.end(1) else "bound" if at < loop.end(2) else "step"
        return f"the {what} of the loop over {name[1]}" if name else "the loop"
    if (rest := _behind_header(one)) and at >= rest.start - one.start:
        return _where(p, rest)
    guard = re.match(r"(?:else )?(?:if|while) ?\(", one.code)
    if guard and at < _closing(one.code, guard.end() - 1):
        return "the condition"
    if "?" in one.code[at:] and one.assignment and at > one.assignment.end():
        if not one.in_index(at):
            return f"the condition of the line that sets {one.target}"
    return one.what(at)


def _behind_header(one: Statement) -> Statement | None:
    """The step that follows a loop's or a condition's brackets in their line."""
    header = re.match(r"(?:else )?(?:if|while|for) ?\(", one.code)
    if not header:
        return None
    begin = _closing(one.code, header.end() - 1) + 1
    code = one.code[begin:].lstrip()
    if len(code) < 3:
        return None
    return dataclasses.replace(one, start=one.end - len(code), code=code)


def _closing(code: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(code)):
        depth += (code[at] == "(") - (code[at] == ")")
        if not depth:
            return at
    return len(code)


def _text(words: Sequence[str]) -> str:
    """Words and signs as one writes them."""
    text = " ".join(words)
    text = re.sub(r" ?([\[(]) ", r"\1", text)
    return re.sub(r" ([\])\[;,]|\+\+|--)", r"\1", text)


def _missing(p: Piece, one: Statement | None, where: str) -> str:
    text = _text(p.new)
    if text.startswith("__sync"):
        return BARRIER
    if text.startswith("else"):
        return "Where the condition does not hold, nothing is done, and something has to be."
    if re.match(r"if ?\(", text):
        return _no_condition(p, one, where, text)
    if loop := re.match(r"for ?\((?:\w+ )*(\w+) =", text):
        return f"A loop over {loop[1]} is missing." if text.endswith(("{", ")")) else ""
    if p.new[0] in ("&&", "||") or p.new[-1] in ("&&", "||"):
        return _not_asked(p.new, one, where)
    if text.rstrip(";") == "return":
        return "Threads go on here that should be done."
    if _LEAVES.fullmatch(text.rstrip(";")):
        return "The loop goes on here where it should not."
    sets = re.match(r"(?:const )?(?:int |float |bool )?(\w+)(?:\[.*\])? ?[-+*/]?= ", text)
    if sets and text.endswith(";"):
        return f"A step is missing: a line that sets {sets[1]}." if text.count(";") == 1 else ""
    if call := re.match(r"(\w+)\(.*\);$", text):
        return f"A step is missing: a call of {call[1]}."
    for sign in (p.new[0], p.new[-1]):
        if sign in _TERMS and p.size <= _LONG:
            names = [w for w in p.new if w[0].isalpha() and w.islower()]
            if len(names) == 1 and one and not re.search(rf"\b{names[0]}\b", one.code):
                return (
                    f"{where[0].upper()}{where[1:]} does not depend on {names[0]}, and it should."
                )
            return f"A {_TERMS[sign]} is missing in {where}."
    return f"Something is missing in {where}." if p.size <= 2 else ""


def _no_condition(p: Piece, one: Statement | None, where: str, text: str) -> str:
    """A condition before a step that is missing."""
    if _LEAVES.search(text):
        return "A guard is missing: threads or turns go on that have nothing to do there."
    if one and (leaves := _LEAVES.match(one.code[max(0, p.start - one.start) :])):
        who = "thread" if leaves[0] == "return" else "turn of the loop"
        return f"Every {who} ends here: there is no condition."
    if re.search(r"<|>", text) and "==" not in text:
        return "A guard is missing: nothing stops at the edge."
    return f"A condition is missing in {where}: what it does is not for every index."


def _not_asked(new: Sequence[str], one: Statement | None, where: str) -> str:
    """A condition of several that is missing."""
    first, last = new[0], new[-1]
    asked = _text([w for w in new if w not in ("&&", "||")])
    name = re.match(r"\(*([\w.]+(?: [+\-*] [\w.]+)*)", asked)
    what = "the condition" if "condition" in where else where
    if "||" in (first, last):
        return f"{what[0].upper()}{what[1:]} leaves out a case."
    if not name or not one:
        return f"A condition is missing in {what}."
    if re.search(rf"\b{re.escape(name[1])} ?[<>]", one.code):
        return f"{what[0].upper()}{what[1:]} looks at `{name[1]}` at one end only."
    return f"{what[0].upper()}{what[1:]} does not look at `{name[1]}`."


def _too_many(p: Piece, where: str) -> str:
    text = _text(p.old)
    if text.startswith("__sync"):
        return "There is a barrier too many."
    if p.old[0] in ("&&", "||") or p.old[-1] in ("&&", "||"):
        asked = _text([w for w in p.old if w not in ("&&", "||")])
        end = "the condition" if "condition" in where else where
        return f"{end[0].upper()}{end[1:]} asks for {asked} as well, and it should not."
    if re.match(r"if ?\(", text):
        if "{" in text:
            return ""
        if _LEAVES.search(text):
            return f"Threads or turns that are needed are left out by `{text}`."
        return f"The condition leaves out what belongs to the result, in {where}."
    if text.endswith(";") and p.size > 1 and text.count(";") == 1:
        return f"There is a step too many: `{text}`"[:-1] + "`."
    for sign in (p.old[0], p.old[-1]):
        if sign in _TERMS and p.size <= _LONG:
            return f"There is a {_TERMS[sign]} too many in {where}: `{text}`."
    return f"`{text}` does not belong in {where}." if p.size <= _LONG else ""


def _replaced(p: Piece, old: str, new: str, one: Statement | None, where: str) -> str:
    """One word or sign for another."""
    if old in _COMPARES and new in _COMPARES:
        if (old, new) in _WIDER:
            return f"`{old}` is off by one in {where}: it decides wrongly where both are equal."
        return f"`{old}` is not the right comparison in {where}."
    if {old, new} == {"&&", "||"}:
        both = "asks that both hold, and it is enough that one does"
        either = "is content if one of the two holds, and both have to"
        what = where if "condition" in where else "the condition"
        return f"{what[0].upper()}{what[1:]} {both if old == '&&' else either}."
    if old in _SETS and new in _SETS:
        name = one.target if one else "the result"
        if old == "=":
            return f"{name} is set anew each time, and what it held before is lost."
        if new == "=":
            return f"{name} is added to, and it should be set."
        return f"`{old}` is not the right sign " + (
            f"where {name} is set." if name else f"in {where}."
        )
    if old in _ARITHMETIC and new in _ARITHMETIC:
        return f"`{old}` is not the right sign in {where}."
    if old in _TYPES and "float" in new:
        name = one.target if one else "a variable"
        return f"{name} is an integer, which cuts off what stands behind the point."
    leaves = {"break", "return", "continue"}
    if {old, new} <= leaves:
        ends = {"break": "the loop", "return": "the thread", "continue": "this turn of the loop"}
        return f"`{old}` ends {ends[old]}, and that is not what has to end here."
    if not re.match(r"[\w.]+$", old) or not re.match(r"[\w.]+$", new):
        return f"`{old}` does not belong in {where}."
    if one and re.match(r"\s*\(|\s*<\w+>\(", one.code[p.end - one.start :]) and old.isidentifier():
        where = "here" if where.endswith(f"call of {old}") else f"in {where}"
        return f"`{old}` is not the function that belongs {where}."
    if _NUMBER.fullmatch(old):
        return f"{old} is not the right number in {where}." if _NUMBER.fullmatch(new) else (
            f"{old} stands in {where}, and another number belongs there.")  # fmt: skip
    if one and re.match(r"\s*\[", one.code[p.end - one.start :]):
        return f"{old} stands where another array belongs, in {where}."
    return f"{old} is used in {where}, and another number belongs there."


def _exchanged(group: Sequence[Piece], lines: dict[int, Statement]) -> str:
    """Two names, each of which stands where the other one belongs."""
    news = {p.old: p.new for p in group}
    if len(news) != 2 or any(not p.old or not p.new for p in group):
        return ""
    (a, b), (c, d) = news.items()
    if a != d or b != c:
        return ""
    places = {_where(p, lines.get(p.line)) for p in group}
    where = places.pop() if len(places) == 1 else "the marked line"
    if len({p.line for p in group}) > 1:
        where = "the marked lines"
    return f"`{_text(a)}` and `{_text(c)}` are exchanged in {where}."


def _joined(group: Sequence[Piece], lines: dict[int, Statement]) -> str:
    """Pieces of one expression, told as one."""
    one = lines.get(group[0].line)
    if one is None or len({p.line for p in group}) > 1:
        return ""
    first, last = min(p.start for p in group), max(p.end for p in group)
    old = one.code[first - one.start : last - one.start]
    if not old or re.search(r"[;{}?]|&&|\|\|", old) or len(old) > _WIDE or first < one.start:
        return ""
    if old.count("(") != old.count(")") or old.count("[") != old.count("]"):
        return ""
    where = _where(dataclasses.replace(group[0], start=first, end=last, old=("x",)), one)
    return f"`{old.strip()}` is not what belongs in {where}."


def _moved(group: Sequence[Piece]) -> str:
    """A step that stands in another place."""
    if len(group) != 2:
        return ""
    first, second = sorted(group, key=lambda p: p.start)
    for old, new, late in ((first, second, "early"), (second, first, "late")):
        if old.old and not old.new and not new.old and old.old == new.new and old.old[-1] == ";":
            what = "The barrier" if old.old[0].startswith("__sync") else f"`{_text(old.old)[:-1]}`"
            return f"{what} stands in the wrong place: it comes too {late}."
    return ""
