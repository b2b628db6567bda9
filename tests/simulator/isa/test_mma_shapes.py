"""mma.sync of every shape and type of sm_80 to sm_90, written as inline PTX, against NumPy.

Who holds which element is written here as the PTX ISA manual writes it (9.0, "Matrix Fragments for
mma.m…"), a function of the element's number i and the lane for each figure.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from helpers import simulator
from helpers.simulator.errors import SimulatorError

LANE = np.arange(32)
G, T = LANE // 4, LANE % 4


@dataclass(frozen=True)
class Type:
    """A type of PTX: elements a register, in NumPy, the letter of inline assembly, a C type."""

    width: int
    dtype: object
    letter: str = "r"
    register: str = "unsigned"


TYPES = {
    "f16": Type(2, np.float16),
    "bf16": Type(2, ml_dtypes.bfloat16),
    "tf32": Type(1, np.float32),
    "e4m3": Type(4, ml_dtypes.float8_e4m3fn),
    "e5m2": Type(4, ml_dtypes.float8_e5m2),
    "s8": Type(4, np.int8),
    "u8": Type(4, np.uint8),
    "s4": Type(8, np.int8),
    "u4": Type(8, np.uint8),
    "b1": Type(32, np.uint8),
    "f64": Type(1, np.float64, "d", "double"),
    "f32": Type(1, np.float32, "f", "float"),
    "s32": Type(1, np.int32, "r", "int"),
}


@dataclass(frozen=True)
class Form:
    shape: str
    a: str
    b: str
    c: str
    d: str = ""
    extra: str = ""  # .satfinite
    end: str = ""  # .and.popc, .rz
    layouts: tuple[str, str] = ("row", "col")

    @property
    def sizes(self) -> tuple[int, int, int]:
        m, rest = self.shape[1:].split("n")
        n, k = rest.split("k")
        return int(m), int(n), int(k)

    @property
    def types(self) -> tuple[str, str, str, str]:
        return self.d or self.c, self.a, self.b, self.c

    @property
    def instruction(self) -> str:
        types = ".".join(self.types)
        layouts = ".".join(self.layouts)
        return f"mma.sync.aligned.{self.shape}.{layouts}{self.extra}.{types}{self.end}"

    @property
    def name(self) -> str:
        return self.instruction.replace(".", "_")


def same(shapes: str, pairs: str, sums: str, **more) -> list[Form]:
    return [
        Form(shape, *pair.split("*"), c, **more)
        for shape in shapes.split()
        for pair in pairs.split()
        for c in sums.split()
    ]


FORMS = [
    *same("m16n8k8 m16n8k16", "f16*f16", "f32 f16"),
    *same("m16n8k8 m16n8k16", "bf16*bf16", "f32"),
    *same("m16n8k4 m16n8k8", "tf32*tf32", "f32"),
    *same("m16n8k16 m16n8k32", "e4m3*e4m3 e4m3*e5m2 e5m2*e4m3 e5m2*e5m2", "f32 f16"),
    *same("m8n8k16 m16n8k16 m16n8k32", "s8*s8 u8*s8 s8*u8 u8*u8", "s32"),
    *same("m8n8k32 m16n8k32 m16n8k64", "s4*s4 u4*s4 s4*u4 u4*u4", "s32"),
    *same("m16n8k32", "s8*u8", "s32", extra=".satfinite"),
    *same("m16n8k64", "u4*s4", "s32", extra=".satfinite"),
    *same("m8n8k128 m16n8k128 m16n8k256", "b1*b1", "s32", end=".xor.popc"),
    *same("m8n8k128 m16n8k128 m16n8k256", "b1*b1", "s32", end=".and.popc"),
    *same("m8n8k4 m16n8k4 m16n8k8 m16n8k16", "f64*f64", "f64"),
    *(Form("m8n8k4", "f64", "f64", "f64", end=f".{mode}") for mode in ("rn", "rz", "rm", "rp")),
    *(
        Form("m8n8k4", "f16", "f16", c, d, layouts=(la, lb))
        for c, d in (("f32", "f32"), ("f16", "f16"), ("f16", "f32"))
        for la in ("row", "col")
        for lb in ("row", "col")
    ),
]


# ---------------------------------------------------------------- layouts


def places(form: Form, operand: str) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each element i of each lane, (elements, 32)."""
    m, n, k = form.sizes
    if (form.shape, form.a) == ("m8n8k4", "f16"):
        return quad_pairs(form, operand)
    if operand == "c":
        i = np.arange(m * n // 32)[:, None]
        return G + 8 * (i // 2), 2 * T + i % 2
    w = TYPES[form.a].width
    if operand == "b":
        i = np.arange(k * n // 32)[:, None]
        return w * T + i % w + 4 * w * (i // w), G + 0 * i
    i = np.arange(m * k // 32)[:, None]
    tall = m // 8
    return G + 8 * (i // w % tall), w * T + i % w + 4 * w * (i // (w * tall))


def quad_pairs(form: Form, operand: str) -> tuple[np.ndarray, np.ndarray]:
    """m8n8k4: of one of the four products, which lanes t and t + 16 of a quad make."""
    half = 4 * (LANE >= 16)
    if operand == "c":
        i = np.arange(8)[:, None]
        if form.c == "f16":
            return T + half + 0 * i, i + 0 * LANE
        return wide_quad_pairs(i)
    i = np.arange(4)[:, None]
    along = T + half + 0 * i, i + 0 * LANE  # the lane's row, by elements
    across = i + half, T + 0 * i
    by_lane = {"a": "row", "b": "col"}[operand] == form.layouts["ab".index(operand)]
    row, column = along if by_lane else across
    return (row, column) if operand == "a" else (column, row)


def wide_quad_pairs(i) -> tuple[np.ndarray, np.ndarray]:
    return (LANE & 1) + (i & 2) + 4 * (LANE >= 16), (i & 4) + (LANE & 2) + (i & 1)


def product_of_lane(form: Form) -> np.ndarray:
    """Which of an instruction's products a lane works on."""
    return LANE % 16 // 4 if (form.shape, form.a) == ("m8n8k4", "f16") else 0 * LANE


def to_registers(matrices: np.ndarray, form: Form, operand: str, kind: str) -> np.ndarray:
    """Matrices (products, rows, columns) as registers (registers, 32)."""
    rows, columns = places(form, operand)
    elements = matrices[product_of_lane(form), rows, columns].astype(TYPES[kind].dtype)
    width = TYPES[kind].width if operand != "c" or kind == "f16" else 1
    if width == 1:
        return elements
    bits = 32 // width
    if bits >= 8:
        elements = elements.view(f"u{bits // 8}")
    parts = (elements.astype(np.uint64) & ((1 << bits) - 1)).reshape(-1, width, 32)
    return (parts << (bits * np.arange(width, dtype=np.uint64))[:, None]).sum(1).astype(np.uint32)


def from_registers(registers: np.ndarray, form: Form) -> np.ndarray:
    m, n, _ = form.sizes
    d = form.d or form.c
    rows, columns = places(form, "c")
    if d == "f16":
        halves = registers.view(np.float16).reshape(-1, 32, 2)
        registers = halves.transpose(0, 2, 1).reshape(-1, 32)
    elif (form.shape, form.a, form.c) == ("m8n8k4", "f16", "f16"):
        rows, columns = wide_quad_pairs(np.arange(8)[:, None])
    out = np.full((int(product_of_lane(form).max()) + 1, m, n), 99, registers.dtype)
    out[product_of_lane(form), rows, columns] = registers
    return out


# ---------------------------------------------------------------- the kernels


def kernel(form: Form) -> str:
    """One warp that loads its registers, multiplies, and stores them."""
    d_type, a_type, _, c_type = form.types
    numbers = dict(zip("dabc", registers_of(form), strict=True))
    texts, at = {}, 0
    for name, count in numbers.items():
        texts[name] = "{" + ", ".join(f"%{at + j}" for j in range(count)) + "}"
        at += count
    ins, out, sums = TYPES[a_type], TYPES[d_type], TYPES[c_type]
    kinds = {"d": out, "a": ins, "b": ins, "c": sums}
    given = {
        name: ", ".join(f'"{kinds[name].letter}"({name}[{j}])' for j in range(numbers[name]))
        for name in "abc"
    }
    result = ", ".join(f'"={out.letter}"(d[{j}])' for j in range(numbers["d"]))
    loads = " ".join(
        f"{kinds[x].register} {x}[{numbers[x]}]; "
        f"for (int j = 0; j < {numbers[x]}; j++) {x}[j] = p{x}[32 * j + threadIdx.x];"
        for x in "abc"
    )
    return f"""extern "C" __global__ void {form.name}(
        const {ins.register}* pa, const {ins.register}* pb, const {sums.register}* pc,
        {out.register}* pd) {{
      {loads} {out.register} d[{numbers["d"]}];
      asm volatile("{form.instruction} {texts["d"]}, {texts["a"]}, {texts["b"]}, {texts["c"]};"
        : {result} : {given["a"]}, {given["b"]}, {given["c"]});
      for (int j = 0; j < {numbers["d"]}; j++) pd[32 * j + threadIdx.x] = d[j];
    }}"""


def registers_of(form: Form) -> tuple[int, int, int, int]:
    """Of D, A, B and C."""
    m, n, k = form.sizes
    each = 4 if (form.shape, form.a) == ("m8n8k4", "f16") else 1  # products
    width = TYPES[form.a].width
    d, c = (m * n * each // 32 // (2 if kind == "f16" else 1) for kind in (form.types[0], form.c))
    return d, m * k * each // 32 // width, k * n * each // 32 // width, c


# One text for all, compiled once.
SOURCE = "\n".join(map(kernel, FORMS))


def run(form: Form, a, b, c) -> np.ndarray:
    d_type, a_type, b_type, c_type = form.types
    d_count = registers_of(form)[0]
    d = np.zeros((d_count, 32), np.uint32 if d_type == "f16" else TYPES[d_type].dtype)
    simulator.launch(
        SOURCE,
        form.name,
        1,
        32,
        (
            np.ascontiguousarray(to_registers(a, form, "a", a_type)),
            np.ascontiguousarray(to_registers(b, form, "b", b_type)),
            np.ascontiguousarray(to_registers(c, form, "c", c_type)),
            d,
        ),
        count=False,
    )
    return from_registers(d, form)


def values(form: Form, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integers that every type of the form holds, so that results are exact."""
    m, n, k = form.sizes
    each = int(product_of_lane(form).max()) + 1
    span = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}
    a, b = (
        rng.integers(*span.get(kind, (-4, 5)), (each, *shape))
        for kind, shape in ((form.a, (m, k)), (form.b, (k, n)))
    )
    c = rng.integers(-99, 100, (each, m, n))
    if form.c == "s32" and form.a != "b1":
        c = rng.choice([2**31 - 1, -(2**31), 5], (each, m, n))
    return a, b, c


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_every_shape_and_type(form):
    a, b, c = values(form, np.random.default_rng(3))
    if form.a == "b1":
        together = np.bitwise_xor if "xor" in form.end else np.bitwise_and
        exact = together(a[:, :, :, None], b[:, None]).sum(2) + c
    else:
        exact = a @ b + c
    if form.c == "s32":
        clipped = np.clip(exact, -(2**31), 2**31 - 1)
        exact = clipped if form.extra else (exact + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(run(form, a, b, c).astype(np.float64), exact)


# ---------------------------------------------------------------- rounding


def test_double_rounds_once_a_step_in_the_asked_direction():
    rng = np.random.default_rng(4)
    a, b, c = rng.standard_normal((1, 8, 4)), rng.standard_normal((1, 4, 8)), np.zeros((1, 8, 8))
    d = {mode: run(next(f for f in FORMS if f.end == f".{mode}"), a, b, c) for mode in
         ("rn", "rz", "rm", "rp")}  # fmt: skip
    assert (d["rm"] <= d["rn"]).all() and (d["rn"] <= d["rp"]).all()
    assert (d["rm"] < d["rp"]).mean() > 0.9
    assert (np.abs(d["rz"]) <= np.abs(d["rp"])).any()
    np.testing.assert_allclose(d["rn"], a @ b, rtol=1e-13, atol=1e-15)


def test_bytes_round_as_two_half_products_and_a_sum():
    """C is added at the end, to a sum that began at zero: a large C takes the small part's bits
    once only, and rounds to nearest, where the tensor core would cut off.
    """
    form = next(
        f for f in FORMS if f.shape == "m16n8k32" and f.types[1:] == ("e4m3", "e5m2", "f32")
    )
    rng = np.random.default_rng(5)
    a = rng.choice([0.5, 1.25, -1.75, 3.5], (1, 16, 32))
    b = rng.choice([0.25, 1.5, -0.75, 2.0], (1, 32, 8))
    c = np.full((1, 16, 8), 2.0**22 + 0.5)
    products = (a @ b).astype(np.float32)
    assert (products == a @ b).all()  # exact so far
    np.testing.assert_array_equal(run(form, a, b, c), products + c.astype(np.float32))


def test_a_small_form_of_volta_adds_pairs():
    """float16 sums: C + (a0 b0 + a1 b1) + (a2 b2 + a3 b3) in float32, and rounded at the end."""
    form = next(f for f in FORMS if f.shape == "m8n8k4" and f.types == ("f16",) * 4)
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal((4, *s)).astype(np.float16) for s in ((8, 4), (4, 8)))
    c = rng.standard_normal((4, 8, 8)).astype(np.float16)
    total = c.astype(np.float32)
    for k in (0, 2):
        # of two float16 products both are exact in float64, and so is nearly every sum
        pair = a[:, :, k : k + 2].astype(np.float64) @ b[:, k : k + 2].astype(np.float64)
        total = total + pair.astype(np.float32)
    np.testing.assert_array_equal(run(form, a, b, c), total.astype(np.float16))


# ---------------------------------------------------------------- ldmatrix and stmatrix


MOVES = """
extern "C" __global__ void k(const unsigned short* in, unsigned* registers, unsigned short* out) {
  __shared__ __align__(16) unsigned short tile[32 * 24], back[32 * 24];
  for (int i = threadIdx.x; i < 32 * 24; i += 32) { tile[i] = in[i]; back[i] = 0; }
  __syncthreads();
  unsigned r[COUNT];
  SPACE from = ADDRESS(tile + 24 * threadIdx.x), to = ADDRESS(back + 24 * threadIdx.x);
  asm volatile("ldmatrix.sync.aligned.m8n8.xCOUNT.FORM.b16 {REGISTERS}, [%COUNT];"
    : OUTPUTS : "LETTER"(from));
  for (int i = 0; i < COUNT; i++) registers[32 * i + threadIdx.x] = r[i];
  asm volatile("stmatrix.sync.aligned.m8n8.xCOUNT.FORM.b16 [%0], {SOURCES};"
    :: "LETTER"(to), INPUTS : "memory");
  __syncthreads();
  for (int i = threadIdx.x; i < 32 * 24; i += 32) out[i] = back[i];
}"""


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("form", ["shared", "trans.shared", "trans.shared::cta", ""])
def test_every_form_of_ldmatrix_and_stmatrix(count, form):
    """Row r of matrix m is at the address of lane 8 m + r; lane 4 r + c gets elements 2 c, 2 c + 1.

    With .trans, those of column r. Without a state space, addresses are generic.
    """
    shared, numbers = "shared" in form, range(count)
    code = MOVES
    for name, text in {
        "SPACE": "unsigned" if shared else "size_t",
        "ADDRESS": "(unsigned)__cvta_generic_to_shared" if shared else "(size_t)",
        "LETTER": "r" if shared else "l",
        ".FORM": f".{form}" if form else "",
        "REGISTERS": ", ".join(f"%{i}" for i in numbers),
        "SOURCES": ", ".join(f"%{i + 1}" for i in numbers),
        "OUTPUTS": ", ".join(f'"=r"(r[{i}])' for i in numbers),
        "INPUTS": ", ".join(f'"r"(r[{i}])' for i in numbers),
        "COUNT": str(count),
    }.items():
        code = code.replace(name, text)
    given = np.random.default_rng(9).integers(0, 2**16, (32, 24)).astype(np.uint16)
    registers, back = np.zeros((count, 32), np.uint32), np.zeros((32, 24), np.uint16)
    report = simulator.launch(code, "k", 1, 32, (given, registers, back))
    matrices = given[: 8 * count, :8].reshape(count, 8, 8)
    expected = matrices.transpose(0, 2, 1) if "trans" in form else matrices
    halves = registers.view(np.uint16).reshape(count, 8, 8)
    np.testing.assert_array_equal(halves, expected)
    np.testing.assert_array_equal(back[: 8 * count, :8], given[: 8 * count, :8])
    assert not back[8 * count :].any() and not back[:, 8:].any()
    # rows of 48 bytes: eight of them lie in different banks
    assert report.counters["ldmatrix_instructions"] == 1
    assert report.counters["stmatrix_instructions"] == 1
    assert report.counters["shared_load_bank_conflicts"] == 0


# ---------------------------------------------------------------- guards and refusals


def test_a_guarded_product_leaves_the_other_warps_alone():
    code = """extern "C" __global__ void k(float* d) {
      unsigned a = 0x3c003c00; float x = 7;
      asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 32;"
        "@p mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
        " {%0, %0, %0, %0}, {%2, %2}, {%2}, {%0, %0, %0, %0}; }"
        : "+f"(x) : "r"(threadIdx.x), "r"(a));
      d[threadIdx.x] = x; }"""
    d = np.zeros(64, np.float32)
    simulator.launch(code, "k", 1, 64, (d,))
    np.testing.assert_array_equal(d, [15.0] * 32 + [7.0] * 32)


@pytest.mark.parametrize(("block", "lanes"), [(48, 32), (48, 16), (16, 16), (64, 8)])
def test_half_a_warp_multiplies_nothing(block, lanes):
    code = """extern "C" __global__ void k(float* d, int lanes) {
      unsigned a = 0x3c003c00; float x = 7;
      if (threadIdx.x < lanes)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
          " {%0, %0, %0, %0}, {%1, %1}, {%1}, {%0, %0, %0, %0};" : "+f"(x) : "r"(a));
      d[threadIdx.x] = x; }"""
    args = (np.zeros(64, np.float32), np.int32(lanes))
    if lanes == 32:
        simulator.launch(code, "k", 1, block, args)
        np.testing.assert_array_equal(args[0][:block], [15.0] * 32 + [7.0] * 16)
        return
    with pytest.raises(SimulatorError, match=f"here {lanes} of them run it") as caught:
        simulator.launch(code, "k", 1, block, args)
    assert caught.value.kind == "barrier"


@pytest.mark.parametrize(
    ("instruction", "says"),
    [
        ("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f, f, f, f}, {r, r}, {r, r}, "
         "{f, f, f, f}, r, 0x0", "sparse"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {f, f, f, f}, {r, r, r, r}, {r, r}, "
         "{r, r}", "f16 factors need f16 factors and f32 or f16 for both C and D"),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {r, r}, [r]", "only m8n8 matrices"),
        ("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {r}, [r]", "only m8n8 matrices"),
        ("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [r], {r}", "only m8n8 matrices"),
    ],
)  # fmt: skip
def test_what_hopper_has_not_is_refused(instruction, says):
    head, _, operands = instruction.partition(" ")
    text = operands.replace("f", "%0").replace("r", "%1")
    code = (
        'extern "C" __global__ void k(float* p) { float f = 1; unsigned r = 1;'
        f'asm volatile("{head} {text};" : "+f"(f), "+r"(r)); p[0] = f + r; }}'
    )
    with pytest.raises(SimulatorError, match=says) as caught:
        simulator.launch(code, "k", 1, 32, (np.zeros(32, np.float32),))
    assert caught.value.kind == "unsupported"
