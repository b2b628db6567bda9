"""What tests/chapters says of each chapter: wrong answers to its exercises, trials of its kernels.

`wrong_12.py` is found by its name, and has what it needs of `WRONG`, by exercise, `TRIALS`, by
file, and `REASONS` why mutants survive.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

from exercise_answers import Wrong
from mutants.targets import Trial, Trials

TESTS = Path(__file__).resolve().parents[1]
FOLDER = TESTS / "chapters"
NOTEBOOKS = TESTS.parent / "notebooks"


@functools.cache
def modules() -> tuple[ModuleType, ...]:
    """The chapters' modules, in order."""
    found = []
    for path in sorted(FOLDER.glob("wrong_*.py")):
        if re.fullmatch(r"wrong_\d\d", path.stem):
            spec = importlib.util.spec_from_file_location(path.stem, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            found.append(module)
    return tuple(found)


def wrong_answers() -> dict[str, tuple[Wrong, ...]]:
    """Those of every exercise, by its name."""
    return {name: all for m in modules() for name, all in getattr(m, "WRONG", {}).items()}


def drafts() -> frozenset[str]:
    """Numbers of the chapters that are drafts, as their notebooks' metadata say: `{"12"}`."""
    return frozenset(
        path.name[:2]
        for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")
        if json.loads(path.read_text("utf-8"))["metadata"].get("course", {}).get("draft")
    )


@functools.cache
def trials(file: str, entry: str) -> tuple[Trial, ...]:
    """The launches that judge one kernel, those first at which most faults show soonest.

    Raises:
        ValueError: its chapter gives none.
    """
    made: dict[str, Trials] = {f: t for m in modules() for f, t in getattr(m, "TRIALS", {}).items()}
    if file not in made:
        raise ValueError(f"TRIALS of tests/chapters/wrong_{file[:2]}.py gives no trials of {file}.")
    return tuple(made[file](file, entry))
