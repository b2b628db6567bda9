"""The figure of a thread's patch: what the kernel reads and stores, and not what a script says."""

from __future__ import annotations

import re

import pytest
from figure_pages import changed

from helpers.figures.pictures.patches import register_patch
from helpers.kernels import load_kernel


@pytest.mark.parametrize("patch", [4, 8])
def test_floats_and_multiplications(patch):
    frames = register_patch(patch)
    assert len(frames) == 1 + 2 * patch  # a load of each row and of each column
    floats, products = 8 * patch, 4 * patch * patch
    assert f"{floats} floats have been read, and {products} multiplications" in frames[-1].caption
    assert f">{floats / products:.3g}<" in frames[-1].svg


def test_the_patch_is_where_the_thread_stores():
    # Thread 5: lanes 2n and 2n + 1 share a column, lanes n and n ^ 2 a row.
    first = register_patch(4, thread=5)[0]
    assert first.caption.startswith("The 16 elements")
    loads = [re.match(r"s_(.)\[(\d+)\]", frame.caption) for frame in register_patch(4)[1:]]
    assert [(m[1], int(m[2])) for m in loads] == [
        *(("Q", 1 + 16 * r) for r in range(4)),
        *(("K", 2 + 16 * c) for c in range(4)),
    ]


def test_the_figure_follows_the_kernel():
    code = load_kernel("07_register_blocked.cu", "scaled_dot_product").code
    assert code.count("s_K[tx + 16 * c][k]") == 1
    other = code.replace("s_K[tx + 16 * c][k]", "s_K[15 - tx + 16 * c][k]")
    with changed("07_register_blocked.cu", other):
        frames = register_patch(4)
    assert frames[5].caption.startswith("s_K[13][0…3]")
    assert register_patch(4)[5].caption.startswith("s_K[2][0…3]")


def test_another_layout_of_the_warp():
    # WARP_ROWS 2: a warp's threads make 2 rows of 16.
    captions = [frame.caption for frame in register_patch(4, WARP_ROWS=2, thread=37)]
    assert captions[1].startswith("s_Q[2][") and captions[5].startswith("s_K[5][")


def test_a_thread_that_is_not_there():
    with pytest.raises(ValueError, match="0 to 255"):
        register_patch(4, thread=256)
