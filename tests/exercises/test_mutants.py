"""Kernels with one small change each: the checks tell every one that can give wrong results.

`python -m tests.mutants` judges all of them and writes tests/mutants/table/. Here the table is
held against the kernels as they are, and a sample of it is judged again.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest
from chapter_cases import drafts, trials
from mutants import survivors, table
from mutants.generate import FILES, HOPPER_HEADER, KINDS, all_mutants, shared_lines
from mutants.hopper_patterns import HOPPER_KINDS
from mutants.judge import SAME, SLOWER, SURVIVED, all_kernels, alone, error_of, judge, run

from helpers.kernels import KERNELS
from helpers.simulator.compile.source_text import mask

ROWS = table.load()
# A draft's kernels have no table as long as they change every day; their mutants are judged here.
UNJUDGED = {file for file in FILES if file[:2] in drafts() and not table.table_of(file).exists()}
JUDGED = [m for m in all_mutants() if m.file not in UNJUDGED]
# Their launches take longest: `python -m tests.mutants` judges all, and here a few stand for them.
LONG = tuple(f for f in FILES if re.match("11[b-g]_", f))
OF_LONG = ("proxy", "registers", "group", "phase", "group", "stage")  # of each, what is judged
AGAIN = "judge them with `python -m tests.mutants --missing`, and all of them if checks changed"


def test_the_table_has_the_mutants_of_the_kernels_as_they_are():
    now, then = {table.identity(m) for m in JUDGED}, {r.mutant for r in ROWS}
    assert now - then == set(), f"mutants that are not in the table: {AGAIN}"
    assert then - now == set(), f"rows whose mutant is no longer made: {AGAIN}"
    assert len(ROWS) == len(then) == len(JUDGED) >= 150
    assert {r.kind for r in ROWS} == set(KINDS)


def test_survivors_are_explained_and_explanations_used():
    left = [r for r in ROWS if r.verdict == SURVIVED]
    assert [r.key for r in left if not survivors.reason(r)] == []
    for one in survivors.reasons():
        used = [r for r in left if survivors.fits(one, r)]
        assert used, f"no survivor is explained by {one}"
        assert len(one.why) > 40 and one.why.endswith(".")
        if one.same_program:
            assert all(SAME in r.also for r in used), one
    for r in left:
        assert sum(survivors.fits(one, r) for one in survivors.reasons()) == 1, r.key


def test_a_draft_without_a_table_has_no_survivor_that_is_not_explained():
    for mutant in all_mutants():
        if mutant.file in UNJUDGED:
            row = table.row(mutant, judge(mutant))
            assert row.verdict != SURVIVED or survivors.reason(row), row.key


def test_what_may_be_lost_without_a_wrong_result():
    """No barrier; and of what only costs time, the counters say what it costs."""
    assert [r.key for r in ROWS if r.kind == "barrier" and r.verdict in (SURVIVED, SLOWER)] == []
    for r in ROWS:
        assert (r.verdict == SLOWER) == bool(r.said), r.key
    padding = next(r for r in ROWS if r.kernel == "07_padded.cu" and r.after.endswith("TILE + 0];"))
    assert padding.verdict == SLOWER and "shared_load_wavefronts" in padding.said


def code(file):
    return mask((KERNELS / file).read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", [f for f in FILES if f != HOPPER_HEADER])
def test_nothing_is_forgotten(file):
    """Counted in the text by other means: each barrier, index, guard and path has its mutants."""
    own = Counter((m.line, m.kind) for m in all_mutants() if m.file == file)
    assert own
    judged_before = shared_lines(file)
    for number, line in enumerate(code(file).split("\n"), 1):
        if line.strip() in judged_before:
            continue
        if re.search(r"^\s*(__sync\w+|cp_async_(wait|commit)).*\);", line):
            assert own[number, "barrier"] >= 1, line
        if re.search(r"^\s*\w+(\[[^\]]+\])+ \+?= ", line) or "threadIdx" in line:
            if "__global__" not in line:
                assert own[number, "index"] + own[number, "loop"] >= 1, line
        # of the mask at a tile's edge there is one: a wider one masks what is masked anyway
        guards = len(re.findall(r"(?:if \(|(?<!CAUSAL )&& |= )(?:\w+ \+ )*\w+ < \w+", line))
        if guards and "for (" not in line:
            assert own[number, "guard"] >= 2 * guards, line
        if re.search(r"for \(int", line):
            assert own[number, "loop"] == 3, line
        if "place(row" in line and "int place" not in line:
            assert own[number, "swizzle"] >= 1, line
        if file.startswith("11") and re.match(
            r"\s*(m?barrier_|wgmma_|fence_|tma_store_|\w+_registers<).*;", line
        ):
            assert any(own[number, kind] for kind in HOPPER_KINDS), line


@pytest.mark.parametrize("kernel", all_kernels(), ids=lambda k: f"{k[0][:2]}-{k[1]}")
def test_kernels_themselves_are_right_and_have_no_finding(kernel):
    few = trials(*kernel)[:1] if kernel[0] in LONG else trials(*kernel)
    for number, trial in enumerate(few):
        assert run(KERNELS, trial) is None, trial.label
        if number == 0 and kernel[0] not in LONG:  # far from the limit: that can be strict
            error, limit = error_of(KERNELS, trial, "warps")
            assert error <= limit / 3


def test_a_kernel_alone_is_the_same_program():
    """What the judge leaves to the compiler of a file with several kernels."""
    text = (KERNELS / "02_naive.cu").read_text(encoding="utf-8")
    left = alone(text, "softmax")
    assert left.count('extern "C" __global__ void softmax(') == 1
    assert left.count("template <int> __global__ void ") == 2
    assert left.count("\n") == text.count("\n")


def sample():
    """Every barrier, and one mutant of each kind and file that the checks tell at once.

    Of each file in LONG only one: of what is Hopper's own, and of another kind than in the others.
    """
    rows = {r.mutant: r for r in ROWS}
    kept, seen = [], set()
    for mutant in all_mutants():
        row = rows.get(table.identity(mutant))
        group = mutant.file, mutant.kind
        if row is None or (row.verdict in (SURVIVED, SLOWER) and "toy" not in mutant.file):
            continue
        if mutant.file in LONG:
            number = LONG.index(mutant.file)
            wanted = mutant.kind == OF_LONG[number] and group not in seen
        else:
            wanted = mutant.kind == "barrier" or group not in seen
        if wanted:
            seen.add(group)
            kept.append(pytest.param(mutant, row, id=f"{mutant.file[:2]}-{mutant.line}-{row.kind}"))
    return kept


@pytest.mark.parametrize(("mutant", "row"), sample())
def test_the_verdict_is_that_of_the_table(mutant, row):
    judged = judge(mutant)
    assert (judged.verdict, judged.also) == (row.verdict, row.also), judged.said


def test_the_sample_has_every_kernel_and_kind():
    chosen = [p.values[0] for p in sample()]
    assert {m.file for m in chosen} == set(FILES) - UNJUDGED
    assert {m.kind for m in chosen} == set(KINDS)
    barriers = [m for m in JUDGED if m.kind == "barrier" and m.file not in LONG]
    assert [m for m in barriers if m not in chosen] == []
