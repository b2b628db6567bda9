"""What wrong elements hold, in words: NaN, zeros, the transpose, a factor too much."""

import math
from collections.abc import Sequence

import numpy as np

from .numbers import short
from .places import Found, axis_names

_TILES = (4, 8, 16, 32, 64)  # to try where no tile is given
_LOG2_E = 1.4426950408889634


def value(got, want, wrong, unwritten, limit: float, tile: Sequence[int] | None) -> Found | None:
    """Say what the wrong elements hold, or None where it is nothing with a name.

    Args:
        got, want: the array and what it should be, float64, of one shape.
        wrong, unwritten: masks: what is wrong, and what of it still holds its poison.
        limit: how far off an element may be.
        tile: edges of a tile along each axis, or None.
    """
    bad = got[wrong]
    count = bad.size
    never = unwritten[wrong]
    if never.all():
        return Found("unwritten", "nothing was ever written there")
    nan = np.isnan(bad) & ~never
    if nan.all():
        return Found("nan", "every one of them is NaN")
    infinite = np.isinf(bad)
    if infinite.all():
        return Found("infinite", "every one of them is infinite")
    parts = [
        f"{int(which.sum()):,} {words}"
        for which, words in (
            (never, "were never written"),
            (nan, "are NaN"),
            (infinite, "are infinite"),
        )
        if which.any()
    ]
    if parts:
        return Found("mixed", "of them " + ", ".join(parts))
    if not bad.any():
        return Found("zeros", "it is 0 there" if count == 1 else "every one of them is 0")
    if np.isneginf(want[wrong]).all():
        return Found("unmasked", "each of them should be −∞ and is a finite number")
    if count == 1 or not np.isfinite(want).all():
        return None

    def near(a: np.ndarray, b: np.ndarray) -> bool:
        return bool((np.abs(a - b) <= limit).all())

    return (
        _transposed(got, want, near)
        or _transposed_tiles(got, want, near, tile)
        or _factor(got, want, wrong, limit)
        or _shifted(got, want, near, tile)
        or _factor_of_lines(got, want, wrong, limit)
        or _offset(bad, want[wrong], limit)
    )


def _transposed(got, want, near) -> Found | None:
    if got.ndim < 2:
        return None
    turned = np.swapaxes(want, -1, -2)
    if turned.shape == want.shape:
        if near(got, turned):
            return Found("transposed", "it is the transpose of what it should be")
        return None
    if near(got, turned.reshape(want.shape)):
        return Found("transposed", "the values lie in memory as those of the transpose do")
    return None


def _transposed_tiles(got, want, near, tile) -> Found | None:
    """Square tiles with rows and columns exchanged inside, or tiles that changed places."""
    if got.ndim < 2:
        return None
    height, width = got.shape[-2:]
    edges = _TILES if tile is None else [tile[-1]] if tile[-1] == tile[-2] else []
    for edge in edges:
        down, across = height // edge, width // edge
        if edge < 2 or not down or not across:
            continue
        cut = (..., slice(down * edge), slice(across * edge))
        shape = (*got.shape[:-2], down, edge, across, edge)
        a, b = got[cut].reshape(shape), want[cut].reshape(shape)
        if near(a, np.swapaxes(b, -1, -3)):
            return Found(
                "transposed tiles", f"every tile of {edge} × {edge} is the transpose of itself"
            )
        if down == across > 1 and near(a, np.swapaxes(b, -2, -4)):
            return Found(
                "swapped tiles",
                f"tiles of {edge} × {edge} have changed places: block row and column are exchanged",
            )
    return None


def _fit(got: np.ndarray, want: np.ndarray) -> float:
    """The factor that brings `want` closest to `got`."""
    scale = float((want * want).sum())
    return float((got * want).sum()) / scale if scale else 0.0


def _factor(got, want, wrong, limit) -> Found | None:
    for where in (np.ones_like(wrong), wrong):
        factor = _fit(got[where], want[where])
        if not factor or abs(factor - 1) < 1e-6:
            continue
        off = np.abs(got[where] - factor * want[where])
        if (off <= limit * max(1.0, abs(factor))).all():
            times = f"each of them is {short(factor)} times what it should be"
            return Found("factor", times + _meaning(factor))
    return None


def _meaning(factor: float) -> str:
    """What a factor may come from, in brackets."""

    def near(value: float) -> bool:
        return abs(factor / value - 1) < 1e-3

    for value, words in (
        (-1.0, "the sign"),
        (_LOG2_E, "log₂ e: exp2 and exp need different scales"),
        (1 / _LOG2_E, "ln 2: exp2 and exp need different scales"),
    ):
        if near(value):
            return f" ({words})"
    whole = round(max(factor, 1 / factor)) if factor else 0
    if whole > 1 and near(whole if factor > 1 else 1 / whole) and whole & (whole - 1):
        return ""  # 11 is more likely a count than the root of a head's 121 columns
    square = round(factor * factor)
    if factor > 1 and square <= 1024 and near(math.sqrt(square)):
        return f" (√{square}: 1/√d is missing if d = {square})"
    square = round(1 / (factor * factor))
    if 0 < factor < 1 and square <= 1024 and near(1 / math.sqrt(square)):
        return f" (1/√{square}: 1/√d too often if d = {square})"
    return ""


def _shifted(got, want, near, tile) -> Found | None:
    for axis, name in reversed(list(enumerate(axis_names(got.ndim)))):
        size = got.shape[axis]
        steps = [1, *({tile[axis]} - {1} if tile is not None else ())]
        for step in steps:
            if size - step < 2:
                continue
            cut = (slice(None),) * axis
            low, high = (*cut, slice(size - step)), (*cut, slice(step, size))
            what = "position" if name == "index" else name
            far = f"one {what}" if step == 1 else f"{step} {what}s"
            if near(want[low], want[high]):
                continue
            for here, there, holds in ((low, high, (0, step)), (high, low, (step, 0))):
                if near(got[here], want[there]):
                    held = f"{name} {holds[0]} holds {name} {holds[1]}"
                    return Found("shifted", f"everything is shifted by {far}: {held}")
    return None


def _factor_of_lines(got, want, wrong, limit) -> Found | None:
    """Rows (or columns) that are each off by a factor of their own."""
    if got.ndim < 2 or min(got.shape[-2:]) < 3:
        return None
    for axis, name in ((-1, "row"), (-2, "column")):
        scale = (want * want).sum(axis=axis, keepdims=True)
        factors = (got * want).sum(axis=axis, keepdims=True) / np.where(scale, scale, 1)
        off = np.abs(got - factors * want)
        if (off <= limit * np.maximum(1, np.abs(factors))).all():
            some = factors[np.abs(factors - 1) > 1e-6]
            if not some.size or not some.all():
                return None
            low, high = short(some.min()), short(some.max())
            return Found(
                "factor of each line",
                f"each wrong {name} is off by a factor of its own, from {low} to {high}",
            )
    return None


def _offset(bad, want, limit) -> Found | None:
    difference = bad - want
    middle = float(np.median(difference))
    if (np.abs(difference - middle) <= limit).all():
        more = "too much" if middle > 0 else "too little"
        return Found("offset", f"each of them is {short(abs(middle))} {more}")
    return None
