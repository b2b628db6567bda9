"""`make chapter`: a draft of five new files that the suite accepts and every list finds."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEFT = shutil.ignore_patterns(".*", "__pycache__", "my_kernels")
# What looks at the new chapter, and what looks at all of them together.
MODULES = [
    "tests/chapters/test_notebooks.py", "tests/chapters/test_lists.py",
    "tests/exercises/test_exercises.py", "tests/exercises/test_exercises_check.py",
    "tests/exercises/test_exercises_slips.py", "tests/exercises/test_mutants.py",
    "tests/kernels/test_load_kernel.py", "tests/slides/test_slides_words.py",
    "tests/test_house.py",
]  # fmt: skip
CHOSEN = (
    "12_demo or 12_rows or scale_columns or draft or the_table_has or survivors_are or lists "
    "or no_slide_speaks or sample_has or (house and not function)"
)


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command of Python in a checkout, whose `helpers` are its own."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": str(folder), "HELPERS_DEVICE": "simulator"}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of what a chapter is made of and tested by, and what was in it before."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("helpers", "kernels", "notebooks", "tests", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=LEFT)
    for path in ROOT.glob("*.*"):
        if path.is_file():
            shutil.copy(path, folder)
    before = contents(folder)
    done = run(folder, "tools/chapter.py", "12_demo")
    assert done.returncode == 0, done.stderr
    return folder, before, done.stdout


def test_at_most_five_files_are_new_and_none_is_changed(checkout):
    folder, before, said = checkout
    after = contents(folder)
    new = set(after) - set(before)
    assert before.items() <= after.items()
    assert new == set(said.split("\n\n")[0].split("\n")) and len(new) <= 5
    made = "".join((folder / name).read_text("utf-8") for name in new)
    assert "99" not in made and "skeleton" not in made.lower()
    for check in (["check"], ["format", "--check"]):
        done = run(folder, "-m", "ruff", *check, *sorted(n for n in new if not n.endswith(".cu")))
        assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_suite_accepts_the_draft(checkout, tmp_path):
    folder, *_ = checkout
    done = run(
        folder, "-m", "pytest", "-v", "-n", "0", "-p", "no:cacheprovider",
        f"--basetemp={tmp_path / 'inner'}", "-k", CHOSEN, *MODULES,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    passed = "\n".join(line for line in done.stdout.split("\n") if " PASSED" in line)
    for name in (
        "test_runs_without_error_or_noise[12_demo]", "test_solution_passes[12_rows]",
        "test_wrong_answer_fails_for_the_right_reason[12_rows-no guard]", "[12_rows-lanes down",
        "test_chapter_holds_the_exercise[12_rows]", "[12_demo.cu]", "[12-scale_columns]",
        "test_a_draft_without_a_table", "[12_demo-{'TILE': 32}]",
        "test_the_contracts_of_the_layers", "test_every_slide_has_a_title_of_its_own[12_demo]",
        "test_the_teachers_table_has_every",
    ):  # fmt: skip
        assert name in passed, name


def test_lists_have_it_when_it_is_no_longer_a_draft(checkout):
    folder, *_ = checkout
    assert run(folder, "tools/lists.py", "--check").returncode == 0
    notebook = folder / "notebooks" / "12_demo.ipynb"
    draft = notebook.read_text("utf-8")
    lists = ("README.md", "TEACHING.md", "notebooks/00_start_here.ipynb")
    pages = {page: (folder / page).read_text("utf-8") for page in lists}
    written = json.loads(draft)
    del written["metadata"]["course"]["draft"]
    written["metadata"]["course"]["topic"] = "numbers of their own"
    try:
        notebook.write_text(json.dumps(written), "utf-8")
        old = run(folder, "tools/lists.py", "--check")
        assert old.returncode == 1 and old.stdout.count("run `make lists`") == len(lists)
        assert run(folder, "tools/lists.py").returncode == 0
        readme, teaching, first = ((folder / page).read_text("utf-8") for page in lists)
        assert "| `12_demo` | numbers of their own |" in readme
        assert re.search(r"Chapters [^.]* 12 end in exercises", " ".join(readme.split()))
        assert "| 12 demo | 25 min | 10 min | a number for each row |" in teaching
        assert "(12_demo.ipynb)" in first
    finally:
        notebook.write_text(draft, "utf-8")
        for page, text in pages.items():
            (folder / page).write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("07_more", "Chapter 07 is there already: notebooks/07_bank_conflicts.ipynb."),
        ("12_other", "Chapter 12 is there already: notebooks/12_demo.ipynb."),
        ("demo", "'demo' is no name for a chapter: two digits, then words of small letters"),
        ("13_Demo", "'13_Demo' is no name"),
        ("13_../x", "'13_../x' is no name"),
        ("", "Give the chapter's name: make chapter NAME=12_demo"),
    ],
)
def test_a_name_that_cannot_be_is_refused_in_a_sentence(checkout, name, reason):
    folder, *_ = checkout
    before = contents(folder)
    done = run(folder, "tools/chapter.py", name)
    assert done.returncode == 1 and done.stderr.startswith(reason)
    assert done.stderr.count("\n") == 1 and contents(folder) == before


def test_make_calls_it_with_the_name():
    done = subprocess.run(
        ["make", "-n", "chapter", "NAME=12_demo"], cwd=ROOT, capture_output=True, text=True
    )
    assert 'tools/chapter.py "12_demo"' in done.stdout
