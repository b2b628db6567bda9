"""What is read on a colour, by WCAG 2's contrast."""

from __future__ import annotations

import pytest

from helpers.measure.charts import HUES
from helpers.show.colours import luminance, read_on

INKS = {"light": (34, 34, 34), "dark": (230, 230, 230)}


def test_luminance_is_that_of_the_definition():
    assert luminance((0, 0, 0)) == 0
    assert luminance((255, 255, 255)) == pytest.approx(1)
    assert luminance((255, 0, 0)) == pytest.approx(0.2126)
    assert luminance((0, 128, 0)) == pytest.approx(0.1544, abs=1e-4)


@pytest.mark.parametrize("theme", INKS)
@pytest.mark.parametrize("hue", HUES)
def test_numbers_stand_out_on_bars_in_both_themes(hue, theme):
    own = bytes.fromhex(hue[1:])
    bar = [0.8 * a + 0.2 * b for a, b in zip(own, INKS[theme], strict=True)]  # as charts mix it
    text = {"black": 0.0, "white": 1.0}[read_on(hue)]
    high, low = sorted((text, luminance(bar)), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= 3
