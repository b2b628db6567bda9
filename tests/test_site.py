"""The course's page: what it says of the chapters, its pages to read, its search."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

from helpers.slides.course import course

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_the_teachers_table_gives_the_minutes_that_the_chapters_give():
    row = re.compile(r"^\| (\d\d) [^|]*\| (\d+) min \| (?:(\d+) min|–) \|", re.M)
    told = row.findall((ROOT / "TEACHING.md").read_text("utf-8"))
    said = {path.stem[:2]: course(nbformat.read(path, as_version=4)) for path in NOTEBOOKS}
    assert {number: (int(own), int(more or 0)) for number, own, more in told} == {
        number: (one.minutes, one.exercises) for number, one in said.items()
    }
    for path, one in zip(NOTEBOOKS, said.values(), strict=True):
        assert re.fullmatch(r"[A-Z][^.]{20,110}\.", one.goal), (path.stem, one.goal)
