"""A text bar for long launches."""

from __future__ import annotations

import sys
import time


class Progress:
    """A text bar on stderr for launches of more than a second."""

    def __init__(self, entry: str, total: int, wanted: bool):
        self.entry, self.total, self.wanted = entry, total, wanted
        self.start = self.last = time.monotonic()
        self.shown = False
        self.done = 0

    def show(self, done: int) -> None:
        """Redraw, at most five times a second."""
        now = time.monotonic()
        self.done = done
        if not self.wanted or now - self.start < 1 or now - self.last < 0.2:
            return
        if done >= self.total and not self.shown:
            return
        self.last, self.shown = now, True
        filled = 30 * done // self.total
        left = (now - self.start) / done * (self.total - done)
        sys.stderr.write(
            f"\rsimulating {self.entry}: [{'#' * filled}{'.' * (30 - filled)}] "
            f"{done:,}/{self.total:,} blocks, {left:.0f} s left "
        )
        sys.stderr.flush()

    def told(self) -> str:
        """How far the launch is, in words."""
        seconds = time.monotonic() - self.start
        return f"{seconds:.0f} s and {self.done:,} of {self.total:,} blocks"

    def close(self) -> None:
        """Wipe the bar."""
        if self.shown:
            sys.stderr.write("\r" + " " * 100 + "\r")
            sys.stderr.flush()
