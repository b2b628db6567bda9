"""Writes the format of `helpers/measure/recorded`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from helpers.measure.recorded import Size

BySize = Mapping[str, Mapping[Size, Any]]  # {name: {size: ...}}


def table(
    what: str,
    unit: str,
    samples: BySize,
    value: Callable[[Size, list[float]], float] = lambda _, times: median(times),
    **kept: Any,
) -> dict:
    """One table: medians, and the samples behind them.

    Args:
        what: was timed.
        unit: of the medians, `ms` or `TFLOPS`.
        samples: {name: {size: milliseconds}}.
        value: makes the median of a size and its samples.
        **kept: what is recorded beside it.
    """
    return {
        "what": what,
        "unit": unit,
        "times": keyed(samples, lambda size, times: rounded(value(size, times))),
        "samples": keyed(samples, lambda _, times: [rounded(time) for time in times]),
        **kept,
    }


def keyed(by_size: BySize, value: Callable[[Size, Any], Any] = lambda _, found: found) -> dict:
    """{name: {size as text: value(size, found)}}."""
    return {
        name: {_text(size): value(size, found) for size, found in own.items()}
        for name, own in by_size.items()
    }


def rounded(value: float) -> float:
    """Five digits of it."""
    return float(f"{value:.5g}")


def save(path: Path, data: Mapping[str, Any]) -> None:
    """Write JSON with one value a line, for reading and for diffs."""
    path.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


def _text(size: Size) -> str:
    return ",".join(map(str, size)) if isinstance(size, tuple) else str(size)
