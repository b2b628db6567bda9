"""Launches of Hopper's own instructions that an H200 and the simulator are to do alike.

Products with numbers of all kinds in every layout, boxes in every swizzle, and mbarriers that no
thread has to look at twice. `tools/record/record_hopper_counters.py` records them on a GPU.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .hopper import BOXES, COMMON, OPTIONS, WORDS, Product, as_words

WAITS = (
    COMMON
    + r"""
__device__ void init(u64* b, int n) {
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
  __syncthreads(); }
__device__ u64 arrive(u64* b) { u64 s;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(s) : "r"(at(b)) : "memory");
  return s; }
#define TRY(form, value) asm volatile("{.reg .pred p; mbarrier." form ".b64 p, [%1], %2;" \
  "selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(at(&b)), value : "memory")
extern "C" __global__ void waits_init(int* out) {
  __shared__ u64 b; init(&b, 128); out[threadIdx.x] = 1; }
extern "C" __global__ void waits_arrive(int* out) {
  __shared__ u64 b; init(&b, 128); arrive(&b); out[threadIdx.x] = 1; }
extern "C" __global__ void waits_arrive_elected(int* out) {
  __shared__ u64 b; init(&b, 4); if (threadIdx.x % 32 == 0) arrive(&b); out[threadIdx.x] = 1; }
extern "C" __global__ void waits_expect(int* out) {
  __shared__ u64 b; init(&b, 1);
  if (threadIdx.x == 0) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;"
                                     :: "r"(at(&b)) : "memory");
  out[threadIdx.x] = 1; }
extern "C" __global__ void waits_test(int* out) {
  __shared__ u64 b; init(&b, 128); u64 s = arrive(&b); __syncthreads(); int done;
  TRY("test_wait.shared", "l"(s)); out[threadIdx.x] = done; }
extern "C" __global__ void waits_try(int* out) {
  __shared__ u64 b; init(&b, 128); arrive(&b); __syncthreads(); int done;
  TRY("try_wait.parity.shared::cta", "r"(0)); out[threadIdx.x] = done; }
"""
)
WAIT_KERNELS = ("init", "arrive", "arrive_elected", "expect", "test", "try")
KERNELS = r"product|box\d|waits_\w+"  # their names, as a regular expression

PRODUCTS = (
    *(Product(24, swizzle=s, step=0) for s in (0, 32, 64, 128)),
    *(Product(24, swizzle=s, b_turned=True) for s in (0, 32, 64, 128)),
    *(Product(24, swizzle=s, a_turned=True) for s in (0, 32, 64, 128)),
    Product(256, swizzle=128, step=3),
    Product(136, swizzle=128, b_turned=True),
    Product(24, swizzle=128, step=1, registers=True, b_turned=True),
    Product(24, "bf16", swizzle=128, registers=True),
    Product(24, "bf16", swizzle=128, step=2, signs=(1, -1)),
    Product(24, swizzle=0, signs=(-1, 1)),
    Product(24, sums="f16", swizzle=64),
    Product(24, "tf32", swizzle=128, step=1),
    Product(24, "s8", "s32", b_kind="u8", swizzle=64),
)
# Tiles that begin 1, 2 or 5 lines of 128 bytes behind where the pattern of the swizzle does.
SHIFTED = tuple(Product(24, swizzle=s, shift=n) for s, n in ((128, 1), (128, 5), (64, 2), (32, 1)))
BOX_CASES = (  # shape, dtype, box, swizzle, corner of the load, and of the store
    ((37, 72), np.uint16, (21, 64), 128, (5, 8), (5, 8)),
    ((37, 72), np.uint16, (21, 32), 64, (30, 56), (31, 64)),
    ((37, 72), np.uint16, (21, 16), 32, (-3, -8), (0, 56)),
    ((37, 72), np.uint16, (9, 24), 0, (36, 64), (33, 56)),
    ((20, 36), np.float32, (11, 32), 128, (-1, 4), (12, 8)),
    ((20, 6), np.float64, (11, 4), 32, (10, -2), (13, 2)),
    ((200,), np.uint16, (64,), 128, (152,), (144,)),
    ((3, 19, 40), np.uint16, (2, 7, 32), 64, (-1, 14, 8), (1, 13, 16)),
    ((2, 17, 3, 64), np.uint16, (1, 16, 1, 64), 128, (1, 6, 2, 0), (0, 5, 1, 8)),
    ((2, 3, 5, 7, 16), np.uint16, (2, 2, 3, 2, 16), 32, (1, -1, 3, 6, -8), (0, 1, 3, 5, 0)),
)
# What an H200 stops at with an illegal instruction, the simulator in a sentence: a box that does
# not begin at 16 bytes of the innermost dimension, and a store that begins before the array.
REFUSED_BOXES = (
    ((37, 72), np.uint16, (8, 64), 128, (5, 7), (5, 8)),
    ((37, 72), np.uint16, (8, 64), 128, (5, 8), (5, 4)),
    ((20, 36), np.float32, (11, 32), 128, (2, 3), (2, 4)),
    ((200,), np.uint16, (64,), 128, (150,), (144,)),
    ((37, 72), np.uint16, (8, 64), 128, (5, 8), (-1, 8)),
    ((37, 72), np.uint16, (8, 64), 128, (5, 8), (5, -8)),
)


@dataclass(frozen=True)
class HopperCase:
    """One launch. `maps` are (box, swizzle) by the place of the array in `args` that they are of."""

    name: str
    code: str
    entry: str
    threads: int
    shared: int
    args: tuple[Any, ...]
    outputs: tuple[int, ...]
    maps: tuple[tuple[int, tuple[int, ...], int], ...] = ()

    def digest(self) -> str:
        """Of the code and all inputs."""
        parts = [a.tobytes() if isinstance(a, np.ndarray) else repr(a).encode() for a in self.args]
        return hashlib.sha256(b"|".join([self.code.encode(), *parts])).hexdigest()[:16]

    def arguments(self, place: Callable, tensor_map: Callable) -> tuple[list, list]:
        """(what to pass, the arrays of the outputs), on the device that `place` puts arrays on."""
        arrays = [place(a.copy()) if isinstance(a, np.ndarray) else a for a in self.args]
        passed = list(arrays)
        for at, box, swizzle in self.maps:
            passed[at] = tensor_map(arrays[at], box, swizzle)
        return passed, [arrays[n] for n in self.outputs]


def packed(values: np.ndarray) -> str:
    """An array's bytes as text."""
    return base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes(), 9)).decode()


def unpacked(text: str, like: np.ndarray) -> np.ndarray:
    """The inverse: an array of the shape and type of another."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), like.dtype).reshape(like.shape)


def _words(random, kind: str, shape: tuple[int, int], wild: bool) -> np.ndarray:
    """Factors: numbers of which sums cancel, or words of all kinds."""
    if wild or kind in ("s8", "u8"):
        info = np.iinfo(WORDS[kind])
        return random.integers(info.min, info.max, shape, WORDS[kind], endpoint=True)
    scales = 2.0 ** random.integers(-9, 4, shape)
    return as_words(random.standard_normal(shape) * scales, kind)


def _product(product: Product, wild: bool) -> HopperCase:
    random = np.random.default_rng([product.n, product.swizzle, product.shift, wild])
    a = _words(random, product.kind, (64, product.k), wild)
    b = _words(random, product.b_kind or product.kind, (product.n, product.k), wild)
    c = random.standard_normal((64, product.n)).astype(np.float32)
    if product.sums != "f32":
        c = (9 * c).astype({"f16": np.float16, "s32": np.int32}[product.sums])
    image, da, db = product.shared(a, b)
    registers = product.fragments_of_d(c)
    args = (image, np.int32(image.size // 16), np.uint64(da), np.uint64(db),
            product.fragments_of_a(a), registers, np.zeros_like(registers), np.int32(1))  # fmt: skip
    name = f"{product.name}{'_wild' if wild else ''}"
    return HopperCase(name, product.code, "product", 128, image.size, args, (6,))


def _box(number: int, listed: tuple = BOX_CASES) -> HopperCase:
    shape, dtype, box, swizzle, *corners = listed[number]
    array = (np.arange(1, np.prod(shape) + 1) % 251).astype(dtype).reshape(shape)
    nbytes = int(np.prod(box)) * array.dtype.itemsize
    args = (array, np.zeros_like(array), np.full(nbytes, 99, np.uint8),
            np.array([c[::-1] for c in corners], np.int32), np.int32(nbytes))  # fmt: skip
    kind = f"_swizzle{swizzle}" if listed is BOX_CASES else "_refused"
    name = f"box{len(shape)}_{number}{kind}"
    maps = ((0, box, swizzle), (1, box, swizzle))
    # The tile begins at a multiple of 1,024 bytes, and the barrier lies before it.
    shared = nbytes + 1024
    return HopperCase(name, BOXES, f"box{len(shape)}", 32, shared, args, (1, 2), maps)


@functools.cache
def hopper_cases() -> tuple[HopperCase, ...]:
    """Every launch, in the order in which they are recorded."""
    found = [_product(product, False) for product in (*PRODUCTS, *SHIFTED)]
    found += [_product(p, True) for p in PRODUCTS if p.n == 24 and p.swizzle == 128]
    found += [_box(number) for number in range(len(BOX_CASES))]
    found += [_box(number, REFUSED_BOXES) for number in range(len(REFUSED_BOXES))]
    found += [
        HopperCase(
            f"waits_{name}", WAITS, f"waits_{name}", 128, 0, (np.zeros(128, np.int32),), (0,)
        )
        for name in WAIT_KERNELS
    ]
    return tuple(found)


def options_of(case: HopperCase) -> tuple[str, ...]:
    """What its code is compiled with."""
    return OPTIONS if case.entry == "product" else ()
