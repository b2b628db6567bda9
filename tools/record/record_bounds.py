"""Record what bounds on kernels' times are held against: times, and what Nsight Compute says of each launch.

    python tools/record/record_bounds.py --out DIR          (about two minutes on a GPU; needs CuPy and ncu)
    python tools/record/record_bounds.py --simulate FILE    (needs no GPU: the work of every launch, for FILE)
    python tools/record/record_bounds.py --merge DIR FILE   (both, to tests/recorded/data)
    python tools/record/record_bounds.py --rungs FILE       (that of the rungs, to helpers/measure/counted)

DIR gets `bounds_times.json` and `bounds_ncu.json`, each written anew after every few launches. A launch that fails is
noted with its error, and the others go on. `--only copy,mma_loop` takes these cases alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from helpers.gpu import device  # noqa: E402
from helpers.measure import nsight, timing  # noqa: E402
from helpers.measure.ladder_times import bars  # noqa: E402
from helpers.measure.rung_bounds import FILE  # noqa: E402
from helpers.problem.ladder import ladder  # noqa: E402
from helpers.simulator.bounds.demand import as_data, extrapolated, work_from  # noqa: E402
from tools.record.bounds_cases import Case, D, cases  # noqa: E402

RECORDED = ROOT / "tests" / "recorded" / "data" / "bounds_h200.json"
SAMPLE_MS = 1.5
SAMPLES = 9
NCU_SECONDS = 150
_LAUNCH = (
    *(f"launch__occupancy_limit_{what}" for what in ("blocks", "registers", "shared_mem", "warps")),
    *(f"launch__shared_mem_per_block_{kind}" for kind in ("static", "dynamic", "driver")),
    "launch__registers_per_thread", "launch__shared_mem_config_size", "launch__waves_per_multiprocessor",
    "gpu__time_duration.sum", "gpc__cycles_elapsed.avg.per_second", "smsp__inst_executed.sum",
    "sm__warps_active.avg.per_cycle_active", "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
)  # fmt: skip
_STALLS = ("long_scoreboard", "short_scoreboard", "barrier", "mio_throttle", "lg_throttle", "math_pipe_throttle",
           "wait", "not_selected", "dispatch_stall", "no_instruction")  # fmt: skip
_MORE = (
    "sm__cycles_elapsed.max", "sm__cycles_active.avg",
    "l1tex__data_pipe_lsu_wavefronts.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__lsuin_requests.sum", "l1tex__t_requests_pipe_lsu.sum", "l1tex__t_sectors_pipe_lsu.sum",
    "l1tex__t_output_wavefronts_pipe_lsu.sum", "lts__t_sectors.sum", "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
    "sm__inst_executed_pipe_fma.sum", "sm__inst_executed_pipe_xu.sum", "sm__inst_executed_pipe_lsu.sum",
    *(f"smsp__average_warps_issue_stalled_{why}_per_issue_active.ratio" for why in _STALLS),
)  # fmt: skip
_CLOCK = r"""
extern "C" __global__ void clock_rate(long long* out) {
    long long ns, later;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    const long long start = clock64();
    while (clock64() - start < 100000) {
    }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(later));
    out[0] = clock64() - start;
    out[1] = later - ns;
}
"""


def chosen(only: str) -> dict[str, Case]:
    """The cases to take."""
    found = cases()
    return {name: found[name] for name in only.split(";")} if only else found


def time_all(found: dict[str, Case], file: Path) -> None:
    """Time every case and say what the driver knows of its kernel."""
    cp = device.cp
    data: dict = {
        "device": device.name(),
        "date": time.strftime("%Y-%m-%d"),
        "protocol": timing.protocol(f"{SAMPLES} samples", SAMPLE_MS),
        "cases": {},
    }
    with contextlib.suppress(AttributeError):  # what stands in for CuPy has no versions
        data["versions"] = {
            "driver": cp.cuda.runtime.driverGetVersion(),
            "cuda_runtime": cp.cuda.runtime.runtimeGetVersion(),
            "nvrtc": ".".join(map(str, cp.cuda.nvrtc.getVersion())),
            "cupy": cp.__version__,
        }
    clock = cp.RawKernel(_CLOCK, "clock_rate")
    for name, case in found.items():
        try:
            data["cases"][name] = _timed(case, clock)
        except Exception as error:
            data["cases"][name] = {"error": f"{type(error).__name__}: {error}"[:500]}
            traceback.print_exc()
        cp.get_default_memory_pool().free_all_blocks()
        file.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
        print(f"{time.perf_counter():7.1f} s  {name}: {data['cases'][name].get('ms')}", flush=True)


def _timed(case: Case, clock) -> dict:
    cp = device.cp
    launch = case.launch(cp)
    samples = timing.in_turn({"": launch.run}, SAMPLES, SAMPLE_MS)[""]
    out = cp.zeros(2, np.int64)
    median = sorted(samples)[len(samples) // 2]
    for _ in range(max(1, min(200, round(3 / median)))):
        launch.run()
    clock((1,), (1,), (out,))
    cycles, ns = map(int, out.get())
    raw = launch.kernel.raw
    return {
        "entry": launch.kernel.entry, "grid": launch.grid, "block": launch.block, "dynamic": launch.shared_mem,
        "ms": float(f"{median:.5g}"), "samples": [float(f"{one:.5g}") for one in samples],
        "clock_ghz": round(cycles / ns, 4), "registers": raw.num_regs, "local_bytes": raw.local_size_bytes,
        "static": raw.shared_size_bytes,
    }  # fmt: skip


def launch_all(found: dict[str, Case], file: Path) -> None:
    """Launch every case once, for Nsight Compute to watch; `file` lists those that were."""
    cp, done = device.cp, []
    for name, case in found.items():
        try:
            launch = case.launch(cp)
            launch.kernel.compile()
            cp.cuda.Device().synchronize()
            done.append(name)
            launch.run()
            cp.cuda.Device().synchronize()
            del launch
        except Exception:
            traceback.print_exc()
        file.write_text(json.dumps(done), "utf-8")
        cp.get_default_memory_pool().free_all_blocks()


def profile_all(only: str, folder: Path) -> None:
    """What Nsight Compute says of every case: all metrics, or where it does not know one, the most needed."""
    ncu = nsight.find()
    result: dict = {"error": "there is no ncu"} if ncu is None else {}
    timed = json.loads((folder / "bounds_times.json").read_text())["cases"]
    entries = sorted({one["entry"] for one in timed.values() if "entry" in one})
    for metrics in (_LAUNCH + _MORE, _LAUNCH) if ncu else ():
        log, list_file = folder / "ncu.csv", folder / "launched.json"
        command = nsight.ask(
            ncu, log, f"regex:^({'|'.join(entries)})$", "--cache-control", "none", "--metrics", ",".join(metrics),
            program=[sys.executable, __file__, "--launch-all", str(list_file), "--only", only],
        )  # fmt: skip
        started, said = time.perf_counter(), ""
        try:
            env = {**os.environ, "PYTHONPATH": str(ROOT)}
            run = subprocess.run(
                command, capture_output=True, text=True, timeout=NCU_SECONDS, env=env
            )
            said = run.stdout[-2000:] + run.stderr[-2000:]
        except subprocess.TimeoutExpired:
            said = f"more than {NCU_SECONDS} seconds"
        text = log.read_text("utf-8", errors="replace") if log.exists() else ""
        rows = nsight.read(text.splitlines())
        names = json.loads(list_file.read_text()) if list_file.exists() else []
        result = {
            "seconds": time.perf_counter() - started,
            "said": said,
            "launched": len(names),
            "rows": len(rows),
        }
        if not rows:
            result["log"] = text[-3000:]
        kept = {name: _metrics(row, metrics) for name, row in zip(names, rows, strict=False)}
        result["cases"] = kept
        (folder / "bounds_ncu.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        print({k: v for k, v in result.items() if k not in ("cases",)}, flush=True)
        with contextlib.suppress(OSError):
            log.unlink()
            list_file.unlink()
        if rows:
            return
    (folder / "bounds_ncu.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def _metrics(row: dict, metrics: tuple[str, ...]) -> dict:
    found = {"kernel": row.get("Kernel Name"), **{m: row[m] for m in metrics if m in row}}
    return {name: round(v, 6) if isinstance(v, float) else v for name, v in found.items()}


def simulate_all(found: dict[str, Case], file: Path) -> None:
    """The work of every case, by what the simulator counts of a few blocks; those that `file` has stay as they are."""
    data = json.loads(file.read_text()) if file.exists() else {}
    for name, case in found.items():
        if name in data:
            continue
        started = time.perf_counter()
        like = next(
            (data[other] for other in data if case.smaller and _but_size(other) == _but_size(name)),
            None,
        )
        try:
            if like is not None:
                works = like["works"]
            elif case.smaller:
                found_works = {size: work_of(case.at(size)) for size in case.smaller}
                grid = case.launch(np).grid
                blocks = extrapolated(found_works, case.size).blocks
                # a little less where whole tiles do not cover the size
                if not 0 <= np.prod(grid) - blocks <= 0.05 * np.prod(grid):
                    raise ValueError(
                        f"{blocks} blocks for a grid of {grid}: the sizes do not make a polynomial"
                    )
                works = {size: as_data(work) for size, work in found_works.items()}
            else:
                works = {0: as_data(work_of(case.launch))}
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            continue
        data[name] = {"size": case.size, "works": works}
        file.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
        print(f"{time.perf_counter() - started:6.1f} s  {name}", flush=True)


def keep_rungs(file: Path) -> None:
    """Write `helpers/measure/counted/rung_work.json` out of what `simulate_all` wrote."""
    data, known = json.loads(file.read_text()), {}
    for name, case in cases().items():
        if case.at is not None and name in data:
            kernel = case.launch(np).kernel
            known[kernel.code, kernel.entry, kernel.options] = data[name]["works"]
    rungs: dict[str, dict] = {}
    for bar, (one, settings) in bars(ladder("fp32")[-1].name).items():
        kernels = (launch.kernel for launch in one.launches(128, D, **settings))
        rungs[bar] = {k.entry: known[k.code, k.entry, k.options] for k in kernels}
    for one in (*ladder("flash"), *ladder("hopper")):
        for d in (128, 64):
            k = one.kernel(d=d)
            rungs[f"{one.name}, d = {d}"] = {k.entry: known[k.code, k.entry, k.options]}
    note = "What the simulator counts of a rung's kernels at small N, by `as_data` of helpers.simulator.bounds.demand."
    text = ",\n ".join(
        f"{json.dumps(bar)}: {_one_a_line(kernels)}" for bar, kernels in rungs.items()
    )
    (FILE).write_text(f'{{"note": {json.dumps(note)},\n"rungs": {{\n {text}}}}}\n', "utf-8")


KEPT = (
    *_LAUNCH,
    "l1tex__data_pipe_lsu_wavefronts.sum", "lts__t_sectors.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
    "sm__cycles_elapsed.max", *(metric for metric in _MORE if "stalled" in metric),
)  # fmt: skip


def merge(folder: Path, works: Path) -> None:
    """Write `tests/recorded/data/bounds_h200.json`: of each launch its time, its metrics and its work, in a line.

    Launches that DIR lacks stay as they were recorded; one of another day than the file has its own date.
    """
    times, ncu, work = (
        json.loads(file.read_text())
        for file in (folder / "bounds_times.json", folder / "bounds_ncu.json", works)
    )
    kept = json.loads(RECORDED.read_text())
    known = kept.pop("cases")
    if set(cases()) <= set(times["cases"]):
        kept, known = {key: value for key, value in times.items() if key != "cases"}, {}
    for name, timed in times["cases"].items():
        found = {int(size): work_from(one) for size, one in work[name]["works"].items()}
        size = work[name]["size"]
        done = as_data(extrapolated(found, size) if size else found[0])
        metrics = {m: ncu["cases"][name][m] for m in KEPT if m in ncu["cases"][name]}
        dated = {"date": times["date"]} if known else {}
        known[name] = {**timed, **dated, "ncu": metrics, "work": done}
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in known.items()]
    text = json.dumps(kept)[:-1] + ', "cases": {\n' + ",\n".join(lines) + "\n}}\n"
    RECORDED.write_text(text, "utf-8")


def _one_a_line(kernels: dict) -> str:
    """JSON with a line for each size."""
    parts = []
    for entry, by_size in kernels.items():
        sizes = ",\n   ".join(
            f"{json.dumps(size)}: {json.dumps(_short(work))}" for size, work in by_size.items()
        )
        parts.append(f"{json.dumps(entry)}: {{\n   {sizes}}}")
    return "{\n  " + ",\n  ".join(parts) + "}"


def _short(work: dict) -> dict:
    return {name: value for name, value in work.items() if value}


def _but_size(name: str) -> str:
    """The name of a rung's case without its N."""
    return name.rpartition(", N = ")[0] or name


def work_of(launch):
    """The work of a launch on arrays of NumPy, by two of its blocks."""
    return launch(np).simulate(copy=False, sample=2, progress=False).report.work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--simulate", type=Path)
    parser.add_argument("--rungs", type=Path)
    parser.add_argument("--merge", type=Path, nargs=2, help="DIR and FILE of the two above")
    parser.add_argument("--launch-all", type=Path)
    parser.add_argument("--only", default="", help="names of cases, with ; between them")
    given = parser.parse_args()
    found = chosen(given.only)
    if given.simulate:
        simulate_all(found, given.simulate)
    elif given.merge:
        merge(*given.merge)
    elif given.rungs:
        keep_rungs(given.rungs)
    elif given.launch_all:
        launch_all(found, given.launch_all)
    elif given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        time_all(found, given.out / "bounds_times.json")
        profile_all(given.only, given.out)


if __name__ == "__main__":
    main()
