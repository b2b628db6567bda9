"""Says what a check is doing once it has taken more than a second."""

import sys
import time

from ..show import in_notebook

_PATIENCE = 1.0  # seconds


class Waiting:
    """A line that stands while a check runs, in a notebook or on a terminal, and then goes."""

    def __init__(self, name: str):
        self.name = name
        self.start = time.monotonic()
        self._handle = None
        self._shown = False

    def at(self, what: str) -> None:
        """The check has come to `what`."""
        if time.monotonic() - self.start < _PATIENCE:
            return
        text = f"checking {self.name}: {what} ..."
        if in_notebook():
            from IPython.display import display  # late: there is none on a bare machine

            data = {"text/plain": text}
            if self._handle is None:
                self._handle = display(data, raw=True, display_id=True)
            else:
                self._handle.update(data, raw=True)
        elif sys.stderr.isatty():
            self._shown = True
            sys.stderr.write(f"\r{text:<90}")
            sys.stderr.flush()

    def close(self) -> None:
        """Take the line away."""
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)
        if self._shown:
            sys.stderr.write("\r" + " " * 90 + "\r")
            sys.stderr.flush()
