"""Times of the ladder on a GPU, with PyTorch's own attention beside it."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from recorded import gpu

from helpers import cp, timing
from helpers.problem.attention import TOLERANCE, make_inputs, reference, relative_error
from helpers.problem.ladder import ladder
from helpers.problem.problem import PreparedProblem

from . import ladder_cases as cases
from .ladder_cases import KERNELS
from .recording import rounded, save, table
from .watching import say

PROTOCOL = (
    "median of the samples, taken in turn with those of all others after a warm-up, each between two events around "
    "enough launches to take about two milliseconds; compilation and allocation are outside"
)
SAMPLE_MS = 2.0
MOST_LAUNCHES = 120  # a stream queues about a thousand kernels before the host has to wait


def samples(launches: dict[str, Callable], rounds: int) -> dict[str, list[float]]:
    """{name: milliseconds}, those of all in turn."""
    return timing.in_turn(launches, rounds, SAMPLE_MS, MOST_LAUNCHES)


def torch_rivals(N: int, d: int, Q, K, V, expected) -> tuple[dict[str, Callable], dict[str, str]]:
    """PyTorch's own fp32 attention: {name: call}, and what is wrong with those that are missing."""
    rivals, problems = {}, {}
    try:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except Exception as error:
        return {}, {"PyTorch": repr(error)}
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    q, k, v = (torch.from_numpy(x).cuda() for x in (Q, K, V))
    scale = 1 / d**0.5

    def unfused():
        return torch.softmax((q * scale) @ k.T, dim=-1) @ v

    def fused():
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(
                q[None, None], k[None, None], v[None, None]
            )

    for name, call in (
        ("PyTorch, two matmuls and a softmax", unfused),
        ("PyTorch, memory-efficient attention", fused),
    ):
        try:
            error = relative_error(call().cpu().numpy().reshape(N, d), expected)
            if not error < 1e-4:
                raise RuntimeError(f"relative error {error}")
            rivals[name] = call
        except Exception as problem:
            problems[name] = f"{type(problem).__name__}: {problem}"[:300]
    return rivals, problems


def times(out: Path, rounds: int) -> dict:
    """The ladder at every N, whole and kernel by kernel, with PyTorch's beside it."""
    d = cases.TIMED_D
    whole: dict[str, dict[int, list[float]]] = {}
    single: dict[str, dict[str, dict[int, list[float]]]] = {entry: {} for entry in KERNELS}
    errors: dict[str, dict[str, float]] = {}
    problems: dict[str, str] = {}
    for N in cases.TIMED_N:
        Q, K, V = make_inputs(N, d, seed=N)
        expected = reference(Q, K, V).O
        launches: dict[str, Callable] = {}
        steps: dict[str, dict[str, Callable]] = {}
        scores = weights = None
        for name, one in cases.contenders().items():
            try:
                prepared = one.prepare(Q, K, V)
                # One S and one P for all: at N = 16384 each is a GiB.
                if scores is None:
                    scores, weights = prepared.arrays["S"], prepared.arrays["P"]
                arrays = {**prepared.arrays, "S": scores, "P": weights}
                prepared = PreparedProblem(arrays, one.launches_on(arrays))
                scores.fill(np.nan)
                weights.fill(np.nan)
                prepared.run()
                error = relative_error(prepared.arrays["O"], expected)
                errors.setdefault(name, {})[str(N)] = error
                # rounding errors of a sum grow about as the root of its length
                if not error < TOLERANCE * max(1, N / 256) ** 0.5:
                    raise RuntimeError(f"relative error {error}")
                launches[name] = prepared.run
                steps[name] = {one.kernel.entry: one.run for one in prepared.launches}
            except Exception as problem:
                problems[f"{name}, N = {N}"] = f"{type(problem).__name__}: {problem}"[:500]
        rivals, missing = torch_rivals(N, d, Q, K, V, expected)
        launches.update(rivals)
        problems.update({f"{name}, N = {N}": text for name, text in missing.items()})
        for name, taken in samples(launches, rounds).items():
            whole.setdefault(name, {})[N] = taken
        flat = {(n, e): call for n, by_entry in steps.items() for e, call in by_entry.items()}
        for (name, entry), taken in samples(flat, max(3, rounds // 3)).items():
            single[entry].setdefault(name, {})[N] = taken
        say(f"N = {N}: " + ", ".join(f"{n} {_ms(whole[n][N])}" for n in launches))
        for name in steps:
            print(
                f"      {name}: "
                + ", ".join(f"{e} {_ms(single[e][name][N])}" for e in steps[name]),
                flush=True,
            )
        del launches, steps, flat, rivals, scores, weights, prepared
        cp.get_default_memory_pool().free_all_blocks()
        about = gpu.describe()
        kept = {
            "settings": {name: one.values for name, one in cases.contenders().items()},
            "errors": errors,
            "problems": problems,
        }
        data = {
            "device": about.pop("gpu"),
            "date": about.pop("date"),
            "versions": {**about, **_torch_version()},
            "protocol": PROTOCOL,
            "tables": [
                table("attention", "ms", whole, d=d, **kept),
                *(table(entry, "ms", taken, d=d) for entry, taken in single.items()),
            ],
        }
        save(out / "h200_ladder.json", data)
    for name, text in problems.items():
        print(f"    {name}: {text}", flush=True)
    return data


def _ms(samples: list[float]) -> str:
    return f"{statistics.median(samples):.4g} ms"


def _torch_version() -> dict[str, str]:
    module = sys.modules.get("torch")
    return {"torch": module.__version__} if module else {}


def sweep(budget: float) -> dict:
    """Milliseconds of every kernel with every setting of its own, at a small and a large N."""
    d, found = cases.TIMED_D, []
    end = time.monotonic() + budget
    for N in (1024, 16384):
        Q, K, V = make_inputs(N, d, seed=N)
        arrays = None
        for one, number in cases.kernel_settings():
            if time.monotonic() > end:
                say("sweep: out of time")
                return {"kernels": found}
            if arrays is None:
                prepared = one.prepare(Q, K, V)
                arrays = prepared.arrays
                prepared.run()
            launch = one.launches_on(arrays)[number]
            entry = launch.kernel.entry
            values = {n: p.value for n, p in launch.kernel.parameters.items()}
            note = {"rung": one.name, "entry": entry, "N": N, "parameters": values}
            try:
                note["ms"] = rounded(statistics.median(samples({"": launch.run}, 3)[""]))
            except Exception as error:
                note["error"] = f"{type(error).__name__}: {error}"[:300]
            found.append(note)
        for name in dict.fromkeys(note["rung"] for note in found):
            for entry in KERNELS:
                measured = [n for n in found if (n["rung"], n["entry"], n["N"]) == (name, entry, N)]
                measured = sorted((n for n in measured if "ms" in n), key=lambda n: n["ms"])
                for n in measured[: 3 if name == ladder("fp32")[-1].name else 1]:
                    settings = " ".join(f"{key}={value}" for key, value in n["parameters"].items())
                    print(f"    N = {N} {name} {entry}: {n['ms']} ms {settings}", flush=True)
    say(f"sweep: {len(found)} measurements")
    return {"kernels": found}
