"""A bench's results as HTML, out of the plain data of `Result.data()`: live and exported alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..kernels.listing import listing
from ..measure.tables import milliseconds
from ..show import render
from ..simulator.observe.report import COUNTERS
from .check import power

if TYPE_CHECKING:
    from markupsafe import Markup

# Counters of the summary under their headings: (group, heading). Those that a run has are shown.
SUMMARY = {
    "global_load_sectors": ("global sectors", "loaded"),
    "global_store_sectors": ("global sectors", "stored"),
    "shared_load_wavefronts": ("shared loads", "wavefronts"),
    "shared_load_bank_conflicts": ("shared loads", "conflicts"),
    "shared_store_wavefronts": ("shared stores", "wavefronts"),
    "shared_store_bank_conflicts": ("shared stores", "conflicts"),
    "barriers": ("waits at", "barriers"),
    "instructions": ("PTX", "instructions"),
}
# The few that tell one run from another in the history.
HISTORY = (
    "global_load_sectors",
    "shared_load_wavefronts",
    "shared_store_wavefronts",
    "instructions",
)
# Beside the source: requests are left out, to leave room for it.
BY_LINE = tuple(name for name in SUMMARY if name not in ("barriers", "instructions"))
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


def fragments(data: Mapping[str, Any], pictures: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the view shows of a result: `settings`, `status`, `head` and `kernels`, with HTML.

    Args:
        data: what `Result.data()` gives, or what JSON made of it.
        pictures: SVG of a kernel's run by the kernel's name.
    """
    first, _, _ = data["message"].partition("\n")
    return {
        "settings": dict(data["settings"]),
        "status": data["status"],
        "said": f"{VERDICTS[data['status']]}. {first}",
        "head": head(data),
        "kernels": [
            {
                "name": kernel["entry"],
                "html": source(kernel),
                "figure": (pictures or {}).get(kernel["entry"], ""),
            }
            for kernel in data["kernels"]
        ],
    }


def model(
    results: Sequence[Mapping[str, Any]],
    controls: Sequence[Mapping[str, Any]] = (),
    pictures: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """The state with which `bench.js` shows a sweep in a page without Python.

    Args:
        results: what `sweep` returns, or what JSON made of it; the first is shown first.
        controls: name, choices, description and so on, as `describe` gives them, of what varies; of
            the settings that differ, if left out.
        pictures: for each result, SVG by the kernel's name.

    Raises:
        ValueError: there are no results.
    """
    if not results:
        raise ValueError("There are no results to show.")
    if not controls:
        names = dict.fromkeys(name for data in results for name in data["settings"])
        found = {
            name: list(dict.fromkeys(data["settings"][name] for data in results)) for name in names
        }
        controls = [describe(name, choices) for name, choices in found.items() if len(choices) > 1]
    return {
        "title": results[0]["title"],
        "controls": list(controls),
        "wanted": {"request": 0, "settings": dict(results[0]["settings"])},
        "sweep": [
            fragments(data, shown)
            for data, shown in zip(results, pictures or [{}] * len(results), strict=True)
        ],
    }


def describe(
    name: str, choices: Sequence, description: str = "", kind: str = "parameter"
) -> dict[str, Any]:
    """A control as the page knows it."""
    return {
        "name": name,
        "label": name.replace(" timed", ", timed"),
        "choices": list(choices),
        "description": description,
        "kind": kind,
    }


def page(data: Mapping[str, Any]) -> str:
    """A result in one piece, for places where nothing can be turned."""
    return head(data) + "".join(source(kernel) for kernel in data["kernels"])


def head(data: Mapping[str, Any]) -> str:
    """The verdict, the settings that it belongs to, and the counters in a table."""
    first, _, rest = data["message"].partition("\n")
    counted = any(kernel["totals"] for kernel in data["kernels"])
    return str(
        render(
            "bench_head.html",
            data=data,
            icon=_ICONS[data["status"]],
            verdict=VERDICTS[data["status"]],
            first=first,
            rest=rest,
            settings=_of(data),
            summary=summary(data) if counted else "",
        )
    )


def summary(data: Mapping[str, Any]) -> Markup:
    """A row for each kernel, and one for all of them: counters, error, time."""
    kernels = data["kernels"]
    columns = [name for name in SUMMARY if any(name in kernel["totals"] for kernel in kernels)]
    if any("conflicts" in name for name in columns):  # there is no room for both
        columns = [name for name in columns if name != "barriers"]
    headings = [("", "kernel"), *(SUMMARY[name] for name in columns)]
    rows = [[kernel["entry"], *_counts(kernel["totals"], columns)] for kernel in kernels]
    if len(kernels) > 1:
        rows.append(["all", *_counts(data["totals"], columns)])
    texts = [0]
    if bounds := [kernel["bound"] for kernel in kernels if kernel.get("bound")]:
        group = f"bound on an {bounds[0]['gpu']}"
        texts.append(len(headings) + 1)
        headings += [(group, "µs"), (group, "limit")]
        for row, kernel in zip(rows, [*kernels, None], strict=False):
            own = kernel and kernel.get("bound")
            total = sum(bound["seconds"] for bound in bounds)
            row += [_microseconds(own["seconds"] if own else total), own["limit"] if own else ""]
    if any(kernel["checks"] for kernel in kernels):
        headings.append(("relative", "error"))
        for row, kernel in zip(rows, [*kernels, None], strict=False):
            row.append(_error(kernel["checks"]) if kernel else "")
    if any(kernel["milliseconds"] is not None for kernel in kernels):
        headings.append(_time_heading(data["timed"]))
        for row, one in zip(rows, [*kernels, data], strict=False):
            row.append(milliseconds(one["milliseconds"]))
    return _table(headings, rows, text=texts, total=len(kernels) > 1)


def source(kernel: Mapping[str, Any]) -> str:
    """The kernel's lines with the counters of each, and those of the functions that it calls."""
    by_line = {int(line): counts for line, counts in kernel["by_line"].items()}
    marks = {int(line): sentence for line, sentence in kernel.get("marks", {}).items()}
    report = SimpleNamespace(by_line=by_line, counters=dict.fromkeys(COUNTERS, 0), marks=marks)
    details = [settings_text(kernel["values"])] if kernel["values"] else []
    details += [f"grid {_shape(kernel['grid'])}", f"block {_shape(kernel['block'])}"]
    details += [f"{kernel['shared']:,} bytes shared"] if kernel["shared"] else []
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
                detail=" · ".join(details) if not number else "",
                marked=(kernel["mark"],) if inside else (),
                report=report if by_line else None,
                columns=_columns(by_line, first, last) if by_line else None,
            ).html()
        )
    return "".join(parts)


def history(past: Sequence) -> str:
    """Runs, the newest first: settings that differ, counters and times, with the change of each.

    Args:
        past: what `Session.history` holds.
    """
    if not past:
        return ""
    columns = [name for name in HISTORY if any(name in run.result.totals for run in past)]
    names = dict.fromkeys(name for run in past for name in run.result.settings)
    varied = [name for name in names if len({run.result.settings.get(name) for run in past}) > 1]
    timed = any(run.result.milliseconds is not None for run in past)
    rows = []
    for run in reversed(past):
        settings = run.result.settings
        shown = {name: settings[name] for name in varied or settings if name in settings}
        row: list[Any] = [
            f"{run.number}",
            settings_text(shown),
            VERDICTS[run.result.status].lower(),
        ]
        for name in columns:
            row.append((f"{run.result.totals.get(name, 0):,}", change(run.change(name))))
        if timed:
            row.append((milliseconds(run.result.milliseconds), change(run.change("milliseconds"))))
        rows.append(row)
    headings = [("", "run"), ("", "settings"), ("", "result"), *(SUMMARY[name] for name in columns)]
    return str(_table([*headings, *([("", "ms")] if timed else [])], rows, text=(1, 2)))


def change(part: float | None) -> str:
    """A relative change in words: `−50 %`, `×3.2`, `same`."""
    if part is None:
        return ""
    if abs(part) < 0.0005:
        return "same"
    if part >= 1:
        return f"×{part + 1:.3g}"
    return f"{'+' if part > 0 else '−'}{abs(part) * 100:.3g} %"


def settings_text(settings: Mapping[str, Any]) -> str:
    """`TILE=16 · N=128`."""
    return " · ".join(f"{name}={value}" for name, value in settings.items())


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


def _shape(sizes: Sequence[int]) -> str:
    """`2 × 8`, without trailing ones."""
    axes = max((n for n, size in enumerate(sizes, 1) if size > 1), default=1)
    return " × ".join(f"{size:,}" for size in sizes[:axes])


def _error(checks: Sequence[Mapping[str, Any]]) -> str:
    if not checks:
        return ""
    error = max(float(check["error"]) for check in checks)
    return "not written" if error == float("inf") else power(error)


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:.2f}" if seconds < 1e-5 else f"{1e6 * seconds:,.0f}"


def _time_heading(timed: Mapping[str, Any] | None) -> tuple[str, str]:
    sizes = ", ".join(f"{name} = {value:,}" for name, value in (timed or {}).items())
    return ("ms at", sizes) if sizes else ("", "ms")


def _table(
    headings: Sequence[tuple[str, str]],
    rows: Sequence[Sequence],
    text: Sequence[int] = (),
    total: bool = False,
) -> Markup:
    """A table with headings in two lines; the columns in `text` are set to the left.

    A cell is text, or text and a remark to it; the last row is set off as a `total`.
    """
    spans: list[list] = []
    for group, _ in headings:
        if spans and group and spans[-1][0] == group:
            spans[-1][1] += 1
        else:
            spans.append([group, 1])
    return render(
        "bench_table.html", groups=spans, headings=headings, rows=rows, text=text, total=total
    )


def _counts(totals: Mapping[str, int], columns: Sequence[str]) -> list[str]:
    return [f"{totals.get(name, 0):,}" for name in columns]


def _columns(by_line: Mapping[int, Mapping[str, int]], first: int, last: int) -> tuple[str, ...]:
    """The counters that some line from `first` to `last` has."""
    inside = [counts for line, counts in by_line.items() if first <= line <= last]
    return tuple(name for name in BY_LINE if any(name in counts for counts in inside))
