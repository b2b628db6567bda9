"""wgmma: products of a warpgroup, against the definition and layouts from the PTX ISA's figures."""

from __future__ import annotations

import numpy as np
import pytest
from recorded.hopper import OPTIONS, Product, as_words

from helpers import cp, simulator
from helpers.simulator.errors import SimulatorError
from helpers.simulator.isa.tensor import tensor_core_arithmetic, warpgroup_products
from helpers.simulator.ptx.ptxas import SHARED_BASE

PRODUCTS = [
    Product(8, swizzle=0),
    Product(24, swizzle=0, a_turned=True, b_turned=True),
    Product(136, swizzle=32),
    Product(40, swizzle=32, a_turned=True, b_turned=True),
    Product(24, swizzle=64, step=1),
    Product(72, swizzle=64, a_turned=True),
    Product(256, swizzle=128, step=3),
    Product(200, swizzle=128, b_turned=True),
    Product(88, swizzle=128, a_turned=True, b_turned=True),
    Product(24, "bf16", swizzle=128, step=2, registers=True, b_turned=True),
    Product(16, swizzle=0, registers=True, signs=(-1, 1)),
    Product(24, "bf16", swizzle=64, signs=(1, -1)),
    Product(24, sums="f16", swizzle=128, signs=(-1, -1)),
    Product(24, "tf32", swizzle=128, step=1),
    Product(8, "tf32", swizzle=32, registers=True),
    Product(24, "s8", "s32", b_kind="u8", swizzle=64),
    Product(8, "u8", "s32", swizzle=128, registers=True),
]


def factors(product: Product, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A (64, k) and B (n, k) of small whole numbers, of which no two rows are alike."""
    random = np.random.default_rng(seed)
    low = 0 if product.kind == "u8" else -4
    a = random.integers(low, 5, (64, product.k))
    return a, random.integers(0, 5, (product.n, product.k))


def launch(product: Product, a, b, c, adds: int = 1, grid: int = 1, **options) -> np.ndarray:
    """What the registers of D hold, (threads, registers), for words a and b."""
    image, da, db = product.shared(a, b)
    c = np.ascontiguousarray(c)
    d = np.zeros((grid * 128, product.count), c.dtype)
    args = (image, np.int32(image.size // 16), np.uint64(da), np.uint64(db),
            product.fragments_of_a(a), c, d, np.int32(adds))  # fmt: skip
    simulator.launch(
        product.code, "product", grid, 128, args,
        options=OPTIONS, shared_mem=image.size, count=False, **options,
    )  # fmt: skip
    return d


def sums_of(product: Product, seed: int = 1) -> np.ndarray:
    """C (64, n)."""
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[product.sums]
    return np.random.default_rng(seed).integers(-9, 9, (64, product.n)).astype(dtype)


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda p: p.name)
def test_products_of_every_layout(product):
    a, b = factors(product)
    c = sums_of(product)
    found = launch(
        product, as_words(a, product.kind), as_words(b, product.b_kind or product.kind),
        product.fragments_of_d(c),
    )  # fmt: skip
    wanted = np.prod(product.signs) * (a @ b.T) + c
    assert np.unique(wanted).size > 20
    np.testing.assert_array_equal(found, product.fragments_of_d(wanted.astype(c.dtype)))


def test_d_is_not_read_where_it_is_not_added_to():
    product = Product(24)
    a, b = (as_words(m, "f16") for m in factors(product))
    nothing = np.full((128, product.count), np.nan, np.float32)
    found = launch(product, a, b, nothing, adds=0)
    wanted = np.matmul(factors(product)[0], factors(product)[1].T).astype(np.float32)
    np.testing.assert_array_equal(found, product.fragments_of_d(wanted))
    assert np.isnan(launch(product, a, b, nothing)).all()


@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32"])
def test_all_of_k_is_added_at_once_as_in_mma(kind):
    random = np.random.default_rng(3)
    word = np.uint32 if kind == "tf32" else np.uint16
    k = 8 if kind == "tf32" else 16
    bits = 8 * np.dtype(word).itemsize
    a, b = (random.integers(0, 2**bits, (1, rows, k), dtype=word) for rows in (64, 24))
    for mild in (False, True):
        if mild:  # no infinities and NaN, and sums in which terms cancel
            values = random.standard_normal((88, k)) * 2.0 ** random.integers(-12, 3, (88, k))
            a, b = as_words(values, kind)[None, :64], as_words(values, kind)[None, 64:]
        c = random.standard_normal((1, 64, 24)).astype(np.float32)
        found = warpgroup_products.multiply(a, b, c, (kind, kind))
        lanes_last = [np.ascontiguousarray(m.transpose(2, 1, 0)) for m in (a, b)]
        wanted = tensor_core_arithmetic.multiply_accumulate(
            *lanes_last, np.ascontiguousarray(c.transpose(1, 2, 0)), kind
        )
        np.testing.assert_array_equal(
            found.view(np.uint32), wanted.transpose(2, 0, 1).view(np.uint32)
        )
        assert np.isfinite(found).all() == mild


@pytest.mark.parametrize("schedule", ["lockstep", "warps", "warps_reversed"])
def test_warpgroups_and_blocks_each_have_their_own(schedule):
    product, groups = Product(24, swizzle=64, registers=True, b_turned=True), 6
    many = [factors(product, seed)[0] for seed in range(groups)]
    b = factors(product)[1]
    image, da, db = product.shared(as_words(many[0], "f16"), as_words(b, "f16"))
    fragments = np.concatenate([product.fragments_of_a(as_words(a, "f16")) for a in many])
    c = np.concatenate([product.fragments_of_d(sums_of(product, seed)) for seed in range(groups)])
    d = np.zeros_like(c)
    args = (image, np.int32(image.size // 16), np.uint64(da), np.uint64(db), fragments, c, d,
            np.int32(1))  # fmt: skip
    simulator.launch(
        product.code, "product", 3, 256, args,
        options=OPTIONS, shared_mem=image.size, schedule=schedule,
    )  # fmt: skip
    for seed, (a, found) in enumerate(zip(many, d.reshape(groups, 128, -1), strict=True)):
        wanted = (a @ b.T + sums_of(product, seed)).astype(np.float32)
        np.testing.assert_array_equal(found, product.fragments_of_d(wanted))


@pytest.mark.parametrize(
    ("change", "options", "kind", "told"),
    [
        (("", ""), (), "unsupported", "wgmma is an instruction of sm_90a alone, and this was comp"),
        (("int t = threadIdx.x;", "int t = threadIdx.x; if (t >= 96) return;"), OPTIONS, "barrier",
         "waits at a product of its warpgroup"),
        (("db += at(s) >> 4;", "db += (at(s) >> 4) + 4096;"), OPTIONS, "out_of_bounds",
         "leads wgmma to byte"),
        (("wait_group.sync.aligned 0", "wait_group.sync.aligned 8"), OPTIONS, "unsupported",
         "waits until 0 to 7 groups"),
        (("m64n8k16", "m64n12k16"), OPTIONS, "unsupported", "shapes m64nNk16 here"),
        (("p, 1, 1, 0, 0", "p, 1, 1, 0"), OPTIONS, "unsupported", "takes 4 numbers behind scale-d"),
        (("f32.f16.f16", "f32.f16.bf16"), OPTIONS, "unsupported", "floats of one type"),
        (("f32.f16.f16", "f32.e4m3.e4m3"), OPTIONS, "unsupported", "factors f16, bf16, tf32, s8"),
        (("wgmma.fence.sync.aligned;", "setmaxnreg.dec.sync.aligned.u32 20;"), OPTIONS,
         "unsupported", "takes 24 to 256 registers, a multiple of 8, not 20"),
    ],
    ids=["architecture", "lanes", "bounds", "groups", "shape", "numbers", "mixed", "fp8", "count"],
)  # fmt: skip
def test_what_cannot_be_is_told(change, options, kind, told):
    product = Product(8)
    a, b = (as_words(m, "f16") for m in factors(product))
    image, da, db = product.shared(a, b)
    args = (image, np.int32(image.size // 16), np.uint64(da), np.uint64(db),
            product.fragments_of_a(a), np.zeros((128, 4), np.float32),
            np.zeros((128, 4), np.float32), np.int32(1))  # fmt: skip
    code = product.code
    assert not change[0] or change[0] in code
    with pytest.raises(SimulatorError, match=told) as caught:
        simulator.launch(
            code.replace(*change) if change[0] else code, "product", 1, 128, args,
            options=options, shared_mem=image.size,
        )  # fmt: skip
    assert caught.value.kind == kind


def test_a_block_needs_whole_warpgroups():
    product = Product(8)
    a, b = (as_words(m, "f16") for m in factors(product))
    image, da, db = product.shared(a, b)
    args = (image, np.int32(image.size // 16), np.uint64(da), np.uint64(db),
            product.fragments_of_a(a), np.zeros((128, 4), np.float32),
            np.zeros((128, 4), np.float32), np.int32(1))  # fmt: skip
    with pytest.raises(SimulatorError, match="a block has 96 threads: start blocks of a multiple"):
        simulator.launch(
            product.code, "product", 1, 96, args, options=OPTIONS, shared_mem=image.size
        )
    assert SHARED_BASE % 1024 == 0  # swizzles go by addresses, which are a GPU's


def test_flops_are_counted_and_no_line_is_marked():
    product = Product(24)
    a, b = (as_words(m, "f16") for m in factors(product))
    image, da, db = product.shared(a, b)
    args = (image, np.int32(image.size // 16), np.uint64(da), np.uint64(db),
            np.resize(product.fragments_of_a(a), (384, 4)), np.zeros((384, 12), np.float32),
            np.zeros((384, 12), np.float32), np.int32(1))  # fmt: skip
    report = simulator.launch(
        product.code, "product", 3, 128, args, options=OPTIONS, shared_mem=image.size
    )
    assert report.counters["flops"] == 3 * 2 * 64 * 24 * 16
    assert report.work.tensor == {"wgmma fp16": 3 * 2 * 64 * 24 * 16}
    bounds = report.bounds("H200")
    assert "by wgmma, 4,096 a clock" in str(bounds)
    # three multiprocessors are busy, each with a block
    assert bounds.by_resource["tensor cores"] == pytest.approx(2 * 64 * 24 * 16 / 4096 / 1.98e9)
    (line,) = (n for n, c in report.by_line.items() if c["flops"])
    assert line not in report.marks  # its counters are an H200's: see test_hopper_h200
    assert report.machine_code().architecture == "sm_90a"
    # operands do not pass the units that load and store for threads
    assert report.by_line[line]["shared_load_wavefronts"] == 0


def test_the_stand_in_takes_cupys_option():
    product = Product(8, swizzle=0, registers=True)
    a, b = factors(product)
    image, da, db = product.shared(as_words(a, "f16"), as_words(b, "f16"))
    kernel = cp.RawKernel(product.code, "product", options=("-arch=sm_90a",))
    d = cp.zeros((128, 4), np.float32)
    args = (cp.asarray(image), np.int32(image.size // 16), np.uint64(da), np.uint64(db),
            cp.asarray(product.fragments_of_a(as_words(a, "f16"))), cp.zeros_like(d), d,
            np.int32(1))  # fmt: skip
    kernel((1,), (128,), args, shared_mem=image.size)
    wanted = product.fragments_of_d((a @ b.T).astype(np.float32))
    np.testing.assert_array_equal(cp.asnumpy(d), wanted)
