"""The ladder so far, as bars: recorded times of a named GPU, and beside them those of this one."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from html import escape
from typing import Any

from ..measure import recorded as recordings
from ..measure import timing
from ..measure.ladder_times import D, bars
from ..measure.recorded import Recording
from ..measure.tables import milliseconds
from ..problem.attention import make_inputs
from ..problem.ladder import LADDER
from .result import Result

# Milliseconds on this machine's GPU, by bar and N: what one bench has timed, another shows.
MEASURED: dict[str, dict[int, float]] = {}


class Ladder:
    """What a bench of a rung shows of the ladder up to it.

    Args:
        rung: its name; None for a bench of something else, which shows none.
        recorded: where recorded times are from; `helpers/measure/recorded`, if left out.
        measured: times of this machine, which a bench adds its own to; those that all benches
            share, if left out.
    """

    def __init__(
        self,
        rung: str | None,
        recorded: Recording | None = None,
        measured: dict[str, dict[int, float]] | None = None,
    ):
        self._bars = bars(rung) if rung else {}
        self._rung = rung
        recorded = recorded or (recordings.load(recordings.LADDER) if rung else None)
        self._device = escape(recorded.device) if recorded else ""
        self._recorded = recorded.times() if recorded else {}
        self._live = MEASURED if measured is None else measured

    def data(self, result: Result) -> dict[str, Any]:
        """`sizes`, the one to show first, `html` by size, and a note; empty without a ladder."""
        if not self._bars:
            return {}
        now = self._bar_of(result)
        n = (result.timed or {}).get("N")
        if now and result.status == "right" and result.milliseconds and self._usual(result, now):
            self._live.setdefault(now, {})[int(n)] = result.milliseconds
        sizes = sorted(
            {
                n
                for bar in self._bars
                for times in (self._times(bar), self._live.get(bar, {}))
                for n in times
            }
        )
        html = {}
        for size in sizes:
            live = {
                bar: self._live[bar][size] for bar in self._bars if size in self._live.get(bar, {})
            }
            if now and size == n and result.status == "right" and result.milliseconds:
                live[now] = result.milliseconds
            html[str(size)] = self._drawn(size, now, live, result.device)
        chosen = n if n in sizes else (sizes[-1] if sizes else None)
        return {"sizes": sizes, "chosen": chosen, "html": html, "note": self._note(result)}

    def measure(self, result: Result) -> Generator[str, None, None]:
        """Time the other bars at the size that `result` was timed at; stages as in `work`."""
        n = (result.timed or {}).get("N")
        if n is None or not self._bars or result.status != "right":
            return
        for bar, (rung, settings) in self._bars.items():
            if n in self._live.get(bar, {}):
                continue
            yield f"timing {bar}"
            prepared = rung.prepare(*make_inputs(int(n), D), **settings)
            self._live.setdefault(bar, {})[int(n)] = timing.measure(prepared.launch)

    def _bar_of(self, result: Result) -> str | None:
        """The bar that a result belongs to: that of its rung, of the variant that it is set to."""
        for bar, (rung, settings) in self._bars.items():
            if rung.name == self._rung and settings.items() <= result.settings.items():
                return bar
        return None

    def _usual(self, result: Result, bar: str) -> bool:
        """Whether a result has the settings that its bar stands for."""
        rung, settings = self._bars[bar]
        values = {**rung.values, **settings, "d": D}
        return values.items() <= result.settings.items()

    def _times(self, bar: str) -> Mapping[int, float]:
        """Recorded milliseconds of a bar by N; those of a rung as such are its first variant's."""
        if bar not in self._bars or bar in self._recorded:
            return self._recorded.get(bar, {})
        rung, _ = self._bars[bar]
        first = next(name for name, (one, _) in self._bars.items() if one is rung)
        return self._recorded.get(rung.name, {}) if bar == first else {}

    def _drawn(self, n: int, now: str | None, live: Mapping[str, float], device: str) -> str:
        names = [*self._bars, *self._rivals]
        recorded = {bar: self._times(bar)[n] for bar in names if n in self._times(bar)}
        longest = max([*recorded.values(), *live.values()])
        rows, none = [], '<span class="bench-of">no time yet</span>'
        for bar in names:
            lines = []
            for times, kind, whose in (
                (recorded, "recorded", f"recorded, {self._device}"),
                (live, "live", device),
            ):
                if bar in times:
                    naive = times.get("naive") if bar != "naive" else None
                    lines.append(_line(times[bar], longest, naive, kind, whose))
            here = ' class="bench-now" aria-current="true"' if bar == now else ""
            drawn = "".join(lines) or none
            rows.append(f'<tr{here}><th scope="row">{escape(bar)}</th><td>{drawn}</td></tr>')
        legend = [f'<span class="bench-key bench-recorded"></span>recorded on {self._device}']
        legend = legend if recorded else []
        if live:
            legend.append(f'<span class="bench-key bench-live"></span>measured on {escape(device)}')
        return (
            f'<table class="bench-bars" aria-label="Milliseconds at N = {n:,}, d = {D}">'
            f"{''.join(rows)}</table>"
            f'<p class="bench-of">{" &ensp; ".join(legend)}. Milliseconds at N = {n:,}, d = {D}; '
            "in brackets: how many times as fast as naive.</p>"
        )

    @property
    def _rivals(self) -> list[str]:
        """What else was recorded, such as a library's own; the last rung is compared with it."""
        if self._rung != LADDER[-1].name:
            return []
        known = {*self._bars, *(rung.name for rung in LADDER)}
        return [name for name in self._recorded if name not in known]

    def _note(self, result: Result) -> str:
        if not self._recorded and not any(bar in self._live for bar in self._bars):
            return f"{timing.NO_TIMES} No recorded ones are here yet."
        if result.timed is None:
            return timing.NO_TIMES
        return ""


def _line(time: float, longest: float, naive: float | None, kind: str, whose: str) -> str:
    width = max(100 * time / longest, 0.3)
    times = f" ({naive / time:.1f}×)" if naive else ""
    return (
        f'<div class="bench-line"><i class="bench-{kind}" style="--share:{width:.1f}%" '
        f'title="{escape(whose)}"></i><span>{milliseconds(time)} ms{times}</span></div>'
    )
