"""One readable panel for what goes wrong: errors with their lines, results with their pattern.

`panel_of` is looked up when it is first asked for: it needs the simulator's error types, which
use this package themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .difference import Difference, difference
from .panel import Panel

if TYPE_CHECKING:
    from .error_panels import panel_of
    from .notebook import install

__all__ = ["Difference", "Panel", "difference", "install", "panel_of"]


def __getattr__(name: str):
    if name == "panel_of":
        from .error_panels import panel_of

        return panel_of
    if name == "install":
        from .notebook import install

        return install
    raise AttributeError(f"module 'helpers.panels' has no attribute {name!r}")
