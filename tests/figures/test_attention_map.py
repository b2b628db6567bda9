"""The attention map: the drawing says what the weights say."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from helpers.figures.ideas.attention_map import attention_map

SVG = "{http://www.w3.org/2000/svg}"
TOKENS = ["[CLS]", "it_is", "so", "[SEP]"]
P = np.array(
    [[0.97, 0.03, 0.0, 0.0], [0.05, 0.25, 0.6, 0.1], [0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 0.0, 0.0]]
)


def links(svg: str) -> list[tuple[float, float, float]]:
    """(weight, y of the start, y of the end) of the curves, the weight from the stroke's width."""
    found = []
    for path in ET.fromstring(svg).iter(f"{SVG}path"):
        if curve := re.match(r"M\S+ (\S+)C\S+ \S+ \S+ \S+ \S+ (\S+)$", path.get("d")):
            found.append((float(path.get("stroke-width")) / 16, *map(float, curve.groups())))
    return found


def texts(svg: str) -> list[str]:
    return [element.text for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_links_are_as_thick_as_the_weights():
    frames = attention_map(P, TOKENS)
    assert len(frames) == 5
    drawn = sorted(weight for weight, _, _ in links(frames[0].svg))
    assert drawn == pytest.approx(sorted(P[P >= 0.05]))


def test_a_step_shows_the_links_of_its_query_alone():
    frames = attention_map(P, TOKENS)
    for i, frame in enumerate(frames[1:]):
        drawn = links(frame.svg)
        assert sorted(weight for weight, _, _ in drawn) == pytest.approx(sorted(P[i][P[i] >= 0.05]))
        assert len({start for _, start, _ in drawn}) == 1
    # Down the right-hand side the keys stand in their order: 0.1, 0.2, 0.3, 0.4 from the top.
    ends = sorted((end, weight) for weight, _, end in links(frames[3].svg))
    assert [weight for _, weight in ends] == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_captions_name_the_largest_weights():
    captions = [frame.caption for frame in attention_map(P, TOKENS)]
    assert captions[1] == "“[CLS]” takes 97 % from “[CLS]”."
    assert captions[2] == "“it_is” takes 60 % from “so”, 25 % from “it_is”, 10 % from “[SEP]”."
    assert captions[4] == "“[SEP]” takes 100 % from “it_is”."


def test_every_weight_and_every_name_is_written():
    written = texts(attention_map(P, TOKENS)[0].svg)
    for weight in P.ravel():
        assert f"{weight:.2f}" in written
    for token in TOKENS:
        assert written.count(token) == 4  # row, column, and at both ends of the links


def test_fits_as_many_tokens_as_it_takes():
    tokens = ["because"] * 12
    frames = attention_map(np.full((12, 12), 1 / 12), tokens)
    root = ET.fromstring(frames[0].svg)
    width = float(root.get("viewBox").split()[2])
    for element in root.iter(f"{SVG}text"):
        assert 0 <= float(element.get("x")) < width


@pytest.mark.parametrize(
    "weights, tokens, message",
    [
        (P[:3], TOKENS, "not 4 tokens and weights of shape"),
        (P, TOKENS[:3], "not 3 tokens"),
        (np.eye(13), ["a"] * 13, "1 to 12 tokens"),
        (P * 2, TOKENS, "numbers from 0 to 1"),
        (P - 0.1, TOKENS, "numbers from 0 to 1"),
        (np.where(P == 0.3, np.nan, P), TOKENS, "numbers from 0 to 1"),
    ],
)
def test_refuses_what_is_no_map(weights, tokens, message):
    with pytest.raises(ValueError, match=message):
        attention_map(weights, tokens)
