"""What `interact` shows for each of its settings, so that a page without Python can be turned.

Works in the notebook's kernel: `record` stands in for `ipywidgets.interact` and remembers what was
made, `sweep` runs the functions for all settings, or evenly chosen ones where there are many.
"""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import anywidget
import ipywidgets
import traitlets
from IPython import get_ipython
from IPython.utils.capture import capture_output
from ipywidgets.widgets import widget as widgets

from helpers.figures.player import Figure

LARGEST = 48  # settings of one `interact`
HEAVIEST = 3_000_000  # characters of all its results
LONGEST = 15.0  # seconds of the processor for all of them
_STYLE = re.compile(r"<style\b[^>]*>.*?</style>", re.S)
_UNSYNCED = ("layout", "tabbable", "tooltip")


class Choices(anywidget.AnyWidget):
    """Controls, and a result for each combination of their choices."""

    _esm = files(__package__).joinpath("choices.js").read_text("utf-8")
    controls = traitlets.List(traitlets.Dict()).tag(sync=True)
    settings = traitlets.Dict().tag(sync=True)
    results = traitlets.List(traitlets.Dict()).tag(sync=True)


class Recorder:
    """`interact`, remembering what it makes."""

    def __init__(self, interact):
        self._interact = interact
        self.made: list[tuple[ipywidgets.interactive, Callable]] = []

    def __call__(self, function=None, **options):
        if function is None:
            return lambda later: self(later, **options)
        done = self._interact(function, **options)
        widget = getattr(done, "widget", None)
        if widget is not None:
            self.made.append((widget, function))
        return done

    def __getattr__(self, name: str):
        return getattr(self._interact, name)


def record() -> Recorder:
    """Put a recorder in the place of `ipywidgets.interact`."""
    recorder = Recorder(ipywidgets.interact)
    ipywidgets.interact = recorder
    return recorder


def sweep(widget: ipywidgets.interactive, function: Callable) -> Choices | None:
    """The results of an `interact`; None where its controls cannot be listed.

    The function is called for each setting, and last for the one that is set, so that what it has
    changed is as it was.
    """
    controls = {child._kwarg: child for child in widget.kwargs_widgets}
    now = {name: control.value for name, control in controls.items()}
    offered = {name: values_of(control) for name, control in controls.items()}
    if not controls or any(values is None for values in offered.values()):
        return None
    figures = [one for one in list(widgets._instances.values()) if isinstance(one, Figure)]
    began = time.process_time()
    first = _run(function, now, figures)
    another = {name: next((one for one in reversed(offered[name].values()) if one != value), value)
               for name, value in now.items()}  # fmt: skip
    other = _run(function, another, figures)
    seconds = (time.process_time() - began) / 2
    pairs = zip(first["states"], other["states"], strict=True)
    weight = len(other.get("html", "")) + sum(len(str(b)) for a, b in pairs if a != b) + 1
    most = min(LARGEST, int(HEAVIEST / weight), int(LONGEST / max(seconds, 1e-3)))
    listed = thin({name: list(values) for name, values in offered.items()}, now, max(most, 2))
    results = []
    for chosen in itertools.product(*listed.values()):
        values = dict(zip(listed, chosen, strict=True))
        real = {name: offered[name][label] for name, label in values.items()}
        results.append({"settings": values, **_run(function, real, figures)})
    _run(function, now, figures)
    _keep_changes(results, [figure.model_id for figure in figures])
    labels = {
        name: next(label for label, value in offered[name].items() if value == now[name])
        for name in offered
    }
    described = [
        {"name": name, "label": controls[name].description or name, "choices": choices}
        for name, choices in listed.items()
    ]
    return Choices(controls=described, settings=labels, results=results)


def values_of(control: ipywidgets.Widget) -> dict[Any, Any] | None:
    """What a control can be set to, by label; None for one with endless choices."""
    if hasattr(control, "_options_full"):
        plain = all(isinstance(value, (int, float, str)) for _, value in control._options_full)
        return {value if plain else label: value for label, value in control._options_full}
    if isinstance(control, (ipywidgets.Checkbox, ipywidgets.ToggleButton)):
        return {False: False, True: True}
    if hasattr(control, "min") and hasattr(control, "step"):
        count = int(math.floor((control.max - control.min) / control.step + 1e-9)) + 1
        if isinstance(control, (ipywidgets.IntSlider, ipywidgets.BoundedIntText)):
            steps: Sequence = [control.min + n * control.step for n in range(count)]
        else:
            steps = [round(control.min + n * control.step, 10) for n in range(count)]
        values = sorted({*steps, control.value})
        return dict(zip(values, values, strict=True))
    return None


def thin(offered: Mapping[str, list], now: Mapping[str, Any], most: int) -> dict[str, list]:
    """Fewer choices of the controls with most of them, until there are `most` settings at most.

    What is set stays, and so does zero; otherwise the ends, and evenly what is between.
    """
    listed = {name: list(values) for name, values in offered.items()}
    while math.prod(map(len, listed.values())) > most:
        name = max(listed, key=lambda one: len(listed[one]))
        count = len(listed[name])
        if count <= 2:
            name = next((one for one in listed if len(listed[one]) == 2), None)
            if name is None:
                break
            listed[name] = [now[name]]
            continue
        wanted = min(count - 1, max(2, count * 2 // 3))
        whole = offered[name]
        kept = sorted({round(n * (len(whole) - 1) / (wanted - 1)) for n in range(wanted)})
        fixed: list[int] = []
        for value in (now[name], 0):
            if value in whole and whole.index(value) not in fixed and len(fixed) < wanted:
                place = whole.index(value)
                others = [one for one in kept if one not in fixed]
                if place not in kept:
                    kept[kept.index(min(others, key=lambda one: abs(one - place)))] = place
                fixed.append(place)
        kept.sort()
        listed[name] = [whole[place] for place in kept]
    return listed


def _run(function: Callable, values: Mapping[str, Any], figures: list) -> dict[str, Any]:
    """What a setting shows: `html`, the figure that it `returned`, and the `states` of others."""
    found: dict[str, Any] = {}
    parts = []
    try:
        with capture_output() as captured:
            returned = function(**values)
    except Exception as error:
        parts.append(f"<p>{escape(type(error).__name__)}: {escape(str(error))}</p>")
    else:
        if captured.stdout.strip():
            parts.append(f"<pre>{escape(captured.stdout)}</pre>")
        parts += [_html(output.data) for output in captured.outputs]
        if isinstance(returned, Figure):
            found["returned"] = state_of(returned)
            if returned not in figures:
                returned.close()
        elif returned is not None:
            shell = get_ipython()
            data = shell.display_formatter.format(returned)[0] if shell else {}
            parts.append(_html(data or {"text/plain": repr(returned)}))
    if parts:
        found["html"] = "".join(parts)
    return found | {"states": [state_of(figure) for figure in figures]}


def _keep_changes(results: list[dict], identities: list[str]) -> None:
    """Replace the states of all figures by `changes` of those values that differ between results.

    A figure that is returned stands for a change of the one that was returned first.
    """
    varied = [
        {
            name
            for name in results[0]["states"][place]
            if any(one["states"][place][name] != results[0]["states"][place][name]
                   for one in results)
        }
        for place in range(len(identities))
    ]  # fmt: skip
    for result in results:
        states = result.pop("states")
        changes = [
            {"target": identity, "values": {name: state[name] for name in sorted(names)}}
            for identity, state, names in zip(identities, states, varied, strict=True)
            if names
        ]
        if "returned" in result:
            changes.append({"target": "returned", "values": result.pop("returned")})
        if changes:
            result["changes"] = changes


def state_of(widget) -> dict[str, Any]:
    """The values that a page knows of a figure."""
    names = [n for n in widget.keys if not n.startswith("_") and n not in _UNSYNCED]
    return {name: getattr(widget, name) for name in names}


def _html(data: Mapping[str, Any]) -> str:
    if "text/html" in data:
        return _STYLE.sub("", data["text/html"]).strip()
    if "image/svg+xml" in data:
        svg = data["image/svg+xml"]
        return f'<div class="kernel-figure plain">{svg[svg.index("<svg") :]}</div>'
    return f"<pre>{escape(data.get('text/plain', ''))}</pre>"
