"""What `record_flash.py` does on a GPU, each function in a process of its own."""

from __future__ import annotations

import contextlib
import itertools
import statistics
import subprocess
import time

import numpy as np
from recorded.flash_cases import (
    BATCHES_HEADS,
    ELEMENTS,
    HEAD_DIMS,
    LENGTHS,
    PROFILED,
    RUNGS,
    TIMED,
    TUNED,
    contenders,
    counted_cases,
)

from helpers import timing
from helpers.problem import flash_inputs as flash
from helpers.problem.attention import relative_error
from helpers.problem.flash import LAYOUTS, NAN

GUARD = 4096  # elements before and behind every output, which no kernel may touch
SAMPLES = 9
SAMPLE_MS = 25.0


# ---------------------------------------------------------------- right or wrong


def correctness() -> dict:
    """Errors of both rungs against float64, and those of PyTorch at the same type."""
    errors = []
    seeds = itertools.count(1)
    for element, d, n, (b, h) in itertools.product(ELEMENTS, HEAD_DIMS, LENGTHS, BATCHES_HEADS):
        Q, K, V = flash.make_inputs(b, h, n, d, element, next(seeds))
        V = _shifted(V, element)
        exact = flash.reference(Q, K, V)
        row = {"element": element, "d": d, "n": n, "batch": b, "heads": h}
        row["torch"] = _error(_torch_attention(Q, K, V, element, "FLASH_ATTENTION"), exact)
        for name, rung in RUNGS.items():
            for layout in LAYOUTS:
                arrays = [x if layout == "bhnd" else x.swapaxes(1, 2) for x in (Q, K, V)]
                out, untouched = _launch(rung, arrays, layout)
                out = out if layout == "bhnd" else out.swapaxes(1, 2)
                row[f"{name}_{layout}"] = _error(flash.to_float(out), exact)
                row[f"{name}_{layout}_untouched"] = untouched
        errors.append(row)
    ours = [f"{name}_{layout}" for name in RUNGS for layout in LAYOUTS]
    worst = max(_ratio(row[name], row["torch"]) for row in errors for name in ours)
    untouched = all(row[f"{name}_untouched"] for row in errors for name in ours)
    print(f"correctness: {len(errors)} shapes, worst error {worst:.3f} of PyTorch's, ", end="")
    print("nothing else touched" if untouched else "SOMETHING ELSE TOUCHED", flush=True)
    return {
        "worst_of_torch": worst,
        "untouched": untouched,
        "errors": errors,
        "variants": _check_variants(),
    }


def _error(result: np.ndarray, exact: np.ndarray) -> float:
    error = relative_error(result, exact)
    return error if np.isfinite(error) else 1e30  # JSON has no infinity


def _ratio(error: float, torch: float) -> float:
    """An error in units of PyTorch's; with one token there is nothing to round, and both are 0."""
    return error / torch if torch else (1e30 if error else 0.0)


def _shifted(V: np.ndarray, element: str) -> np.ndarray:
    """V with another level in each column, so that a result in the wrong column shows."""
    levels = np.linspace(-1, 1, V.shape[-1])
    values = (flash.to_float(V) + levels).astype(np.float32)
    return flash.to_bf16(values) if element == "nv_bfloat16" else values.astype(np.float16)


def _launch(one, arrays, *layout: str) -> tuple[np.ndarray, bool]:
    """O of a rung or a variant from a poisoned buffer, and whether what lies around it is as it was."""
    import cupy as cp

    Q, K, V = (cp.asarray(np.ascontiguousarray(x)) for x in arrays)
    buffer = cp.full(Q.size + 2 * GUARD, NAN, np.uint16)
    out = buffer[GUARD : GUARD + Q.size].view(Q.dtype).reshape(Q.shape)
    one.launch_of(Q, K, V, out, *layout).run()
    bits = cp.asnumpy(buffer)
    around = np.concatenate([bits[:GUARD], bits[-GUARD:]])
    return cp.asnumpy(out), bool((around == NAN).all())


def _torch_attention(Q, K, V, element: str, backend: str) -> np.ndarray:
    import torch

    with _backend(backend):
        out = torch.nn.functional.scaled_dot_product_attention(
            *(_to_torch(x, element) for x in (Q, K, V))
        )
    return out.double().cpu().numpy()


def _to_torch(array: np.ndarray, element: str):
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(array).view(np.int16)).cuda()
    return tensor.view(torch.float16 if element == "half" else torch.bfloat16)


def _backend(name: str):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel(getattr(SDPBackend, name))


def _check_variants() -> dict[str, float]:
    """Relative errors of every variant at an odd length, in fp16."""
    errors = {}
    for d in HEAD_DIMS:
        Q, K, V = flash.make_inputs(1, 2, 321, d, seed=d)
        exact = flash.reference(Q, K, V)
        for variant in contenders():
            out, _ = _launch(variant, (Q, K, V))
            errors[f"{variant.name}, d = {d}"] = _error(flash.to_float(out), exact)
    print(f"variants: worst error {max(errors.values()):.2e}", flush=True)
    return errors


# ---------------------------------------------------------------- under other tools


def drive_counted() -> None:
    """Every counted case once, in order: what ncu watches."""
    import cupy as cp

    for case in counted_cases():
        grid, block, shared, args = case.launch()
        args = [cp.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
        case.kernel()(grid, block, tuple(args), shared)
    cp.cuda.runtime.deviceSynchronize()


def drive_sanitized() -> None:
    """Small launches without CuPy's pool of memory, so that every array has bounds of its own."""
    import cupy as cp

    cp.cuda.set_allocator(None)
    for rung, element, (b, h, n, d), values in (
        *(
            (rung, element, shape, {})
            for rung in RUNGS.values()
            for element, shape in (
                ("half", (1, 2, 100, 64)),
                ("nv_bfloat16", (2, 1, 65, 128)),
                ("half", (1, 1, 1, 128)),
            )
        ),
        (RUNGS["swizzled"], "half", (1, 1, 130, 128), {"B_R": 128, "WARPS": 8, "B_C": 32}),
        (RUNGS["swizzled"], "half", (1, 1, 130, 64), {"B_R": 128}),
    ):
        Q, K, V = map(cp.asarray, flash.make_inputs(b, h, n, d, element))
        out = cp.empty(Q.shape, Q.dtype)
        rung.with_parameters(**values).launch_of(Q, K, V, out).run()
        cp.asnumpy(out)  # initcheck sees whether all of it was written
    for case in counted_cases():
        # `BROKEN` writes several elements to one place on purpose.
        if case.shape or case.values.get("SWIZZLE") == "BROKEN":
            continue
        grid, block, shared, args = case.launch()
        args = [cp.asarray(x) for x in args]
        case.kernel()(grid, block, tuple(args), shared)
        cp.asnumpy(args[-1])
    cp.cuda.runtime.deviceSynchronize()


def drive_profiled() -> None:
    """Both rungs at every profiled size, in order."""
    import cupy as cp

    for shape in PROFILED:
        Q, K, V = map(cp.asarray, flash.make_inputs(*shape))
        for rung in RUNGS.values():
            rung.run(Q, K, V)
    cp.cuda.runtime.deviceSynchronize()


def drive_torch() -> None:
    """PyTorch's FlashAttention-2 at every profiled size, in order."""
    import torch

    for shape in PROFILED:
        Q, K, V = (_to_torch(x, "half") for x in flash.make_inputs(*shape))
        with _backend("FLASH_ATTENTION"):
            torch.nn.functional.scaled_dot_product_attention(Q, K, V)
    torch.cuda.synchronize()


# ---------------------------------------------------------------- times


TORCH = {
    "FlashAttention-2": "FLASH_ATTENTION",
    "cuDNN": "CUDNN_ATTENTION",
    "memory-efficient": "EFFICIENT_ATTENTION",
}


def timings() -> dict:
    """Milliseconds of the rungs, their variants and PyTorch, interleaved, at every size."""
    result = {"protocol": _protocol(), "sizes": []}
    for shape in TIMED:
        launches, resources, problems = _launches(shape)
        before = _state()
        samples = timing.in_turn(launches, SAMPLES, SAMPLE_MS)
        row = {
            "shape": list(shape),
            "state": [before, _state()],
            "samples": samples,
            "resources": resources,
            "problems": problems,
        }
        row["tflops"] = {
            name: flash.flops(*shape) / statistics.median(times) * 1e-9
            for name, times in samples.items()
        }
        result["sizes"].append(row)
        print(f"times at {shape}: {before} before, {_state()} after", flush=True)
        reference = row["tflops"].get("FlashAttention-2", float("nan"))
        for name, rate in row["tflops"].items():
            used = resources.get(name, "")
            print(f"  {name:32} {rate:7.1f} TFLOPS {rate / reference:6.3f} {used}", flush=True)
        for name, problem in problems.items():
            print(f"  {name}: {problem}", flush=True)
    return result


def _protocol() -> str:
    return (
        f"median of {SAMPLES} samples in as many rounds over all contenders, after a warm-up of "
        f"every one; a sample is the time between two events around about {SAMPLE_MS:.0f} ms of "
        "launches, divided by their number; fp16, standard normal inputs"
    )


def _launches(shape) -> tuple[dict, dict, dict]:
    """Functions that launch, the kernels' registers and spilled bytes, and what cannot be run."""
    import cupy as cp

    launches, resources, problems = {}, {}, {}
    arrays = flash.make_inputs(*shape)
    Q, K, V = map(cp.asarray, arrays)
    out = cp.empty(Q.shape, Q.dtype)
    for variant in contenders()[: None if shape in TUNED else len(RUNGS)]:
        try:
            launch = variant.launch_of(Q, K, V, out)
            launch.run()
            cp.cuda.runtime.deviceSynchronize()
            raw = launch.kernel.raw
            resources[variant.name] = {
                "registers": raw.num_regs,
                "local_bytes": raw.local_size_bytes,
                "shared_bytes": launch.shared_mem,
            }
            launches[variant.name] = launch.run
        except Exception as error:  # the others are still wanted
            problems[variant.name] = f"{type(error).__name__}: {error}"[:400]
    tensors = [_to_torch(x, "half") for x in arrays]
    for name, backend in TORCH.items():
        try:
            call = _torch_call(tensors, backend)
            call()
            cp.cuda.runtime.deviceSynchronize()
            launches[name] = call
        except Exception as error:
            problems[name] = f"{type(error).__name__}: {error}"[:400]
    return launches, resources, problems


def _torch_call(tensors, backend: str):
    import torch

    def call():
        with _backend(backend), torch.no_grad():
            torch.nn.functional.scaled_dot_product_attention(*tensors)

    return call


def _state() -> str:
    """Clock, power and temperature, as nvidia-smi says."""
    query = "--query-gpu=clocks.sm,power.draw,temperature.gpu"
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
        )
        return done.stdout.strip().splitlines()[0] if done.stdout.strip() else ""
    return ""


def sustained(seconds: float = 4.0) -> dict:
    """TFLOPS of the swizzled rung and FlashAttention-2 in turn, for some seconds each."""
    launches, _, _ = _launches(TIMED[1])
    rates = {}
    for name in ("swizzled", "FlashAttention-2", "cuDNN"):
        if name not in launches:
            continue
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            times += timing.in_turn({"": launches[name]}, 5, SAMPLE_MS)[""]
        rates[name] = flash.flops(*TIMED[1]) / statistics.median(times[len(times) // 2 :]) * 1e-9
    print(f"sustained at {TIMED[1]}: {rates}", flush=True)
    return rates
