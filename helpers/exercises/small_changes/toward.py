"""What an answer has otherwise than the solution, piece by piece, in the answer's own names.

A piece that makes the answer right, put in alone or with a few others, is where the mistake is. So
the solution is looked for with as few of its pieces as do it.
"""

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...simulator.compile.source_text import line_of, mask

_TOKEN = re.compile(
    r"(?<![\w.])\d[\w.]*|[A-Za-z_]\w*(?:\.\w+)?|<<=|>>=|[-+*/%&|^=!<>]=|&&|\|\||\+\+|--|<<|>>|[^\w\s]"
)
_DECLARED = re.compile(
    r"\b(?:int|unsigned|float[24]?|half2?|bool|size_t|auto|double)\b[\s*&]*([A-Za-z_]\w*)"
    r"(?=\s*[=;,\[)])"
)
_LEFT_OUT = re.compile(r"^[ \t]*#.*$|\((?:size_t|long long)\)", re.MULTILINE)
_NOTHING = {"const", "{", "}", "unsigned", "()", ""}  # what changes no result
_LARGE = 48  # words and signs of a piece, at most, so that brackets are closed in it
_MOST = 14  # pieces; with more, an answer is written otherwise
_TOGETHER = 6  # pieces that are tried two by two

Token = tuple[str, int, int]


@dataclass(frozen=True)
class Piece:
    """What stands in an answer, and what the solution has there.

    Attributes:
        start, end: positions in the answer; the same where something is missing.
        old, new: the words and signs of either.
        text: what the solution has, as text.
        line: its number in the answer.
        place: the words of the solution that it stands for, from and to, counted from 0.
    """

    start: int
    end: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    text: str
    line: int
    place: tuple[int, int]

    @property
    def size(self) -> int:
        """How many words and signs it is about."""
        return len(self.old) + len(self.new)


def same(text: str, other: str) -> bool:
    """Whether two texts are the same but for blanks, comments and names."""
    code = _code(text)
    own, wanted = _tokens(code), _tokens(_renamed(_code(other), code))
    return _words(own) == _words(wanted)


def names_of_its_own(text: str, solution: str) -> set[str]:
    """Variables of an answer for which the solution has none."""
    code = _code(text)
    return set(_DECLARED.findall(code)) - set(_DECLARED.findall(_renamed(_code(solution), code)))


def unused_then(own: set[str], text: str, changed: str) -> set[int]:
    """Lines that set a name of an answer's own which is used there, and no more with a change."""
    before, after = mask(text), mask(changed)
    found = set()
    for name in own:
        word = re.compile(rf"(?<![\w.]){name}(?!\w)")
        if len(word.findall(after)) == 1 < len(word.findall(before)):
            found.add(line_of(text, word.search(before).start()))
    return found


def pieces(text: str, solution: str) -> list[Piece]:
    """All of an answer; none if it is written otherwise than the solution."""
    code, right = _code(text), _renamed(_code(solution), _code(text))
    own, wanted = _rows(code), _rows(right)
    matcher = difflib.SequenceMatcher(
        None, [_words(row) for row in own], [_words(row) for row in wanted], autojunk=False
    )
    found: list[Piece] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            first = [t for row in own[a:b] for t in row]
            second = [t for row in wanted[c:d] for t in row]
            at = own[a - 1][-1][2] if a else 0
            found += _within(code, right, first, second, at, sum(map(len, wanted[:c])))
    found = [p for p in found if "".join(p.old) not in _NOTHING or "".join(p.new) not in _NOTHING]
    return found if len(found) <= _MOST else []


def groups(found: list[Piece]) -> Iterator[tuple[Piece, ...]]:
    """Pieces that are put in together: one, those of a line, two; the smaller first."""
    of_lines = [tuple(g) for _, g in itertools.groupby(found, lambda p: p.line)]
    several = {
        *((p,) for p in found),
        *of_lines,
        *itertools.combinations(found if len(found) <= _TOGETHER else (), 2),
        *(a + b for a, b in itertools.combinations(of_lines[:_TOGETHER], 2)),
    }
    yield from sorted(
        several,
        key=lambda g: (len(g), len({p.line for p in g}), sum(p.size for p in g), g[0].start),
    )


def meet(some: Sequence[Piece], others: Sequence[Piece]) -> bool:
    """Whether any of some pieces stands for the same words of the solution as one of others."""
    pairs = itertools.product((p.place for p in some), (p.place for p in others))
    return any(a <= d and c <= b for (a, b), (c, d) in pairs)


def _effort(group: tuple[Piece, ...]) -> tuple[int, ...]:
    lines = {p.line for p in group}
    return len(group), len(lines), sum(p.size for p in group), group[0].start


def put_in(text: str, group: tuple[Piece, ...]) -> str:
    """An answer with some pieces of the solution."""
    for p in sorted(group, key=lambda p: -p.start):
        text = f"{text[: p.start]} {p.text} {text[p.end :]}"
    return text


def _code(text: str) -> str:
    """A text without comments, directives and casts of indices, as long as before."""
    return _LEFT_OUT.sub(lambda m: " " * len(m[0]), mask(text))


def _tokens(code: str) -> list[Token]:
    return [(m[0], m.start(), m.end()) for m in _TOKEN.finditer(code)]


def _rows(code: str) -> list[list[Token]]:
    rows, at = [], 0
    for row in code.split("\n"):
        rows.append([(w, at + a, at + b) for w, a, b in _tokens(row)])
        at += len(row) + 1
    return [row for row in rows if row]


def _words(row: list[Token]) -> tuple[str, ...]:
    return tuple(word for word, *_ in row)


def _within(code, right, first, second, at, count) -> Iterator[Piece]:
    """The pieces of a stretch of lines."""
    a, b = _words(first), _words(second)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    for tag, i, j, k, m in _balanced(matcher.get_opcodes(), a, b):
        if tag == "equal":
            continue
        ends = k < m and second[m - 1][0] in (";", "}")  # a step, which follows what is before it
        here = first[i][1] if i < len(first) and not (ends and i) else first[i - 1][2] if i else at
        start, end = (first[i][1], first[j - 1][2]) if i < j else (here, here)
        new = right[second[k][1] : second[m - 1][2]] if k < m else ""
        line = line_of(code, start)
        place = count + k, count + m
        yield Piece(start, end, a[i:j], b[k:m], " ".join(new.split()), line, place)


def _balanced(steps: list, a: tuple[str, ...], b: tuple[str, ...]) -> Iterator[tuple]:
    """Steps from some words to others, joined where one has a bracket that the next one closes."""
    left = list(steps)
    while left:
        tag, i, j, k, m = left.pop(0)
        ends, n = (j, m), 0
        while tag != "equal" and n < len(left) and not (_closed(a[i:j]) and _closed(b[k:m])):
            _, _, j, _, m = left[n]
            n += 1
        if j - i + m - k > _LARGE or not (_closed(a[i:j]) and _closed(b[k:m])):
            (j, m), n = ends, 0
        left = left[n:]
        yield tag, i, j, k, m


def _closed(words: tuple[str, ...]) -> bool:
    return all(words.count(x) == words.count(y) for x, y in ("()", "[]", "{}"))


def _renamed(solution: str, text: str) -> str:
    """The solution with the names that an answer gives to the same variables."""
    theirs = set(_DECLARED.findall(solution)) - set(_DECLARED.findall(text))
    own = set(_DECLARED.findall(text)) - set(_DECLARED.findall(solution))
    if not theirs or not own:
        return solution
    a, b = _tokens(solution), _tokens(text)
    like = [["§" if w in names else w for w, *_ in t] for t, names in ((a, theirs), (b, own))]
    votes: Counter = Counter()
    for i, j, n in difflib.SequenceMatcher(None, *like, autojunk=False).get_matching_blocks():
        votes.update((a[i + k][0], b[j + k][0]) for k in range(n) if like[0][i + k] == "§")
    names: dict[str, str] = {}
    for (old, new), _ in votes.most_common():
        if old not in names and new not in names.values():
            names[old] = new
    return re.sub(r"(?<![\w.])[A-Za-z_]\w*", lambda m: names.get(m[0], m[0]), solution)
