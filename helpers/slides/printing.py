"""A deck as PDFs, slides and handout, printed by Chromium when the deck says that it is laid out.

Chromium is spoken to by its DevTools protocol over a pair of pipes, which are its file descriptors
3 and 4: messages are JSON, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from .export_error import ExportError

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 120.0
# Its own services and first-start pages have no part in this. No sandbox: containers run as root.
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions",
)  # fmt: skip
_READY = "document.documentElement.dataset.ready"
_LINK = re.compile(rb"/URI \(((?:\\.|[^\\)])*)\)")


class Printed(NamedTuple):
    """PDFs of one deck: a page a slide, and the handout if it was asked for."""

    slides: bytes
    handout: bytes | None


def chromium() -> str | None:
    """The Chromium of this machine, if there is one that can print."""
    if os.name != "posix":
        return None
    return next((path for name in CHROMIUM if (path := shutil.which(name))), None)


def pdfs(browser: str, deck: Path, *, handout: bool = False) -> Printed:
    """A deck as PDFs, with an outline of the slides' titles; links between decks stay relative.

    Raises:
        ExportError: Chromium does not start, or the deck is not laid out in time.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        chrome = _Chrome(browser, profile)
        try:
            target = chrome.call("Target.createTarget", url="about:blank")["targetId"]
            chrome.session = chrome.call("Target.attachToTarget", targetId=target, flatten=True)[
                "sessionId"
            ]
            chrome.call("Page.navigate", url=deck.resolve().as_uri())
            while not chrome.value(_READY):
                time.sleep(0.1)
            slides = _print(chrome, deck, "")
            if not handout:
                return Printed(slides, None)
            chrome.value("document.documentElement.classList.add('handout')")
            return Printed(slides, _print(chrome, deck, "-handout"))
        except (OSError, TimeoutError, RuntimeError) as error:
            raise ExportError(f"{deck.name}: {browser} cannot print it: {error}") from error
        finally:
            chrome.close()


def _print(chrome: _Chrome, deck: Path, ending: str) -> bytes:
    printed = chrome.call(
        "Page.printToPDF", printBackground=True, preferCSSPageSize=True,
        paperWidth=210 / 25.4, paperHeight=297 / 25.4,  # slides say their own size
        generateTaggedPDF=True, generateDocumentOutline=True,
    )  # fmt: skip
    return with_relative_links(base64.b64decode(printed["data"]), deck, ending)


def with_relative_links(pdf: bytes, deck: Path, ending: str = "") -> bytes:
    """A PDF of `deck` whose links to decks beside it lead to their PDFs, wherever they are taken.

    An address gets shorter by this and is followed by spaces, so that all else stays in its place.

    Args:
        ending: of the names of the PDFs, before `.pdf`.
    """
    folder = deck.resolve().parent.as_uri().encode() + b"/"

    def relative(found: re.Match[bytes]) -> bytes:
        address = re.sub(rb"\\(.)", rb"\1", found[1])
        if not address.startswith(folder):
            return found[0]
        name = address.removeprefix(folder)
        name = re.sub(rb"\.html(?=#|$)", ending.encode() + b".pdf", name, count=1)
        short = b"/URI (" + re.sub(rb"([()\\])", rb"\\\1", name) + b")"
        return short.ljust(len(found[0]))

    return _LINK.sub(relative, pdf)


class _Chrome:
    """A running Chromium, and one conversation with it."""

    def __init__(self, browser: str, profile: str):
        self.session: str | None = None
        self._deadline = time.monotonic() + SECONDS
        self._number, self._heard = 0, b""
        command = [browser, *_OPTIONS, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null', "sh", *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            bufsize=0, start_new_session=True,
        )  # fmt: skip

    def call(self, method: str, **params: Any) -> dict:
        """Ask for something and wait for the answer.

        Raises:
            RuntimeError: it is refused.
            TimeoutError: no answer comes.
        """
        self._number += 1
        asked = {"id": self._number, "method": method, "params": params}
        if self.session is not None:
            asked["sessionId"] = self.session
        self._process.stdin.write(json.dumps(asked).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(answer["error"].get("message", "it is refused"))
                return answer.get("result", {})

    def value(self, expression: str) -> Any:
        """What an expression gives in the page; None where it fails, as it does before loading."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return None if "exceptionDetails" in result else result["result"].get("value")

    def close(self) -> None:
        """End it, with all of its processes."""
        with self._process, suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _next(self) -> dict:
        parts = [self._heard]
        while b"\0" not in parts[-1]:
            left = self._deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise TimeoutError(f"it does not answer within {SECONDS:g} s")
            part = self._process.stdout.read(2**20)
            if not part:
                raise RuntimeError("it has ended")
            parts.append(part)
        message, _, self._heard = b"".join(parts).partition(b"\0")
        return json.loads(message)
