"""The course as a static web site: a folder for any web server, which opens without one, too.

    python -m helpers.slides.pages.site --to site

An index with the chapters' goals and a search, a page to read for each chapter, and below `slides/`
its deck, PDF and handout as `make slides` makes them. Each notebook runs once. Pages are complete
in themselves, like decks: typefaces or scripts in files of their own are refused by browsers where
a page comes from `file://`. Searching is a form of every page that leads to the index, which
carries the words of all chapters; so no page has to fetch anything.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...chapters.glossary import terms
from ..build import COMPOSING, build, run_notebook, write
from ..command import command, say
from ..content.chapter import Chapter, chapter
from ..execute import Executed
from ..export_error import ExportError
from ..front import Course
from .deck import own
from .glossary_page import ADDRESS as GLOSSARY
from .glossary_page import anchor, glossary_page
from .page import Link, Place, description, origin, reading_page, render, whole_page
from .sections import sections

TITLE = "Attention on GPUs"
DECKS = "slides"  # the folder of the decks
COURSE = "attention-course.zip"


@dataclass(frozen=True)
class Entry:
    """A chapter in the index."""

    number: str
    title: str
    address: str
    goal: str
    minutes: str
    files: tuple[Link, ...]


def build_site(
    notebooks: Sequence[Path],
    folder: Path,
    *,
    pdf: bool = True,
    say: Callable[[str], None] = print,
    run: Callable[[Path], Executed] = run_notebook,
) -> Path:
    """Write the site of some notebooks; returns its index.

    Args:
        notebooks: their files, in the order of the course.
        folder: where the site goes; made if it is not there.
        pdf: whether decks are printed as well.
        say: told what happens, a line each.
        run: what executes a notebook.

    Raises:
        ExportError: notebooks cannot be exported; the site of the others is made.
    """
    pages: dict[Path, Chapter] = {}

    def run_once(path: Path) -> Executed:
        executed = run(path)
        # A chapter takes the states of its widgets apart: deck and page need their own.
        with COMPOSING:
            pages[path] = chapter(copy.deepcopy(executed), path.stem, path.parent, whole=True)
        return executed

    folder.mkdir(parents=True, exist_ok=True)
    failed = None
    try:
        build(
            notebooks, folder / DECKS, pdf=pdf, handouts=pdf, say=say, run=run_once,
            home="../index.html",
        )  # fmt: skip
    except ExportError as error:  # the others are made
        failed = error
    made = {path: pages[path] for path in notebooks if path in pages}
    entries = _reading_pages(made, folder)
    named = {path.stem: one for path, one in made.items()}
    write(folder / GLOSSARY, glossary_page(named, TITLE))
    archive = _archive(folder / COURSE)
    index = folder / "index.html"
    write(index, index_page(entries, list(made.values()), archive))
    say(f"{len(made)} pages to read and their index are made.")
    if failed is not None:
        raise failed
    return index


def _reading_pages(chapters: Mapping[Path, Chapter], folder: Path) -> list[Entry]:
    """Write the page to read of each notebook, and a copy of it; what the index says of them."""
    links = [Link(f"{path.stem}.html", one.title) for path, one in chapters.items()]
    before, after = [None, *links], [*links[1:], None]
    names = frozenset(path.stem for path in chapters)
    entries = []
    (folder / "notebooks").mkdir(exist_ok=True)
    for n, (path, one) in enumerate(chapters.items()):
        shutil.copyfile(path, folder / "notebooks" / path.name)
        number, minutes = re.match(r"\d*", path.stem)[0], in_words(one.course)
        files = _files(folder, path.stem)
        place = Place(TITLE, number, minutes, files, before[n], after[n], names)
        write(folder / links[n].address, reading_page(one, place))
        goal = description(one, sections(one))
        entries.append(Entry(number, one.title, links[n].address, goal, minutes, files))
    return entries


def index_page(entries: Sequence[Entry], chapters: Sequence[Chapter], archive: bool = False) -> str:
    """The first page of the site.

    Args:
        entries: a chapter each.
        chapters: the same, for the search.
        archive: whether the whole course lies beside it as `COURSE`.
    """
    times = [one.course for one in chapters]
    body = render(
        "index_body.html",
        title=TITLE,
        entries=entries,
        whole=in_words(
            Course("", sum(t.minutes for t in times), sum(t.exercises for t in times)), hours=True
        ),
        origins=list(dict.fromkeys(origin(one.device) for one in chapters if one.device)),
        decks=DECKS,
        archive=COURSE if archive else "",
        words=words_to_search(entries, chapters),
    )
    return whole_page(
        f"{TITLE}, step by step",
        description="A course of Jupyter notebooks on making attention kernels fast, one idea a "
        "chapter: to read, to show as slides, to run without a GPU.",
        styles=f"<style>{own('page.css')}</style><style>{own('site.css')}</style>",
        body=body,
        scripts=["page.js", "site.js"],
        allowed="default-src 'none'; script-src ; style-src 'unsafe-inline'; img-src data:",
    )


def words_to_search(entries: Sequence[Entry], chapters: Sequence[Chapter]) -> str:
    """JSON of all sections: chapter and address, then of each section anchor, name and words.

    The glossary's terms are its sections.
    """
    found: list[list] = [
        [
            f"{entry.number} {entry.title}",
            entry.address,
            [[part.anchor, part.name, part.words] for part in sections(one)],
        ]
        for entry, one in zip(entries, chapters, strict=True)
    ]
    explained = [
        [anchor(one), one.term, " ".join([one.plain, *(f"({also})" for also in one.also)])]
        for one in terms()
    ]
    found.append(["Glossary", GLOSSARY, explained])
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def in_words(course: Course, hours: bool = False) -> str:
    """How long it takes; nothing where nobody has said."""
    if not course.minutes:
        return ""

    def said(minutes: int) -> str:
        return f"{minutes / 60:.0f} hours" if hours else f"{minutes} minutes"

    more = f", {said(course.exercises)} for exercises" if course.exercises else ""
    return f"{said(course.minutes)} in class{more}"


def _files(folder: Path, name: str) -> tuple[Link, ...]:
    """The other forms of a chapter that are there."""
    offered = [
        Link(f"{DECKS}/{name}.html", "Slides"),
        Link(f"{DECKS}/{name}.pdf", "Slides as PDF"),
        Link(f"{DECKS}/{name}-handout.pdf", "Handout"),
        Link(f"notebooks/{name}.ipynb", "Notebook"),
    ]
    return tuple(link for link in offered if (folder / link.address).exists())


def _archive(target: Path) -> bool:
    """Put the whole course as it was last committed beside the site, where git is to be had."""
    git = shutil.which("git")
    if git is None:
        return False
    command = [git, "archive", "--format=zip", "--prefix=attention/", "HEAD"]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True)
    if done.returncode == 0:
        write(target, done.stdout)
    return done.returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m helpers.slides.pages.site`; returns the exit status."""

    def make(chapters: list[Path], given: argparse.Namespace) -> str:
        index = build_site(chapters, given.to, pdf=not given.no_pdf, say=say)
        return f"Open {index} in a browser, or let a web server offer {given.to}."

    purpose = "Make a web site of the course."
    return command("helpers.slides.pages.site", purpose, Path("site"), make, arguments)


if __name__ == "__main__":
    sys.exit(main())
