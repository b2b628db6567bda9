"""The lists of chapters in README.md and TEACHING.md are those of the notebooks."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from helpers.exercises import EXERCISES
from helpers.slides.front import course

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
spec = importlib.util.spec_from_file_location("lists", ROOT / "tools" / "lists.py")
lists = sys.modules["lists"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lists)


def said(path: Path) -> dict:
    return json.loads(path.read_text("utf-8"))["metadata"]["course"]


def test_the_lists_are_those_of_the_notebooks():
    done = subprocess.run(
        [sys.executable, "tools/lists.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_the_teachers_table_has_every_chapter_that_is_no_draft():
    """Read out of the page as a teacher does, against the notebooks and the exercises."""
    rows = re.findall(
        r"^\| (\d\d) .* \| (\d+) min \| (?:(\d+) min|–) \| (.*) \|$",
        (ROOT / "TEACHING.md").read_text("utf-8"),
        re.M,
    )
    written = [path for path in NOTEBOOKS if not said(path).get("draft")]
    assert [row[0] for row in rows] == [path.name[:2] for path in written]
    for (number, minutes, practice, listed), path in zip(rows, written, strict=True):
        takes = course(nbformat.read(path, as_version=4))
        assert (int(minutes), int(practice or 0)) == (takes.minutes, takes.exercises)
        titles = [one.title for one in EXERCISES if one.chapter == int(number)]
        assert bool(practice) == bool(titles)
        assert listed.split("; ") == titles if titles else listed.startswith("none; ")


def test_a_chapter_comes_into_the_lists_when_it_is_no_longer_a_draft(tmp_path):
    (tmp_path / "notebooks").mkdir()
    for path in NOTEBOOKS[:3]:
        shutil.copy(path, tmp_path / "notebooks")
    new = tmp_path / "notebooks" / "11_hopper.ipynb"
    says = {"topic": "wgmma, at last", "minutes": 45, "instead": "a look", "draft": True}
    new.write_text(json.dumps({"metadata": {"course": says}, "cells": []}), "utf-8")
    before = lists.chapters(tmp_path)
    assert [one.number for one in before] == ["00", "01", "02"]
    assert "`11_hopper` | wgmma and TMA" in lists.for_readers(before)
    assert "Written so far: 00 to 02. Chapters 00 and 02 end" in lists.for_readers(before)
    assert "| 11, to come | wgmma and TMA" in lists.for_students(before)
    new.write_text(new.read_text("utf-8").replace("true", "false"), "utf-8")
    after = lists.chapters(tmp_path)
    assert "| [11](11_hopper.ipynb) | wgmma, at last |" in lists.for_students(after)
    assert "| `11_hopper` | wgmma, at last |" in lists.for_readers(after)
    assert "Written so far: 00 to 02 and 11." in " ".join(lists.for_readers(after).split())
    titles = "; ".join(one.title for one in EXERCISES if one.chapter == 11)
    assert f"| 11 hopper | 45 min | – | {titles} |" in lists.for_teachers(after)
    new.write_text(new.read_text("utf-8").replace("topic", "about"), "utf-8")
    with pytest.raises(ValueError, match="11_hopper.ipynb has no `topic`"):
        lists.chapters(tmp_path)


def test_a_page_keeps_what_is_around_its_list():
    page = f"before\n\n{lists.COMMAND}\nold\n<!-- End of the list. -->\n\nafter\n"
    new = lists.rewritten(page, "| new |")
    assert new.startswith("before\n") and new.endswith("\nafter\n")
    assert "| new |" in new and "old" not in new and lists.rewritten(new, "| new |") == new
    with pytest.raises(ValueError, match="is gone"):
        lists.rewritten("nothing here", "| new |")


def test_a_notebook_keeps_its_other_cells():
    cells = [
        {"source": "# Title\n"},
        {"source": f"{lists.COMMAND}\nold\n<!-- End of the list. -->"},
    ]
    new = json.loads(lists.page_with(json.dumps({"cells": cells}), "| new |", notebook=True))
    assert new["cells"][0] == cells[0]
    assert "| new |" in new["cells"][1]["source"] and "old" not in new["cells"][1]["source"]
    with pytest.raises(ValueError, match="is gone"):
        lists.page_with(json.dumps({"cells": cells[:1]}), "| new |", notebook=True)


def test_readme_has_the_recorded_times_of_every_rung():
    from helpers.problem.ladder import ladder

    text = lists.of_the_ladder(())
    cells = {cell.strip() for row in text.split("\n")[4:] for cell in row.strip("|").split("|")}
    rungs = (*ladder("flash"), *ladder("hopper"))
    names = {one.name.removeprefix("flash_") for one in rungs} | {"cuDNN"}
    assert names | {"naive", "PyTorch, memory-efficient attention"} <= cells
    stored = json.loads((ROOT / "helpers/measure/recorded/h200_ladder.json").read_text("utf-8"))
    assert stored["device"] in text
    # As recorded: 85.293 ms, 48.4 and 569.7 TFLOPS; a rival stands beside its own rounds.
    assert "| naive | 85.29 | baseline | 48 | wgmma | 570 |" in text
    assert "| FlashAttention-2 | 321 |" in text and "| FlashAttention-2 | 350 |" in text
