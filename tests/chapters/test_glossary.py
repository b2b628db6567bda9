"""The glossary: each term is defined, in bold, in the first chapter that uses it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from helpers.chapters.glossary import Term, glossary, terms

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def cells_of(path: Path) -> list[str]:
    """What each cell of a chapter says, without code, formulas, addresses and speaker's notes.

    Left out are lists of what is to come, and solutions, which nobody reads in their place.
    """
    said = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "markdown" or re.search("list is written by|>Solution<", source):
            continue
        if cell["metadata"]["slideshow"]["slide_type"] == "notes":
            continue
        text = re.sub(r"```.*?```", " ", source, flags=re.S)
        said.append(re.sub(r"`[^`\n]*`|\$[^$]*\$|\]\([^)]*\)", " ", text))
    return said


def defines(text: str, one: Term) -> bool:
    """Whether a text has the term in bold."""
    bold = re.findall(r"\*\*(.+?)\*\*", text, re.S)
    return any(map(one.used_in, bold))


CELLS = {path.name[:2]: cells_of(path) for path in NOTEBOOKS}
PROSE = {number: "\n\n".join(cells) for number, cells in CELLS.items()}


@pytest.mark.parametrize("one", terms(), ids=lambda one: one.term)
def test_a_term_is_defined_where_it_is_used_first(one):
    assert defines(PROSE[one.chapter], one), f"chapter {one.chapter} has no **{one.term}**"
    before = [number for number in PROSE if number < one.chapter and not one.everyday]
    early = [number for number in before if one.used_in(PROSE[number])]
    assert not early, f"{one.term} is used in {early}, and defined in {one.chapter}"


@pytest.mark.parametrize("one", terms(), ids=lambda one: one.term)
def test_within_its_chapter_a_term_is_defined_before_it_is_used(one):
    """Or in the same cell; the opening cell and headings say what is to come."""
    opening, *cells = CELLS[one.chapter]
    cells = [re.sub(r"^#.*$", "", cell, flags=re.M) for cell in cells]
    defined = next((n for n, cell in enumerate(cells) if defines(cell, one)), None)
    used = next((n for n, cell in enumerate(cells) if one.used_in(cell)), None)
    if not one.everyday and not defines(opening, one):
        assert used == defined, cells[used]


def test_definitions_are_short_and_no_two_are_of_one_word():
    spelled = [spelling.lower() for one in terms() for spelling in one.spellings]
    assert len(spelled) == len(set(spelled))
    for one in terms():
        sentences = re.split(r"(?<=[.:]) ", one.means)
        assert one.means.endswith(".") and len(sentences) <= 3, one.term
        assert max(len(sentence.split()) for sentence in sentences) <= 30, one.term


def test_the_glossary_shows_what_is_asked_for():
    assert [row[0] for row in glossary("SMs", "Warp").rows] == ["multiprocessor", "warp"]
    assert len(glossary().rows) == len(terms())
    with pytest.raises(ValueError, match="'wrap' is not in the glossary. Did you mean warp"):
        glossary("wrap")


def test_a_use_before_the_definition_is_seen():
    """The check rests on this: whole words, in any case, plurals where they are listed."""
    warp = next(one for one in terms() if one.term == "warp")
    assert warp.used_in("Two warps wait.") and warp.used_in("Warp 3")
    assert not warp.used_in("warped") and not warp.used_in("a multi-warp kernel")
