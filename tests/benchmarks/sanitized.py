"""What the sanitizer costs: a sanitized run against a counted one, kernel by kernel.

    python -m tests.benchmarks.sanitized

Each pair is timed in turns within one run, the shortest of a few of each; the target is 4 times.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np

from helpers.kernels import Launch
from helpers.problem.attention import make_inputs
from helpers.problem.flash_inputs import make_inputs as flash_inputs
from helpers.problem.ladder import ladder

TARGET = 4.0
N, D = 200, 72
FLASH_SIZE = (1, 2, 256, 128)
NAN = 0x7FFF


def launches() -> Iterator[tuple[str, Launch]]:
    """(name, launch) of every kernel of the series, none twice."""
    seen = set()
    Q, K, V = make_inputs(N, D, seed=1)
    S = (Q @ K.T / np.sqrt(D)).astype(np.float32)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    results = {name: np.full_like(x, np.nan) for name, x in (("S", S), ("P", P), ("O", V))}
    for rung in ladder("fp32"):
        for launch in rung.launches(N, D):
            kernel = launch.kernel
            if (kernel.file.name, kernel.entry) in seen:
                continue
            seen.add((kernel.file.name, kernel.entry))
            arrays = {"Q": Q, "K": K, "V": V, "S": S, "P": P, "N": np.int32(N), "d": np.int32(D)}
            result = {"scaled_dot_product": "S", "softmax": "P"}.get(kernel.entry, "O")
            arrays[result] = results[result]
            args = tuple(arrays[argument.name] for argument in kernel.arguments)
            yield f"{kernel.file.stem} {kernel.entry}, N={N}, d={D}", launch.with_args(args)
    q, k, v = flash_inputs(*FLASH_SIZE)
    out = np.full(q.shape, NAN, np.uint16).view(np.float16)
    for rung in ladder("flash"):
        launch = rung.launch_of(q, k, v, out)
        name = f"{launch.kernel.file.stem}, n={FLASH_SIZE[2]}, d={FLASH_SIZE[3]}"
        yield name, launch


def seconds(launch: Launch, **more) -> float:
    """Processor time of one launch, which a busy machine leaves alone; it must have no finding."""
    start = time.process_time()
    report, _ = launch.simulate(copy=False, progress=False, **more)
    spent = time.process_time() - start
    assert not report.findings, report.findings[0].message
    return spent


def costs(repeats: int = 3) -> Iterator[tuple[str, float, float]]:
    """(kernel, seconds counted, seconds counted and sanitized)."""
    for name, launch in launches():
        seconds(launch)
        pairs = [(seconds(launch), seconds(launch, sanitize=True)) for _ in range(repeats)]
        counted, sanitized = (min(times) for times in zip(*pairs, strict=True))
        yield name, counted, sanitized


def main() -> int:
    """Print the table; 1 if a kernel costs more than the target."""
    worst = 0.0
    print(f"{'':<54}{'counted':>10}{'sanitized':>11}{'times':>8}")
    for name, counted, sanitized in costs():
        ratio = sanitized / counted
        worst = max(worst, ratio)
        print(f"{name:<54}{counted:>8.2f} s{sanitized:>9.2f} s{ratio:>8.2f}", flush=True)
    print(f"worst {worst:.2f}, at most {TARGET:.0f}")
    return worst > TARGET


if __name__ == "__main__":
    sys.exit(main())
