"""What notebooks show as HTML: escaped, behind one sheet of styles, and as text without Jinja2."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from helpers.kernels.listing import listing
from helpers.panels import Panel
from helpers.show import render, sheet, templates
from helpers.slides.content.carried import Carrier

LISTED = listing("int a;", 1, 1, title="a.cu")


def test_text_is_escaped_and_a_part_is_not():
    panel = Panel("<b>", ("1 & 2",), listing=LISTED)
    html = panel.html()
    assert "&lt;b&gt;" in html and "1 &amp; 2" in html
    assert '<div class="kernel-listing">' in html and LISTED.html() in html


def test_the_styles_come_once():
    html = Panel("title", listing=LISTED)._repr_html_()
    assert html.count("<style>") == 1 and html.startswith(f"<style>{sheet()}</style><div")
    assert "<" not in sheet()


def test_a_deck_takes_the_styles_as_they_are():
    carrier = Carrier(Path("."))
    assert "<style" not in carrier.html(LISTED._repr_html_())
    assert carrier.styles == [sheet()]


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError, match="'svg' is undefined"):
        render("chart.html", label="")


def test_without_jinja_there_is_text_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    templates.cache_clear()
    panel = Panel("title")
    assert panel._repr_html_() is None and repr(panel) == "✗ title"


def test_another_package_that_is_missing_is_not_hidden():
    class Broken(Panel):
        def html(self):
            raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    with pytest.raises(ModuleNotFoundError, match="numpy"):
        Broken("title")._repr_html_()
