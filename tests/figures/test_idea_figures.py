"""Figures of the attention chapter: right numbers, told in time, with nothing cut off."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from figure_layout import faults

from helpers.figures.canvas import Canvas, number
from helpers.figures.ideas.dot_product import DotProduct, dot_product
from helpers.figures.ideas.embedding import embedding
from helpers.figures.ideas.linear_map import linear_map
from helpers.figures.ideas.scaling import dot_products, scaling
from helpers.figures.ideas.softmax_rows import softmax_rows
from helpers.figures.ideas.weighted_rows import weighted_rows
from helpers.figures.parts import label_height, lane_row, legend, matrix
from helpers.figures.plane import Plane, spacing

SVG = "{http://www.w3.org/2000/svg}"
TOKENS = ["[CLS]", "attention", "is", "all", "you", "need", "[SEP]"]
IDS = [101, 3086, 2003, 2035, 2017, 2342, 102]
RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(7, 384)) * 0.06
SCORES = RNG.normal(size=(7, 7)) * 2
VALUES = RNG.normal(size=(7, 32))
POINTS = np.array([[1.5, 0.4], [0.5, 1.7], [-1.4, 0.8], [-0.6, -1.5], [1.6, -1.1]])
ONES = np.ones((10, 9))
W_Q = np.array([[0.9, 0.7], [-0.8, 1.1]])


def softmax(scores: np.ndarray) -> np.ndarray:
    """By log-sum-exp, another way than the figure's."""
    return np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter(f"{SVG}text")]


def cells(svg: str) -> list[str]:
    """Numbers in cells, row by row as they were written."""
    found = [t for t in texts(svg) if re.fullmatch(r"−?(\d+\.\d{2}|∞)|…", t)]
    return found


def written(values) -> list[str]:
    return [number(v) for v in np.ravel(values)]


# Embedding


def test_each_token_brings_its_row():
    frames = embedding(TOKENS, IDS, ROWS, sentence="Attention is all you need", vocabulary=30522)
    assert len(frames) == 3 + 7 + 1
    shown = np.concatenate([ROWS[:, :3], ROWS[:, -1:]], axis=1)
    for row in range(7):
        found = [c for c in cells(frames[3 + row].svg) if c != "…"]
        # The table's row, then X as far as it is known
        assert found == written(shown[row]) + written(shown[: row + 1])
        assert str(IDS[row]) in frames[3 + row].caption and TOKENS[row] in frames[3 + row].caption
    assert "7 × 384" in frames[-1].caption and "30,522 × 384" in texts(frames[5].svg)


def test_what_attention_gets_may_be_more_than_the_rows():
    X = 2 * ROWS + 1
    frames = embedding(TOKENS, IDS, ROWS, X, then="something is added")
    assert len(frames) == 3 + 7 + 1 and "something is added" in frames[-1].caption
    assert [c for c in cells(frames[-1].svg) if c != "…"][:3] == written(X[0, :3])


def test_a_repeated_token_picks_the_same_row():
    rows = np.arange(6.0).reshape(3, 2)[[0, 1, 0]]
    frames = embedding(["a", "b", "a"], [5, 6, 5], rows)
    assert "same row" in frames[5].caption and "same row" not in frames[3].caption


@pytest.mark.parametrize(
    "tokens, ids, rows, message",
    [(["a"], [1, 2], np.ones((2, 3)), "1 tokens, 2 ids"), ([], [], np.ones((0, 3)), "1 to 10"),
     (["a"] * 11, [1] * 11, np.ones((11, 2)), "not 11"), (["a"], [1], np.ones(3), "as many")],
)  # fmt: skip
def test_embedding_refuses_what_does_not_fit(tokens, ids, rows, message):
    with pytest.raises(ValueError, match=message):
        embedding(tokens, ids, rows)


# Linear map


def place_of(svg: str, radius: str = "5") -> np.ndarray:
    """Centres of the dots, in pixels."""
    dots = [c for c in ET.fromstring(svg).iter(f"{SVG}circle") if c.get("r") == radius]
    return np.array([(float(c.get("cx")), float(c.get("cy"))) for c in dots])


def test_points_lie_where_the_map_takes_them():
    frames = linear_map(W_Q, POINTS, list("abcde"))
    assert len(frames) == 6
    before, halfway, after = (place_of(frames[i].svg) for i in (0, 2, 4))
    # Pixels are an affine function of the points: find it, then ask where the others went.
    design = np.c_[POINTS, np.ones(5)]
    to_pixels, residual, *_ = np.linalg.lstsq(design, before, rcond=None)
    assert residual.max() < 0.01
    assert after == pytest.approx(np.c_[POINTS @ W_Q, np.ones(5)] @ to_pixels, abs=0.02)
    assert halfway == pytest.approx((before + after) / 2, abs=0.02)
    both = place_of(frames[5].svg)
    assert both[:5] == pytest.approx(before, abs=0.01)
    assert both[5:] == pytest.approx(after, abs=0.01)


def test_the_map_is_worked_out_in_numbers():
    frames = linear_map([[1, 2], [0, -1]], [[0.5, 3], [1, 1]], ["a", "b"], name="K")
    shown = texts(frames[-1].svg)
    # (0.5, 3) is moved furthest: to (0.5, 1 − 3)
    assert "k₁ = 0.50·1.00 + 3.00·0.00 = 0.50" in shown
    assert "k₂ = 0.50·2.00 + 3.00·(−1.00) = −2.00" in shown
    assert "k = (0.50, −2.00)" in shown
    assert "multiplied by 1.00" in frames[-2].caption  # |det| = |1·(−1) − 2·0|


def test_a_map_may_flatten_the_plane():
    assert len(linear_map([[1, 1], [1, 1]], POINTS)) == 6


@pytest.mark.parametrize(
    "W, points, labels",
    [(np.eye(3), POINTS, None), (np.eye(2), np.ones((3, 3)), None), (np.eye(2), POINTS, ["a"]),
     (np.eye(2), np.ones((11, 2)), None), (np.eye(2), np.ones((0, 2)), None)],
)  # fmt: skip
def test_linear_map_refuses_what_does_not_fit(W, points, labels):
    with pytest.raises(ValueError, match="linear_map"):
        linear_map(W, points, labels)


@pytest.mark.parametrize("extent, step", [(1, 0.2), (2.5, 0.5), (3, 1), (10, 2), (47, 10)])
def test_ticks_are_at_round_numbers(extent, step):
    assert spacing(extent) == pytest.approx(step)


def test_lines_of_the_lattice_end_at_the_frame():
    canvas = Canvas(100, 100)
    Plane(canvas, 10, 20, 50, 2).lattice([[3.0, 1.0], [-0.5, 0.25]])
    numbers = re.findall(r"[-\d.]+", ET.fromstring(canvas.svg()).find(f"{SVG}path").get("d"))
    x, y = np.array(numbers, float).reshape(-1, 2).T
    assert x.min() >= 10 and x.max() <= 60 and y.min() >= 20 and y.max() <= 70
    # Each line was cut at the frame, not short of it
    ends = np.c_[x, y]
    on_frame = np.isclose(ends, (10, 20), atol=0.1) | np.isclose(ends, (60, 70), atol=0.1)
    assert on_frame.any(axis=1).all() and len(ends) > 20


# Dot product


@pytest.mark.parametrize(
    "q, k, angle", [((2, 1), (-1, 2), 90), ((1, 0), (1, 1), 45), ((2, 1), (-4, -2), 180)]
)
def test_the_dot_product_is_told_twice(q, k, angle):
    frame = dot_product(q, [k])[0]
    shown = texts(frame.svg)
    assert f"q·k = {number(np.dot(q, k))}" in shown and f"θ = {angle}°" in shown
    formula = next(t for t in shown if t.startswith("|q|"))
    factors = [float(f.replace("−", "-").strip("()")) for f in formula.split(" = ")[1].split("·")]
    assert np.prod(factors) == pytest.approx(np.dot(q, k), abs=0.05)
    assert f"is {angle}° from q" in frame.caption


def test_k_ends_where_it_should():
    """The foot of the perpendicular: (q·k / q·q) q, and the right angle there."""
    svg = dot_product((2, 1), [(-0.5, 2)])[0].svg
    dashed = [
        x for x in ET.fromstring(svg).iter(f"{SVG}line") if x.get("stroke-dasharray") == "4 4"
    ]
    (x1, y1, x2, y2) = (float(dashed[0].get(name)) for name in ("x1", "y1", "x2", "y2"))
    assert (x1 - x2) * 2 - (y1 - y2) * 1 == pytest.approx(0, abs=0.1)  # y points down


def test_dot_product_follows_python():
    figure = DotProduct((2, 1), (0.5, 1.5))
    assert figure.value == 2.5
    scene = figure.scene
    figure.q = [0, 3]
    assert figure.scene != scene and "q = (0.00, 3.00)" in texts(figure.scene)
    assert figure.value == 4.5
    for bad in ([0, 0], [1], [1, np.nan]):
        with pytest.raises(ValueError, match="^q "):
            figure.q = bad
        with pytest.raises(ValueError, match="^q "):
            DotProduct(bad)
    DotProduct((1, 0), (0, 0))
    with pytest.raises(ValueError, match="1 to 10 keys"):
        dot_product((1, 0), np.ones((2, 3)))
    with pytest.raises(ValueError, match="labels"):
        dot_product((1, 0), np.ones((2, 2)), ["a"])


# Scaling


def test_products_have_variance_d():
    products = dot_products((1, 16, 256), samples=20000, seed=3)
    for d, values in products.items():
        assert values.shape == (20000,)
        # The variance of the variance of q·k: kurtosis is 3 + 6/d, so σ(s²) ≈ d √((2 + 6/d) / n)
        assert abs(values.var() - d) < 5 * d * np.sqrt((2 + 6 / d) / 20000)
        assert abs(values.mean()) < 5 * np.sqrt(d / 20000)
    assert (dot_products((4,), 10, seed=1)[4] != dot_products((4,), 10, seed=2)[4]).all()


def test_scaling_tells_what_softmax_does():
    """Eight products, so a single group: compare with a softmax in extended precision."""
    values = np.array([4.0, 0, 0, -2, 1, 1, 0.5, -8])
    first, summary = scaling({4: values})

    def weights(of):
        exponentials = np.exp(of.astype(np.longdouble))
        return exponentials / exponentials.sum()

    raw, scaled = weights(values), weights(values / 2)
    bars = [t for t in texts(first.svg) if re.fullmatch(r"\d\.\d\d", t)]
    assert bars == [f"{w:.2f}" for w in raw] + [f"{w:.2f}" for w in scaled]
    assert f"{100 * raw.max():.0f}\u00a0% on average" in first.caption
    assert f"{100 * scaled.max():.0f}\u00a0% after" in first.caption
    assert number(np.std(values)) in texts(summary.svg)


def test_scaling_keeps_softmax_from_saturating():
    frames = scaling(dot_products((1, 4, 16, 64, 256)))
    assert len(frames) == 6
    shares = [re.findall(r"(\d+)\u00a0%", frame.caption) for frame in frames[:-1]]
    raw, scaled = np.array(shares, int).T
    assert (np.diff(raw) > 0).all() and raw[-1] > 90
    assert np.ptp(scaled) <= 3


@pytest.mark.parametrize("products", [{}, {4: np.ones(7)}])
def test_scaling_needs_samples(products):
    with pytest.raises(ValueError, match="at least 8"):
        scaling(products)


# Softmax


def test_softmax_is_worked_out_row_by_row():
    frames = softmax_rows(SCORES, TOKENS, in_detail=[0, 1])
    assert len(frames) == 1 + 2 * 4 + 5 + 1
    P = softmax(SCORES)
    scores = written(SCORES)
    assert cells(frames[0].svg) == scores
    assert cells(frames[1].svg) == scores  # the maximum is only pointed at
    shifted = SCORES[0] - SCORES[0].max()
    assert cells(frames[2].svg) == scores + written(shifted)
    assert cells(frames[3].svg) == scores + written(shifted) + written(np.exp(shifted))
    assert cells(frames[4].svg)[49:56] == written(P[0])
    assert cells(frames[4].svg)[-7:] == written(P[0])
    assert number(np.exp(shifted).sum()) in frames[3].caption
    assert cells(frames[-1].svg) == scores + written(P)
    for row in range(2, 7):
        assert cells(frames[7 + row].svg)[49:-21] == written(P[: row + 1])


def test_softmax_survives_large_scores_and_masks():
    S = np.array([[900.0, 902.0, -np.inf], [0.0, -np.inf, -np.inf]])
    frames = softmax_rows(S, ["a_b", "c"])
    assert cells(frames[-1].svg)[-6:] == ["0.12", "0.88", "0.00", "1.00", "0.00", "0.00"]
    assert "−∞" in texts(frames[0].svg) and "a_b" in texts(frames[0].svg)
    assert "“a_b”" in frames[1].caption


@pytest.mark.parametrize(
    "S, tokens",
    [(np.ones((9, 2)), None), (np.ones((2, 9)), None), (np.ones(3), None), (np.ones((0, 2)), None),
     (np.ones((2, 2)), ["a"]), ([[1, np.nan]], None), ([[1, np.inf]], None),
     ([[-np.inf, -np.inf]], None)],
)  # fmt: skip
def test_softmax_refuses_what_does_not_fit(S, tokens):
    with pytest.raises(ValueError, match="softmax_rows"):
        softmax_rows(S, tokens)


# Weighted rows


def test_rows_are_added_up_term_by_term():
    P = softmax(SCORES)
    frames = weighted_rows(P, VALUES, TOKENS)
    assert len(frames) == 1 + 7 + 6 + 1
    weights = written(P)
    columns = [0, 1, 31]
    shown = [c for c in cells(frames[3].svg) if c != "…"]
    partial = sum(P[0, j] * VALUES[j] for j in range(3))
    assert shown[:49] == weights
    assert shown[49:70] == written(VALUES[:, columns])
    assert shown[70:73] == written(partial[columns])
    assert shown[73:] == written(P[0, 2] * VALUES[2, columns])
    O = np.einsum("ij,jk->ik", P, VALUES)  # noqa: E741
    assert [c for c in cells(frames[-1].svg) if c != "…"][70:] == written(O[:, columns])
    assert "complete" in frames[7].caption


def test_weighted_rows_of_a_rectangle():
    frames = weighted_rows([[0.25, 0.75]], [[4.0, 0], [8.0, -4.0]])
    assert cells(frames[-1].svg)[-2:] == ["7.00", "−3.00"]


@pytest.mark.parametrize("shape", [(3, 2), (2,), (1, 2)])
def test_weighted_rows_refuses_what_does_not_fit(shape):
    with pytest.raises(ValueError, match="needs V of 2 rows"):
        weighted_rows(np.eye(2), np.ones(shape))


# Layout, as a browser draws it


def parts_of_every_kind() -> list:
    canvas = Canvas(960, 640, "parts")
    top = 30 + label_height(TOKENS[:5], 56)
    matrix(canvas, SCORES[:4, :5], 100, top, shade=2, title="Q", shape="4 × 5", rows=TOKENS[:4],
           columns=TOKENS[:5], current=[(1, 2)])  # fmt: skip
    lane_row(canvas, 40, 290, 27.5, lambda lane: ({"stroke": "blue"}, lane < 16))
    legend(canvas, 40, 600, [("blue", "read"), ("vermillion", "conflict"), ("gray", "idle")])
    return [canvas.frame("")]


FIGURES = {
    "parts": parts_of_every_kind,
    "embedding": lambda: embedding(TOKENS, IDS, ROWS, ROWS + 1, vocabulary=30522),
    "embedding of 10": lambda: embedding(["embeddings"] * 10, [30000] * 10, -9.87 * ONES),
    "embedding of 1": lambda: embedding(["a"], [0], [[1.0]]),
    "linear_map": lambda: linear_map(W_Q, POINTS, TOKENS[1:6]),
    "linear_map, small": lambda: linear_map(0.1 * W_Q, 0.2 * POINTS, name="V"),
    "linear_map, large": lambda: linear_map(30 * W_Q, 10 * POINTS, TOKENS[1:6], name="K"),
    "dot_product": lambda: dot_product((2, 1), [(1.6, 0.8), (0.5, 1.5), (-0.7, 1.5), (-1.8, -0.7)]),
    "dot_product, large": lambda: dot_product((-90, 55), [(99, -99), (0, 0)], ["a", "b"]),
    "scaling": lambda: scaling(dot_products((1, 4, 16, 64, 256))),
    "softmax_rows": lambda: softmax_rows(SCORES * 5, TOKENS),
    "softmax_rows, masked": lambda: softmax_rows(np.where(np.tri(8) > 0, 9.0, -np.inf)),
    "weighted_rows": lambda: weighted_rows(softmax(SCORES), 9 * VALUES, TOKENS),
    "weighted_rows of 8": lambda: weighted_rows(np.full((8, 8), 0.125), np.ones((8, 2))),
}  # fmt: skip


@pytest.mark.browser
@pytest.mark.parametrize("figure", FIGURES)
def test_nothing_is_cut_off_or_on_top_of_another(page, figure):
    frames = FIGURES[figure]()
    assert len({svg.split('viewBox="')[1].split('"')[0] for svg, _ in frames}) == 1
    assert faults(page, frames) == []


@pytest.mark.browser
def test_the_test_of_layout_sees_faults(page):
    canvas = Canvas(200, 100)
    canvas.text(10, 50, "first")
    canvas.text(20, 52, "second")
    canvas.text(180, 20, "beyond the edge")
    canvas.rect(150, 50, 100, 10)
    canvas.text(100, 90, "aslant", turn=36)
    canvas.text(130, 92, "parallel", turn=36)
    svg = canvas.svg().replace(
        "first</text>", 'first</text><text x="5" y="95" font-size="9">9</text>'
    )
    found = faults(page, [(svg, "")])
    assert sorted(f.split(": ")[1][:24].strip() for f in found) == sorted(
        [
            '"first" is on "second"',
            '"9" is 9 px high',
            '"beyond the edge" is cut',
            "a rect is cut off",
        ]
    )
