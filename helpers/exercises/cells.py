"""The cells of an exercise in its chapter, made from its file and its texts.

python -m helpers.exercises.cells notebooks/03_tiling.ipynb    puts them in before the heading that
begins with Next, or brings them up to date where they stand
"""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from . import EXERCISES, Exercise
from .magic import MAGIC

Cell = dict[str, Any]
_HOW = (
    "Edit the cell below, run it, and run the check under it: it says what is wrong, on which "
    "line, and why. Your kernel is kept in `my_kernels/`. The cell with the imports has to be run "
    "before."
)
_PARTS = ("task", "kernel", "check", "hint", "solution")
_IMPORT = "from helpers.exercises import check"


def cells(one: Exercise) -> list[Cell]:
    """Task, the cell to edit, the check, the hints, and the solution for teachers."""
    task = f"## Exercise: {one.title}\n\n{_wrapped(one.task)}"
    if one is EXERCISES[0]:
        task += f"\n\n<!-- notebook -->\n{_wrapped(_HOW)}\n<!-- slides -->"
    hints = "\n\n".join(
        f"<details><summary>Hint {n}</summary>\n\n{_wrapped(hint)}\n\n</details>"
        for n, hint in enumerate(one.hints, 1)
    )
    explanation = f"{_wrapped(one.explanation)}\n\n" if one.explanation else ""
    solution = (
        "<details><summary>Solution</summary>\n\n"
        f"```cuda\n{one.answer}\n```\n\n{explanation}"
        f"The whole file is `kernels/exercises/{one.name}.cu`.\n\n</details>"
    )
    return [
        _cell(one, "task", "markdown", "slide", task),
        _cell(one, "kernel", "code", "skip", f"{MAGIC} {one.name}.cu\n{one.skeleton.rstrip()}"),
        _cell(one, "check", "code", "skip", f'check("{one.name}")'),
        _cell(one, "hint", "markdown", "-", hints),
        _cell(one, "solution", "markdown", "skip", solution),
    ]


def cell_id(one: Exercise, part: str) -> str:
    """The id of a cell: `03-edges-check`."""
    return f"{one.name.replace('_', '-')}-{part}"


def insert(notebook: Path) -> list[str]:
    """Put a chapter's exercises into its notebook; gives their names.

    Cells that are there already are brought up to date where they stand, those of exercises that
    are gone are taken out, and all others stay as they are. A new exercise follows the one before
    it; the first one comes before the heading that begins with Next, or the last one.
    """
    content = json.loads(notebook.read_text(encoding="utf-8"))
    here = [one for one in EXERCISES if notebook.name.startswith(f"{one.chapter:02d}_")]
    kept = _without_gone(content["cells"], {one.name for one in here})
    at = _first_place(kept)
    for one in here:
        for made in cells(one):
            there = [n for n, cell in enumerate(kept) if cell["id"] == made["id"]]
            if there:
                at = there[0]
                kept[at] = made
            else:
                kept.insert(at, made)
            at += 1
    code = [cell for cell in kept if cell["cell_type"] == "code"]
    if not any(_IMPORT in "".join(cell["source"]).split("\n") for cell in code):
        _import_check(code[0])
    content["cells"] = kept
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    notebook.write_text(text, encoding="utf-8")
    return [one.name for one in here]


def _without_gone(all_cells: list[Cell], names: set[str]) -> list[Cell]:
    """The cells without those of exercises that are no longer there."""
    gone = []
    for cell in all_cells:
        first, _, _ = "".join(cell["source"]).partition("\n")
        name = first.removeprefix(MAGIC).strip().removesuffix(".cu")
        is_kernel = first.startswith(MAGIC) and cell["id"] == f"{name.replace('_', '-')}-kernel"
        if is_kernel and name not in names:
            gone.append(cell["id"].removesuffix("kernel"))
    left = {f"{prefix}{part}" for prefix in gone for part in _PARTS}
    return [cell for cell in all_cells if cell["id"] not in left]


def _first_place(kept: list[Cell]) -> int:
    """Where the first exercise is put if it is new."""
    heads = [
        n
        for n, cell in enumerate(kept)
        if cell["cell_type"] == "markdown" and "".join(cell["source"]).startswith("## ")
    ]
    after = [n for n in heads if "".join(kept[n]["source"]).startswith("## Next")]
    return (after or heads)[-1]


def _import_check(cell: Cell) -> None:
    """Add the import of `check` to a chapter's imports, in order."""
    lines = "".join(cell["source"]).split("\n")
    ours = [n for n, line in enumerate(lines) if line.startswith("from helpers")]
    after = [n for n in ours if lines[n].split()[1] < _IMPORT.split()[1]]
    lines.insert(after[-1] + 1 if after else ours[0], _IMPORT)
    text = "\n".join(lines)
    cell["source"] = text if isinstance(cell["source"], str) else text.splitlines(keepends=True)


def _cell(one: Exercise, part: str, kind: str, slide: str, source: str) -> Cell:
    cell: Cell = {"cell_type": kind}
    if kind == "code":
        cell["execution_count"] = None
    cell["id"] = cell_id(one, part)
    cell["metadata"] = {"slideshow": {"slide_type": slide}}
    if kind == "code":
        cell["outputs"] = []
    cell["source"] = source.splitlines(keepends=True)
    return cell


def _wrapped(text: str) -> str:
    """Lines of at most 128 characters; an empty line parts paragraphs."""
    how = {"width": 128, "break_long_words": False, "break_on_hyphens": False}
    return "\n\n".join(textwrap.fill(part, **how) for part in text.split("\n\n"))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(name, *insert(Path(name)))
