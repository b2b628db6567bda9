"""Begin a chapter: a notebook, its kernel, an exercise, and what tests ask of them.

    python tools/chapter.py 12_demo        # or `make chapter NAME=12_demo`

Writes five files and changes none. They make a small chapter that runs and that all tests accept,
with *To write* where its author has the word. It is a draft, which no list mentions, until
`"draft": true` is taken out of the notebook's metadata; then `make lists` puts it into the lists.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = Path(__file__).resolve().parent / "templates"  # of a chapter 99_skeleton
# Where each goes, the chapter's number and name put in.
PLACES = {
    "notebook.ipynb": "notebooks/{name}.ipynb",
    "kernel.cu": "kernels/{name}.cu",
    "exercise.cu": "kernels/exercises/{number}_rows.cu",
    "chapter.py": "helpers/chapters/ch{number}.py",
    "wrong.py": "tests/chapters/wrong_{number}.py",
}


def refusal(name: str, root: Path = ROOT) -> str:
    """Why there can be no new chapter of that name, in a sentence; empty if there can."""
    if not re.fullmatch(r"\d\d_[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or len(name) > 36:
        return (
            f"{name!r} is no name for a chapter: two digits, then words of small letters, 36 "
            "characters at most, such as 12_demo."
        )
    number = name[:2]
    folders = {"notebooks": "", "kernels": "", "kernels/exercises": "", "helpers/chapters": "ch",
               "tests/chapters": "wrong_"}  # fmt: skip
    for folder, before in folders.items():
        for path in sorted((root / folder).glob(f"{before}{number}*")):
            if path.is_file():
                return f"Chapter {number} is there already: {path.relative_to(root)}."
    return ""


def write(name: str, root: Path = ROOT) -> list[Path]:
    """Write the files of a chapter that is not there yet; gives their paths below `root`."""
    number, words = name[:2], name[3:].replace("_", " ")
    made = []
    for template, place in PLACES.items():
        text = (TEMPLATES / template).read_text("utf-8").replace("99_skeleton", name)
        text = text.replace("# Skeleton", f"# {words.capitalize()}").replace("skeleton", words)
        text = re.sub(r"\b99(?=[-_,\"])|(?<=hapter )99", number, text)
        path = Path(place.format(name=name, number=number))
        (root / path).write_text(text, "utf-8")
        made.append(path)
    return made


def main(arguments: list[str]) -> int:
    """The command line; 1 and a sentence if there can be no such chapter."""
    reason = (
        refusal(arguments[0])
        if len(arguments) == 1 and arguments[0]
        else "Give the chapter's name: make chapter NAME=12_demo"
    )
    if reason:
        print(reason, file=sys.stderr)
        return 1
    for path in write(arguments[0]):
        print(path)
    notebook = f"notebooks/{arguments[0]}.ipynb"
    cells = [sys.executable, "-m", "helpers.exercises.cells", notebook]
    done = subprocess.run(cells, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return 1
    print(
        f"\nA draft of chapter {arguments[0][:2]} is there: `make lab` opens it, `make test` tests "
        "it, and CONTRIBUTING.md says what comes next."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
