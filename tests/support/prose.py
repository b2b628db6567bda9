"""A chapter's words, for tests that hold them against numbers."""

from __future__ import annotations

import json
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def prose(chapter: str) -> str:
    """The chapter's text on one line."""
    cells = json.loads((NOTEBOOKS / f"{chapter}.ipynb").read_text("utf-8"))["cells"]
    return " ".join(" ".join("".join(cell["source"]).split()) for cell in cells)
