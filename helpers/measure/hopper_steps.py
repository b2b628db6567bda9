"""What the steps of chapter 11 gave on a named GPU, and what its parts take at least.

from helpers.measure.hopper_steps import steps
steps("flash_rescale", "flash_wgmma")
"""

from __future__ import annotations

from collections.abc import Sequence

from ..simulator import gpu
from .facts import load_facts
from .flash_times import LARGE, REFERENCE, RIVALS, recording_of
from .overlap_steps import ISSUED, cycles_of_a_piece
from .profile import UTILISATION
from .recorded import HOPPER, RecordedProfile, Recording, Shape, load
from .tables import Table

__all__ = ["least_clocks", "moved", "reach_of_wgmma", "short", "sizes", "steps"]

COLD, SUSTAINED = "attention, cold", "attention"
_BEST = "cuDNN"
GPU = "H200"
METRICS = {label: metric for label, metric, _ in UTILISATION}
CLOCK = "gpc__cycles_elapsed.avg.per_second"


def steps(*rungs: str, shape: Shape = LARGE) -> Table:
    """Recorded TFLOPS of kernels beside each other, and what a thread and a block take.

    Args:
        rungs: names of rungs, or of recorded variants such as `flash_ahead, waits early`.
        shape: batch, heads, n and d.

    Raises:
        FileNotFoundError: nothing was recorded.
        KeyError: there is no such name.
    """
    recording = hopper_recording()
    cold, warm = (recording.tables[what] for what in (COLD, SUSTAINED))
    rows = []
    for name in map(short, rungs):
        rates = [table.times[name][shape] for table in (cold, warm)]
        shares = [
            rate / table.times[_BEST][shape]
            for rate, table in zip(rates, (cold, warm), strict=True)
        ]
        row = [*(f"{rate:.0f}" for rate in rates), *(f"{share:.2f}" for share in shares)]
        took = warm.resources.get(name, {}).get(shape)
        row += [f"{took['registers']}", f"{took['shared_bytes'] // 1024} KiB"] if took else ["", ""]
        rows.append((name, *row))
    headings = (
        f"{recording.device}, recorded", "TFLOPS, cold", "sustained", "of cuDNN, cold", "sustained",
        "registers", "shared memory",
    )  # fmt: skip
    b, h, n, d = shape
    note = f"Batch {b}, {h} heads, n = {n:,}, d = {d}, fp16. Cold: short bursts, each after a rest."
    return Table(headings, rows, note)


def moved(*rungs: str, reasons: Sequence[str] = ()) -> Table:
    """What Nsight Compute counted of kernels beside each other: what a step moved, beside time.

    Args:
        rungs: names of rungs of chapters 10 and 11, or of variants of them.
        reasons: why a warp waits, as Nsight Compute calls it, a row each.

    Raises:
        KeyError: there is no profile of that name.
    """
    profiles = [profile_of(name) for name in rungs]
    spent = [cycles_of_a_piece(one) for one in profiles]

    def row(label: str, values: Sequence[float], form: str) -> tuple[str, ...]:
        return (label, *(form.format(value) for value in values))

    def metric(name: str) -> list[float]:
        return [one.metrics[name] for one in profiles]

    rows = [
        row("tensor cores busy", metric(METRICS["tensor cores, busy"]), "{:.1f} %"),
        row("clock of the GPU", [one / 1e6 for one in metric(CLOCK)], "{:,.0f} MHz"),
        row("warps on a multiprocessor", metric(METRICS["warps on a multiprocessor"]), "{:.1f}"),
        row("instructions", [one[ISSUED] for one in spent], "{:.0f}"),
    ]
    for reason in reasons:
        waits = [one.get(reason, 0.0) for one in spent]
        rows.append(row(f"waits, in cycles: {reason.replace('_', ' ')}", waits, "{:.0f}"))
    note = "Nsight Compute, one launch. Instructions, waits: a warp's, for 16 rows and 64 keys"
    note += ", or as many scores that rows see." if any(one.causal for one in profiles) else "."
    return Table((f"{hopper_recording().device}, recorded", *map(short, rungs)), rows, note)


def sizes(*rungs: str, causal: bool = False, cold: bool = True) -> Table:
    """Recorded TFLOPS at all sizes, each with its share of cuDNN's.

    Args:
        rungs: as for `steps`.
        causal: whether a row sees only the keys up to its own.
        cold: whether samples are short bursts, each after a rest.

    Raises:
        FileNotFoundError: nothing was recorded.
    """
    recording = hopper_recording()
    what = ", ".join(("attention", *(["causal"] * causal), *(["cold"] * cold)))
    table = recording.tables[what]
    shapes = list(table.times[REFERENCE])
    rows = []
    for name in (*map(short, rungs), *RIVALS):
        own = table.times.get(name, {})
        if not own:
            continue  # it came later than the recording
        cells = (f"{own[s]:.0f} ({own[s] / table.times[_BEST][s]:.2f})" if s in own else ""
                 for s in shapes)  # fmt: skip
        rows.append((name, *cells))
    about = "Each row sees the keys up to its own" if causal else "Each row sees all keys"
    heads = [f"{b} × {h}, {n:,}, {d}" for b, h, n, d in shapes]
    note = (
        f"{recording.device}, recorded. In brackets: of cuDNN. {about}. Batch × heads, n, d. "
        f"{table.protocol}."
    )
    return Table(("TFLOPS", *heads), rows, note)


def reach_of_wgmma(*rungs: str) -> Table:
    """Recorded TFLOPS beside the most that both kinds of tensor core instructions can give.

    Args:
        rungs: as for `steps`.

    Raises:
        FileNotFoundError: nothing was recorded.
    """
    recording, facts = hopper_recording(), load_facts()
    most, old = facts.data_sheet["tensor_fp16_TFLOPS"], facts.mma_tflops
    table = recording.tables[COLD]
    rows = [("wgmma, data sheet", f"{most:.0f}", "100 %", "")]
    rows.append(("mma.sync, measured", f"{old:.0f}", f"{100 * old / most:.0f} %", "100 %"))
    for name in (*map(short, rungs), *RIVALS):
        rate = table.times[name][LARGE]
        shares = (f"{100 * rate / one:.0f} %" for one in (most, old))
        rows.append((name, f"{rate:.0f}", *shares))
    headings = (f"{recording.device}, recorded", "TFLOPS", "of wgmma's", "of mma.sync's")
    return Table(headings, rows, f"Cold: {table.protocol.rpartition(': ')[2]}.")


def least_clocks(rows: int = 64, keys: int = 64, d: Sequence[int] = (128, 64)) -> Table:
    """Clocks of a multiprocessor that parts of a tile's work take at least, each alone.

    Products are 4 rows keys d operations, exponentials rows keys; rates are of `gpu("H200")`.
    """
    chip, scores = gpu(GPU), rows * keys
    parts = {
        "products by mma.sync": [4 * scores * one / chip.tensor["fp16"] for one in d],
        "products by wgmma": [4 * scores * one / chip.wgmma["fp16"] for one in d],
        "exponentials": [scores / chip.special for _ in d],
    }
    found = [(name, *(f"{clocks:.0f}" for clocks in own)) for name, own in parts.items()]
    note = (
        f"Clocks of a multiprocessor of an {chip.name} at least, for {rows} rows and {keys} keys."
    )
    return Table(("", *(f"d = {one}" for one in d)), found, note)


def profile_of(name: str) -> RecordedProfile:
    # what was profiled with a mask has its times under another name
    recordings = filter(None, (recording_of(name), hopper_recording()))
    found = next(filter(None, (one.profile(name) for one in recordings)), None)
    if found is None:
        raise KeyError(f"No profile of {name} was recorded.")
    return found


def short(rung: str) -> str:
    """A rung's name without `flash_`, as recordings have it."""
    return rung.removeprefix("flash_")


def hopper_recording() -> Recording:
    recording = load(HOPPER)
    if recording is None:
        raise FileNotFoundError("No kernels of chapter 11 were recorded.")
    return recording
