"""How light a colour is, and which of black and white is read on it."""

from __future__ import annotations

from collections.abc import Sequence

_EVEN = 0.179  # the luminance on which black and white stand out alike, by WCAG 2's contrast


def luminance(rgb: Sequence[int]) -> float:
    """Relative luminance, 0 to 1, as WCAG 2 defines it.

    Args:
        rgb: red, green and blue, 0 to 255.
    """
    linear = [
        part / 3294.6 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in rgb
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def read_on(colour: str) -> str:
    """`black` or `white`, whichever stands out more on a colour.

    Args:
        colour: as `#0072b2`.
    """
    rgb = bytes.fromhex(colour.removeprefix("#"))
    return "black" if luminance(rgb) > _EVEN else "white"
