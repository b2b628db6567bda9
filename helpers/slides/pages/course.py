"""What a notebook says of itself as a chapter of the course: its goal, and how long it takes.

It stands in the notebook's metadata, so that no page has to repeat it:

    "course": {"goal": "Launch a first kernel ...", "minutes": 40, "exercises": 20}
"""

from __future__ import annotations

from typing import NamedTuple

from nbformat import NotebookNode


class Course(NamedTuple):
    """A chapter in a sentence and two numbers.

    Attributes:
        goal: what a reader can do or knows at its end, in a sentence; empty if it does not say.
        minutes: in class, without the exercises that are checked; 0 if it does not say.
        exercises: minutes for those exercises; 0 if there are none.
    """

    goal: str = ""
    minutes: int = 0
    exercises: int = 0


def course(notebook: NotebookNode) -> Course:
    """What a notebook says of itself; of other people's notebooks, nothing."""
    said = notebook.metadata.get("course", {})
    return Course(
        str(said.get("goal", "")), int(said.get("minutes", 0)), int(said.get("exercises", 0))
    )
