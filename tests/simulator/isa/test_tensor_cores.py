"""Matrix instructions of a warp, against the manual's formulas, float64 and an H200."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from helpers.simulator.errors import SimulatorError
from helpers.simulator.isa.tensor import matrix_moves, mma_fragments, tensor_cores

DATA = Path(__file__).parents[2] / "data"
LANES = range(32)

# Fragment layouts as the PTX ISA manual writes them, one function (i, groupID, threadID_in_group)
# -> (row, column) for each figure.
MANUAL = {
    ("m16n8k16", "f16"): {
        "a": lambda i, g, t: (
            g if 0 <= i < 2 or 4 <= i < 6 else g + 8,
            t * 2 + (i & 1) if i < 4 else t * 2 + (i & 1) + 8,
        ),
        "b": lambda i, g, t: (t * 2 + (i & 1) if i < 2 else t * 2 + (i & 1) + 8, g),
    },
    ("m16n8k8", "f16"): {
        "a": lambda i, g, t: (g if i < 2 else g + 8, t * 2 + (i & 1)),
        "b": lambda i, g, t: (t * 2 + i, g),
    },
    ("m16n8k4", "tf32"): {
        "a": lambda i, g, t: (g if i == 0 else g + 8, t),
        "b": lambda i, g, t: (t, g),
    },
    ("m16n8k8", "tf32"): {
        "a": lambda i, g, t: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
        "b": lambda i, g, t: (t if i == 0 else t + 4, g),
    },
    ("m8n8k16", "s8"): {
        "a": lambda i, g, t: (g, t * 4 + i),
        "b": lambda i, g, t: (t * 4 + i, g),
    },
    ("m16n8k16", "s8"): {
        "a": lambda i, g, t: (g if i < 4 else g + 8, t * 4 + (i & 3)),
        "b": lambda i, g, t: (t * 4 + i, g),
    },
    ("m16n8k32", "s8"): {
        "a": lambda i, g, t: (
            g if 0 <= i < 4 or 8 <= i < 12 else g + 8,
            t * 4 + (i & 3) if i < 8 else t * 4 + (i & 3) + 16,
        ),
        "b": lambda i, g, t: (t * 4 + (i & 3) if i < 4 else t * 4 + (i & 3) + 16, g),
    },
    ("m8n8k4", "f64"): {"a": lambda i, g, t: (g, t), "b": lambda i, g, t: (t, g)},
    ("m16n8k4", "f64"): {
        "a": lambda i, g, t: (g if i == 0 else g + 8, t),
        "b": lambda i, g, t: (t, g),
    },
    ("m16n8k8", "f64"): {
        "a": lambda i, g, t: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
        "b": lambda i, g, t: (t if i == 0 else t + 4, g),
    },
    ("m16n8k16", "f64"): {
        "a": lambda i, g, t: (g if i % 2 == 0 else g + 8, (i // 2) * 4 + t),
        "b": lambda i, g, t: (i * 4 + t, g),
    },
}
for _shape, _wide, _same in (
    ("m16n8k16", "f16", "bf16"),
    ("m16n8k8", "f16", "bf16"),
    ("m8n8k16", "s8", "u8"),
    ("m16n8k16", "s8", "u8"),
    ("m16n8k32", "s8", "u8"),
):
    MANUAL[_shape, _same] = MANUAL[_shape, _wide]


def manual_c(i, g, t):
    return (g if i < 2 else g + 8, t * 2 + (i & 1))


def sizes(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def to_fragments(matrix: np.ndarray, formula) -> np.ndarray:
    """A matrix (warps, rows, columns) as elements (warps, elements, 32), lane by lane."""
    count = matrix.shape[1] * matrix.shape[2] // 32
    out = np.empty((len(matrix), count, 32), matrix.dtype)
    for i in range(count):
        for lane in LANES:
            row, column = formula(i, lane // 4, lane % 4)
            out[:, i, lane] = matrix[:, row, column]
    return out


def from_fragments(elements: np.ndarray, formula, rows: int, columns: int) -> np.ndarray:
    out = np.full((len(elements), rows, columns), 99, elements.dtype)
    for i in range(elements.shape[1]):
        for lane in LANES:
            row, column = formula(i, lane // 4, lane % 4)
            out[:, row, column] = elements[:, i, lane]
    return out


def pack(elements: np.ndarray) -> list[np.ndarray]:
    """Elements (warps, elements, 32) as registers: 2 or 4 to a 32-bit one, the first lowest."""
    per = max(1, 4 // elements.dtype.itemsize)
    if per == 1:
        return [np.ascontiguousarray(elements[:, i]) for i in range(elements.shape[1])]
    word = np.dtype(f"u{elements.dtype.itemsize}")
    bits = elements.view(word).astype(np.uint32)
    registers = []
    for at in range(0, elements.shape[1], per):
        register = np.zeros_like(bits[:, 0])
        for j in range(per):
            register |= bits[:, at + j] << np.uint32(8 * elements.dtype.itemsize * j)
        registers.append(register)
    return registers


def bf16(values: np.ndarray) -> np.ndarray:
    """Bits of float32 values that bfloat16 holds exactly."""
    bits = values.astype(np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype(np.uint16)


# ---------------------------------------------------------------- layouts


@pytest.mark.parametrize(("shape", "element"), sorted(MANUAL))
def test_fragment_layouts_are_the_manuals(shape, element):
    m, n, k = sizes(shape)
    for operand, formula, extent in (
        ("a", MANUAL[shape, element]["a"], (m, k)),
        ("b", MANUAL[shape, element]["b"], (k, n)),
        ("c", manual_c, (m, n)),
        ("d", manual_c, (m, n)),
    ):
        rows, columns = mma_fragments.fragment_layout(shape, operand, element)
        assert rows.shape == columns.shape == (extent[0] * extent[1] // 32, 32)
        for i in range(len(rows)):
            for lane in LANES:
                expected = formula(i, lane // 4, lane % 4)
                assert (rows[i, lane], columns[i, lane]) == expected
        places = set(zip(rows.ravel().tolist(), columns.ravel().tolist(), strict=True))
        assert places == {(r, c) for r in range(extent[0]) for c in range(extent[1])}


# ---------------------------------------------------------------- values


FLOAT_FORMS = [
    ("m16n8k16", "f16", "f32"),
    ("m16n8k16", "f16", "f16"),
    ("m16n8k16", "bf16", "f32"),
    ("m16n8k8", "f16", "f32"),
    ("m16n8k8", "f16", "f16"),
    ("m16n8k8", "bf16", "f32"),
    ("m16n8k8", "tf32", "f32"),
    ("m16n8k4", "tf32", "f32"),
]


def run_floats(shape, element, accumulator, a, b, c) -> np.ndarray:
    """D of matrices of float64 (warps, rows, columns), through fragments laid out by hand."""
    manual = MANUAL[shape, element]
    encode = {
        "f16": lambda x: x.astype(np.float16),
        "bf16": bf16,
        "tf32": lambda x: x.astype(np.float32).view(np.uint32),
    }[element]
    c_elements = to_fragments(c.astype(np.float32), manual_c)
    if accumulator == "f16":
        c_elements = c_elements.astype(np.float16)
    d = tensor_cores.mma(
        shape,
        element,
        element,
        accumulator,
        accumulator,
        pack(to_fragments(encode(a), manual["a"])),
        pack(to_fragments(encode(b), manual["b"])),
        pack(c_elements),
    )
    m, n, _ = sizes(shape)
    if accumulator == "f16":
        halves = np.stack(d, axis=1).view(np.float16).reshape(len(a), len(d), 32, 2)
        elements = halves.transpose(0, 1, 3, 2).reshape(len(a), 2 * len(d), 32)
    else:
        assert all(r.dtype == np.float32 for r in d)
        elements = np.stack(d, axis=1)
    return from_fragments(elements, manual_c, m, n).astype(np.float64)


@pytest.mark.parametrize(("shape", "element", "accumulator"), FLOAT_FORMS)
def test_small_integers_are_exact(shape, element, accumulator):
    rng = np.random.default_rng(1)
    m, n, k = sizes(shape)
    a = rng.integers(-9, 10, (5, m, k)).astype(np.float64)
    b = rng.integers(-5, 6, (5, k, n)).astype(np.float64)
    c = rng.integers(-99, 100, (5, m, n)).astype(np.float64)
    d = run_floats(shape, element, accumulator, a, b, c)
    np.testing.assert_array_equal(d, a @ b + c)
    assert np.abs(a @ b).max() > 50


@pytest.mark.parametrize(("shape", "element", "accumulator"), FLOAT_FORMS)
def test_random_matrices_are_near_float64(shape, element, accumulator):
    """Cut off 25 bits below the largest product: an error of 2^-25 of it for every term."""
    rng = np.random.default_rng(2)
    m, n, k = sizes(shape)
    bits = {"f16": 10, "bf16": 7, "tf32": 10}[element]
    scale = 2.0 ** (bits + 1)
    a = np.round(rng.standard_normal((33, m, k)) * scale) / scale
    b = np.round(rng.uniform(-1, 1, (33, k, n)) * scale) / scale
    if element == "bf16":
        a = (a.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32).astype(np.float64)
    else:
        a = a.astype(np.float16).astype(np.float64)
    if element == "bf16":
        b = (b.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32).astype(np.float64)
    else:
        b = b.astype(np.float16).astype(np.float64)
    c = rng.standard_normal((33, m, n)).astype(np.float16).astype(np.float64)
    exact = a @ b + c
    d = run_floats(shape, element, accumulator, a, b, c)
    terms = np.abs(a[:, :, :, None] * b[:, None]).max(axis=2)
    largest = 2 * np.maximum(terms, np.abs(c))
    last = 2.0**-23 if accumulator == "f32" else 2.0**-11
    allowed = largest * (k + 1) * 2.0**-25 + np.abs(exact) * last
    assert (np.abs(d - exact) <= allowed).all()
    if accumulator == "f32":  # cut off, not rounded: mostly nearer to zero than the exact sum
        assert (np.abs(d) <= np.abs(exact)).mean() > 0.6


def exact_model(a, b, c, low_bits: int) -> float:
    """The rule of the module's docstring for one element, in fractions; factors are normal f16."""

    def exponent(x) -> int:
        return max(int(np.frexp(float(x))[1]) - 1, low_bits)

    terms = [
        (Fraction(float(x)) * Fraction(float(y)), exponent(x) + exponent(y))
        for x, y in zip(a, b, strict=True)
        if x != 0 and y != 0
    ]
    if c != 0:
        terms.append((Fraction(float(c)), max(int(np.frexp(float(c))[1]) - 1, -126)))
    if not terms:
        return 0.0
    unit = Fraction(2) ** (max(e for _, e in terms) - 25)
    total = sum(int(term / unit) for term, _ in terms) * unit  # int() cuts towards zero
    if total == 0:
        return 0.0
    magnitude, power = abs(total), 0
    while magnitude >= 2**24:
        magnitude, power = magnitude / 2, power + 1
    while magnitude < 2**23 and power > -149:
        magnitude, power = magnitude * 2, power - 1
    return float(np.copysign(np.ldexp(float(int(magnitude)), power), float(total)))


def test_rule_in_fractions_over_many_warps():
    """More warps than are done at once, with exponents so far apart that the cut matters."""
    rng = np.random.default_rng(3)
    a = (rng.standard_normal((70, 16, 16)) * 2.0 ** rng.integers(-12, 8, (70, 16, 16))).astype(
        np.float16
    )
    b = (rng.standard_normal((70, 16, 8)) * 2.0 ** rng.integers(-12, 8, (70, 16, 8))).astype(
        np.float16
    )
    a[rng.random(a.shape) < 0.2] = 0
    c = (rng.standard_normal((70, 16, 8)) * 2.0 ** rng.integers(-30, 12, (70, 16, 8))).astype(
        np.float32
    )
    d = run_floats(*FLOAT_FORMS[0], *(x.astype(np.float64) for x in (a, b, c)))
    for w in range(70):
        for _ in range(4):
            i, j = rng.integers(0, 16), rng.integers(0, 8)
            assert d[w, i, j] == exact_model(a[w, i], b[w, :, j], c[w, i, j], -14)


def recorded() -> dict[str, np.ndarray]:
    with np.load(DATA / "h200_tensor_cores.npz") as file:
        return {name: file[name] for name in file.files}


def forms_recorded() -> list[str]:
    with np.load(DATA / "h200_tensor_cores.npz") as file:
        return sorted(n[:-2] for n in file.files if n.startswith("m") and n.endswith("/d"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", forms_recorded())
def test_mma_recorded_on_an_h200_to_the_last_bit(form):
    """Narrow, wide and full exponent ranges, subnormals, NaN, infinities, sparse, cancellation."""
    shape, factors, accumulator = form.split("/")
    a_type, _, b_type = factors.partition(".")
    data = recorded()
    a, b, c, expected = (data[f"{form}/{name}"] for name in "abcd")
    dtype = {"f32": np.float32, "s32": np.int32, "f64": np.float64, "f16": np.uint32}[accumulator]
    if accumulator == "f64":
        a, b = a.view(np.float64), b.view(np.float64)
    c = c.view(dtype)
    before = a.copy(), b.copy(), c.copy()
    registers = [[x[:, i] for i in range(x.shape[1])] for x in (a, b, c)]
    d = tensor_cores.mma(shape, a_type, b_type or a_type, accumulator, accumulator, *registers)
    assert all(r.dtype == dtype for r in d)
    got = np.stack(d, axis=1)
    if accumulator == "f64":  # which NaN it is depends on the machine that simulates
        nan = np.isnan(expected.view(np.float64))
        assert (np.isnan(got) == nan).all()
        got[nan] = expected.view(np.float64)[nan]
    np.testing.assert_array_equal(got.view(expected.dtype), expected)
    for now, then in zip((a, b, c), before, strict=True):
        assert now.tobytes() == then.tobytes()


def test_kernel_recorded_on_an_h200():
    """The kernel mma_m16n8k16: C holds its register's number; float64 is off by up to 10 ulp."""
    data = recorded()
    a = data["kernel/a"].view(np.uint32).reshape(4, 32)
    b = data["kernel/b"].view(np.uint32).reshape(2, 32)
    c = [np.full(32, i, np.float32) for i in range(4)]
    d = tensor_cores.mma("m16n8k16", "f16", "f16", "f32", "f32", list(a), list(b), c)
    np.testing.assert_array_equal(np.stack(d).ravel(), data["kernel/d"])


@pytest.mark.parametrize("shape", ["m8n8k16", "m16n8k16", "m16n8k32"])
@pytest.mark.parametrize("types", [("s8", "s8"), ("u8", "u8"), ("s8", "u8"), ("u8", "s8")])
def test_integers_wrap_or_saturate(shape, types):
    rng = np.random.default_rng(4)
    m, n, k = sizes(shape)
    dtypes = [np.int8 if t == "s8" else np.uint8 for t in types]
    a = rng.integers(np.iinfo(dtypes[0]).min, np.iinfo(dtypes[0]).max + 1, (6, m, k))
    b = rng.integers(np.iinfo(dtypes[1]).min, np.iinfo(dtypes[1]).max + 1, (6, k, n))
    a[0], b[0] = np.iinfo(dtypes[0]).max, np.iinfo(dtypes[1]).max
    c = rng.integers(-(2**31), 2**31, (6, m, n))
    c[0] = 2**31 - 1
    registers = (
        pack(to_fragments(a.astype(dtypes[0]), MANUAL[shape, "s8"]["a"])),
        pack(to_fragments(b.astype(dtypes[1]), MANUAL[shape, "s8"]["b"])),
        pack(to_fragments(c.astype(np.int32), manual_c)),
    )
    exact = a @ b + c
    assert (exact > 2**31 - 1).any()
    for saturate in (False, True):
        d = tensor_cores.mma(shape, *types, "s32", "s32", *registers, saturate=saturate)
        got = from_fragments(np.stack(d, axis=1), manual_c, m, n)
        expected = np.clip(exact, -(2**31), 2**31 - 1) if saturate else (
            (exact + 2**31) % 2**32 - 2**31
        )  # fmt: skip
        np.testing.assert_array_equal(got, expected)


def test_leading_axes_broadcast():
    rng = np.random.default_rng(5)
    word = lambda *shape: rng.integers(0, 0x3C00, shape + (2,)).astype(np.uint16)  # noqa: E731
    a = [word(3, 1, 32).view(np.uint32)[..., 0] for _ in range(4)]
    b = [word(5, 32).view(np.uint32)[..., 0] for _ in range(2)]
    c = [rng.standard_normal(32).astype(np.float32) for _ in range(4)]
    d = tensor_cores.mma("m16n8k16", "f16", "f16", "f32", "f32", a, b, c)
    assert [r.shape for r in d] == [(3, 5, 32)] * 4
    for i in range(3):
        for j in range(5):
            alone = tensor_cores.mma(
                "m16n8k16", "f16", "f16", "f32", "f32", [r[i, 0] for r in a], [r[j] for r in b], c
            )
            for one, all_ in zip(alone, d, strict=True):
                np.testing.assert_array_equal(one, all_[i, j])


def test_unknown_forms_are_refused():
    zero = np.zeros(32, np.uint32)
    c = [np.zeros(32, np.float32)] * 4
    with pytest.raises(SimulatorError, match="m16n8k32 with f16"):
        tensor_cores.mma("m16n8k32", "f16", "f16", "f32", "f32", [zero] * 4, [zero] * 2, c)
    with pytest.raises(SimulatorError, match=r"\.f32\.f16\.bf16\.f32"):
        tensor_cores.mma("m16n8k16", "f16", "bf16", "f32", "f32", [zero] * 4, [zero] * 2, c)
    with pytest.raises(SimulatorError, match=r"\.f16\.bf16\.bf16\.f16"):
        tensor_cores.mma("m16n8k16", "bf16", "bf16", "f16", "f16", [zero] * 4, [zero] * 2, c[:2])
    with pytest.raises(SimulatorError, match="takes 4, 2 and 4 registers"):
        tensor_cores.mma("m16n8k16", "f16", "f16", "f32", "f32", [zero] * 2, [zero] * 2, c)
    with pytest.raises(SimulatorError, match="e4m3"):
        mma_fragments.fragment_layout("m16n8k64", "a", "e4m3")
    with pytest.raises(SimulatorError, match="'x'"):
        mma_fragments.fragment_layout("m16n8k16", "x")
    with pytest.raises(SimulatorError, match="not 3"):
        matrix_moves.ldmatrix(np.zeros((32, 16), np.uint8), 3)
    with pytest.raises(SimulatorError, match="not 3"):
        matrix_moves.stmatrix([zero] * 3)


# ---------------------------------------------------------------- moving matrices


def halves_of(row: np.ndarray) -> tuple[int, ...]:
    return struct.unpack("<8H", row.tobytes())


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_ldmatrix_and_stmatrix_lane_by_lane(matrices, transposed):
    """PTX ISA manual: thread l receives row l / 4, elements 2 (l % 4) and the next (or .trans)."""
    rng = np.random.default_rng(6)
    rows = rng.integers(0, 256, (3, 2, 32, 16)).astype(np.uint8)
    registers = matrix_moves.ldmatrix(rows, matrices, transposed)
    assert len(registers) == matrices
    for x in range(3):
        for y in range(2):
            for m in range(matrices):
                tile = [halves_of(rows[x, y, 8 * m + r]) for r in range(8)]
                for lane in LANES:
                    i, j = lane // 4, 2 * (lane % 4)
                    low, high = (
                        (tile[j][i], tile[j + 1][i]) if transposed else (tile[i][j], tile[i][j + 1])
                    )
                    assert registers[m][x, y, lane] == low | high << 16
    stored = matrix_moves.stmatrix(registers, transposed)
    assert stored.shape == rows.shape and stored.dtype == np.uint8
    np.testing.assert_array_equal(stored[..., : 8 * matrices, :], rows[..., : 8 * matrices, :])
    assert not stored[..., 8 * matrices :, :].any()


def test_movmatrix_transposes():
    rng = np.random.default_rng(7)
    register = rng.integers(0, 2**32, (5, 32), dtype=np.uint64).astype(np.uint32)
    moved = matrix_moves.movmatrix_trans(register)
    for before, after in zip(register, moved, strict=True):
        matrix = before.view(np.uint16).reshape(8, 8)
        np.testing.assert_array_equal(after.view(np.uint16).reshape(8, 8), matrix.T)
    np.testing.assert_array_equal(matrix_moves.movmatrix_trans(moved), register)


def test_moves_recorded_on_an_h200():
    data = {k[5:]: v for k, v in recorded().items() if k.startswith("move/")}
    shared = data["smem"].view(np.uint8).reshape(128, 16)
    rows = data["rows"]  # lane l works on the 16 bytes at row rows[l]
    for matrices in (1, 2, 4):
        for suffix in ("", ".trans"):
            transposed = suffix != ""
            loaded = matrix_moves.ldmatrix(shared[rows], matrices, transposed)
            np.testing.assert_array_equal(np.stack(loaded), data[f"ld{matrices}{suffix}"])
            registers = list(data["smem"].reshape(16, 32)[:matrices])
            memory = np.zeros((128, 16), np.uint8)
            used = rows[: 8 * matrices]
            memory[used] = matrix_moves.stmatrix(registers, transposed)[: 8 * matrices]
            expected = data[f"st{matrices}{suffix}"]
            np.testing.assert_array_equal(memory.view(np.uint32).ravel(), expected)
    np.testing.assert_array_equal(matrix_moves.movmatrix_trans(data["smem"][:32]), data["mov"])
