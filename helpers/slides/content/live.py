"""What the exporter does inside the notebook's own kernel, before and after its cells."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Sequence

from IPython import get_ipython
from ipywidgets.widgets import widget as widgets

from ...gpu import device
from . import choices

LARGEST_SWEEP = 24  # settings of a bench that are run for a page
# Seconds of the processor, so that a busy machine makes no poorer deck, after which a sweep drops
# the controls that it has not yet turned.
LONGEST_SWEEP = 20.0


_recorder = None


def prepare() -> None:
    """Have matplotlib draw SVG, which stays sharp at any size, and remember what is `interact`."""
    global _recorder
    _recorder = choices.record()

    shell = get_ipython()
    if shell is not None:
        shell.config.InlineBackend.figure_formats = {"svg"}


def finish() -> None:
    """Run the sweeps of all benches and of all that is `interact`, and print as JSON what the
    exporter has to know: what ran the kernels, and which widget holds which results."""
    for bench in _made("helpers.bench.view", "Bench"):
        sweep(bench)
    held = {}
    for widget, function in _recorder.made if _recorder is not None else ():
        if (found := choices.sweep(widget, function)) is not None:
            held[widget.model_id] = found.model_id
    for playground in _made("helpers.figures.pictures.playground_widget", "BankPlayground"):
        # late: only where the notebook has made one, which has loaded all of it
        from ..playground_choices import choices_of

        held[playground.model_id] = choices_of(playground).model_id
    print(json.dumps({"device": device_name(), "choices": held}))


def device_name() -> str:
    """The GPU that the notebook's numbers come from, or the simulator, if it uses any."""
    if not device.chosen():
        return ""
    return device.name() if device.is_gpu else "simulator, no GPU"


def _made(module: str, name: str) -> list:
    """The widgets of a class that this kernel holds; its module is not imported for that."""
    if module not in sys.modules:
        return []
    kind = getattr(sys.modules[module], name)
    return [one for one in list(widgets._instances.values()) if isinstance(one, kind)]


def choose(controls: Sequence, most: int = LARGEST_SWEEP) -> dict[str, tuple]:
    """The controls that a page can turn: parameters first, then sizes, while the product is small.

    Those with few choices come first: a switch is an idea, a long list only a number.

    Args:
        controls: `name`, `choices` and `kind` of each, in the order of the bench.
        most: largest number of settings.
    """
    chosen: dict[str, tuple] = {}
    for kind in ("parameter", "size"):
        for control in sorted(controls, key=lambda one: len(one.choices)):
            count = math.prod(map(len, chosen.values())) * len(control.choices)
            if control.kind == kind and len(control.choices) > 1 and count <= most:
                chosen[control.name] = tuple(control.choices)
    return {one.name: chosen[one.name] for one in controls if one.name in chosen}


def running(chosen: dict[str, tuple], found: Sequence) -> tuple[dict[str, tuple], list]:
    """Without choices with which nothing runs, whatever the others are: they would show nothing.

    Args:
        chosen: choices by the name of their control.
        found: the results of all their combinations.

    Returns:
        What is left of both; a control with a single choice is none.
    """
    kept = {
        name: tuple(
            value for value in values
            if any(one.settings[name] == value and one.status != "refused" for one in found)
        )
        for name, values in chosen.items()
    }  # fmt: skip
    if not all(kept.values()):
        return chosen, list(found)
    left = [one for one in found if all(one.settings[name] in kept[name] for name in kept)]
    return {name: values for name, values in kept.items() if len(values) > 1}, left


def sweep(bench, most: int = LARGEST_SWEEP, longest: float = LONGEST_SWEEP) -> None:
    """Give a bench the results of all settings of a few controls, for a page without Python."""
    # late: only where the notebook has made one, which has loaded all of it
    from helpers.bench import html as bench_html
    from helpers.bench.entry import sweep_results
    from helpers.bench.view import pictures

    from .sweep_chart import charts  # late: as above

    session = bench._session
    controls = session.controls
    began = time.process_time()
    settings = dict(session.settings)
    sweep_results(session.subject, {}, settings, time=False)
    one = time.process_time() - began
    chosen = choose(controls, max(2, min(most, int(longest / max(one, 1e-3)))))
    chosen, found = running(chosen, sweep_results(session.subject, chosen, settings))
    results = [result.data() for result in found]
    described = [
        bench_html.describe(c.name, chosen[c.name], c.description, c.kind)
        for c in controls
        if c.name in chosen
    ]
    state = bench_html.model(results, described, [pictures(result) for result in found])
    for fragment, chart in zip(state["sweep"], charts(results, list(chosen)), strict=True):
        fragment["head"] += chart
    session.close()
    with bench.hold_sync():
        bench.controls = state["controls"]
        bench.sweep = state["sweep"]
        bench.wanted = {"request": session.request, "settings": settings}
