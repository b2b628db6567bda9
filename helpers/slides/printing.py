"""A deck as a PDF, printed by Chromium when the deck says that it is laid out.

Chromium is spoken to by its DevTools protocol over a pair of pipes, which are its file descriptors
3 and 4: messages are JSON, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from .errors import ExportError

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 120.0
# Its own services and first-start pages have no part in this. No sandbox: containers run as root.
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions",
)  # fmt: skip
_LAID_OUT = (
    "document.documentElement.dataset.ready && "
    "document.querySelectorAll('.pdf-page').length === Reveal.getTotalSlides()"
)


def chromium() -> str | None:
    """The Chromium of this machine, if there is one that can print."""
    if not hasattr(os, "posix_spawn"):
        return None
    return next((path for name in CHROMIUM if (path := shutil.which(name))), None)


def pdf(browser: str, deck: Path) -> bytes:
    """A deck, one page a slide.

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
            chrome.call("Page.navigate", url=f"{deck.resolve().as_uri()}?print-pdf")
            while not chrome.value(_LAID_OUT):
                time.sleep(0.1)
            printed = chrome.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
            return base64.b64decode(printed["data"])
        except (OSError, TimeoutError, RuntimeError) as error:
            raise ExportError(f"{deck.name}: {browser} cannot print it: {error}") from error
        finally:
            chrome.close()


class _Chrome:
    """A running Chromium, and one conversation with it."""

    def __init__(self, browser: str, profile: str):
        import fcntl  # not everywhere, and neither is the rest of this

        self.session: str | None = None
        self._deadline = time.monotonic() + SECONDS
        self._number, self._heard = 0, b""
        hears, self._out = os.pipe()
        self._in, says = os.pipe()
        # Out of the way of 3 and 4, which they become in Chromium.
        theirs = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in (hears, says)]
        os.close(hears)
        os.close(says)
        command = [browser, *_OPTIONS, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs[0], 3),
            (os.POSIX_SPAWN_DUP2, theirs[1], 4),
            *((os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_RDWR, 0) for n in (0, 1, 2)),
        ]
        self._process = os.posix_spawn(browser, command, os.environ, file_actions=actions,
                                       setpgroup=0)  # fmt: skip
        for one in theirs:
            os.close(one)

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
        message = json.dumps(asked).encode() + b"\0"
        while message:
            message = message[os.write(self._out, message) :]
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
        os.close(self._out)
        os.close(self._in)
        try:
            os.killpg(self._process, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self._process, 0)

    def _next(self) -> dict:
        parts = [self._heard]
        while b"\0" not in parts[-1]:
            left = self._deadline - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                raise TimeoutError(f"it does not answer within {SECONDS:g} s")
            part = os.read(self._in, 2**20)
            if not part:
                raise RuntimeError("it has ended")
            parts.append(part)
        message, _, self._heard = b"".join(parts).partition(b"\0")
        return json.loads(message)
