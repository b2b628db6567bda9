"""Every chapter as a deck: an HTML file each, a PDF where Chromium is present, a start page."""

from __future__ import annotations

import argparse
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from html import escape
from pathlib import Path
from typing import NamedTuple

from ..gpu import device
from . import printing
from .command import command, say
from .content.chapter import chapter
from .execute import Executed, execute, read
from .export_error import ExportError
from .pages import fonts
from .pages.deck import deck, page, policy
from .pages.decks import Listed, decks_in

_CSS = """
:root { color-scheme: light; } html { background: #fff; color: #1c2026; }
body { margin: 0; font: 22px/1.4 "Deck Sans", Arial, sans-serif; }
main { max-width: 900px; margin: 0 auto; padding: 56px 24px; }
h1 { font-size: 44px; line-height: 1.1; margin: 0 0 8px; } p { color: #5b6470; margin: 0 0 28px; }
ol { list-style: none; margin: 0; padding: 0; border-top: 1px solid #d5dae1; }
li { display: flex; gap: 20px; padding: 12px 4px; border-bottom: 1px solid #d5dae1; }
li > span { color: #5b6470; font-variant-numeric: tabular-nums; }
a { color: #0072b2; text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
li > a:first-of-type { flex: 1; font-weight: 600; } .keys { margin-top: 32px; font-size: 18px; }
"""
# Kernels work side by side; formulas are drawn and typefaces cut by one thread at a time.
COMPOSING = threading.Lock()
_KEYS = (
    "Arrow keys turn slides, S opens the speaker view, Escape the overview, F fills the screen. "
    "In a figure or a bench the arrow keys are its own until Escape is pressed."
)


def build(
    notebooks: Sequence[Path],
    folder: Path,
    *,
    pdf: bool = True,
    handouts: bool = False,
    say: Callable[[str], None] = print,
    run: Callable[[Path], Executed] | None = None,
    home: str = "",
) -> list[Path]:
    """Write a deck for each notebook and the start page, `index.html`.

    Args:
        notebooks: their files.
        folder: where the decks go; made if it is not there.
        pdf: whether to print each deck as well; it is left out where there is no Chromium.
        handouts: whether to print a handout of each as well: two slides a page, without answers.
        say: told what happens, a line each.
        run: what executes a notebook; a fresh kernel in the notebook's own folder, if left out.
        home: address of a page that the start page leads back to; empty where there is none.

    Raises:
        ExportError: notebooks cannot be exported, of which nothing is written; the others are.
    """
    run = run or partial(run_notebook, say=say)
    failures: list[str] = []
    folder.mkdir(parents=True, exist_ok=True)
    browser = printing.chromium() if pdf or handouts else None
    if (pdf or handouts) and browser is None:
        say("Chromium is not on this machine: the decks are made, their PDFs are not.")
    made: list[Made] = []
    with ThreadPoolExecutor(at_once()) as runners, ThreadPoolExecutor(2) as printer:
        jobs = [runners.submit(_make, path, folder, run) for path in notebooks]
        printed: list[Future] = []
        try:
            for number, (path, job) in enumerate(zip(notebooks, jobs, strict=True), 1):
                say(f"[{number}/{len(notebooks)}] {path.stem} ...")
                one = _result(job, path, failures)
                if one is None:
                    say("        failed; why is said at the end")
                    continue
                made.append(one)
                for text in one.warnings:
                    say(f"        {text}")
                size = one.path.stat().st_size / 2**20
                say(f"        {one.path.name}: {size:.2f} MB, {one.seconds:.0f} s")
                # Chromium prints a deck while others run.
                if browser is not None:
                    printed.append(printer.submit(print_pdfs, browser, one.path, handout=handouts))
            for one, waiting in zip(made, printed, strict=False):
                _result(waiting, one.path.with_suffix(".pdf"), failures)
        finally:
            for waiting in [*jobs, *printed]:
                waiting.cancel()
    if printed:
        say(f"{len(printed)} PDFs are printed{', and a handout of each' if handouts else ''}.")
    write(folder / "index.html", start_page(decks_in(folder), home))
    if failures:
        raise ExportError("\n\n".join(failures))
    return [one.path for one in made]


class Made(NamedTuple):
    """A deck, and what the start page has to know of it."""

    path: Path
    title: str
    device: str
    seconds: float
    warnings: list[str]


def _result(job: Future, path: Path, failures: list[str]):
    """What came of a job, or None; why it failed is added to `failures`."""
    try:
        return job.result()
    except ExportError as error:
        failures.append(str(error))
    except Exception as error:  # of the exporter itself, which must not stop the others
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        failures.append(
            f"{path}: a fault of the exporter itself: {type(error).__name__}: {error} ({place})"
        )
    return None


def at_once() -> int:
    """How many notebooks run at a time: on a GPU one, which would disturb another's times."""
    return 1 if device.is_gpu else min(2, os.cpu_count() or 1)


def _make(path: Path, folder: Path, run: Callable[[Path], Executed]) -> Made:
    began = time.perf_counter()
    executed = run(path)
    target = folder / f"{path.stem}.html"
    with COMPOSING:
        one = chapter(executed, path.stem, path.parent)
        write(target, deck(one, index="index.html"))
    return Made(target, one.title, one.device, time.perf_counter() - began, one.warnings)


def run_notebook(path: Path, say: Callable[[str], None] | None = None) -> Executed:
    """Execute a notebook in its own folder; `say` is told how far it is, if it takes long."""
    tell = say and (lambda text: say(f"        {path.stem}: {text}"))
    return execute(read(path), str(path), path.parent, tell=tell)


def write(path: Path, content: str | bytes) -> None:
    """Put a file in its place whole, or not at all."""
    spare = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        spare.write_bytes(content.encode() if isinstance(content, str) else content)
        spare.replace(path)
    finally:
        spare.unlink(missing_ok=True)


def print_pdfs(browser: str, deck: Path, *, handout: bool = False) -> None:
    """Print a deck to a PDF beside it, and its handout to another.

    Raises:
        ExportError: Chromium cannot.
    """
    printed = printing.pdfs(browser, deck, handout=handout)
    write(deck.with_suffix(".pdf"), printed.slides)
    if printed.handout is not None:
        write(handout_of(deck), printed.handout)


def handout_of(deck: Path) -> Path:
    """Where a deck's handout lies."""
    return deck.with_name(f"{deck.stem}-handout.pdf")


def start_page(decks: Sequence[tuple[Path, Listed]], home: str = "") -> str:
    """The page that lists the decks, each with its PDF and its handout if there are any.

    Args:
        decks: their files and chapters.
        home: address of the page to lead back to, if there is one.
    """
    items = []
    for path, one in decks:
        number = path.stem.split("_")[0]
        papers = (("PDF", path.with_suffix(".pdf")), ("Handout", handout_of(path)))
        printed = "".join(
            f'<a href="{escape(file.name)}">{name}</a>' for name, file in papers if file.exists()
        )
        items.append(
            f'<li><span>{escape(number)}</span><a href="{escape(path.name)}">'
            f"{escape(one.title)}</a>{printed}</li>"
        )
    devices = " and ".join(dict.fromkeys(one.device for _, one in decks if one.device))
    numbers = f"<p>The numbers come from: {escape(devices)}.</p>" if devices else ""
    back = f'<p><a href="{escape(home)}">The course\'s page</a></p>' if home else ""
    body = (
        f"<main>{back}<h1>Attention on GPUs</h1>{numbers}<ol>{''.join(items)}</ol>"
        f'<p class="keys">{_KEYS}</p></main>'
    )
    return page(
        "Attention on GPUs: slides",
        head=f"<style>{_CSS}{fonts.css(body)}</style>",
        body=body,
        policy=policy("default-src 'none'; style-src 'unsafe-inline'", []),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m helpers.slides`; returns the exit status."""

    def make(chapters: list[Path], given: argparse.Namespace) -> str:
        build(chapters, given.to, pdf=not given.no_pdf, handouts=given.handout, say=say)
        return f"Open {given.to / 'index.html'} in a browser."

    purpose = "Make decks of slides from notebooks."
    return command("helpers.slides", purpose, Path("slides"), make, arguments, handouts=True)
