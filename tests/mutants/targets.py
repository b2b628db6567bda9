"""What trials of kernels are made of: small odd sizes at which every fault can show.

`TRIALS` of a chapter's module in tests/chapters say which its kernels are run on. Inputs are
asymmetric, outputs hold NaN before the launch, and what is expected comes from NumPy in float64.
Scores lie near -200 or have one peak a row, so that a softmax without its right maximum overflows
or vanishes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from helpers.kernels import Kernel, load_kernel
from helpers.problem import flash_inputs
from helpers.problem.attention import reference
from helpers.problem.ladder import ladder
from helpers.problem.problem import Problem

FP32 = 5e-6  # of what a row's error may be of its length; sums over up to 301 elements
ROUNDED = 1e-4  # the same where scores as large as these were rounded to fp32 themselves
FP16, BF16 = 2e-3, 2e-2  # the same where weights and results are rounded to 11 or 8 bits
LOW, PEAK = -200.0, 150.0  # exp(LOW) is 0 and exp(PEAK) infinite in fp32


@dataclass(frozen=True)
class Trial:
    """A launch of one kernel with its parameters set.

    `make` gives its problem without the launch: arguments in the kernel's order, and what the one
    output should hold, its last axis the one whose elements belong together. `tolerance` is the
    largest error of a row, relative to its length.
    """

    file: str
    entry: str
    parameters: Mapping[str, Any]
    label: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_mem: int
    make: Callable[[], Problem]

    def kernel(self, folder: Path) -> Kernel:
        """The kernel out of a folder of kernel files."""
        return load_kernel(self.file, self.entry, kernels_dir=folder, **self.parameters)


def ramp(rows: int, cols: int) -> np.ndarray:
    return np.linspace(0.5, 1.5, rows * cols).reshape(rows, cols)


def _normal(rows: int, cols: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, cols))


@functools.cache
def _qk(N: int, d: int) -> Problem:
    Q = (_normal(N, d, 1) * ramp(N, d)).astype(np.float32)
    K = (_normal(N, d, 2) + ramp(N, d)).astype(np.float32)
    S = np.empty((N, N), np.float32)
    expected = Q.astype(np.float64) @ K.T.astype(np.float64) / np.sqrt(d)
    return Problem((), {"Q": Q, "K": K, "S": S, "N": N, "d": d}, {"S": expected}, FP32)


@functools.cache
def _pv(N: int, d: int) -> Problem:
    P = (np.abs(_normal(N, N, 3)) * ramp(N, N)).astype(np.float32)
    V = (_normal(N, d, 4) + ramp(N, d)[::-1]).astype(np.float32)
    expected = P.astype(np.float64) @ V.astype(np.float64)
    O = np.empty((N, d), np.float32)  # noqa: E741 (its letter)
    return Problem((), {"P": P, "V": V, "O": O, "N": N, "d": d}, {"O": expected}, FP32)


def softmax(S: np.ndarray) -> np.ndarray:
    """Along the last axis, in float64."""
    P = np.exp(S - S.max(axis=-1, keepdims=True))
    return P / P.sum(axis=-1, keepdims=True)


@functools.cache
def _softmax(N: int, peak: bool) -> Problem:
    S = _normal(N, N, 5) * 1.5 + ramp(N, N)
    if peak:
        S[np.arange(N), N - 1 - np.arange(N)] += PEAK
    else:
        S += LOW
    S = S.astype(np.float32)
    expected = softmax(S.astype(np.float64))
    return Problem((), {"S": S, "P": np.empty_like(S), "N": N}, {"P": expected}, FP32)


@functools.cache
def _add(n: int) -> Problem:
    a, b = (_normal(1, n, seed)[0].astype(np.float32) for seed in (6, 7))
    expected = (a.astype(np.float64) + b).reshape(n, 1)
    return Problem((), {"a": a, "b": b, "c": np.empty_like(a), "n": n}, {"c": expected}, 1e-6)


@functools.cache
def _matrix_add(rows: int, columns: int) -> Problem:
    a, b = (_normal(rows, columns, seed).astype(np.float32) for seed in (10, 11))
    inputs = {"A": a, "B": b, "C": np.empty_like(a), "rows": rows, "columns": columns}
    return Problem((), inputs, {"C": a.astype(np.float64) + b}, 1e-6)


@functools.cache
def _turn(size: int, words: int) -> Problem:
    rows = _normal(size * size, words, 8).astype(np.float32)
    expected = rows.reshape(size, size, words).swapaxes(0, 1).reshape(-1, words)
    inputs = {"rows": rows, "columns": np.empty_like(rows)}
    return Problem((), inputs, {"columns": expected.astype(np.float64)}, 0.0)


@functools.cache
def _phases(stride: int) -> Problem:
    source = _normal(32 * 8, 4, 9).astype(np.float32)
    expected = source[stride * np.arange(32)].astype(np.float64)
    inputs = {"source": source, "lanes": np.empty((32, 4), np.float32)}
    return Problem((), inputs, {"lanes": expected}, 0.0)


@functools.cache
def flash_problem(
    b: int, h: int, n: int, d: int, layout: str, element: str, peak: bool, causal: bool
) -> Problem:
    """Q, K, V [b, h, n, d] whose scores are near LOW, or have a peak in another place each row."""
    rng = np.random.default_rng(n)
    Q, K, V = (rng.standard_normal((b, h, n, d)) for _ in range(3))
    if peak:
        signs = np.where(rng.random((b, h, n, d)) < 0.5, -1.0, 1.0)
        K += signs
        Q += signs[..., ::-1, :] * PEAK / np.sqrt(d)
    else:
        Q[..., 0], K[..., 0] = 8 + Q[..., 0] / 8, LOW / 8 * np.sqrt(d)
    V += np.linspace(0.5, 2.5, d) + np.linspace(0, 2, h)[:, None, None]
    if layout == "bnhd":
        Q, K, V = (x.transpose(0, 2, 1, 3) for x in (Q, K, V))
    bf16 = element == "nv_bfloat16"
    kept = [flash_inputs.to_bf16(x) if bf16 else x.astype(np.float16) for x in (Q, K, V)]
    Q, K, V = (np.ascontiguousarray(x) for x in kept)
    expected = flash_inputs.reference(Q, K, V, layout, causal)
    strides = (h * n * d, n * d, d) if layout == "bhnd" else (n * h * d, d, h * d)
    numbers = zip(("batch_stride", "head_stride", "row_stride"), strides, strict=True)
    arrays = {"Q": Q, "K": K, "V": V, "O": np.empty_like(Q)}
    return Problem((), {**arrays, "n": n, **dict(numbers)}, {"O": expected}, BF16 if bf16 else FP16)


@functools.cache
def _attention(N: int, d: int, peak: bool) -> Problem:
    """One head in fp32 whose scores are near LOW / 2, or have a peak in another place each row."""
    Q, K, V = _normal(N, d, 12), _normal(N, d, 13), _normal(N, d, 14) + ramp(N, d)
    if peak:
        signs = np.where(_normal(N, d, 15) < 0, -1.0, 1.0)
        K, Q = K + signs, Q + signs[::-1] * PEAK / np.sqrt(d)
    else:
        Q[:, 0], K[:, 0] = 8 + Q[:, 0] / 8, LOW / 16 * np.sqrt(d)
    Q, K, V = (x.astype(np.float32) for x in (Q, K, V))
    exact = reference(Q, K, V).O
    arrays = {"Q": Q, "K": K, "V": V, "O": np.empty((N, d), np.float32)}
    return Problem((), {**arrays, "N": N, "d": d}, {"O": exact}, ROUNDED)


# A chapter's module says which sizes its kernels are run at: parameters, N and d. The first is what
# most faults show at. The later ones have tiles that fit exactly, more than one warp in a row of
# tiles, or the other choice of a parameter.
Sizes = Sequence[tuple[Mapping[str, Any], int, int]]
Trials = Callable[[str, str], Iterable[Trial]]


def with_one(*sizes: tuple[Mapping[str, Any], int, int]) -> Sizes:
    """Sizes, and one more at which a single thread of a single block has work."""
    return (*sizes, (sizes[0][0], 1, 1))


SQUARES = with_one(({"TILE": 8}, 19, 11), ({"TILE": 8}, 11, 21), ({"TILE": 8}, 16, 8))
COALESCED = with_one(
    ({"TILE": 8, "COARSE": 2}, 37, 11),
    ({"TILE": 8, "COARSE": 2, "TRANSPOSE_ON_STORE": 1}, 37, 11),
    ({"TILE": 8, "COARSE": 2}, 11, 37),
    ({"TILE": 8, "COARSE": 2}, 32, 32),
    ({"TILE": 16, "COARSE": 1, "TRANSPOSE_ON_STORE": 1}, 16, 21),
)


def products(*sizes: tuple[Mapping[str, Any], int, int]) -> Trials:
    """Trials of the two products of a rung's file."""

    def made(file: str, entry: str) -> Iterator[Trial]:
        make = {"scaled_dot_product": _qk, "pv_multiply": _pv}[entry]
        for parameters, N, d in sizes:
            yield _of_rung(file, entry, parameters, N, d, f"d={d}", functools.partial(make, N, d))

    return made


def softmaxes(*sizes: tuple[int, bool]) -> Trials:
    """Trials of a rung's softmax, with blocks of 64: N, and whether its rows have a peak."""

    def made(file: str, entry: str) -> Iterator[Trial]:
        for N, peak in sizes:
            kind = "peaks" if peak else "low scores"
            make = functools.partial(_softmax, N, peak)
            yield _of_rung(file, entry, {"BLOCK_SIZE": 64}, N, N, kind, make)

    return made


def attentions(*sizes: tuple[Mapping[str, Any], int, int, bool]) -> Trials:
    """Trials of a rung that is one kernel: parameters, N, d, and whether its rows have a peak."""

    def made(file: str, entry: str) -> Iterator[Trial]:
        for parameters, N, d, peak in sizes:
            kind = f"d={d}, {'peaks' if peak else 'low scores'}"
            make = functools.partial(_attention, N, d, peak)
            yield _of_rung(file, entry, parameters, N, d, kind, make)

    return made


def _of_rung(file: str, entry: str, parameters: Mapping[str, Any], N: int, d: int, kind: str,
             make: Callable[[], Problem]) -> Trial:  # fmt: skip
    """A trial launched as the lowest rung does that has the kernel."""
    step, rung = next(
        (s, r) for r in ladder("fp32") for s in r.steps if (s.file, s.entry) == (file, entry)
    )
    launch = rung.launches(N, d, **parameters)[rung.steps.index(step)]
    label = f"{settings(parameters)}, N={N}, {kind}"
    shared = launch.shared_mem
    return Trial(file, entry, parameters, label, launch.grid, launch.block, shared, make)


def by_entry(**kernels: Trials) -> Trials:
    """Trials of a file with several kernels, by name, and `others` of all that are not named."""

    def made(file: str, entry: str) -> Iterable[Trial]:
        return kernels.get(entry, kernels.get("others"))(file, entry)

    return made


def vector_sums(file: str, entry: str) -> Iterator[Trial]:
    """Trials of chapter 00's kernel."""
    for n, grid, block in ((67, 3, 32), (64, 2, 32), (200, 2, 128)):
        make = functools.partial(_add, n)
        yield Trial(file, entry, {}, f"n={n}", (grid,), (block,), 0, make)


def matrix_sums(file: str, entry: str) -> Iterator[Trial]:
    """Trials of chapter 00's kernel of two dimensions: rows and columns that are not alike."""
    for rows, columns, tile in ((13, 21, 8), (9, 6, 4), (16, 33, 16)):
        make = functools.partial(_matrix_add, rows, columns)
        grid = (-(-columns // tile), -(-rows // tile))
        label = f"{rows} x {columns}, TILE={tile}"
        yield Trial(file, entry, {"TILE": tile}, label, grid, (tile, tile), 0, make)


def turns(*settings: tuple[str, int, str]) -> Trials:
    """Trials of the toy's turned square: what an element is, how many a row has, and the map."""

    def made(file: str, entry: str) -> Iterator[Trial]:
        for element, size, swizzle in settings:
            parameters = {"ELEMENT": element, "SIZE": size, "SWIZZLE": swizzle}
            make = functools.partial(_turn, size, 4 if element == "float4" else 1)
            label = f"{element}, SIZE={size}, SWIZZLE={swizzle}"
            yield Trial(file, entry, parameters, label, (1,), (size, size), 0, make)

    return made


def phases(*strides: int) -> Trials:
    """Trials of the toy's loads of 16 bytes a lane."""

    def made(file: str, entry: str) -> Iterator[Trial]:
        for stride in strides:
            make = functools.partial(_phases, stride)
            label = settings({"STRIDE": stride})
            yield Trial(file, entry, {"STRIDE": stride}, label, (1,), (32,), 0, make)

    return made


_FLASH_SIZES = (
    ({"HEAD_DIM": 64, "B_R": 32, "B_C": 32, "WARPS": 2}, (2, 2, 45), "bhnd", "half", False),
    ({"HEAD_DIM": 128, "B_R": 32, "B_C": 32, "WARPS": 2}, (2, 3, 39), "bnhd", "nv_bfloat16", False),
    ({"HEAD_DIM": 64, "B_R": 64, "B_C": 32, "WARPS": 2}, (1, 1, 77), "bhnd", "half", True),
    ({"HEAD_DIM": 128, "B_R": 64, "B_C": 64, "WARPS": 4}, (1, 2, 64), "bnhd", "half", False),
    (
        {"HEAD_DIM": 64, "B_R": 64, "B_C": 32, "WARPS": 2, "CAUSAL": 1},
        (1, 2, 139), "bhnd", "half", True,
    ),
)  # fmt: skip


def flash(
    file: str,
    entry: str,
    stages: int = 1,
    more: Mapping[str, Sequence[Any]] | None = None,
    also: Sequence[tuple] = (),
) -> Iterator[Trial]:
    """Trials of a FlashAttention kernel: both head dimensions, layouts and types, and causal.

    Args:
        stages: tiles of K, and of V, that a block has room for.
        more: parameters that only some of these kernels have, with a value for each of the trials,
            from the first one again where there are fewer.
        also: trials of its own: parameters, (batch, heads, n), layout, type, and whether scores
            have peaks.
    """
    for number, (given, (b, h, n), layout, element, peak) in enumerate((*_FLASH_SIZES, *also)):
        own = {name: values[number % len(values)] for name, values in (more or {}).items()}
        parameters = {**given, **own}
        d, rows, keys = (parameters[name] for name in ("HEAD_DIM", "B_R", "B_C"))
        causal = parameters.get("CAUSAL", 0)
        label = (
            f"{element}, {settings(parameters)}, {b} x {h} heads, n={n}, {layout}, "
            f"{'peaks' if peak else 'low scores'}"
        )
        shared = (rows + 2 * stages * keys) * d * 2
        make = functools.partial(flash_problem, b, h, n, d, layout, element, peak, bool(causal))
        grid, block = (-(-n // rows), h, b), (32 * parameters["WARPS"], 1, 1)
        yield Trial(
            file, entry, {**parameters, "ELEMENT": element}, label, grid, block, shared, make
        )  # fmt: skip


def settings(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={v}" for k, v in parameters.items())
