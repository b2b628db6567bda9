"""What `show()` prints and draws."""

import re
import sys
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.kernels import KernelError, load_kernel
from helpers.kernels.listing import highlighted, listing

FILE = """\
// A header.

#define TWO 2

// Adds <b>&amp;</b>.
extern "C" __global__ void add(const float* a, float* b, int n) {
    int i = threadIdx.x;  /* over
    lines */
\tif (i < n && a[i] > 0) {
        b[i] = a[i] + TWO;  // "quoted"
    }

    __syncthreads();
}

extern "C" __global__ void other(int* a) { a[0] = 1; }
"""

REPORT = SimpleNamespace(
    counters={
        "global_load_sectors": 16500,
        "global_store_sectors": 96,
        "shared_load_wavefronts": 0,
        "flops": 2.5,
    },
    by_line={
        9: {"global_load_sectors": 16384, "global_store_sectors": 0},
        10: {"global_load_sectors": 116, "global_store_sectors": 96, "flops": 2.5},
        16: {"global_load_sectors": 5},
    },
)


@pytest.fixture
def kernel(tmp_path):
    (tmp_path / "add.cu").write_text(FILE)
    return load_kernel("add.cu", "add", kernels_dir=tmp_path)


def rows(html):
    return re.findall(r'<div class="kl-row.*?(?=<div class="kl-row|$)', html, re.DOTALL)


def code_of(html):
    """The text of the source cells of a listing's HTML."""
    cells = re.findall(r'<div class="kl-c" role="cell">(.*?)</div>', html, re.DOTALL)
    return [unescape(re.sub(r"<[^>]*>", "", cell)) for cell in cells]


def test_the_kernel_function_is_shown_with_the_files_line_numbers(kernel):
    shown = kernel.show()
    assert [line.number for line in shown.lines] == list(range(5, 15))
    assert repr(shown).split("\n")[:3] == [
        "add.cu · add",
        "   5 | // Adds <b>&amp;</b>.",
        '   6 | extern "C" __global__ void add(const float* a, float* b, int n) {',
    ]


@pytest.mark.parametrize(
    ("keywords", "first", "last"),
    [
        ({"whole": True}, 1, 16),
        ({"lines": (9, 11)}, 9, 11),
        ({"lines": range(2, 5)}, 2, 4),
        ({"start": 10}, 10, 14),
        ({"end": 7}, 5, 7),
        ({"whole": True, "start": 16}, 16, 16),
    ],
)
def test_what_is_shown_can_be_chosen(kernel, keywords, first, last):
    lines = kernel.show(**keywords).lines
    assert (lines[0].number, lines[-1].number) == (first, last)


@pytest.mark.parametrize("keywords", [{"lines": (0, 3)}, {"start": 9, "end": 8}, {"end": 17}])
def test_lines_that_are_not_there(kernel, keywords):
    with pytest.raises(KernelError, match="add.cu has the lines 1 to 16; "):
        kernel.show(**keywords)


def test_the_html_holds_the_source_and_nothing_of_it_is_markup(kernel):
    html = kernel.show(whole=True)._repr_html_()
    shown = code_of(html)
    assert [line or " " for line in FILE.rstrip("\n").split("\n")] == [
        text or " " for text in shown
    ]
    assert "<b>&" not in html.split("</style>")[1]
    body = html.split("</style>")[1]
    assert not re.search(r"(https?:)?//[a-z]+\.|src=|url\(|<script", body + html)


def test_tokens_are_coloured_also_over_several_lines(kernel):
    lines = highlighted(FILE)
    assert '<span class="k">__global__</span>' in lines[5]
    assert '<span class="c">/* over</span>' in lines[6]
    assert '<span class="c">    lines */</span>' in lines[7]
    assert '<span class="p">' in lines[2]
    assert len(lines) == len(FILE.split("\n"))


def test_without_pygments_the_text_is_plain(monkeypatch):
    for name in ("pygments", "pygments.lexers", "pygments.token"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "helpers.show.highlighting", raising=False)
    text = "int a = b < c;  // plain"
    assert highlighted(text) == ("int a = b &lt; c;  // plain",)


def test_marks_by_number_and_by_text(kernel):
    shown = kernel.show(mark=[7, "b[i] ="])
    assert [line.number for line in shown.lines if line.marked] == [7, 10]
    assert ">  7 |     int i" in repr(shown)
    marked = [row for row in rows(shown._repr_html_()) if "kl-marked" in row]
    assert len(marked) == 2 and 'aria-label="line 7, marked"' in marked[0]
    assert [line.number for line in kernel.show(mark="syncthreads").lines if line.marked] == [13]
    assert [line.number for line in kernel.show(mark=range(8, 10)).lines if line.marked] == [8, 9]


def test_lines_are_found_as_text_before_they_are_a_pattern(kernel):
    assert kernel.lines("a[i]") == [9, 10]
    assert kernel.lines(r"^\s*int\b") == [7]
    assert kernel.lines("Adds") == [5]  # a comment, since no code has it
    assert kernel.lines("i") == [6, 7, 9, 10]  # and not the comments of lines 7 and 8
    assert kernel.lines("a[", whole=True) == [9, 10, 16]
    with pytest.raises(
        KernelError, match=r"No line of add of add.cu \(lines 5 to 14\) holds 'x\['"
    ):
        kernel.lines("x[")


def test_a_mark_outside_is_refused(kernel):
    with pytest.raises(KernelError, match="Line 16 of add.cu cannot be marked"):
        kernel.show(mark=16)


def test_counters_stand_beside_their_lines(kernel):
    shown = kernel.show(REPORT)
    assert shown.columns == ("global_load_sectors", "global_store_sectors")
    assert {line.number: line.counts for line in shown.lines if any(line.counts)} == {
        9: (16384, 0),
        10: (116, 96),
    }
    assert shown.sums == (16500, 96)  # line 16 belongs to the other kernel
    text = repr(shown).split("\n")
    assert text[1].endswith("global load  global store")
    assert text[2].endswith("sectors       sectors")
    loads = text[1].index("global load") + len("global load")
    assert text[7][:loads].endswith("  16,384") and len(text[7]) == loads
    assert text[8].endswith("96") and text[8][:loads].endswith("  116")
    assert re.search(r"\| sum of these lines +16,500 +96$", text[-1])
    assert {len(line) for line in text[1:3]} == {len(text[-1])}


def test_the_heat_bar_follows_each_column(kernel):
    html = kernel.show(REPORT)._repr_html_()
    ninth, tenth = (row for row in rows(html) if re.search(r">(9|10)</div>", row))
    assert re.findall(r"--share: (\d+)%", ninth) == ["100"]
    assert re.findall(r"--share: (\d+)%", tenth) == ["1", "100"]
    assert re.findall(r'"kl-v" role="cell"[^>]*>([^<]*)<', ninth) == ["16,384", ""]


def test_columns_can_be_chosen(kernel):
    shown = kernel.show(REPORT, columns=["flops", "shared_load_wavefronts"])
    assert [line.counts for line in shown.lines if line.number == 10] == [(2.5, 0)]
    assert "2.50" in repr(shown)
    with pytest.raises(KernelError, match="no counter flop; it has flops, global_load_sectors"):
        kernel.show(REPORT, columns=["flop"])
    with pytest.raises(KernelError, match="none was given"):
        kernel.show(columns=["flops"])


def test_a_title_is_escaped():
    html = listing("int a;", 1, 1, title="<i>", detail="<T>")._repr_html_()
    assert "<i>" not in html and "&lt;i&gt;" in html and "&lt;T&gt;" in html


def test_the_bound_on_a_named_gpu_stands_below():
    k = load_kernel("00_vector_add.cu")
    a, b, c = (np.zeros(64, np.float32) for _ in range(3))
    report = k.count(1, 64, (a, b, c, 64))
    shown = k.show(report, bound_on="H200")
    assert repr(shown).endswith(report.bounds("H200").sentence)
    assert "cannot be faster than" in shown.html() and "an H200" in shown.html()
    assert "faster" not in k.show(report).html()
