"""What the steps of chapter 10 changed on a named GPU: rates, waits, and what they took.

    from helpers.measure.overlap_steps import step_table
    step_table("flash_swizzled", "flash_eager")

A stall of Nsight Compute is told for each instruction that a warp issues. Steps change how many
those are, so here cycles are those that a warp spends on 16 rows of Q and 64 keys: whatever the
kernel, it is the same work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..problem.flash_inputs import flops
from ..problem.ladder import ladder
from ..show.colours import read_on
from .charts import Markup, chart, hue
from .flash_times import LARGE, REFERENCE, RIVALS
from .profile import stalls
from .recorded import OVERLAP, RecordedProfile, Recording, Shape, load, load_flash
from .roofline import least
from .tables import Table, milliseconds

__all__ = [
    "INSTRUCTIONS",
    "cycles_of_a_piece",
    "instructions_of_a_piece",
    "mask_table",
    "sizes_table",
    "step_table",
    "waiting_chart",
]

# Instructions of all warps: so many in a cycle, times the cycles. Recorded where the sum was not.
INSTRUCTIONS = ("sm__inst_executed.sum.per_cycle_elapsed", "gpc__cycles_elapsed.avg")
ISSUED = "selected"  # what Nsight Compute calls a warp that issues
_SUM = "smsp__inst_executed.sum"
_BUSY = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
_ROWS, _KEYS = 16, 64  # of a piece of work
# Those that the steps are about; a chart puts the rest together.
_CHARTED = ("wait", "math_pipe_throttle", "short_scoreboard", "long_scoreboard", "barrier")


def cycles_of_a_piece(profile: RecordedProfile) -> dict[str, float]:
    """Cycles that a warp spends on 16 rows and 64 keys, by what it does: it issues, or it waits."""
    issued = instructions_of_a_piece(profile)
    return {ISSUED: issued, **{r: c * issued for r, c in stalls(profile.metrics).items()}}


def instructions_of_a_piece(profile: RecordedProfile) -> float:
    """Instructions of a warp for 16 rows and 64 keys; with a mask, for as many scores seen."""
    b, h, n, _ = profile.shape
    seen = n * (n + 1) / 2 if profile.causal else n**2
    metrics = profile.metrics
    if _SUM in metrics:
        executed = metrics[_SUM]
    else:
        a_cycle, cycles = (metrics[name] for name in INSTRUCTIONS)
        executed = a_cycle * cycles
    return executed / (b * h * seen / (_ROWS * _KEYS))


def step_table(*rungs: str, reasons: int | Sequence[str] = 3) -> Table:
    """Recorded rates, instructions and waits of kernels beside each other.

    Args:
        rungs: names of rungs of chapters 09 and 10, or of recorded variants of them.
        reasons: to wait, as Nsight Compute calls them; or how many, of those that changed most.

    Raises:
        FileNotFoundError: nothing was recorded.
        KeyError: there is no profile of that name.
    """
    recording = _overlap()
    profiles = [_profile(recording, name) for name in rungs]
    table = recording.tables["attention"]
    taken = [table.resources[_short(name)][LARGE] for name in rungs]
    spent = [cycles_of_a_piece(profile) for profile in profiles]
    shared = [one["shared_bytes"] // 1024 for one in taken]
    rows = [
        ("TFLOPS", *(f"{table.times[_short(name)][LARGE]:.0f}" for name in rungs)),
        ("tensor cores busy", *(f"{one.metrics[_BUSY]:.1f} %" for one in profiles)),
        ("registers of a thread", *(f"{one['registers']}" for one in taken)),
    ]
    if len(set(shared)) > 1:
        rows.append(("shared memory of a block", *(f"{one} KiB" for one in shared)))
    bounds = [_bound(name, table.times[_short(name)][LARGE]) for name in rungs]
    if all(bounds):
        rows.append(("bound, of its time", *bounds))
    rows.append(("instructions", *(f"{one[ISSUED]:.0f}" for one in spent)))
    if isinstance(reasons, int):
        waits = [reason for reason in spent[0] if reason != ISSUED]
        change = {r: np.ptp([one.get(r, 0.0) for one in spent]) for r in waits}
        reasons = sorted(waits, key=change.get, reverse=True)[:reasons]
    for reason in reasons:
        cells = (f"{one.get(reason, 0.0):.0f}" for one in spent)
        rows.append((f"waits: {reason.replace('_', ' ')}", *cells))
    rows.append(("all cycles", *(f"{sum(one.values()):.0f}" for one in spent)))
    note = (
        "Instructions, waits and cycles: of a warp, for 16 rows of Q and 64 keys. Nsight Compute."
    )
    return Table((f"{recording.device}, recorded", *map(_short, rungs)), rows, note)


def waiting_chart(*rungs: str) -> Markup:
    """Where the cycles of a warp go for 16 rows and 64 keys, as a bar for each kernel.

    Args:
        rungs: as for `step_table`.

    Raises:
        FileNotFoundError, KeyError: as for `step_table`.
    """
    recording = _overlap()
    spent = {_short(name): cycles_of_a_piece(_profile(recording, name)) for name in rungs}
    parts = {name: _parts(cycles) for name, cycles in spent.items()}
    names = list(parts)

    def draw(axes):
        start = dict.fromkeys(names, 0.0)
        for number, part in enumerate(parts[names[0]]):
            lengths = [parts[name][part] for name in names]
            colour = hue(number)
            axes.barh(
                names, lengths, left=list(start.values()), color=colour, height=0.62, label=part
            )
            for place, (name, length) in enumerate(zip(names, lengths, strict=True)):
                if length >= 190:
                    axes.annotate(
                        f"{length:.0f}", (start[name] + length / 2, place), ha="center",
                        va="center", color=read_on(colour), fontsize=13,
                    )  # fmt: skip
                start[name] += length
        axes.invert_yaxis()
        axes.set_xlim(0, 1.02 * max(start.values()))
        axes.set(xlabel="cycles of a warp for 16 rows of Q and 64 keys")
        axes.set_title(f"{recording.device}, recorded", loc="left")
        axes.grid(True, axis="x")
        axes.set_axisbelow(True)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), fontsize=13)

    said = "; ".join(
        f"{name}: " + ", ".join(f"{part} {cycles:.0f}" for part, cycles in own.items())
        for name, own in parts.items()
    )
    label = f"Cycles of a warp for 16 rows of Q and 64 keys on {recording.device}. {said}."
    return chart(draw, (11.4, 2.7 + 0.15 * len(names)), label)


def sizes_table(*rungs: str, causal: bool = False, cold: bool = False) -> Table:
    """Recorded TFLOPS at all sizes, with those of PyTorch's back ends.

    Args:
        rungs: as for `step_table`.
        causal: whether a row sees only the keys up to its own.
        cold: whether the samples are short, each after a rest.

    Raises:
        FileNotFoundError: nothing was recorded.
    """
    recording = _overlap()
    what = ", ".join(("attention", *(["causal"] * causal), *(["cold"] * cold)))
    table = recording.tables[what]
    shapes = list(table.times[REFERENCE])
    rows = []
    for name in (*map(_short, rungs), *RIVALS):
        if own := table.times.get(name):
            share = own[shapes[0]] / table.times[REFERENCE][shapes[0]]
            rows.append((name, *(f"{own[shape]:.0f}" for shape in shapes), f"{share:.2f}"))
    about = "Each row sees the keys up to its own" if causal else "Each row sees all keys"
    note = f"{recording.device}, recorded. {about}. Batch × heads, n, d. {table.protocol}."
    return Table(("TFLOPS", *map(_size, shapes), f"first, of {REFERENCE}"), rows, note)


def mask_table(rung: str, more: Mapping[str, Callable[[int], str]]) -> Table:
    """Recorded times with all pairs and with a causal mask, and how much faster the mask makes it.

    Args:
        rung: name of a rung of the chapters 08 to 10.
        more: further columns: headings, and what gives their cells for n.

    Raises:
        FileNotFoundError: nothing was recorded.
        KeyError: there are no times of it.
    """
    recording, name = _overlap(), _short(rung)
    causal, all_pairs = "attention, causal, cold", recording.times("attention, cold")
    others = ""
    if name not in all_pairs:  # those of its own chapter, whose samples were long ones
        own = load_flash()
        if own is None:
            raise FileNotFoundError("No FlashAttention kernels were recorded.")
        causal, all_pairs = "attention, causal", own.times()
        others = f" All pairs: another run on an {own.device}, {own.date}."
    table = recording.tables[causal]
    rows = []
    for shape, rate in table.times[name].items():
        _, _, n, d = shape
        if d != LARGE[-1]:
            continue
        times = [flops(*shape) / all_pairs[name][shape], flops(*shape, causal=True) / rate]
        cells = [milliseconds(1e-9 * time) for time in times]
        cells += [f"{times[0] / times[1]:.2f}", *(cell(n) for cell in more.values())]
        rows.append((_size(shape), *cells))
    headings = ("all pairs, ms", "causal, ms", "times as fast", *more)
    protocol = table.protocol.rpartition("medians: ")[2]
    note = f"Batch × heads, n, d. Medians: {protocol}.{others}"
    return Table((f"{recording.device}, recorded", *headings), rows, note)


def _size(shape: Shape) -> str:
    b, h, n, d = shape
    return f"{b} × {h}, {n:,}, {d}"


def _parts(cycles: Mapping[str, float]) -> dict[str, float]:
    """The charted parts by what they are called, and the rest together."""
    named = {part.replace("_", " "): cycles.get(part, 0.0) for part in _CHARTED}
    others = sum(cycles.values()) - cycles[ISSUED] - sum(named.values())
    return {"issuing": cycles[ISSUED], **named, "other waits": others}


def _bound(name: str, rate: float) -> str:
    """The part that a rung keeps busy longest, and for what share of its time; "" of a variant."""
    if name not in {one.name for one in ladder("flash")}:
        return ""
    (by_part,) = least(name).values()
    part = max(by_part, key=by_part.get)
    return f"{part}, {by_part[part] * rate * 1e12 / flops(*LARGE):.0%}"


def _overlap() -> Recording:
    recording = load(OVERLAP)
    if recording is None:
        raise FileNotFoundError("No kernels of chapter 10 were recorded.")
    return recording


def _profile(recording: Recording, name: str) -> RecordedProfile:
    found = recording.profile(name)
    if found is None:
        raise KeyError(f"No profile of {name} was recorded.")
    return found


def _short(rung: str) -> str:
    return rung.removeprefix("flash_")
