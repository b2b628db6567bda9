"""The glossary: each term is defined, in bold, in the first chapter that uses it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from helpers.chapters.glossary import glossary, terms

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def prose_of(path: Path) -> str:
    """What a chapter says, without code, formulas, addresses and the speaker's notes."""
    said = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "markdown":
            continue
        if cell["metadata"]["slideshow"]["slide_type"] == "notes":
            continue
        source = "".join(cell["source"])
        if "<!-- This list is written by" not in source:  # it names what is to come
            said.append(source)
    text = re.sub(r"```.*?```", " ", "\n\n".join(said), flags=re.S)
    return re.sub(r"`[^`\n]*`|\$[^$]*\$|\]\([^)]*\)", " ", text)


PROSE = {path.name[:2]: prose_of(path) for path in NOTEBOOKS}


@pytest.mark.parametrize("one", terms(), ids=lambda one: one.term)
def test_a_term_is_defined_where_it_is_used_first(one):
    bold = [
        re.sub(r"\s+", " ", part) for part in re.findall(r"\*\*(.+?)\*\*", PROSE[one.chapter], re.S)
    ]
    assert any(one.used_in(part) for part in bold), f"chapter {one.chapter} has no **{one.term}**"
    before = [number for number in PROSE if number < one.chapter and not one.everyday]
    early = [number for number in before if one.used_in(PROSE[number])]
    assert not early, f"{one.term} is used in {early}, and defined in {one.chapter}"


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
