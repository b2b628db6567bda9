"""What cells say on stderr that a chapter must not."""

from __future__ import annotations

import re

# The bar of a launch that takes more than a second, as any does on a machine that is busy enough.
_BAR = re.compile(r"simulating \w+: \[[#.]*\] [\d,]+/[\d,]+ blocks, \d+ s left")


def noise(text: str) -> str:
    """What is left of a cell's stderr when the bar of a long launch is taken out."""
    return _BAR.sub("", text).strip()
