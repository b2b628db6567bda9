"""CONTRIBUTING.md: every command, path and name in it exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
_, MAP, REST = TEXT.split("```")  # the map is the only block
QUOTED = " ".join(re.findall(r"`([^`\n]+)`", REST))


def test_its_commands_of_make_are_targets():
    wanted = set(re.findall(r"`make ([a-z]+)[^`]*`", TEXT))
    targets = set(re.findall(r"^([a-z]+): ##", (ROOT / "Makefile").read_text("utf-8"), re.M))
    assert {"test", "lint", "chapter", "lists", "slides"} <= wanted <= targets


def test_its_paths_are_there():
    """As they are, in helpers/, or of the chapter that is to come."""
    named = set(re.findall(r"[\w.]+/[\w./]*", QUOTED))
    named = {path for path in named if not re.search(r"NN|12|DIR", path)}
    assert len(named) > 15
    for path in named:
        assert any(
            (ROOT / room / path).exists() for room in ("", "helpers", "helpers/simulator")
        ), path


def test_its_rooms_are_those_of_helpers():
    told = set(re.findall(r"^  (\w+)/", MAP, re.M))
    there = {path.name for path in (ROOT / "helpers").glob("[a-z]*/") if path.is_dir()}
    assert told == there


def test_its_modules_and_options_are_there():
    for module in re.findall(r"python -m ([\w.]+)", TEXT):
        assert importlib.util.find_spec(module), module
    for module, name in re.findall(r"`figures\.(\w+)(?:\.(\w+))?`", TEXT):
        found = importlib.import_module(f"helpers.figures.{module}")
        assert not name or hasattr(found, name), name
    for script, option in re.findall(r"`python (tools/\S+\.py)(?: (--\w+))?", TEXT):
        assert option in (ROOT / script).read_text("utf-8"), (script, option)
    assert "--missing" in (ROOT / "tests/mutants/__main__.py").read_text("utf-8")
