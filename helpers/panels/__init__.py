"""One readable panel for what goes wrong: errors with their lines, results with their pattern."""

from .difference import Difference, difference
from .error_panels import panel_of
from .notebook import install, install_cupy
from .panel import Panel

__all__ = ["Difference", "Panel", "difference", "install", "install_cupy", "panel_of"]
