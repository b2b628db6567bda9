"""The ladder so far, as bars: recorded times of a named GPU, and beside them those of this one."""

from collections.abc import Generator, Mapping
from typing import Any

from ..measure import recorded as recordings
from ..measure.ladder_times import D, attention_time, bars
from ..measure.recorded import Recording
from ..measure.tables import milliseconds
from ..measure.times import NO_TIMES
from ..problem import ladder as rungs
from ..show import render
from .result import Result

# Milliseconds on this machine's GPU, by bar and N: what one bench has timed, another shows.
MEASURED: dict[str, dict[int, float]] = {}
_SIMULATED = "Recorded times: this run is simulated, and has none."


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
        self._device = recorded.device if recorded else ""
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
        measured = {bar: self._live.get(bar, {}) for bar in self._bars}
        sizes = sorted(set().union(*map(self._times, measured), *measured.values()))
        html = {}
        for size in sizes:
            live = {bar: times[size] for bar, times in measured.items() if size in times}
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
            self._live.setdefault(bar, {})[int(n)] = attention_time(rung, settings, int(n))

    def _bar_of(self, result: Result) -> str | None:
        """The bar that a result belongs to: that of its rung, of the variant that it is set to."""
        found = (
            bar
            for bar, (rung, settings) in self._bars.items()
            if rung.name == self._rung and settings.items() <= result.settings.items()
        )
        return next(found, None)

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
        kinds = [("recorded", f"recorded on {self._device}", f"recorded, {self._device}", recorded)]
        kinds += [("live", f"measured on {device}", device, live)]

        def parts(bar: str) -> list[tuple]:
            return [
                (kind, max(100 * times[bar] / longest, 0.3), whose, _told(bar, times))
                for kind, _, whose, times in kinds
                if bar in times
            ]

        html = render(
            "bench_bars.html",
            what=f"Milliseconds at N = {n:,}, d = {D}",
            now=now,
            bars=[(bar, parts(bar)) for bar in names],
            legend=[(kind, words) for kind, words, _, times in kinds if times],
        )
        return str(html)

    @property
    def _rivals(self) -> list[str]:
        """What else was recorded, a library's own, if the rung is compared with it."""
        if not (self._rung and rungs.rung(self._rung, "fp32").compared):
            return []
        known = {*self._bars, *(one.name for one in rungs.ladder("fp32"))}
        return [name for name in self._recorded if name not in known]

    def _note(self, result: Result) -> str:
        if not self._recorded and not any(bar in self._live for bar in self._bars):
            return f"{NO_TIMES} No recorded ones are here yet."
        if result.timed is None:
            return _SIMULATED
        return ""


def _told(bar: str, times: Mapping[str, float]) -> str:
    """A time in words, and how many times as fast as naive's it is."""
    naive = times.get("naive") if bar != "naive" else None
    return f"{milliseconds(times[bar])} ms" + (f" ({naive / times[bar]:.1f}×)" if naive else "")
