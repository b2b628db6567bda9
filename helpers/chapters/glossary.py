"""The course's terms: what each means, and the chapter that defines it first.

They stand in `glossary.toml` beside this file. `glossary()` is for a notebook; the course's site
makes a page of them.
"""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ..kernels.lookup import meant
from ..measure.tables import Table

FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Term:
    """A term of the course.

    Attributes:
        term: as it is written in the middle of a sentence.
        chapter: the two digits of the notebook that defines it first.
        means: one or two sentences; code stands between backticks.
        also: other spellings, plurals among them.
        everyday: whether chapters before may use the word in its everyday sense.
    """

    term: str
    chapter: str
    means: str
    also: tuple[str, ...] = ()
    everyday: bool = False

    @property
    def spellings(self) -> tuple[str, ...]:
        """All of them, the longest first."""
        return tuple(sorted((self.term, *self.also), key=len, reverse=True))

    @property
    def plain(self) -> str:
        """What it means, without the marks of code."""
        return self.means.replace("`", "")

    def used_in(self, text: str) -> bool:
        """Whether one of the spellings is in a text, as whole words; a capital does not matter."""
        either = "|".join(r"\s+".join(map(re.escape, one.split())) for one in self.spellings)
        return bool(re.search(rf"(?<![\w-])(?:{either})(?![\w-])", text, re.IGNORECASE))


@functools.cache
def terms() -> tuple[Term, ...]:
    """All terms, in the order of the alphabet."""
    listed = tomllib.loads(FILE.read_text("utf-8"))["term"]
    found = [Term(**{**one, "also": tuple(one.get("also", ()))}) for one in listed]
    return tuple(sorted(found, key=lambda one: one.term.lower()))


def glossary(*names: str) -> Table:
    """A table of terms, for a notebook: those that are named, or all of them.

    Raises:
        ValueError: a term is not in the glossary.
    """
    known = {spelling.lower(): one for one in terms() for spelling in one.spellings}
    for name in names:
        if name.lower() not in known:
            raise ValueError(f"{name!r} is not in the glossary.{meant(name.lower(), known)}")
    chosen = [known[name.lower()] for name in names] or terms()
    return Table(
        ["term", "means", "chapter"],
        [(one.term, one.plain, f"ch. {one.chapter}") for one in chosen],
    )
