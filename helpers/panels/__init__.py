"""One readable panel for what goes wrong: errors with their lines, results with their pattern."""

from .difference import Difference, difference
from .panel import Panel

__all__ = ["Difference", "Panel", "difference"]
