"""Every chapter as a deck: an HTML file each, a PDF where Chromium is present, a start page."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from html import escape
from pathlib import Path

from . import fonts, printing
from .chapter import Chapter, chapter
from .deck import deck, page, policy
from .errors import ExportError
from .execute import Executed, execute, read

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
_KEYS = (
    "Arrow keys turn slides, S opens the speaker view, Escape the overview, F fills the screen. "
    "In a figure or a bench the arrow keys are its own until Escape is pressed."
)


def build(
    notebooks: Sequence[Path],
    folder: Path,
    *,
    pdf: bool = True,
    say: Callable[[str], None] = print,
    run: Callable[[Path], Executed] | None = None,
    home: str = "",
) -> list[Path]:
    """Write a deck for each notebook and the start page, `index.html`.

    Args:
        notebooks: their files.
        folder: where the decks go; made if it is not there.
        pdf: whether to print each deck as well; it is left out where there is no Chromium.
        say: told what happens, a line each.
        run: what executes a notebook; a fresh kernel in the notebook's own folder, if left out.
        home: address of a page that the start page leads back to; empty where there is none.

    Raises:
        ExportError: a notebook cannot be exported; of this one nothing is written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    browser = printing.chromium() if pdf else None
    if pdf and browser is None:
        say("Chromium is not on this machine: the decks are made, their PDFs are not.")
    made: list[tuple[Path, Chapter]] = []
    # Chromium prints a deck while the next notebook runs.
    with ThreadPoolExecutor(max_workers=1) as printer:
        printed: list[Future] = []
        for number, path in enumerate(notebooks, 1):
            began = time.perf_counter()
            say(f"[{number}/{len(notebooks)}] {path.stem} ...")
            target = folder / f"{path.stem}.html"
            one = chapter((run or run_notebook)(path), path.stem, path.parent)
            write(target, deck(one, index="index.html"))
            made.append((target, one))
            for text in one.warnings:
                say(f"        {text}")
            size, seconds = target.stat().st_size / 2**20, time.perf_counter() - began
            say(f"        {target.name}: {size:.2f} MB, {seconds:.0f} s")
            if browser is not None:
                printed.append(printer.submit(print_pdf, browser, target))
        for job in printed:
            job.result()
    if printed:
        say(f"{len(printed)} PDFs are printed.")
    write(folder / "index.html", start_page(made, home))
    return [target for target, _ in made]


def run_notebook(path: Path) -> Executed:
    """Execute a notebook in its own folder."""
    return execute(read(path), str(path), path.parent)


def write(path: Path, content: str | bytes) -> None:
    """Put a file in its place whole, or not at all."""
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def print_pdf(browser: str, deck: Path) -> Path:
    """Print a deck to a PDF beside it.

    Raises:
        ExportError: Chromium cannot.
    """
    target = deck.with_suffix(".pdf")
    write(target, printing.pdf(browser, deck))
    return target


def start_page(decks: Sequence[tuple[Path, Chapter]], home: str = "") -> str:
    """The page that lists the decks, each with its PDF if there is one.

    Args:
        decks: their files and chapters.
        home: address of the page to lead back to, if there is one.
    """
    items = []
    for path, one in decks:
        number = path.stem.split("_")[0]
        pdf = path.with_suffix(".pdf")
        printed = f'<a href="{escape(pdf.name)}">PDF</a>' if pdf.exists() else ""
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
    parser = argparse.ArgumentParser(
        prog="python -m helpers.slides", description="Make decks of slides from notebooks."
    )
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of notebooks/, if left out")
    parser.add_argument("--to", type=Path, default=Path("slides"), help="the folder of the decks")
    parser.add_argument("--no-pdf", action="store_true", help="make no PDFs")
    given = parser.parse_args(arguments)
    chapters = given.notebooks or sorted(Path("notebooks").glob("*.ipynb"))
    if not chapters:
        print("There is no notebook in notebooks/.", file=sys.stderr)
        return 1
    try:
        build(chapters, given.to, pdf=not given.no_pdf, say=lambda text: print(text, flush=True))
    except ExportError as error:
        print(f"\nNo deck was made of this notebook.\n{error}", file=sys.stderr)
        return 1
    print(f"Open {given.to / 'index.html'} in a browser.")
    return 0
