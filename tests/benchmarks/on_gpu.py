"""`make bench` on a GPU: the whole ladder beside PyTorch, and the roofline with every rung on it.

    python -m tests.benchmarks.on_gpu [--out FOLDER] [--rounds 9]

Protocol: all kernels and PyTorch's back ends of one size take turns, round by round, so that each
meets the same clock and the same heat; a sample is the time between two events around some 20 ms of
launches, and a median is shown. Writes `ladder.json` and `roofline.html` into the folder.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np

from helpers import device, timing
from helpers.measure import flash_times, ladder_times
from helpers.measure.roofline import GPU, SIZE, roofline
from helpers.problem import flash_inputs
from helpers.problem.attention import make_inputs
from helpers.problem.ladder import ladder
from helpers.problem.rungs import Rung

SIZES = (4096, SIZE)  # N of the fp32 rungs
FOLDER = Path("build/bench")
SAMPLE_MS = 20.0
MOST = 100  # launches in a sample
PRODUCTS, FUSED = "PyTorch, two products and a softmax", "PyTorch, memory-efficient"

Taken = dict[str, list[float]]  # {name: milliseconds of a launch}


def fp32(n: int, rounds: int) -> Taken:
    """The fp32 rungs and PyTorch in fp32, one head of N = `n`, d = 64."""
    arrays = make_inputs(n, ladder_times.D)
    launches: dict[str, Callable[[], object]] = {
        name: one.prepare(*arrays, **settings).run
        for name, (one, settings) in ladder_times.bars(ladder("fp32")[-1].name).items()
    }
    try:
        launches |= _pytorch(arrays)
    except Exception as error:  # not installed, or without CUDA
        print(f"PyTorch cannot be timed here ({type(error).__name__}).")
    return timing.in_turn(launches, rounds, SAMPLE_MS, most=MOST)


def fp16(rounds: int) -> Taken:
    """The FlashAttention rungs that this GPU can run, and PyTorch's back ends, at `LARGE`."""
    rungs = [one for one in _rungs().values() if not one.refused_here()]
    for one in (o for o in _rungs().values() if o not in rungs):
        print(f"Left out: {one.refused_here()}")
    launches, notes = flash_times.launches(rungs)
    for note in notes:
        print(note)
    return timing.in_turn(launches, rounds, SAMPLE_MS, most=MOST)


def _pytorch(arrays) -> dict[str, Callable[[], object]]:
    """Attention in fp32 by two matrix products and a softmax, and by one kernel."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    torch.backends.cuda.matmul.allow_tf32 = False
    q, k, v = (torch.from_numpy(x).cuda() for x in arrays)
    scale = float(1 / np.sqrt(q.shape[1]))

    def products() -> None:
        torch.softmax(q @ k.T * scale, dim=-1) @ v

    def fused() -> None:
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION), torch.no_grad():
            torch.nn.functional.scaled_dot_product_attention(*(x[None, None] for x in (q, k, v)))

    return {PRODUCTS: products, FUSED: fused}


def tflops(operations: float, milliseconds: float) -> float:
    """What is reached: operations in 10¹² a second."""
    return operations / milliseconds * 1e-9


def printed(title: str, operations: float, taken: Taken, rival: str) -> dict[str, float]:
    """Print a table of medians, the slowest first; returns the medians."""
    medians = {name: statistics.median(samples) for name, samples in taken.items()}
    print(f"\n{title}\n{'':38}{'ms':>10}{'TFLOPS':>9}   of {rival}")
    for name, ms in sorted(medians.items(), key=lambda one: -one[1]):
        share = f"{medians[rival] / ms:.2f}" if rival in medians else ""
        print(f"{name:<38}{ms:>10.3f}{tflops(operations, ms):>9.1f}   {share}")
    return medians


def main() -> int:
    """Time, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder for the files")
    parser.add_argument("--rounds", type=int, default=9, help="samples of each")
    given = parser.parse_args()
    if not device.is_gpu:
        print(f"The ladder is timed on a GPU. {device.notice}".strip())
        return 1
    protocol = flash_times.PROTOCOL.format(given.rounds)
    print(f"{device.name()}, {date.today()}: {protocol.replace('; fp16', '')}")
    found: dict[str, dict] = {"device": device.name(), "date": str(date.today()), "fp32": {}}
    for n in SIZES:
        operations = 4.0 * n**2 * ladder_times.D
        title = f"fp32, one head, N = {n:,}, d = {ladder_times.D}"
        found["fp32"][n] = printed(title, operations, fp32(n, given.rounds), FUSED)
    b, h, n, d = flash_times.LARGE
    title = f"fp16, batch {b}, {h} heads, n = {n:,}, d = {d}"
    operations = float(flash_inputs.flops(b, h, n, d))
    found["fp16"] = printed(title, operations, fp16(given.rounds), flash_times.REFERENCE)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "ladder.json").write_text(json.dumps(found, indent=1), "utf-8")
    draw(given.out / "roofline.html", found)
    print(f"\nWritten: {given.out / 'ladder.json'}, {given.out / 'roofline.html'}")
    return 0


def draw(path: Path, found: dict) -> None:
    """The roofline as a page: this run's times under an H200's roofs, or the recorded ones."""
    seconds = None
    if GPU in found["device"]:
        seconds = {name: ms * 1e-3 for name, ms in found["fp32"][SIZE].items()}
        seconds |= {_rung(name): ms * 1e-3 for name, ms in found["fp16"].items()}
    else:
        print(f"The roofline is that of the {GPU} with its recorded times.")
    last = [one for one in _rungs().values() if not one.refused_here()][-1]
    drawn = roofline(last.name, seconds, found["device"])
    parts = (drawn.chart()._repr_html_(), drawn._repr_html_())
    head = "<!doctype html><meta charset='utf-8'><title>Roofline</title>"
    path.write_text("\n".join((head, *parts)), "utf-8")


@functools.cache
def _rungs() -> dict[str, Rung]:
    """The FlashAttention rungs by their names in tables."""
    rungs = (*ladder("flash"), *ladder("hopper"))
    return {one.name.removeprefix("flash_"): one for one in rungs}


def _rung(name: str) -> str:
    """The rung that a row of the fp16 table is about."""
    return _rungs()[name].name if name in _rungs() else name


if __name__ == "__main__":
    raise SystemExit(main())
