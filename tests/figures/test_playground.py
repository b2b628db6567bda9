"""The bank playground: against the bank rule worked out anew, and every sentence of refusal."""

from __future__ import annotations

import asyncio
import math
import random
import re
import subprocess
import sys

import pytest
from figure_texts import faults, texts

from helpers.figures.pictures.playground import ExpressionError, analyse, column_banks, frames

MODULES = (
    "bank_rules events products replay runs tiles pictures.banks pictures.coalescing "
    "pictures.coarsening pictures.playground pictures.reduction tree bank_film "
    "pictures.tiling"
).split()


# ---------------------------------------------------------------- the bank rule, worked out anew


def cost(indices: list[int], width: int, kind: str) -> tuple[int, int]:
    """(wavefronts, ideal) of a full warp, lane by lane, as measured on an H200."""
    words = width // 4
    size = {4: 32, 8: 16, 16: 8}[width]

    def equal(step: int) -> bool:
        return all(indices[lane] == indices[lane ^ step] for lane in range(32))

    if kind == "load" and width > 4 and (equal(1) or equal(2)):
        size *= 2
    wavefronts = 0
    for start in range(0, 32, size):
        asked: dict[int, set[int]] = {}
        for lane in range(start, start + size):
            for word in range(indices[lane], indices[lane] + words):
                asked.setdefault(word % 32, set()).add(word)
        wavefronts += max(len(found) for found in asked.values())
    return wavefronts, 32 // size


def random_expression(rng: random.Random, depth: int = 3) -> str:
    """CUDA C whose operands are never negative, so that Python computes the same."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["lane", "lane", "lane", str(rng.randrange(1, 40))])
    a, b = random_expression(rng, depth - 1), random_expression(rng, depth - 1)
    operator = rng.choice("+ + * * / % & | ^ << >>".split())
    if operator in "/%":
        b = str(rng.randrange(1, 20))
    if operator in ("<<", ">>"):
        b = str(rng.randrange(4))
    return f"({a} {operator} {b})"


@pytest.mark.parametrize("seed", range(40))
def test_random_expressions_against_the_rule(seed):
    rng = random.Random(seed)
    width, kind = rng.choice([4, 8, 16]), rng.choice(["load", "store"])
    while True:
        expression = random_expression(rng)
        if width > 4:
            expression = f"({expression}) % 512 * {width // 4}"
        python = expression.replace("/", "//")
        indices = [eval(python, {"lane": lane}) for lane in range(32)]
        if max(indices) + width // 4 <= 12288 and (seed % 4 == 0 or len(set(indices)) > 1):
            break
    found = analyse(expression, width, kind)
    assert list(found.indices) == indices
    wavefronts, ideal = cost(indices, width, kind)
    assert (found.verdict.wavefronts, found.verdict.ideal) == (wavefronts, ideal), expression
    assert found.report.counters[f"shared_{kind}_wavefronts"] == wavefronts
    assert found.report.counters[f"shared_{kind}_ideal_wavefronts"] == ideal
    steps = frames(found)
    shown = texts(steps[-1].svg)
    assert f"ideal: {ideal}" in shown
    assert any(re.search(rf"\b{wavefronts} wavefronts?$", text) for text in shown)
    assert all(not faults(step.svg) for step in steps)


@pytest.mark.parametrize("stride", [1, 2, 3, 5, 8, 12, 16, 17, 31, 32, 33, 64])
def test_the_degree_of_a_stride_is_its_gcd_with_32(stride):
    found = analyse(f"lane * {stride}")
    degree = math.gcd(stride, 32)
    assert found.verdict.wavefronts == degree
    words = " ".join(found.verdict.reasons)
    assert f"32 words, {stride} apart: gcd({stride}, 32) = {degree}" in words
    assert f"{32 // degree} bank" in words


@pytest.mark.parametrize(
    "expression, width, kind, words",
    [
        ("(lane / 8) * 64 + (lane % 8) * 5", 4, "load", "4 different words by lanes 0, 8, 16"),
        ("7", 4, "load", "All 32 lanes read the same place: they share it (broadcast)."),
        ("7", 4, "store", "each is stored once, and the value of one of its lanes stays."),
        ("lane % 16", 4, "load", "32 lanes read 16 different places"),
        ("lane * 4", 16, "load", "8 lanes a phase, 4 phases."),
        ("lane * 2", 8, "store", "16 lanes a phase, 2 phases."),
        ("lane / 2 * 4", 16, "load", "lanes n and n ^ 1 read the same address"),
        ("(lane & 29) * 4", 16, "load", "lanes n and n ^ 2 read the same address"),
        ("lane / 2 * 4", 16, "store", "8 lanes a phase, 4 phases."),
        ("lane * 8", 16, "load", "the phases take 4 × 2 = 8 wavefronts instead of 4."),
        ("lane < 8 ? lane * 32 : lane * 4", 16, "load", "8 + 1 + 1 + 1 = 11 wavefronts"),
        ("lane", 4, "load", "No bank has two different words: 1 wavefront"),
    ],
)
def test_reasons(expression, width, kind, words):
    reasons = " ".join(analyse(expression, width, kind).verdict.reasons)
    assert words in reasons


def test_indices_may_be_bools_shorts_and_long():
    assert analyse("lane == 3").indices[2:5] == (0, 1, 0)
    assert analyse("(short)lane + 1ull").indices[:2] == (1, 2)
    assert analyse("int(lane * 1.5f)").indices[:4] == (0, 1, 3, 4)
    assert analyse("max(lane, 30) - min(lane, 1) + abs(-2) + __popc(lane)").indices[31] == 37


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "expression, words",
    [
        ("", "Type the index"),
        ("  \n ", "Type the index"),
        ("lane *", "The compiler refuses the index: expected an expression"),
        ("lane lane", "The compiler refuses the index"),
        ("(lane", "( without a )"),
        ("lane)", ") without a ("),
        ("lane - 3", "Lane 0 gets the index -3; an index is 0 or more"),
        ("-lane", "Lane 1 gets the index -1; an index is 0 or more"),
        ("lane * 397", "Lane 31 gets the index 12,307, but the 12,288 words"),
        ("unsigned(lane) - 1u", "Lane 0 gets the index 4,294,967,295"),
        ("lane * 1.5", "no whole number"),
        ("lane * 2.0f", "no whole number"),
        ("lane / 0", "division by zero"),
        ("lane % (lane - 4)", "Lane 4 gets the index -1 (as a division by zero gives)"),
        ("lane << 40", "shift count is too large"),
        ("lane = 3", "without side effects: compare with =="),
        ("lane += 3", "+= would set a value"),
        ("lane <<= 3", "<<= would set a value"),
        ("lane++", "++ would set a value"),
        ("while (1) lane", "while is not known here"),
        ("lane; while (1);", "leave ; out"),
        ("[] { for (;;); return 0; }()", "reads no array"),
        ("<:](int lane)<%%>", "has no meaning"),
        ("s[lane]", "s is not known here"),
        ("asm(\"trap;\")", "asm is not known here"),
        ("__trap()", "__trap is not known here"),
        ("threadIdx.x", "Did you mean lane?"),
        ("Lane * 2", "Did you mean lane?"),
        ("lane // 2", "Leave comments out"),
        ("lane /* 2 */", "Leave comments out"),
        ("lane\n#define x", "# has no meaning"),
        ("lane \\", "has no meaning"),
        ("'a'", "has no meaning"),
        ("max", "The index has no value"),
        ("int", "The compiler refuses the index"),
        ("(lane, 3)", "The compiler warns of the index"),
        ("1" * 60, "is too large for an index"),
        ("lane + " * 80 + "1", "200 are the most"),
    ],
)  # fmt: skip
def test_refusals_are_one_sentence(expression, words):
    with pytest.raises(ExpressionError) as refused:
        analyse(expression)
    message = str(refused.value)
    assert words in message
    assert "\n" not in message and "error:" not in message and len(message) < 220
    assert message.endswith((".", "?"))


@pytest.mark.parametrize("width, expression, lane", [(8, "lane", 1), (16, "lane * 4 + 2", 0)])
def test_misaligned_indices(width, expression, lane):
    with pytest.raises(ExpressionError, match=f"Lane {lane} .* multiple of {width // 4} words"):
        analyse(expression, width)
    assert analyse(expression, 4).verdict.ideal == 1


def test_the_last_word_is_in_and_the_next_is_out():
    assert analyse("12256 + lane").indices[31] == 12287
    with pytest.raises(ExpressionError, match="Lane 31"):
        analyse("12257 + lane")
    with pytest.raises(ExpressionError, match="Lane 31"):
        analyse("12256 + lane / 31 * 30", 16)


def test_width_and_kind():
    for width, kind in ((2, "load"), (4, "read")):
        with pytest.raises(ValueError, match="width is 4, 8 or 16"):
            analyse("lane", width, kind)


def test_columns_with_and_without_padding():
    assert "32 wavefronts" in texts(column_banks(32)[-1].svg)
    assert "1 wavefront" in texts(column_banks(33)[-1].svg)
    with pytest.raises(ExpressionError, match="words of shared memory"):
        column_banks(400)


# ---------------------------------------------------------------- the widget


@pytest.fixture
def playground():
    pytest.importorskip("ipywidgets")
    from helpers.figures.pictures.playground_widget import BankPlayground

    return BankPlayground


def hidden(board) -> bool:
    return board.player.layout.display == "none"


def test_widget_follows_what_is_typed(playground):
    board = playground("lane * 16", wait=0.01)
    assert "16 wavefronts, ideal 1: 15 bank conflicts" in board.status.value
    assert not hidden(board)
    assert board.player.index == len(board.player.frames) - 1

    board.expression.value = "lane *"
    assert hidden(board) and "refuses the index" in board.status.value
    assert board.analysis is None
    board.expression.value = "lane * 17"
    assert not hidden(board) and "1 wavefront, ideal 1: no bank conflict" in board.status.value
    board.width.value = 16
    assert hidden(board) and "multiple of 4 words" in board.status.value
    board.expression.value = "lane * 4"
    board.kind.value = "store"
    assert "4 wavefronts, ideal 4" in board.status.value
    assert "store of 16 bytes at s[lane * 4]" in board.player.frames[0]["svg"]


def test_where_nothing_runs_the_widget_leaves_its_index_and_its_figure(playground):
    board = playground("lane * 16")
    html = board._repr_mimebundle_()["text/html"]
    assert "<code>lane * 16</code>" in html and "15 bank conflicts" in html and "<img" in html
    board.expression.value = "lane <"
    html = board._repr_mimebundle_()["text/html"]
    assert "<code>lane &lt;</code>" in html and "refuses the index" in html and "<img" not in html


def test_widget_waits_and_never_shows_what_is_stale(playground, monkeypatch):
    from helpers.figures.pictures import playground_widget

    asked = []

    def counting(*args):
        asked.append(args)
        return analyse(*args)

    monkeypatch.setattr(playground_widget, "analyse", counting)

    async def type_something():
        board = playground("lane", wait=0.05)
        assert len(asked) == 1
        for n in range(1, 6):
            board.expression.value = "lane * 16"[: 4 + n]
            assert hidden(board)
            assert "compiling" in board.status.value
        assert len(asked) == 1
        await asyncio.sleep(0.3)
        assert asked[1:] == [("lane * 16", 4, "load")]
        assert not hidden(board) and "16 wavefronts" in board.status.value

    asyncio.run(type_something())


def test_widget_shows_no_traceback(playground, monkeypatch):
    from helpers.figures.pictures import playground_widget

    def broken(*_):
        raise RuntimeError("<no> luck")

    board = playground("lane", wait=0.01)
    monkeypatch.setattr(playground_widget, "analyse", broken)
    board.expression.value = "lane + 1"
    assert hidden(board)
    assert "RuntimeError: &lt;no&gt; luck" in board.status.value


# ---------------------------------------------------------------- where they run


def test_figures_need_no_widgets_and_no_matplotlib():
    code = "import sys\n" + "".join(
        f"sys.modules[{name!r}] = None\n"
        for name in ("ipywidgets", "anywidget", "traitlets", "matplotlib", "IPython", "cupy")
    )
    code += "".join(f"import helpers.figures.{name}\n" for name in MODULES)
    code += (
        "from helpers.figures.pictures.tiling import tiled_product\n"
        "from helpers.figures.pictures.playground import analyse\n"
        "print(len(tiled_product()), analyse('lane * 4').verdict.wavefronts)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["36", "4"]
