"""Tables of machine code, against the instructions themselves."""

import pytest

from helpers.kernels import KernelError, load_kernel
from helpers.measure import machine_table as tables
from helpers.measure.machine_table import longest_loop, machine_table

# A tile of Q and one of K, and a product for each of its TILE positions.
KERNELS = {t: load_kernel("03_tiled.cu", "scaled_dot_product", TILE=t) for t in (16, 32)}


def test_facts_kinds_and_opcodes_stand_in_columns():
    columns = ["static shared memory", "FFMA", "LDG.E", "barriers", "instructions"]
    rows = machine_table(KERNELS, columns, line="sum +=").rows
    lines = [len(k.machine_code().by_line[38]) for k in KERNELS.values()]
    assert [row[1:] for row in rows] == [
        (2 * t * t * 4, t, 0, 0, line) for t, line in zip(KERNELS, lines, strict=True)
    ]
    code = KERNELS[16].machine_code()
    ((_, everywhere, registers),) = machine_table({"a": code}, ["LDS*", "registers"]).rows
    assert (everywhere, registers) == (code.kinds["shared loads"], code.registers)


def test_lines_are_those_of_a_kernel():
    with pytest.raises(KernelError, match="not in their code"):
        machine_table({"a": KERNELS[16].machine_code()}, ["FFMA"], line="sum +=")


def test_a_machine_that_makes_no_machine_code_says_so(monkeypatch):
    monkeypatch.setattr(tables, "lacking", lambda: "There is no nvdisasm.")
    assert repr(machine_table(KERNELS, ["FFMA"])) == "There is no nvdisasm."


def test_a_loop_is_counted_without_what_stands_around_it():
    """The walk along tiles: a product for each position in a tile, and no store of S."""
    columns = ["FFMA", "barriers", "global stores", "instructions"]
    inside, everywhere = (
        {name: row for name, *row in machine_table(KERNELS, columns, loop=loop).rows}
        for loop in (True, False)
    )
    for t, k in KERNELS.items():
        products, barriers, stores, instructions = inside[t]
        assert (products, barriers, stores) == (t, 2, 0)
        assert everywhere[t][2] == 1 and instructions < everywhere[t][3]
        head = k.lines("for (int i")[0]  # the loop's own lines alone
        assert all(one.line is None or one.line >= head for one in longest_loop(k.machine_code()))


def test_the_architecture_is_that_of_the_code():
    """A kernel of Hopper alone is made for sm_90a, whatever was asked for."""
    both = {"a": KERNELS[16], "b": load_kernel("11_toy_box.cu", "show_boxes")}
    assert machine_table(both, ["registers"]).note == "Machine code for sm_90, sm_90a."
