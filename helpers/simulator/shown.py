"""Exceptions that IPython shows as a panel in place of a traceback."""

from __future__ import annotations


class Shown:
    """To inherit from, before the exception's own type.

    Attributes:
        headline: what stands above the message.
    """

    headline = "This call cannot work"

    def _render_traceback_(self) -> list[str]:
        """What IPython shows; it asks every exception that has this method."""
        from ..panels.notebook import render

        return render(self)
