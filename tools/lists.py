"""The lists of chapters in README.md, TEACHING.md and chapter 00, and README's recorded times.

    python tools/lists.py            # or `make lists`
    python tools/lists.py --check    # says what would change, and changes nothing

A row comes from the `course` in a notebook's metadata, from the minutes of its speaker notes and
from the exercises of its chapter. What is marked as a draft, `"draft": true`, is not in a list yet.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from helpers.exercises import EXERCISES  # noqa: E402
from helpers.measure import recorded  # noqa: E402
from helpers.measure.flash_times import LARGE, RIVALS, recording_of  # noqa: E402
from helpers.measure.ladder_times import D, bars  # noqa: E402
from helpers.measure.roofline import SIZE  # noqa: E402
from helpers.problem.ladder import ladder  # noqa: E402
from helpers.slides.front import course  # noqa: E402

# What is to come; a notebook of that name takes the place of its line.
PLANNED = {
    "11_hopper": "wgmma and TMA, of Hopper GPUs",
}
COMMAND = "<!-- This list is written by `make lists`. -->"
TIMES = "<!-- These times are written by `make lists`. -->"
_END = "<!-- End of the list. -->"


@dataclass(frozen=True)
class Listed:
    """A chapter as lists have it.

    Attributes:
        name: of its notebook, without the ending.
        topic: what it is about in a few words.
        minutes, practice: in class, and of its exercises.
        exercises: their titles.
        instead: what there is where there are none.
    """

    name: str
    topic: str
    minutes: int
    practice: int
    exercises: tuple[str, ...]
    instead: str

    @property
    def number(self) -> str:
        """Its two digits."""
        return self.name[:2]


def chapters(root: Path = ROOT) -> list[Listed]:
    """The chapters that are written, in order.

    Raises:
        ValueError: a notebook does not say what it is about.
    """
    found = []
    for path in sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        notebook = nbformat.from_dict(json.loads(path.read_text("utf-8")))
        said, takes = notebook.metadata.get("course", {}), course(notebook)
        if said.get("draft"):
            continue
        if not said.get("topic"):
            raise ValueError(f"{path.name} has no `topic` in `course` of its metadata.")
        titles = tuple(one.title for one in EXERCISES if one.chapter == int(path.stem[:2]))
        found.append(
            Listed(
                path.stem, said["topic"], takes.minutes, takes.exercises, titles,
                said.get("instead", ""),
            )
        )  # fmt: skip
    return found


def for_readers(written: Sequence[Listed]) -> str:
    """The list of README.md: two columns, and what is written so far."""
    topics = {**PLANNED, **{one.name: one.topic for one in written}}
    cells = [f"`{name}` | {topics[name]}" for name in sorted(topics)]
    half = -(-len(cells) // 2)
    cells += [" | "] * (2 * half - len(cells))
    rows = [f"| {a} | {b} |" for a, b in zip(cells[:half], cells[half:], strict=True)]
    practised = [one.number for one in written if one.exercises]
    there = _ranges([one.number for one in written])
    said = (
        f"Written so far: {there}. Chapters {_ranges(practised)} "
        "end in exercises: kernels with gaps to fill in a cell, and a check that says what is "
        "wrong, on which line, and why."
    )
    head = ["| chapter | | chapter | |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows, "", textwrap.fill(said, 126)])


def for_teachers(written: Sequence[Listed]) -> str:
    """The table of TEACHING.md: minutes and exercises."""
    rows = [
        "| chapter | in class | exercises | checked exercises, in the order of the chapter |",
        "| --- | ---: | ---: | --- |",
    ]
    for one in written:
        practice = f"{one.practice} min" if one.practice else "–"
        listed = "; ".join(one.exercises) or f"none; {one.instead}"
        name = one.name.replace("_", " ")
        rows.append(f"| {name} | {one.minutes} min | {practice} | {listed} |")
    return "\n".join(rows)


def for_students(written: Sequence[Listed]) -> str:
    """The list in chapter 00: two columns of links."""
    topics = {**PLANNED, **{one.name: one.topic for one in written}}
    there = {one.name for one in written}
    cells = []
    for name in sorted(topics):
        said = f"[{name[:2]}]({name}.ipynb)" if name in there else f"{name[:2]}, to come"
        cells.append(f"{said} | {topics[name]}")
    half = -(-len(cells) // 2)
    cells += [" | "] * (2 * half - len(cells))
    rows = [f"| {a} | {b} |" for a, b in zip(cells[:half], cells[half:], strict=True)]
    return "\n".join(["| | | | |", "|:--|:--|:--|:--|", *rows])


def _ranges(numbers: Sequence[str]) -> str:
    """`00 to 09 and 12`: numbers in order, runs joined."""
    runs: list[list[str]] = []
    for number in numbers:
        if runs and int(number) == int(runs[-1][-1]) + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    said = [run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return " and ".join(filter(None, [", ".join(said[:-1]), said[-1]])) if said else "none"


def of_the_ladder(_: Sequence[Listed]) -> str:
    """The rungs' recorded times beside PyTorch's: fp32 in milliseconds, fp16 in TFLOPS."""
    slow = recorded.load(recorded.LADDER)
    times = {name: own[SIZE] for name, own in slow.times().items() if SIZE in own}
    order = [*bars(ladder("fp32")[-1].name)]
    order += [name for name in times if name not in order]
    parts = [[(name, f"{times[name]:.2f}") for name in order if name in times]]
    parts += [_rates("flash"), _rates("hopper", ("rare_rescale, slack 8",))]
    b, h, n, d = LARGE
    rows = [
        f"| {' | '.join(cell for pair in row for cell in pair)} |"
        for row in itertools.zip_longest(*parts, fillvalue=("", ""))
    ]
    head = [
        f"| fp32, one head, N = {SIZE:,}, d = {D} | ms | fp16, {b} × {h} heads, n = {n:,}, d = {d}"
        " | TFLOPS | the same on Hopper alone | TFLOPS |",
        "| --- | ---: | --- | ---: | --- | ---: |",
    ]
    said = (
        f"{slow.device}, recorded beside PyTorch: chapters 08 and 09 in one run, 10 and 11 in "
        "one each. PyTorch's numbers below a column are from the run of its last kernel. "
        "`make bench` prints the same of another GPU, all kernels in turn, and draws the roofline "
        "with every rung on it."
    )
    return "\n".join([textwrap.fill(said, 126), "", *head, *rows])


def _rates(kind: str, variants: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Recorded TFLOPS of rungs of a kind, of some variants and of PyTorch's, by short names."""
    rungs = [rung.name.removeprefix("flash_") for rung in ladder(kind)]
    found = []
    for name in [*rungs, *variants, *RIVALS]:
        # PyTorch's are timed again in the rounds of each recording: here it is the last rung's.
        recording = recording_of(rungs[-1] if name in RIVALS else name)
        if recording and name in (rates := recording.tflops[LARGE]):
            found.append((name, f"{rates[name]:.0f}"))
    return found


PAGES = (
    ("README.md", COMMAND, for_readers),
    ("README.md", TIMES, of_the_ladder),
    ("TEACHING.md", COMMAND, for_teachers),
    ("notebooks/00_start_here.ipynb", COMMAND, for_students),
)


def rewritten(text: str, block: str, command: str = COMMAND) -> str:
    """A page with the block between its two comments replaced.

    Raises:
        ValueError: the page has no such comments.
    """
    pattern = f"{re.escape(command)}\n.*?{re.escape(_END)}"
    if not re.search(pattern, text, re.DOTALL):
        raise ValueError(f"The place for the list, {command} ... {_END}, is gone.")
    return re.sub(pattern, lambda m: f"{command}\n\n{block}\n\n{_END}", text, flags=re.DOTALL)


def page_with(text: str, block: str, notebook: bool, command: str = COMMAND) -> str:
    """A page, or a notebook, with the block in place of its old list.

    Raises:
        ValueError: it has no place for a list.
    """
    if not notebook:
        return rewritten(text, block, command)
    book = json.loads(text)
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if COMMAND in source:
            cell["source"] = rewritten(source, block)
            return json.dumps(book, indent=1, ensure_ascii=False) + "\n"
    return rewritten("", block)


def main(arguments: Sequence[str]) -> int:
    """Write the lists, or tell with `--check` which are not those of the notebooks."""
    written = chapters()
    old = 0
    for page, command, block in PAGES:
        path = ROOT / page
        before = path.read_text("utf-8")
        after = page_with(before, block(written), path.suffix == ".ipynb", command)
        if after == before:
            continue
        if "--check" in arguments:
            print(f"The list of chapters in {page} is not that of the notebooks: run `make lists`.")
            old = 1
        else:
            path.write_text(after, "utf-8")
            print(f"{page} is brought up to date.")
    return old


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
