"""The command lines that make decks or the site: which notebooks, where to, what is said."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from .export_error import ExportError
from .pages.decks import notebooks

say = partial(print, flush=True)


def command(
    module: str,
    purpose: str,
    folder: Path,
    make: Callable[[list[Path], argparse.Namespace], str],
    arguments: Sequence[str] | None,
    *,
    handouts: bool = False,
) -> int:
    """Read the arguments, make what is asked for, and say how that went.

    Args:
        module: what `python -m` is given.
        purpose: what it does, in a sentence.
        folder: where it goes if nothing else is said.
        make: makes it of these notebooks, with `to`, `no_pdf` and `handout`; returns what to say
            at the end.
        arguments: of the command line; those of the process, if left out.
        handouts: whether handouts can be asked for.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=purpose)
    words = "files, or names or numbers of chapters; all of notebooks/, if left out"
    parser.add_argument("notebooks", nargs="*", help=words)
    parser.add_argument("--to", type=Path, default=folder, help=f"the folder, {folder}/")
    paper = parser.add_mutually_exclusive_group()
    paper.add_argument("--no-pdf", action="store_true", help="make no PDFs")
    if handouts:
        words = "make a handout of each deck too: two slides a page, without answers"
        paper.add_argument("--handout", action="store_true", help=words)
    given = parser.parse_args(arguments)
    try:
        chapters = notebooks(given.notebooks, Path("notebooks"))
        if not chapters:
            raise FileNotFoundError("There is no notebook in notebooks/.")
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    try:
        say(make(chapters, given))
    except ExportError as error:
        words = f"These could not be made; the others are in {given.to}/."
        print(f"\n{words}\n\n{error}", file=sys.stderr)
        return 1
    return 0
