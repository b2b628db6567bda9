"""A bench's results as HTML, out of the plain data of `Result.data()`: live and exported alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from types import SimpleNamespace
from typing import Any

from .listing import listing
from .simulator.report import COUNTERS
from .tables import Table

# Counters of the summary, with their headings: those that a run has at all are shown.
SUMMARY = {
    "global_load_sectors": "global sectors loaded",
    "global_store_sectors": "global sectors stored",
    "shared_load_wavefronts": "shared wavefronts, loads",
    "shared_load_bank_conflicts": "of them conflicts",
    "shared_store_wavefronts": "shared wavefronts, stores",
    "shared_store_bank_conflicts": "of these conflicts",
    "instructions": "warp instructions",
}
# The few that tell one run from another in the history.
HISTORY = {
    "global_load_sectors": "global sectors loaded",
    "shared_load_wavefronts": "shared wavefronts, loads",
    "shared_store_wavefronts": "shared wavefronts, stores",
    "instructions": "warp instructions",
}
VERDICTS = {
    "right": "Right",
    "wrong": "Wrong",
    "refused": "Cannot run",
    "error": "Error",
}
_ICONS = {
    "right": "M9.2 16.6 4.6 12l-1.6 1.6 6.2 6.2L21.4 7.6 19.8 6z",
    "wrong": "M18.3 4.3 12 10.6 5.7 4.3 4.3 5.7l6.3 6.3-6.3 6.3 1.4 1.4 6.3-6.3 6.3 6.3 1.4-1.4"
    "-6.3-6.3 6.3-6.3z",
    "refused": "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm0 2.2c1.8 0 3.4.6 4.8 1.6L5.8 16.8A7.8 "
    "7.8 0 0 1 12 4.2zm0 15.6c-1.8 0-3.4-.6-4.8-1.6L18.2 7.2A7.8 7.8 0 0 1 12 19.8z",
    "error": "M12 2 1 21h22zm-1 7h2v6h-2zm0 8h2v2h-2z",
}


def fragments(data: Mapping[str, Any]) -> dict[str, Any]:
    """What the view shows of a result: `settings`, `status`, `head` and `kernels`, with HTML.

    Args:
        data: what `Result.data()` gives, or what JSON made of it.
    """
    return {
        "settings": dict(data["settings"]),
        "status": data["status"],
        "said": f"{VERDICTS[data['status']]}. {_first_line(data['message'])}",
        "head": head(data),
        "kernels": [
            {"name": kernel["entry"], "html": source(kernel)} for kernel in data["kernels"]
        ],
    }


def page(data: Mapping[str, Any]) -> str:
    """A result in one piece, for places where nothing can be turned."""
    return head(data) + "".join(source(kernel) for kernel in data["kernels"])


def head(data: Mapping[str, Any]) -> str:
    """The verdict, the settings that it belongs to, and the counters in a table."""
    first, _, rest = data["message"].partition("\n")
    rest = f"<pre>{escape(rest.strip(chr(10)))}</pre>" if rest.strip() else ""
    parts = [
        f'<div class="bench-verdict bench-{data["status"]}">{icon(data["status"])}<div>'
        f"<p><b>{VERDICTS[data['status']]}.</b> {escape(first)}</p>{rest}</div></div>",
        f'<p class="bench-of">{escape(_of(data))}</p>',
    ]
    if any(kernel["totals"] for kernel in data["kernels"]):
        parts.append(f'<div class="bench-wide">{summary(data)._repr_html_()}</div>')
    if data["printed"]:
        parts.append(
            '<p class="bench-of">The kernels printed:</p>'
            f'<pre class="bench-printed">{escape(data["printed"])}</pre>'
        )
    return "".join(parts)


def summary(data: Mapping[str, Any]) -> Table:
    """A row for each kernel, and one for all of them: geometry, counters, error, time."""
    kernels = data["kernels"]
    columns = [name for name in SUMMARY if any(name in kernel["totals"] for kernel in kernels)]
    timed = any(kernel["milliseconds"] is not None for kernel in kernels)
    headings = ["kernel", "blocks × threads", *(SUMMARY[name] for name in columns)]
    headings += ["relative error"] if any(kernel["checks"] for kernel in kernels) else []
    headings += [_time_heading(data["timed"])] if timed else []
    rows = []
    for kernel in kernels:
        row: list[Any] = [kernel["entry"], _geometry(kernel)]
        row += [kernel["totals"].get(name, 0) for name in columns]
        if len(headings) - timed > len(row):
            row.append(_error(kernel["checks"]))
        rows.append(row + ([milliseconds(kernel["milliseconds"])] if timed else []))
    if len(kernels) > 1:
        row = ["all", "", *(data["totals"].get(name, 0) for name in columns)]
        if len(headings) - timed > len(row):
            row.append("")
        rows.append(row + ([milliseconds(data["milliseconds"])] if timed else []))
    return Table(headings, rows)


def source(kernel: Mapping[str, Any]) -> str:
    """The kernel's lines with the counters of each, and those of the functions that it calls."""
    by_line = {int(line): counts for line, counts in kernel["by_line"].items()}
    report = SimpleNamespace(by_line=by_line, counters=dict.fromkeys(COUNTERS, 0))
    settings = ", ".join(f"{name}={value}" for name, value in kernel["values"].items())
    parts = []
    for number, (first, last) in enumerate(kernel["segments"]):
        title = f"{kernel['file']} · {kernel['entry']}"
        if number:
            title = f"{kernel['file']} · called by {kernel['entry']}"
        inside = kernel["mark"] is not None and first <= kernel["mark"] <= last
        parts.append(
            listing(
                kernel["source"],
                first,
                last,
                title=title,
                detail=settings if not number else "",
                marked=(kernel["mark"],) if inside else (),
                report=report if by_line else None,
            )._repr_html_()
        )
    return "".join(parts)


def history(past: Sequence) -> Table:
    """Runs, the newest first: settings that differ, counters and times, with the change of each.

    Args:
        past: what `Session.history` holds.
    """
    if not past:
        return Table(("run",), [])
    columns = [name for name in HISTORY if any(name in run.result.totals for run in past)]
    timed = any(run.result.milliseconds is not None for run in past)
    names = dict.fromkeys(name for run in past for name in run.result.settings)
    varied = [name for name in names if len({run.result.settings.get(name) for run in past}) > 1]
    rows = []
    for run in reversed(past):
        settings = run.result.settings
        settings = {name: settings[name] for name in varied or settings if name in settings}
        row = [f"{run.number}", settings_text(settings)]
        row.append(VERDICTS[run.result.status].lower())
        for name in columns:
            row.append(f"{run.result.totals.get(name, 0):,}{_change(run.change(name))}")
        if timed:
            amount = milliseconds(run.result.milliseconds)
            row.append(amount + (_change(run.change("milliseconds")) if amount else ""))
        rows.append(row)
    headings = ["run", "settings", "result", *(HISTORY[name] for name in columns)]
    return Table([*headings, *(["ms"] if timed else [])], rows)


def settings_text(settings: Mapping[str, Any]) -> str:
    """`TILE=16 · N=128`."""
    return " · ".join(f"{name}={value}" for name, value in settings.items())


def milliseconds(value: float | None) -> str:
    """A time with a sensible number of digits; empty for None."""
    if value is None:
        return ""
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def icon(name: str) -> str:
    """A small drawing for a verdict."""
    return f'<svg viewBox="0 0 24 24" aria-hidden="true"><path d="{_ICONS[name]}"/></svg>'


def _of(data: Mapping[str, Any]) -> str:
    text = settings_text(data["settings"])
    if not any(kernel["totals"] for kernel in data["kernels"]):
        return text
    text += " · counted on the simulator"
    if data["timed"] is not None:
        text += f", checked and timed on {data['device']}"
    elif not data["device"].startswith("simulator"):
        text += f", checked on {data['device']}"
    return text


def _geometry(kernel: Mapping[str, Any]) -> str:
    def shape(sizes: Sequence[int]) -> str:
        sizes = list(sizes)
        while len(sizes) > 1 and sizes[-1] == 1:
            sizes.pop()
        return "·".join(f"{size:,}" for size in sizes)

    return f"{shape(kernel['grid'])} × {shape(kernel['block'])}"


def _error(checks: Sequence[Mapping[str, Any]]) -> str:
    if not checks:
        return ""
    error = max(float(check["error"]) for check in checks)
    return "not all written" if error == float("inf") else f"{error:.1e}"


def _time_heading(timed: Mapping[str, Any] | None) -> str:
    sizes = ", ".join(f"{name} = {value:,}" for name, value in (timed or {}).items())
    return f"ms at {sizes}" if sizes else "ms"


def _change(part: float | None) -> str:
    if part is None:
        return ""
    if abs(part) < 0.0005:
        return " (=)"
    if part >= 1:
        return f" (×{part + 1:.3g})"
    return f" ({'+' if part > 0 else '−'}{abs(part) * 100:.3g} %)"


def _first_line(message: str) -> str:
    return message.partition("\n")[0]
