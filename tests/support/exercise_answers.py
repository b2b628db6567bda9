"""A wrong answer to an exercise, as edits of its solution."""

from __future__ import annotations

from dataclasses import dataclass

from helpers.exercises import solution


@dataclass(frozen=True)
class Wrong:
    """One plausible wrong answer.

    Attributes:
        what: what the student did, in a few words.
        edits: (old, new) texts; each old one is once in the solution.
        step: the step of the check that has to fail.
        words: what its message, with what is to try next, has to hold.
    """

    what: str
    edits: tuple[tuple[str, str], ...]
    step: str
    words: tuple[str, ...]

    def text(self, exercise: str) -> str:
        """The answer to `exercise`."""
        text = solution(exercise)
        for old, new in self.edits:
            assert text.count(old) == 1, f"{exercise}, {self.what}: {old!r}"
            text = text.replace(old, new)
        return text
