"""The profile lens: what Nsight Compute reads of one launch, beside what the simulator counts.

    from helpers import profile
    profile(kernel, grid, block, args)

Nsight Compute starts programs and cannot look into one that runs, so the launch is repeated in a
process of its own. Where there is no GPU, no Nsight Compute or no permission to read counters, a
sentence says so, and what was recorded of the kernel on a named GPU stands in.

It takes seconds, so a chapter may `begin` a profile that a later cell shows.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ..gpu import device
from ..gpu import lock as gpu_lock
from ..gpu.tensor_map import MappedArray, tensor_map
from ..kernels.launches import Launch
from ..simulator.errors import Headlined
from ..simulator.observe.report import NCU_METRICS
from . import nsight, timing
from .recorded import flash_recordings
from .tables import Table

# What a profile shows beside the memory counters: name in the table, metric, unit.
UTILISATION = (
    (
        "data pipe of shared memory and L1, busy",
        "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
        "%",
    ),
    ("tensor cores, busy", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%"),
    (
        "cycles that issue an instruction",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
        "%",
    ),
    ("instructions of all warps", "smsp__inst_executed.sum", ""),
    ("L2 cache, busy", "lts__throughput.avg.pct_of_peak_sustained_elapsed", "%"),
    ("GPU memory, busy", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%"),
    ("warps on a multiprocessor", "sm__warps_active.avg.per_cycle_active", ""),
    ("registers a thread", "launch__registers_per_thread", ""),
    ("duration", "gpu__time_duration.sum", "ns"),
)
_CLOCK = ("gpc__cycles_elapsed.avg.per_second", "launch__sm_count")
# Why a warp did not issue, as the metrics call it: Nsight Compute's manual, "Warp Stall Reasons".
REASONS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle",
    "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction",
    "not_selected", "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
PROFILED = (
    *NCU_METRICS.values(),
    *(metric for _, metric, _ in UTILISATION),
    *_CLOCK,
    *map(_STALL.format, REASONS),
)
# Loads that bring nothing stand where the assembler wants them: how many, PTX does not tell.
_PLACED_BY_PTXAS = "shared_load_instructions"
# Accesses that meet others there cost a GPU more than each alone, and who meets whom is chance.
_AT_BANKS = [name for name in NCU_METRICS if "wavefronts" in name or "conflicts" in name]
_MEETING = (
    "Accesses that meet others at the banks take more wavefronts on a GPU: not the same in each "
    "launch. The simulator counts each access by itself."
)
_LEAST = 0.01  # of all stalls; reasons below it are left out of a table
_FORBIDDEN = "ERR_NVGPUCTRPERM"

_begun: dict[str, Future] = {}  # profiles under way or done, by their launches; each is taken once


class ProfileError(Headlined, RuntimeError):
    """Why a launch cannot be profiled here, in one sentence."""

    headline = "This cannot be profiled here"


class Profile(Table):
    """What was read of a launch, as a table.

    Attributes:
        gpu: whose metrics these are; empty if there are none.
        live: whether they were read here and now.
        why_not: the sentence that says why they were not; empty if they were.
        metrics: values by Nsight Compute's own names.
        report: the simulator's report of the launch, or None.
    """

    def __init__(
        self,
        gpu: str,
        metrics: Mapping[str, float],
        report=None,
        why_not: str = "",
        counters: Mapping[str, int] | None = None,
        shape: tuple[int, ...] = (),
    ):
        self.gpu, self.metrics, self.report = gpu, dict(metrics), report
        self.why_not, self.live = why_not, not why_not
        if counters is None and self.live:
            counters = {n: metrics[m] for n, m in NCU_METRICS.items() if m in metrics}
        counters = counters or {}
        counted = report.counters if report is not None else {}
        rows = [
            (name.replace("_", " "), _whole(counters.get(name)), _whole(counted.get(name)))
            for name in NCU_METRICS
            if name != _PLACED_BY_PTXAS and _occurs(name, counters, counted)
        ]
        for label, metric, unit in UTILISATION:
            if metric in metrics:
                rows.append((label, _with_unit(metrics[metric], unit), ""))
        shares = _shares(self.stalls)
        for reason in sorted(shares, key=shares.get, reverse=True):
            if shares[reason] >= _LEAST:
                value = f"{self.stalls[reason]:.2f} cycles, {shares[reason]:.1%} of stalls"
                rows.append((f"stalled: {_plain(reason)}", value, ""))
        notes = [why_not] if why_not else []
        if why_not and gpu:
            of = f" at (batch, heads, n, d) = {shape}" if shape else ""
            notes.append(f"Recorded: the utilisation and the stalls are those of a launch{of}.")
            if not counters:
                notes.append("No counters were recorded of a launch of this size.")
        if any(counters.get(name, 0) > counted.get(name, np.inf) for name in _AT_BANKS):
            notes.append(_MEETING)
        if self.stalls:
            notes.append("Stalls: cycles that a warp waits for each instruction that it issues.")
        where = f"Nsight Compute, {gpu}{'' if self.live else ', recorded'}" if gpu else "GPU"
        super().__init__(("", where, "simulator"), rows, " ".join(notes))

    @property
    def stalls(self) -> dict[str, float]:
        """Cycles that a warp waits for each instruction that it issues, by reason."""
        return stalls(self.metrics)


def profile(
    kernel, grid=None, block=None, args=None, shared_mem: int = 0, *, count: bool = True,
    seconds: float = 180,
) -> Profile:  # fmt: skip
    """Profile one launch with Nsight Compute, if it can be done here; say why not otherwise.

    Args:
        kernel: a kernel of `load_kernel`; or a `Launch`, such as `FlashRung.launch_of` makes, and
            then nothing else.
        grid, block, args, shared_mem: as for a launch; `args` stay as they are.
        count: whether the simulator counts the launch too, which takes long for large ones.
        seconds: how long Nsight Compute may take.

    Raises:
        KernelError: an argument does not fit.
        SimulatorError: the simulator counts the launch, and the kernel does something wrong.
    """
    launch = kernel if grid is None else Launch.of(kernel, grid, block, args, shared_mem)
    report = launch.count() if count else None
    try:
        begun = _begun.pop(_identity(launch), None) if _begun else None
        metrics = _measure(launch, seconds) if begun is None else begun.result()
        return Profile(device.name(), metrics, report)
    except ProfileError as error:
        return _recorded(launch, report, str(error))


def begin(launch: Launch, seconds: float = 180) -> Future:
    """Begin to profile a launch behind the cells that come; `profile` of it then waits for that.

    Nothing is timed in this process before it has ended. What it gives is taken once: who asks
    again has the launch profiled again.

    Args:
        launch: as for `profile`; it stays as it is.
        seconds: how long Nsight Compute may take.
    """
    pool = ThreadPoolExecutor(1, "profile")
    begun = _begun[_identity(launch)] = pool.submit(_measure, launch, seconds)
    pool.shutdown(wait=False)
    timing.begun.append(begun)
    return begun


def stalls(metrics: Mapping[str, float]) -> dict[str, float]:
    """Cycles that a warp waits for each instruction that it issues, by reason.

    A warp that issues (`selected`) does not wait and is not among them.
    """
    return {r: float(metrics[_STALL.format(r)]) for r in REASONS if _STALL.format(r) in metrics}


def stall_table(profiles: Mapping[str, Mapping[str, float]], least: float = 0.02) -> Table:
    """The reasons of several profiles beside each other, as shares of all stalls.

    Args:
        profiles: metrics by the name to show.
        least: reasons that have a smaller share in all of them are left out.
    """
    shares = {name: _shares(stalls(metrics)) for name, metrics in profiles.items()}
    cycles = [f"{sum(stalls(metrics).values()):.2f}" for metrics in profiles.values()]
    top = {r: max(share.get(r, 0.0) for share in shares.values()) for r in REASONS}
    rows = [
        (_plain(reason), *(f"{share.get(reason, 0.0):.1%}" for share in shares.values()))
        for reason in sorted(REASONS, key=top.get, reverse=True)
        if top[reason] >= least
    ]
    rows.append(("all, in cycles for each instruction", *cycles))
    return Table(("a warp waits for", *shares), rows)


# ---------------------------------------------------------------- recorded


def _recorded(launch, report, why_not: str) -> Profile:
    """What was recorded of the kernel of a launch; an empty profile if nothing was."""
    k = launch.kernel
    recording = next((one for one in flash_recordings() if one.profile(k.file.name)), None)
    found = recording.profile(k.file.name) if recording else None
    if recording is None or found is None:
        return Profile("", {}, report, f"{why_not} No profile of {k.file.name} was recorded.")
    shape = _shape(launch)
    counters = recording.counted(k.file.name, shape, k.parameters) if shape else None
    return Profile(recording.device, found.metrics, report, why_not, counters or {}, found.shape)


def _shape(launch) -> tuple[int, int, int, int] | None:
    """Batch, heads, n and d of a launch of a FlashAttention kernel."""
    names = [argument.name for argument in launch.kernel.arguments]
    parameters = launch.kernel.parameters
    if "n" not in names or "HEAD_DIM" not in parameters:
        return None
    grid = (*launch.grid, 1, 1)
    return grid[2], grid[1], int(launch.args[names.index("n")]), parameters["HEAD_DIM"].value


# ---------------------------------------------------------------- measured


def _measure(launch, seconds: float) -> dict[str, float]:
    """PROFILED of a launch, by Nsight Compute in a process of its own; or a ProfileError."""
    if not device.is_gpu:
        raise ProfileError(device.notice or "There is no GPU here to profile.")
    ncu = nsight.find()
    if ncu is None:
        raise ProfileError(
            "There is no Nsight Compute (ncu) on this machine: it comes with the CUDA toolkit."
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _pack(launch, folder)
        log = folder / "ncu.csv"
        command = nsight.ask(
            ncu, log, launch.kernel.entry, "--launch-count", "1", "--metrics", ",".join(PROFILED),
            program=[sys.executable, "-m", __name__, str(folder)],
        )  # fmt: skip
        root = str(Path(__file__).resolve().parents[2])
        paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        try:
            with gpu_lock.one_at_a_time(gpu_lock.gpu_uuid(device.cp)):
                done = subprocess.run(
                    command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                    timeout=seconds, env={**os.environ, "PYTHONPATH": paths},
                )  # fmt: skip
        except gpu_lock.GpuBusy as error:
            raise ProfileError(str(error)) from None
        except subprocess.TimeoutExpired:
            raise ProfileError(f"Nsight Compute took more than {seconds:g} seconds.") from None
        except OSError as error:
            raise ProfileError(f"Nsight Compute cannot be started: {error}.") from None
        text = log.read_text("utf-8", errors="replace") if log.exists() else ""
    if _FORBIDDEN in text + done.stdout:
        raise ProfileError(
            f"The driver lets only administrators read the GPU's counters ({_FORBIDDEN}): have "
            "the nvidia module loaded with NVreg_RestrictProfilingToAdminUsers=0."
        )
    row = next(iter(nsight.read(text.splitlines())), {})
    # A GPU of another generation does not have all of them.
    metrics = {m: float(row[m]) for m in PROFILED if isinstance(row.get(m), (int, float))}
    if done.returncode or not metrics:
        said = [line.strip(" =") for line in (text + "\n" + done.stdout).splitlines()]
        last = next((line for line in reversed(said) if line), "it said nothing")
        raise ProfileError(f"Nsight Compute gave no profile (status {done.returncode}): {last}.")
    return metrics


def _identity(launch) -> str:
    """What tells a launch from others: its code, its geometry, and what it reads."""
    k = launch.kernel
    parts = [k.code, k.entry, k.options, launch.grid, launch.block, launch.shared_mem]
    found = hashlib.sha256(repr(parts).encode())
    for argument, value in zip(k.arguments, launch.args, strict=True):
        array = value.array if isinstance(value, MappedArray) else value
        if not hasattr(array, "dtype") or not array.shape:
            found.update(repr(value).encode())
            continue
        mapped = (value.box, value.swizzle) if array is not value else ()
        found.update(repr((array.shape, array.dtype.str, mapped)).encode())
        if argument.constant or array is not value:  # else it may be there to be written
            host = array if isinstance(array, np.ndarray) else device.cp.asnumpy(array)
            found.update(np.ascontiguousarray(host).tobytes())
    return found.hexdigest()


def _pack(launch, folder: Path) -> None:
    """Write down a launch: what `_replay` reads in another process."""
    k = launch.kernel
    values, keys, args = {}, {}, []
    for number, value in enumerate(launch.args):
        # A tensor map holds an address, which is another one there: its array goes, and what it is.
        mapped = (value.box, value.swizzle) if isinstance(value, MappedArray) else None
        value = value.array if mapped else value
        # An array that is passed twice stays one array.
        key = keys.setdefault(id(value), f"value{number}")
        pointer = bool(k.arguments[number].pointer or mapped)
        if pointer:
            value = value if isinstance(value, np.ndarray) else device.cp.asnumpy(value)
        values[key] = value
        args.append([key, pointer, mapped])
    np.savez(folder / "values.npz", **values)
    data = {
        "code": k.code,
        "entry": k.entry,
        "options": list(k.options),
        "grid": list(launch.grid),
        "block": list(launch.block),
        "shared_mem": launch.shared_mem,
        "args": args,
    }
    (folder / "launch.json").write_text(json.dumps(data), "utf-8")


def _replay(folder: Path) -> list:
    """Make the launch that `_pack` wrote down; returns its arguments."""
    data = json.loads((folder / "launch.json").read_text("utf-8"))
    with np.load(folder / "values.npz") as values:
        made = {
            key: device.cp.asarray(values[key]) if pointer else values[key][()]
            for key, pointer, _ in data["args"]
        }
    kernel = device.cp.RawKernel(data["code"], data["entry"], options=tuple(data["options"]))
    if data["shared_mem"]:
        kernel.max_dynamic_shared_size_bytes = data["shared_mem"]
    args = [tensor_map(made[key], *how) if how else made[key] for key, _, how in data["args"]]
    kernel(tuple(data["grid"]), tuple(data["block"]), tuple(args), shared_mem=data["shared_mem"])
    device.cp.cuda.Device().synchronize()
    return args


# ---------------------------------------------------------------- words


def _shares(found: Mapping[str, float]) -> dict[str, float]:
    total = sum(found.values())
    return {reason: cycles / total for reason, cycles in found.items()} if total else {}


def _plain(reason: str) -> str:
    return reason.replace("_", " ")


def _occurs(name: str, *counters: Mapping[str, float]) -> bool:
    """Whether a counter is worth a row: not zero, or bank conflicts that could have been."""
    possible = name.replace("bank_conflicts", "wavefronts")
    return any(c.get(possible) for c in counters)


def _whole(value) -> str:
    return "" if value is None else f"{value:,.0f}"


def _with_unit(value: float, unit: str) -> str:
    if unit == "ns":
        return f"{value / 1e6:,.3f} ms"
    if unit == "%":
        return f"{value:.1f} %"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    _replay(Path(sys.argv[1]))
