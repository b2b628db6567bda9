"""What is worked out from an answer's text or run alone: said where it holds, else nothing."""

import functools

import pytest

from helpers.exercises import EXERCISES, exercise
from helpers.exercises.answer import kernel_of
from helpers.exercises.clues.certain import certain
from helpers.exercises.clues.parities import of_the_parities
from helpers.exercises.clues.row_lengths import of_the_rows
from helpers.exercises.clues.tiles_left import part_stored
from helpers.exercises.comparing import Behaviour, root_of_d
from helpers.exercises.small_changes.repairs import repairs
from helpers.exercises.small_changes.toward import names_of_its_own, unused_then
from helpers.exercises.trial import given, simulate
from helpers.panels.difference import difference

FREE = "mbarrier_wait(&empty[stage], 1 - t / STAGES % 2);"
THERE = "mbarrier_wait(&full[stage], t / STAGES % 2);"


def changed(name: str, *edits: tuple[str, str]) -> str:
    text = exercise(name).solution
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


PARITIES = {
    "the other one": (
        [(THERE, "const int round = t / STAGES; mbarrier_wait(&full[stage], (round + 1) & 1);")],
        "at full is the other one for every tile",
    ),
    "of its own round, where it waits": (
        [(FREE, "if (t >= STAGES) mbarrier_wait(&empty[stage], t / STAGES % 2);")],
        "at empty is the other one for every tile",
    ),
    "of the tile, twice": (
        [(FREE, "mbarrier_wait(&empty[stage], (t + 1) % 2);"), (THERE, "mbarrier_wait(&full[stage],"
                                                                       " t % 2);")],
        "at empty and of that at full changes with every tile",
    ),
    "of the place": ([(THERE, "mbarrier_wait(&full[stage], stage % 2);")], "always the same"),
    "a tile too soon": (
        [(THERE, "mbarrier_wait(&full[stage], (t + 1) / STAGES % 2);")],
        "it has to change where place 0 comes again",
    ),
    "right": ([], ""),
    "right in other words": ([(FREE, "mbarrier_wait(&empty[stage], (t / STAGES & 1) ^ 1);")], ""),
    "right but for the first round": (
        [(FREE, "if (t >= STAGES) mbarrier_wait(&empty[stage], (t - STAGES) / STAGES % 2);")],
        "",
    ),
    "exchanged": (
        [(FREE, FREE.replace("empty", "full")), (THERE, THERE.replace("full", "empty"))],
        "",
    ),
    "kept in a variable": ([(THERE, "mbarrier_wait(&full[stage], phase);")], ""),
}  # fmt: skip


@pytest.mark.parametrize("what", PARITIES)
def test_parities_are_worked_out_tile_by_tile(what):
    edits, words = PARITIES[what]
    told = of_the_parities(exercise("11_phases"), changed("11_phases", *edits))
    assert words in told[0] if words else told is None


@pytest.mark.parametrize(("name", "power", "known"), [
    ("05_both_ways", -0.5, True), ("05_both_ways", None, False), ("10_moved", None, False),
])  # fmt: skip
def test_a_root_of_d_is_told_where_it_fits_with_another_d(name, power, known):
    """1/√d of each case; and one half, which is 1/√4, in exercises with d and without one."""
    one = exercise(name)
    cases = [*one.cases, one.unseen("")]
    seen = []
    for case in cases:
        factor = 0.5 if power is None else case["d"] ** power
        arrays = {n: (a * factor).astype("f4") for n, a in given(one, case)[1].items()}
        seen.append(Behaviour(case, arrays))
    output = one.outputs[0]
    want = given(one, cases[0])[1][output]
    wrong = difference(seen[0].arrays[output], want, one.tolerance, name=output)
    assert wrong.kind == "factor"
    assert root_of_d(one, wrong, seen) == known


@pytest.mark.parametrize(("line", "words"), [
    ("pair = (place(row, j) + lane % 4) / 2;", "Lanes 0 and 1 write the same element"),
    ("pair = place(row, j) / 2 + 2 * (lane % 4);", "element 4 of chunk 0 of row 0 with lane 1"),
    ("pair = place(j, row) / 2 + lane % 4;", "row"),
])  # fmt: skip
def test_what_is_right_at_one_place_is_no_example_of_a_fault(line, words):
    one = exercise("09_repair")
    text = changed("09_repair", ("pair = place(row, j) / 2 + lane % 4;", line))
    case = one.cases[0]
    told = certain(one, text, case, kernel_of(one, text, case), lines=True).said
    assert words in told
    assert "writes chunk 0 of row 0, and chunk 0 of row 0" not in told


def test_a_name_of_ones_own_is_not_taken_out_of_what_uses_it():
    old = "S[(size_t)row * N + col] = sum[r][c] / sqrtf((float)d);"
    new = "S[(size_t)row * N + col] = scale * sum[r][c];"
    set_here = "const float scale = 1.0f / (float)d;\n            if (row < N && col < N) S["
    text = changed("05_both_ways", (old, new), ("if (row < N && col < N) S[", set_here))
    own = names_of_its_own(text, exercise("05_both_ways").solution)
    line = text[: text.index("const float scale")].count("\n") + 1
    assert unused_then(own, text, text.replace(new, old)) == {line}
    told = functools.reduce(lambda a, b: a + b, repairs(text, [line], ["N", "d"]))
    assert "A square root is missing in the line that sets scale." in {one.said for one in told}


V_LOOP = "for (int j = tx; j < DEPTH; j += ROWS) {"
FLOATS = "r = *(const float2*)&s_K[tx * pitch + k];"
ROWS = {
    "another array's rows": (
        "03_rectangle", "V[(size_t)(i + j) * d + col]", "V[(i + j) * N + col]",
        "A row of V has d elements, and the index takes it to have N",
    ),
    "another tile's rows": (
        "03_rectangle", "s_V[j][ty] = ", "s_V[j / DEPTH][j % DEPTH] = ",
        "A row of s_V has COLS elements",
    ),
    "shares that overlap": (
        "03_rectangle", V_LOOP,
        "for (int n = 0; n < DEPTH / COLS; n++) { const int j = tx * (DEPTH / ROWS) + n;",
        "they go past their part",
    ),
    "floats of a pointer to vectors": (
        "07_float2", FLOATS,
        "const float2* k2 = reinterpret_cast<const float2*>(s_K);\nr = k2[tx * pitch + k];",
        "k2 points to float2, and its index counts floats: a row of s_K has 18 floats",
    ),
    "vectors of a pointer to vectors": (
        "07_float2", FLOATS, "const float2* k2 = (const float2*)s_K; r = k2[tx * 9 + k / 2];", "",
    ),
    "two pitches": (
        "07_float2", FLOATS,
        "const float* other = s_K + tx * 16;\nr = ((const float2*)other)[k / 2];",
        "stores rows of s_K 18 elements apart",
    ),
    "right": ("03_rectangle", V_LOOP, V_LOOP, ""),
    "right shares": (
        "03_rectangle", V_LOOP,
        "for (int n = 0; n < DEPTH / ROWS; n++) { const int j = tx * (DEPTH / ROWS) + n;", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ROWS)
def test_rows_are_as_long_as_they_are_declared_or_kept(what):
    name, old, new, words = ROWS[what]
    one = exercise(name)
    told = of_the_rows(one, changed(name, (old, new)), one.cases[0])
    assert words in told.said if words else told is None


def test_no_solution_has_rows_of_another_length():
    for one in EXERCISES:
        assert of_the_rows(one, one.solution, one.cases[0]) is None, one.name
        assert of_the_parities(one, one.solution) is None, one.name


REPAIRED = {
    "one lane": ("m = fmaxf(m, __shfl_down_sync(~0u, m, stride));", "Only lane 0 gets the result"),
    "one too far": ("write = write == STAGES ? 0 : write + 1;", "write goes on to STAGES before"),
    "zeros": ("if (i < N) {\n    s_P[i] = P[i];\n}", "there s_P holds what it held before"),
}


@pytest.mark.parametrize("what", REPAIRED)
def test_what_a_repair_says(what):
    code, words = REPAIRED[what]
    text = f"int write = 0;\n{code}\n"
    likely, _ = repairs(text, range(1, 6), ["N", "STAGES"])
    assert any(words in one.said for one in likely)


def test_how_much_of_a_tile_is_stored_is_counted():
    """Columns 0 to 7 of 32 of a tile with 16 rows; and all of them."""
    name, one = "03_rectangle", exercise("03_rectangle")
    case = one.cases[0]
    loop = "for (int j = ty; j < DEPTH; j += COLS) {"
    text = changed(name, (loop, "for (int j = ty; j < COLS; j += COLS) {"))
    outcome = simulate(one, case, kernel_of(one, text, case), sanitize=True)
    finding = next(f for f in outcome.report.findings if f.kind == "uninitialised")
    said, lines = part_stored(one, text, case, kernel_of(one, text, case), finding)
    assert "s_P has 512 elements, and the threads of a block store 128 of them" in said
    assert "s_P[tx][j] = " in text.split("\n")[lines[0] - 1]
    right = kernel_of(one, one.solution, case)
    assert part_stored(one, one.solution, case, right, finding) is None
