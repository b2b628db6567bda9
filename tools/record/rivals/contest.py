"""Kernels timed beside PyTorch's attention on a GPU: the protocol that recordings share."""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from recorded import gpu
from recorded.flash_cases import Variant

from helpers import timing
from helpers.problem import flash_inputs as flash
from tools.record import flash_device
from tools.record.machine_code import machine_code, resources
from tools.record.recording import rounded
from tools.record.watching import run, say

SHAPES = ((4, 16, 4096, 128), (2, 16, 8192, 128), (1, 16, 16384, 128), (4, 16, 4096, 64))
RIVALS = {"FlashAttention-2": "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION"}
SAMPLES, SAMPLE_MS = 7, 20.0
COLD_SAMPLES, COLD_MS, PAUSE = 3, 4.0, 0.1
PROTOCOL = (
    f"fp16, standard normal inputs; TFLOPS = 4 b h n^2 d / t, half of it if causal; all contenders "
    f"in turn, medians. sustained: {SAMPLES} samples of about {SAMPLE_MS:.0f} ms of launches between "
    f"two events, after a warm-up of all; cold: {COLD_SAMPLES} samples of about {COLD_MS:.0f} ms, "
    f"each after {PAUSE} s of rest"
)
Built = tuple[Variant, str, int]  # a variant, the type of an element, the head dim


def compile_all(kernels: Iterable[Built]) -> int:
    """Compile kernels to machine code, with no GPU; the number of failures."""
    folders = tuple(f"-I{folder}" for folder in gpu.include_folders())
    failures = 0
    for one, element, d in kernels:
        k = one.kernel(element, d)
        options = tuple(option for option in k.options if not option.startswith("-arch="))
        try:
            made = machine_code(k.code, (*options, *folders), k.architecture or "sm_90")
            used = resources(made)[k.entry]
            settings = f"{one.name}, {one.values}, {element}, d = {d}"
            print(f"{settings}: {used.registers} registers, {used.stack} stack bytes", flush=True)
        except RuntimeError as error:
            failures += 1
            print(f"{one.name}, {element}, d = {d}: {error}")
    return failures


def warm_up(kernels: Iterable[Built]) -> dict:
    """Compile kernels with CuPy, which keeps them on the disk."""
    done, problems = 0, {}
    for one, element, d in kernels:
        try:
            one.kernel(element, d).compile()
            done += 1
        except Exception as error:
            problems[f"{one.name}, {element}, {d}"] = str(error)[:400]
    return {"compiled": done, "problems": problems}


def times(
    contenders: Callable[[tuple[int, ...], int], Sequence[Variant]],
    shapes: Sequence[tuple[int, ...]] = SHAPES,
) -> dict:
    """TFLOPS of contenders and PyTorch's back ends at every size, causal or not.

    Args:
        contenders: gives those of a size, (batch, heads, n, d) and whether it is causal.
        shapes: the sizes.
    """
    sizes: list[dict] = []
    for causal, shape in itertools.product((0, 1), shapes):
        launches, used, problems = _launches(shape, causal, contenders(shape, causal))
        work = flash.flops(*shape, causal=bool(causal)) * 1e-9
        cold = _cold(launches)
        before = flash_device._state()
        sustained = timing.in_turn(launches, SAMPLES, SAMPLE_MS)
        row = {"shape": list(shape), "causal": causal, "resources": used, "problems": problems,
               "state": [before, flash_device._state()]}  # fmt: skip
        for name, taken in (("cold", cold), ("sustained", sustained)):
            row[name] = {k: rounded(work / statistics.median(v)) for k, v in taken.items()}
        row["milliseconds"] = {k: [rounded(x) for x in v] for k, v in sustained.items()}
        sizes.append(row)
        _print_times(row)
    return {"protocol": PROTOCOL, "sizes": sizes}


def _launches(shape, causal: int, contenders: Sequence[Variant]) -> tuple[dict, dict, dict]:
    """Functions that launch, registers and spilled bytes, and what cannot be run."""
    import cupy as cp

    launches, used, problems = {}, {}, {}
    arrays = [np.tile(x, (*shape[:2], 1, 1)) for x in flash.make_inputs(1, 1, *shape[2:])]
    Q, K, V = map(cp.asarray, arrays)
    out = cp.empty(Q.shape, Q.dtype)
    for one in contenders:
        try:
            launch = one.launch_of(Q, K, V, out)
            launch.run()
            cp.cuda.runtime.deviceSynchronize()
            raw = launch.kernel.raw
            used[one.name] = {"registers": raw.num_regs, "local_bytes": raw.local_size_bytes,
                              "shared_bytes": launch.shared_mem}  # fmt: skip
            launches[one.name] = launch.run
        except Exception as error:  # the others are still wanted
            problems[one.name] = f"{type(error).__name__}: {error}"[:400]
    tensors = [flash_device._to_torch(x, "half") for x in arrays]
    for name, backend in RIVALS.items():
        try:
            launches[name] = _rival(tensors, backend, bool(causal))
            launches[name]()
            cp.cuda.runtime.deviceSynchronize()
        except Exception as error:
            launches.pop(name, None)
            problems[name] = f"{type(error).__name__}: {error}"[:400]
    return launches, used, problems


def _rival(tensors, backend: str, causal: bool):
    import torch

    def call() -> None:
        with flash_device._backend(backend), torch.no_grad():
            torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal)

    return call


def _cold(launches) -> dict[str, list[float]]:
    """Milliseconds of a launch, in short samples after a rest each."""
    import cupy as cp

    found: dict[str, list[float]] = {name: [] for name in launches}
    once = {}
    for name, launch in launches.items():
        launch()
        once[name] = timing.between_events(cp, launch, 1, 3e-4)
    for _ in range(COLD_SAMPLES):
        for name, launch in launches.items():
            time.sleep(PAUSE)
            count = max(1, round(COLD_MS / once[name]))
            found[name].append(timing.between_events(cp, launch, count, 3e-4))
    return found


def _print_times(row: dict) -> None:
    print(f"{row['shape']}, causal {row['causal']}, {row['state']}", flush=True)
    for name, rate in row["sustained"].items():
        cold = row["cold"][name]
        shares = [
            value / row[kind].get(rival, float("nan"))
            for kind, value in (("cold", cold), ("sustained", rate))
            for rival in RIVALS
        ]
        used = row["resources"].get(name, {})
        print(f"  {name:32} cold {cold:6.1f} ({shares[0]:.3f} of FA-2, {shares[1]:.3f} of cuDNN)  "
              f"sustained {rate:6.1f} ({shares[2]:.3f}, {shares[3]:.3f})  {list(used.values())}",
              flush=True)  # fmt: skip
    for name, problem in row["problems"].items():
        print(f"  {name}: {problem}", flush=True)


def child(script: str, stage: str, seconds: float, *more: str, quiet: bool = False) -> dict:
    """A stage of a script in a process of its own; what it returned, or its last words.

    Args:
        script: is run with `--child STAGE` and `more`, and prints "RESULT " and JSON.
        stage: its name.
        seconds: that it may take.
        *more: arguments of the script.
        quiet: keep what it prints beside.
    """
    # Several run at once: none may want all processors for its reference.
    few = [f"{library}_NUM_THREADS=2" for library in ("OMP", "OPENBLAS")]
    command = [sys.executable, script, "--child", stage, *more]
    status, said = run(["env", *few, *command], seconds)
    lines = said.splitlines()
    if not quiet:
        print(*(line for line in lines if not line.startswith("RESULT ")), sep="\n", flush=True)
    say(f"{' '.join((stage, *more))}: exit status {status}")
    found = [line[7:] for line in lines if line.startswith("RESULT ")]
    return json.loads(found[-1]) if found else {"error": f"exit status {status}: {said[-3000:]}"}


def versions() -> dict:
    """Of the GPU and of all that ran on it."""
    code = "import torch; print(torch.__version__, torch.backends.cudnn.version())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    return {**gpu.describe(), "torch, cudnn": said.strip(), "python": sys.version.split()[0]}
