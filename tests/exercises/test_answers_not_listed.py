"""No answer of an exercise stands in a listing of its chapter or in another exercise's skeleton.

Whatever its names are called.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from helpers.exercises import EXERCISES
from helpers.kernels import KERNELS
from helpers.kernels.source import read

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
# Answers most of whose lines a listing of their chapter has, to be mended; none may come in again.
LISTED: dict[str, int] = {}
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|<<=|>>=|[-+*/%&|^=!<>]=|<<|>>|&&|\|\||\+\+|--|\S")
# What says nothing of the problem: a brace, a bare return, the head of a plain loop, a barrier, a
# hint to the compiler.
_EMPTY = re.compile(
    r"[{}\s]*|(?:\} )?else \{?|return ;|__syncthreads \( \) ;|# \w \w.*"
    r"|for \( int a = \d+ ; a < \w+ ; a \+\+ \) ?\{?"
)
_TELLING = re.compile(r"(?<![\w.])(?:[2-9]|\d\d+)(?![\w.])")
_LONG = 9  # tokens from which on a line says enough to be recognised
_KEPT = frozenset(
    "threadIdx blockIdx blockDim gridDim x y z if else for while return int float half double "
    "unsigned const void bool char short long size_t __shared__ true false".split()
)


def shape(line: str) -> str:
    """A line without comment, blanks and names: each name is a letter, by the order of coming.

    What is called keeps its name, and so do CUDA's own words.
    """
    tokens = _TOKEN.findall(re.sub(r"//.*|/\*.*?\*/", "", line))
    letters: dict[str, str] = {}
    out = []
    for n, token in enumerate(tokens):
        called = n + 1 < len(tokens) and tokens[n + 1] == "(" and token[0].isalpha()
        if not re.match(r"[A-Za-z_]", token) or token in _KEPT or called or token[:2] == "__":
            out.append(token)
        else:
            out.append(letters.setdefault(token, chr(ord("a") + len(letters))))
    return " ".join(out)


def listings(chapter: int) -> set[str]:
    """Shapes of all lines of the kernels that a chapter names, and of CUDA C in its text.

    A kernel of the chapter's own number counts as well; so do whole files of which a part is shown.
    """
    texts = [read(path) for path in KERNELS.glob(f"{chapter:02d}_*.cu")]
    for path in NOTEBOOKS.glob(f"{chapter:02d}_*.ipynb"):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code" and not source.startswith("%%kernel"):
                named = set(re.findall(r"\b\d\d_\w+\.cu\b", source))
                texts += [read(KERNELS / name) for name in named if (KERNELS / name).exists()]
            elif cell["cell_type"] == "markdown" and "<summary>Solution" not in source:
                texts += re.findall(r"```\w*\n(.*?)```", source, re.S)
    return {shape(line) for text in texts for line in text.split("\n")}


_listings = cache(listings)


def copied(lines: list[str], chapter: int) -> list[str]:
    """Those of an answer's lines that say something and stand in a listing, too."""
    telling = [line for line in lines if not _EMPTY.fullmatch(shape(line))]
    found = [line for line in telling if shape(line) in _listings(chapter)]
    return found if 2 * len(found) > len(telling) else []


def computed(line: str) -> str:
    """What a line computes, numbers kept and each name an n: the right side of an assignment."""
    whole = " ".join(
        token if token in _KEPT or not re.match(r"[A-Za-z]", token) else "n"
        for token in _TOKEN.findall(re.sub(r"//.*", "", line))
    )
    return re.split(r" (?:[-+*/]?=) ", whole, maxsplit=1)[-1]


def gaps(exercise) -> list[list[str]]:
    """The marked lines of each gap; lines that follow each other are of one gap."""
    lines, found, last = exercise.solution.split("\n"), [], -1
    for number in sorted(exercise.marked):
        if number != last + 1:
            found.append([])
        found[-1].append(lines[number - 1])
        last = number
    return found


def given_away(gap: list[str], skeleton: str) -> bool:
    """Whether another skeleton computes all that a gap asks for, short lines aside.

    Only lines with a number from 2 on are looked at: without, `n * n + n` is in every kernel.
    """
    given = [computed(line) for line in skeleton.split("\n")]
    wanted = [
        what for what in map(computed, gap) if len(what.split()) >= _LONG and _TELLING.search(what)
    ]
    return bool(wanted) and all(any(what in one for one in given) for what in wanted)


@pytest.mark.parametrize("one", EXERCISES, ids=lambda one: one.name)
def test_no_other_skeleton_gives_a_gap_away(one):
    for other in EXERCISES:
        if other is not one:
            assert not any(given_away(gap, other.skeleton) for gap in gaps(one)), other.name


def test_a_gap_is_seen_in_another_statement():
    gap = ["row += lane / 4 + 8 * (i / 2);", "col += 8 * j + 2 * (lane % 4) + i % 2;"]
    skeleton = (
        "const int r = first + lane / 4 + 8 * (i / 2);\n"
        "const int c = from + 8 * h + 2 * (lane % 4) + i % 2;"
    )
    assert given_away(gap, skeleton)
    assert not given_away(gap, skeleton.replace("lane % 4", "lane % 8"))


@pytest.mark.parametrize("one", EXERCISES, ids=lambda one: one.name)
def test_an_answer_cannot_be_copied_from_a_listing(one):
    """At most half of what an answer says is a line of a listing, names and blanks apart.

    A new thought may well end in a line that other kernels have, such as the store of a sum.
    """
    lines = one.solution.split("\n")
    found = copied([lines[number - 1].strip() for number in sorted(one.marked)], one.chapter)
    assert not found


def test_a_copied_line_is_seen_through_other_names_and_blanks():
    ours = "const int row = blockIdx.x * TILE + threadIdx.x;"
    assert shape("const int  r=blockIdx.x*EDGE+threadIdx.x;  // mine") == shape(ours)
    assert shape("const int row = blockIdx.y * TILE + threadIdx.y;") != shape(ours)
    assert shape("sum += q[i] * k[i];") == shape("total += a[j] * b[j];")
    assert shape("sum += q[i] * q[i];") != shape("sum += q[i] * k[i];")
    assert shape("m = fmaxf(m, s[j]);") != shape("m = fminf(m, s[j]);")
    assert shape(ours) in _listings(2)
    for line in ("}", "for (int k = 0; k < TILE; k++) {", "} else {", "__syncthreads();"):
        assert _EMPTY.fullmatch(shape(line)), line
    assert not _EMPTY.fullmatch(shape(ours))
