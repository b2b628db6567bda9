"""The ladder under Nsight Compute and compute-sanitizer."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from recorded import gpu
from recorded.sections import EXTRA_METRICS, METRICS

from helpers.problem.attention import make_inputs, reference, relative_error

from . import ladder_cases as cases
from . import watching
from .ladder_cases import KERNELS
from .recording import save
from .watching import say

SCRIPT = str(Path(__file__).with_name("record_ladder.py"))
# Warps that meet at the banks now and then cost a wavefront more: the least of a few launches counts.
REPEATS = 5


def launch_counted(journal: Path) -> None:
    """A few launches of every kernel that is counted: what ncu watches. `journal` gets those that ran."""
    import cupy as cp

    ran = []
    for number, case in enumerate(cases.counted()):
        inputs = make_inputs(case.N, case.d, seed=5)
        prepared = case.rung.prepare(*inputs)
        scores, weights, _ = reference(*inputs)  # what the kernels before it would have left
        for name, left in (("S", scores), ("P", weights)):
            if name in prepared.arrays:
                prepared.arrays[name][...] = cp.asarray(left.astype(np.float32))
        try:
            for _ in range(REPEATS):
                prepared.launches[case.number].run()
                cp.cuda.Device().synchronize()
                ran.append(number)
        except Exception as error:
            print(f"{case.describe()}: {error}", file=sys.stderr, flush=True)
        journal.write_text(json.dumps(ran))


def launch_sanitized(broken: bool) -> None:
    """Every rung once, or only the softmax that lacks a barrier: what compute-sanitizer watches."""
    import cupy as cp

    N, d = cases.SANITIZED_SIZE
    Q, K, V = (cp.asarray(x) for x in make_inputs(N, d, seed=7))
    if broken:
        kernel = cp.RawKernel(cases.third_barrier_missing(), "softmax", options=("-std=c++17",))
        S, P = cp.asarray(np.ones((N, N), np.float32)), cp.asarray(np.zeros((N, N), np.float32))
        kernel((N,), (256,), (S, P, np.int32(N)))
        cp.cuda.Device().synchronize()
        return
    for one in cases.sanitized():
        result = one.run(Q, K, V)
        cp.cuda.Device().synchronize()
        print(f"{one}: {relative_error(result, reference(Q, K, V).O):.2e}", flush=True)


def counters(out: Path, seconds: float) -> dict:
    """What ncu counts, kernel by kernel."""
    listed, wanted = cases.counted(), METRICS | EXTRA_METRICS
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "ran.json"
        script = [SCRIPT, "--launch-counted", str(journal)]
        kernels = f"^({'|'.join(KERNELS)})$"
        rows = watching.profile(script, kernels, watching.metrics(wanted), seconds)
        ran = json.loads(journal.read_text()) if journal.exists() else []
    found: dict[int, dict] = {}
    mismatched = 0
    for number, row in zip(ran, rows, strict=False):
        note = listed[number].describe()
        if row["Kernel Name"].split("(")[0] != note["entry"]:
            mismatched += 1
            continue
        counted = watching.counters(row, wanted)
        least = found.setdefault(number, note | {"ncu": counted})["ncu"]
        found[number]["ncu"] = {key: min(n, least.get(key, n)) for key, n in counted.items()}
    complete = sum(METRICS.keys() <= note["ncu"].keys() for note in found.values())
    say(
        f"{len(listed)} kernels, {len(ran)} launched, {len(rows)} watched, {complete} with every metric, "
        f"{mismatched} out of order"
    )
    data = {
        "device": gpu.describe(),
        "metrics": METRICS,
        "extra_metrics": EXTRA_METRICS,
        "cases": list(found.values()),
    }
    if not mismatched and len(rows) == len(ran):
        save(out / "ladder_counters.json", data)
    return {"kernels": len(listed), "complete": complete, "out_of_order": mismatched}


def sanitizer(seconds: float) -> dict:
    """What compute-sanitizer says, tool by tool, and of a kernel with a race as a cross-check."""
    scripts = {name: (name, [SCRIPT, "--launch-sanitized"]) for name in watching.SANITIZERS}
    broken = [SCRIPT, "--launch-broken"]
    scripts["racecheck of a softmax without its third barrier"] = "racecheck", broken
    return watching.sanitize(scripts, seconds)
