"""Results of questions stay folded where a cell's tags are sent; test_jupyterlab looks at them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from helpers.panels import folded_answers


@pytest.mark.parametrize(
    ("metadata", "folds"),
    [
        ({"tags": ["answer"], "cellId": "02-79"}, True),
        ({"tags": ["hide-input", "answer"]}, True),
        ({"tags": ["answers"]}, False),
        ({"tags": "answer"}, False),  # not what nbformat says tags are
        ({}, False),
        (None, False),
    ],
    ids=str,
)
def test_only_cells_with_the_tag_are_folded(monkeypatch, metadata, folds):
    shown = []
    kernel = SimpleNamespace(get_parent=lambda: {"metadata": metadata})
    monkeypatch.setattr(folded_answers, "shell", lambda: SimpleNamespace(kernel=kernel))
    monkeypatch.setattr("IPython.display.display", shown.append)
    folded_answers.fold_answers()
    assert len(shown) == folds
    if folds:
        html = shown[0]._repr_html_()
        assert "<details" in html and " open" not in html.split("<details")[1].split(">")[0]


def test_a_plain_python_has_nothing_to_fold(monkeypatch):
    monkeypatch.setattr(folded_answers, "shell", lambda: None)
    folded_answers.install()
    folded_answers.fold_answers()
