"""What a kernel changed: no line is told that another diff does not tell, and numbers are right."""

from __future__ import annotations

import difflib
import itertools

import pytest

from helpers.kernels import KernelError
from helpers.kernels.changes import changes
from helpers.problem.ladder import ladder

KERNELS = {one.name: one.kernel() for one in ladder("flash")}
PAIRS = list(itertools.pairwise(KERNELS))
FUNCTIONS = (
    "place", "copy_rows", "copy_tiles", "load_q", "multiply_qk", "scale_and_mask", "mask",
    "update_softmax", "multiply_pv", "store_rows", "flash_attention",
)  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_all_functions_together_tell_what_the_whole_files_differ_in(pair):
    before, after = (KERNELS[name] for name in pair)
    told = []
    for name in FUNCTIONS:
        if f" {name}(" in after.source:
            told += changes(before, after, name, around=0).lines
    lines = {"+": after.source.split("\n"), "-": before.source.split("\n")}
    for line in told:
        assert line.kind == "gap" or lines[line.kind][line.number - 1] == line.text
    whole = difflib.ndiff(lines["-"], lines["+"])
    new = {line[2:] for line in whole if line[0] == "+" and line.startswith("+     ")}
    assert new <= {line.text for line in told if line.kind == "+"}


def test_a_function_that_is_new_is_shown_whole():
    found = changes(KERNELS["flash_registers"], KERNELS["flash_double_buffer"], "copy_tiles")
    assert found.taken_out == 0 and found.put_in == len(found.lines) > 5
    assert found.lines[-1].text == "}" and "void copy_tiles(" in found.lines[0].text
    # `mask` is no part of another name
    assert changes(KERNELS["flash_eager"], KERNELS["flash_registers"], "mask").taken_out == 0
    with pytest.raises(KernelError, match=r"10a_eager.cu has no function 'copy_tiles'"):
        changes(KERNELS["flash_swizzled"], KERNELS["flash_eager"], "copy_tiles")


def test_it_can_begin_at_a_line_and_shows_as_text_and_html():
    pair = KERNELS["flash_swizzled"], KERNELS["flash_eager"]
    loop = changes(*pair, "flash_attention")
    assert 0 < changes(*pair, "flash_attention", since="multiply_qk").put_in < loop.put_in
    parts = [
        changes(*pair, "flash_attention", **{end: "multiply_qk"}) for end in ("since", "until")
    ]
    assert sum(part.put_in for part in parts) == changes(*pair, "flash_attention").put_in
    text = repr(loop)
    assert text.startswith("09_flash_swizzled.cu → 10a_eager.cu · flash_attention")
    assert "−" in text and " + |" in text and "⋮ |" in text
    html = loop._repr_html_()
    assert "kl-in" in html and "kl-out" in html and "kl-gap" in html
    assert 'aria-label="put in, line' in html and "cp_async_commit" in html
