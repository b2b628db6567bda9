"""The ladder so far, as bars: recorded times of a named GPU, and beside them those of this one."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from ..kernels.source import Value
from ..measure import recorded as recordings
from ..measure import timing
from ..measure.recorded import Recorded
from ..problem.attention import make_inputs
from ..problem.ladder import LADDER, Rung
from .html import milliseconds
from .result import Result

D = 64  # columns of Q, K and V in every time of the ladder

# Milliseconds on this machine's GPU, by bar and N: what one bench has timed, another shows.
_live: dict[str, dict[int, float]] = {}


def bars(upto: str) -> dict[str, tuple[Rung, Mapping[str, Value]]]:
    """A rung, or each of its variants, by the name of its bar; from the first rung to `upto`."""
    found: dict[str, tuple[Rung, Mapping[str, Value]]] = {}
    for rung in LADDER:
        for variant, settings in (rung.variants or {"": {}}).items():
            found[f"{rung.name}, {variant}" if variant else rung.name] = rung, settings
        if rung.name == upto:
            break
    return found


def load(folder: Path = recordings.FOLDER) -> Recorded | None:
    """The recorded times that have most bars of the ladder; None if there are none."""
    names = set(bars(LADDER[-1].name)) | {rung.name for rung in LADDER}
    best, most = None, 0
    for path in sorted(folder.glob("*.json")):
        try:
            recorded = recordings.load(path.stem, folder)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # a recording of something else
        known = len(names & set(recorded.milliseconds)) if recorded else 0
        if known > most:
            best, most = recorded, known
    return best


class Ladder:
    """What a bench of a rung shows of the ladder up to it.

    Args:
        rung: its name; None for a bench of something else, which shows none.
        recorded: recorded times; those of `helpers/measure/recorded`, if left out.
    """

    def __init__(self, rung: str | None, recorded: Recorded | None = None):
        self._bars = bars(rung) if rung else {}
        self._rung = rung
        self._recorded = recorded or (load() if rung else None)

    def data(self, result: Result) -> dict[str, Any]:
        """`sizes`, the one to show first, `html` by size, and a note; empty without a ladder."""
        if not self._bars:
            return {}
        now = self._bar_of(result)
        n = (result.timed or {}).get("N")
        if now and result.status == "right" and result.milliseconds and self._usual(result, now):
            _live.setdefault(now, {})[int(n)] = result.milliseconds
        sizes = sorted(
            {
                n
                for bar in self._bars
                for times in (self._times(bar), _live.get(bar, {}))
                for n in times
            }
        )
        html = {}
        for size in sizes:
            live = {bar: _live[bar][size] for bar in self._bars if size in _live.get(bar, {})}
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
            if n in _live.get(bar, {}):
                continue
            yield f"timing {bar}"
            prepared = rung.prepare(*make_inputs(int(n), D), **settings)
            _live.setdefault(bar, {})[int(n)] = timing.measure(prepared.launch)

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
        if self._recorded is None:
            return {}
        times = self._recorded.milliseconds
        if bar not in self._bars:
            return times.get(bar, {})
        rung, _ = self._bars[bar]
        first = next(name for name, (one, _) in self._bars.items() if one is rung)
        return times.get(bar) or (times.get(rung.name, {}) if bar == first else {})

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
        if self._recorded is None or self._rung != LADDER[-1].name:
            return []
        known = {*self._bars, *(rung.name for rung in LADDER)}
        return [name for name in self._recorded.milliseconds if name not in known]

    @property
    def _device(self) -> str:
        return escape(self._recorded.device) if self._recorded else ""

    def _note(self, result: Result) -> str:
        if self._recorded is None and not any(bar in _live for bar in self._bars):
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
