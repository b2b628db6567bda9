"""The simulator against what an NVIDIA H200 wrote and counted (`tests/recorded`).

Single instructions, random kernels, warp and tensor-core instructions, and kernels with memory
counters. With `-m gpu` the same kernels run through CuPy and meet the same recorded results.
"""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from recorded import compare
from recorded.cases import Case
from recorded.sections import COUNTED, DATA, METRICS, SECTIONS, cases, from_file, instruction_groups

from helpers.simulator import SimulatorError, launch

STORES = "shared_store_instructions"
# Kernels of which the assembler makes something else than is counted: a line of theirs is marked.
MARKED = {"convolution": STORES, "vector_atomics": STORES, "registers": STORES}


@functools.cache
def recorded_data(section: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{section}.npz") as data:
        return {key: data[key] for key in data.files}


@functools.cache
def recorded_notes() -> dict:
    return json.loads((DATA / "recorded.json").read_text())


def expected(section: str, case: Case) -> list[np.ndarray]:
    """What was recorded; skips where nothing was, fails where text or inputs were others."""
    path = DATA / f"{section}.npz"
    if not path.exists() or not (DATA / "recorded.json").exists():
        pytest.skip(
            f"tests/recorded/data/{path.name} is not there: make it with record.py on a GPU"
        )
    note = recorded_notes()["cases"][section].get(case.name)
    if note is None:
        pytest.skip(f"{case.name} was not recorded")
    if "error" in note:
        pytest.skip(f"{case.name} could not be recorded: {note['error']}")
    assert note["digest"] == case.digest(), f"{case.name} was recorded with another text or inputs"
    return from_file(section, case, recorded_data(section))


def simulate(case: Case, count: bool = False) -> tuple[list[np.ndarray], object]:
    """Output arrays and the report of a run on the simulator."""
    args = case.make_args()
    report = launch(
        case.code, case.entry, case.grid, case.block, args,
        options=case.options, shared_mem=case.shared_mem, count=count,
    )  # fmt: skip
    return [args[i] for i in case.outputs], report


def on_gpu(case: Case) -> list[np.ndarray]:
    """Output arrays of a run through CuPy."""
    pytest.importorskip("cupy")
    from recorded import gpu

    return gpu.launch(case)


def named(section: str):
    return pytest.mark.parametrize("case", cases(section), ids=lambda case: case.name)


def groups(section: str):
    return pytest.mark.parametrize(
        "group", instruction_groups(section), ids=lambda group: group.name
    )


def check_group(section: str, group) -> None:
    want = expected(section, group.case())[0]
    try:
        got = simulate(group.case())[0][0]
    except SimulatorError:  # one of them is unknown: each alone says which
        slots = group.slots()
        missing, lines = [], []
        for position, spec in enumerate(group.specs):
            single = group.single(position)
            rows = [k for k, (instruction, _) in enumerate(slots) if instruction == position]
            try:
                lines += compare.instruction_errors(
                    single, simulate(single.case())[0][0], want[rows]
                )
            except SimulatorError as error:
                missing.append(f"{spec.name}: {error}")
        assert missing, "the group fails together but not one by one"
        pytest.fail("\n".join([*missing, *lines]))
    lines = compare.instruction_errors(group, got, want)
    assert not lines, "\n".join(lines)


@groups("integers")
def test_integer_instructions_give_the_bits_of_the_h200(group):
    check_group("integers", group)


@groups("floats")
def test_float_instructions_give_the_bits_of_the_h200(group):
    check_group("floats", group)


@named("programs")
def test_random_kernels_write_what_the_h200_wrote(case):
    want = expected("programs", case)
    lines = compare.output_errors(case, simulate(case)[0], want)
    assert not lines, "\n".join(lines)


@named("warps")
def test_warp_instructions_write_what_the_h200_wrote(case):
    want = expected("warps", case)
    lines = compare.output_errors(case, simulate(case)[0], want)
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize(
    ("section", "case"),
    [(s, case) for s in COUNTED for case in cases(s)],
    ids=lambda x: getattr(x, "name", x),
)
def test_counters_equal_those_of_nsight_compute(section, case):
    want = expected(section, case)
    counters = recorded_notes()["counters"].get(case.name)
    if counters is None:
        pytest.skip(f"{case.name} has no counters: ncu did not see it")
    got, report = simulate(case, count=True)
    lines = compare.output_errors(case, got, want)
    other = MARKED.get(case.name)
    assert other is None or report.marks
    for name in (*METRICS, STORES):
        if name != other and report.counters[name] != counters[name]:
            lines.append(f"{name}: ncu counted {counters[name]}, here {report.counters[name]}")
    assert not lines, "\n".join(lines)


@pytest.mark.gpu
@pytest.mark.parametrize("section", SECTIONS)
def test_this_gpu_writes_what_the_h200_wrote(section):
    """All cases of a section; the counters need ncu and are not read again."""
    lines, seen = [], 0
    instructions = (
        {g.name: g for g in instruction_groups(section)} if section in SECTIONS[:2] else {}
    )
    for case in cases(section):
        note = (
            recorded_notes()["cases"][section].get(case.name, {})
            if (DATA / "recorded.json").exists()
            else {}
        )
        if seen and "error" in note:
            continue
        want, got = expected(section, case), on_gpu(case)
        if instructions:
            found = compare.instruction_errors(instructions[case.name], got[0], want[0])
        else:
            found = compare.output_errors(case, got, want)
        lines += [f"{case.name}: {line}" for line in found]
        seen += 1
    assert seen and not lines, "\n".join(lines)
