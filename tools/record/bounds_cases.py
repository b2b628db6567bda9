"""Launches whose times a GPU gives and for which bounds are computed: by name, at sizes that fill the card.

Each is made on arrays of NumPy or of CuPy. `simulated` says how its work is found without running all of it: a few
blocks of the launch itself, or of smaller ones whose work is a polynomial of the size.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from helpers.kernels.kernel import load_kernel
from helpers.kernels.launches import Launch
from helpers.problem.flash import FlashRung
from helpers.problem.ladder import ladder, rung

KERNELS = Path(__file__).resolve().parents[2] / "tests" / "data" / "bounds_kernels.cu"
D = 64
LARGE = (4, 16, 4096, 128)  # batch, heads, n, d


@dataclass(frozen=True)
class Case:
    """One launch to time.

    Attributes:
        name: of the case.
        launch: `launch(module)` makes its arrays in NumPy or CuPy and the launch on them.
        size, smaller: `at(size)` is `launch`, and the work at `size` follows from that at `smaller` sizes; None if the
            launch itself is sampled.
        at: `at(size)(module)` makes the launch of another size.
    """

    name: str
    launch: Callable
    size: int = 0
    smaller: tuple[int, ...] = ()
    at: Callable | None = None


def cases() -> dict[str, Case]:
    """All cases by name, the ones for which times are to be tight first."""
    found = [
        *own(),
        *_flash(),
        *_ladder(4096),
        *_ladder(16384, "naive", "tiled", "register_blocked"),
        *_exercises(),
    ]
    return {case.name: case for case in found}


# ---------------------------------------------------------------- kernels of their own


def own() -> Iterator[Case]:
    """Kernels that keep one part of the GPU busy each, and some of the usual kinds."""
    M = 1 << 20
    yield _own("copy", 1 << 18, 256, _f(256 * M), _f(256 * M), 64 * M)
    yield _own("transpose_conflicts", (512, 512), (32, 8), _f(256 * M), _f(256 * M), 16384)
    yield _own("ffma_loop", 132 * 8, 256, _f(1), 4096, loop=True)
    yield _own("mma_loop", 132 * 4, 256, _f(1), 2048, loop=True)
    yield _own("exp_loop", 132 * 8, 256, _f(1), 2048, loop=True)
    yield _own("copy_words", M, 256, _f(256 * M), _f(256 * M), 256 * M)
    yield _own("saxpy", M, 256, _f(256 * M), _f(256 * M), np.float32(2), 256 * M)
    yield _own("fill", 1 << 18, 256, _f(256 * M), 64 * M)
    yield _own("read", 1 << 15, 256, _f(256 * M), _f(1), 0)
    for stride in (2, 8, 32):
        yield _own(
            "copy_strided",
            M // 4 // stride * 4,
            256,
            _f(256 * M),
            _f(256 * M),
            256 * M,
            stride,
            label=stride,
        )
    for megabytes in (1, 4, 16, 32):
        vectors = megabytes * M // 16
        yield _own(
            "l2_read", 132 * 8, 256, _f(4 * vectors), _f(1), vectors, 256, label=f"{megabytes} MB"
        )
    yield _own(
        "l2_read", 132 * 8, 256, _f(4 * 1024), _f(1), 1024, 512, label="16 KB, the same for all"
    )
    for stride in (0, 1, 2, 4, 8, 16, 32):
        yield _own("l1_stride", 132 * 8, 256, _f(4096), _f(1), stride, 128, label=stride, loop=True)
    yield _own("l1_vectors", 132 * 8, 256, _f(4096), _f(1), 128, loop=True)
    yield _own("shared_vectors", 132 * 4, 512, _f(1), 512, loop=True)
    yield _own("transpose_plain", (512, 512), (32, 8), _f(256 * M), _f(256 * M), 16384)
    yield _own("transpose_padded", (512, 512), (32, 8), _f(256 * M), _f(256 * M), 16384)
    yield _own("sum_tree", M, 256, _f(256 * M), _f(M), 256 * M)
    yield _own("sum_shuffles", 1 << 18, 256, _f(256 * M), _f(1), 64 * M)
    yield _own("stencil", M, 256, _f(256 * M), _f(256 * M), 256 * M)
    yield _own("histogram", 132 * 8, 256, _a(64 * M, np.uint32), _a(256, np.uint32), 64 * M)
    yield _own("ffma_chain", 132 * 8, 256, _f(1), 16384, loop=True)
    yield _own("ffma_chain", 132, 128, _f(1), 16384, label="4 warps", loop=True)
    for kind in ("bf16", "tf32", "k8"):
        yield _own(f"mma_loop_{kind}", 132 * 4, 256, _f(1), 2048, loop=True)
    yield _own("gemm_naive", (64, 64), (32, 32), *3 * [_f(4 * M)], 2048)
    yield _own("gemm_tiled", (64, 64), (32, 32), *3 * [_f(4 * M)], 2048)
    yield _own("gemm_registers", (64, 64), (16, 16), *3 * [_f(16 * M)], 4096)
    yield _own("gemm_mma", 256 * 512 // 8, 256, *2 * [_a(16 * M, np.float16)], _f(16 * M), 4096)
    yield _own("spilling", 132 * 8, 256, _f(96 * 256), _f(132 * 8 * 256), 256, loop=True)


def _own(entry: str, grid, block, *args, label="", loop=False) -> Case:
    """A case of `bounds_kernels.cu`; with `loop`, the last argument is how often it goes round."""

    def at(times) -> Callable:
        def launch(module) -> Launch:
            given = (*args[:-1], times)
            return Launch.of(load_kernel(KERNELS, entry), grid, block,
                             tuple(one(module) if callable(one) else one for one in given))  # fmt: skip

        return launch

    name = f"{entry}, {label}" if label != "" else entry
    if loop:
        return Case(name, at(args[-1]), args[-1], (4, 8, 12), at)
    return Case(name, at(args[-1]))


def _a(size: int, dtype) -> Callable:
    return lambda module: module.zeros(size, dtype)


def _f(size: int) -> Callable:
    return _a(size, np.float32)


# ---------------------------------------------------------------- the course's own


def _ladder(N: int, *names: str) -> Iterator[Case]:
    """Every kernel of the rungs at a size; those that several rungs have once."""
    seen = set()
    for one in ladder("fp32"):
        if names and one.name not in names:
            continue
        for variant, settings in (one.variants or {"": {}}).items():
            for number, launch in enumerate(one.launches(N, D, **settings)):
                key = (launch.kernel.code, launch.kernel.entry, launch.kernel.options)
                if key in seen:
                    continue
                seen.add(key)
                at = functools.partial(_rung_at, one.name, dict(settings), number)
                name = ", ".join(filter(None, (one.name, variant, launch.kernel.entry, f"N = {N}")))
                tiles = 256 if launch.block == (256, 1, 1) else 128  # of which N is a multiple
                yield Case(name, at(N), N, (tiles, 2 * tiles, 3 * tiles), at)


def _rung_at(name: str, settings: dict, number: int, N: int) -> Callable:
    def launch(module) -> Launch:
        arrays = {n: module.zeros((N, D), np.float32) for n in "QKVO"}
        arrays |= {n: module.zeros((N, N), np.float32) for n in "SP"}
        return rung(name).launches_on({**arrays, "N": N, "d": D}, **settings)[number]

    return launch


def _flash() -> Iterator[Case]:
    for one in (*ladder("flash"), *ladder("hopper")):
        for d in (128, 64):
            b, h, n, _ = LARGE
            at = functools.partial(_flash_at, one.name, b, h, d)
            yield Case(f"{one.name}, {b}x{h}x{n}x{d}", at(n), n, smaller(one, d), at)


def smaller(one: FlashRung, d: int) -> tuple[int, int, int]:
    """Numbers of rows that whole tiles of a FlashAttention kernel cover, of Q and of K."""
    tiles = one.kernel(d=d).parameters
    rows = math.lcm(tiles["B_R"].value, tiles["B_C"].value)
    return rows, 2 * rows, 3 * rows


def _flash_at(name: str, b: int, h: int, d: int, n: int) -> Callable:
    def launch(module) -> Launch:
        Q, K, V, out = (module.zeros((b, h, n, d), np.float16) for _ in range(4))
        found = rung(name).launch_of(Q, K, V, out)
        if module is np and getattr(rung(name), "stays", False):
            # counted with a block for each piece of work: blocks that stay have unequal many
            return replace(found, grid=(int(found.args[-1]), 1, 1))
        return found

    return launch


def _exercises() -> Iterator[Case]:
    from helpers.exercises import EXERCISES  # late: needs more than a bare machine may have
    from helpers.exercises.answer import kernel_of_solution  # late: as above

    for exercise in EXERCISES:
        case = dict(exercise.timed or exercise.cases[-1])
        launch = functools.partial(_exercise, exercise, case, kernel_of_solution)
        yield Case(f"exercise {exercise.name}", launch)


def _exercise(exercise, case, kernel_of, module) -> Launch:
    kernel = kernel_of(exercise, tuple(case.items()))
    grid, block, shared = exercise.launch(case, kernel)
    given = exercise.arguments(case)
    made = tuple(module.asarray(v) if isinstance(v, np.ndarray) else v for v in given.values())
    return Launch.of(kernel, grid, block, made, shared)
