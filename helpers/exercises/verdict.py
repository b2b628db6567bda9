"""What a check says: its steps, and the student's lines that matter, as HTML and as text."""

import textwrap
from dataclasses import dataclass

from ..kernels.listing import Listing, listing
from ..panels.difference_map import DifferenceMap
from ..panels.numbers import listed
from ..show import Shows, render

PASSED, FAILED, NOT_REACHED = "passed", "failed", "not reached"
WIDTH = 100
_AROUND = 3  # lines shown before and after a marked one
_NEAR = 8  # marked lines as close as this share an excerpt
_SIGNS = {PASSED: "✓", FAILED: "✗", NOT_REACHED: "·"}


@dataclass(frozen=True)
class Step:
    """One step of a check.

    Attributes:
        name: `compiles`, `right`, `no race`, `goal` or `time`.
        state: `passed`, `failed` or `not reached`.
        message: what was seen; empty if not reached.
    """

    name: str
    state: str
    message: str = ""


@dataclass(frozen=True, repr=False)
class Verdict(Shows):
    """The outcome of a check; shows itself in a notebook and prints as text.

    Attributes:
        exercise: its name.
        title: its title.
        steps: what was looked at, in order; the first that fails is the last one reached.
        todo: what to try next; may be empty.
        lines: numbers of the lines of the answer that matter.
        source: the answer's text.
        log: what the compiler said, whole.
        printed: what the kernel printed.
        picture: which elements are wrong, where nothing else can be said of them.
    """

    exercise: str
    title: str
    steps: tuple[Step, ...]
    todo: str = ""
    lines: tuple[int, ...] = ()
    source: str = ""
    log: str = ""
    printed: str = ""
    picture: DifferenceMap | None = None

    @property
    def passed(self) -> bool:
        """Whether no step failed and all were reached."""
        return all(step.state == PASSED for step in self.steps)

    @property
    def failed(self) -> Step | None:
        """The step that failed."""
        return next((step for step in self.steps if step.state == FAILED), None)

    @property
    def line(self) -> int | None:
        """The first of the lines that matter."""
        return self.lines[0] if self.lines else None

    @property
    def excerpts(self) -> tuple[Listing, ...]:
        """The lines that matter, marked, with a few around them."""
        total = len(self.source.rstrip("\n").split("\n"))
        marked = sorted({n for n in self.lines if 1 <= n <= total})
        groups: list[list[int]] = []
        for number in marked:
            if groups and number - groups[-1][-1] <= _NEAR:
                groups[-1].append(number)
            else:
                groups.append([number])
        return tuple(
            listing(
                self.source,
                max(1, group[0] - _AROUND),
                min(total, group[-1] + _AROUND),
                title=f"{self.exercise}.cu",
                detail=f"line{'s' * (len(group) > 1)} {listed([*map(str, group)])}",
                marked=group,
            )
            for group in groups
        )

    def _head(self) -> str:
        return f"{self.exercise}: {'solved' if self.passed else 'not yet'}"

    @property
    def todo_pieces(self) -> list[str]:
        """What to try next, cut at its backquotes: every second piece is code."""
        return self.todo.split("`")

    def html(self):
        return render("verdict.html", verdict=self, head=self._head(), signs=_SIGNS)

    def __repr__(self) -> str:
        rows = [self._head()]
        for step in self.steps:
            first = f"  {_SIGNS[step.state]} {step.name:<9}"
            rows.append(
                textwrap.fill(f"{first} {step.message}".rstrip(), WIDTH, subsequent_indent=" " * 14)
            )
        if self.todo:
            rows.append(
                textwrap.fill(self.todo, WIDTH, initial_indent="  ", subsequent_indent="  ")
            )
        if self.picture:
            rows.append(repr(self.picture))
        rows += [repr(excerpt) for excerpt in self.excerpts]
        if self.printed:
            rows.append(f"Printed:\n{self.printed.rstrip()}")
        return "\n".join(rows)
