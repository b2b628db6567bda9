"""What the bench gives away: sweeps, HTML, times, and the widget without a page."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from bench_problems import run, source_of, transposed

from helpers import device, kernels, timing
from helpers.bench import Problem, bench, sweep
from helpers.bench import html as bench_html
from helpers.bench import session as bench_session
from helpers.bench.ladder_bars import Ladder
from helpers.bench.session import Session
from helpers.bench.subject import subject_of
from helpers.bench.work import controls_of
from helpers.kernels import KernelError
from helpers.measure import recorded
from helpers.measure.recorded import Recording, Timed
from helpers.problem.ladder import ladder

# ------------------------------------------------------------------ the sweep


def test_sweep_gives_every_setting_as_plain_data():
    calls = []
    results = sweep(
        "padded", {"PAD": [0, 1], "TILE": [8, 16, 32]}, start={"N": 64, "d": 16},
        progress=lambda *call: calls.append(call), time=False,
    )  # fmt: skip
    settings = [(r["settings"]["PAD"], r["settings"]["TILE"]) for r in results]
    assert settings == [(0, 8), (0, 16), (0, 32), (1, 8), (1, 16), (1, 32)]
    assert {(r["settings"]["N"], r["settings"]["d"], r["status"]) for r in results} == {
        (64, 16, "right")
    }
    assert calls == [(n, 6, f"PAD={p}, TILE={t}") for n, (p, t) in enumerate(settings)]
    again = json.loads(json.dumps(results, allow_nan=False))
    assert [bench_html.page(r) for r in again] == [bench_html.page(r) for r in results]
    assert [r["milliseconds"] for r in results] == [None] * 6
    for r in results:
        for kernel in r["kernels"]:
            assert kernel["source"] == source_of(kernel["file"])
            for name in ("global_load_sectors", "shared_load_wavefronts", "instructions"):
                assert kernel["totals"].get(name, 0) == sum(
                    counts.get(name, 0) for counts in kernel["by_line"].values()
                )
        assert r["totals"]["global_load_sectors"] == sum(
            k["totals"]["global_load_sectors"] for k in r["kernels"]
        )


def test_barriers_stand_where_conflicts_take_no_room():
    """A softmax by a tree: 2 (1 + levels) + 1 barriers for each warp of each of its 32 rows."""
    small = {"N": 32, "BLOCK_SIZE": 64}
    (tree,) = sweep("04_reduction.cu", {"N": [32]}, "softmax", start=small, time=False)
    counted = 32 * 2 * (2 * (1 + 6) + 1)
    assert tree["totals"]["barriers"] == counted
    assert "waits at" in bench_html.head(tree) and f"{counted:,}" in bench_html.head(tree)
    (tiled,) = sweep("tiled", {"N": [32]}, start={"d": 16}, time=False)
    assert "conflicts" in bench_html.head(tiled) and "barriers" not in bench_html.head(tiled)


def test_sweep_keeps_going_past_what_cannot_run(subject, file):
    results = sweep(file, {"FAULT": [1, 2, 3]}, problem=transposed, rows=[21], cols=[37])
    assert [r["status"] for r in results] == ["wrong", "error", "refused"]
    json.dumps(results, allow_nan=False)  # the infinite error of an unwritten element included
    assert results[0]["error"] == "inf"
    model = bench_html.model(results)
    assert [c["name"] for c in model["controls"]] == ["FAULT"]
    assert [r["settings"]["FAULT"] for r in model["sweep"]] == [1, 2, 3]


def test_sweep_takes_declared_choices_alone():
    with pytest.raises(KernelError, match="TILE is one of 8, 16, 32, not 12"):
        sweep("tiled", {"TILE": [12]})
    with pytest.raises(KernelError, match="no control SIZE"):
        sweep("tiled", {"SIZE": [12]})


# ------------------------------------------------------------------ what is shown


def test_nothing_on_the_simulator_has_a_time(subject):
    if device.is_gpu:
        pytest.skip("a GPU has times")
    session = Session(subject)
    session.change(TILE=8)
    data = session.result.data()
    text = bench_html.page(data) + bench_html.history(session.history)
    assert not re.search(
        r"\bms\b|millisecond|second", re.sub(r"<style>.*?</style>", "", text, flags=re.S)
    )


def test_what_kernels_say_is_text_and_no_html(tmp_path):
    path = tmp_path / "say.cu"
    path.write_text('extern "C" __global__ void say(float* x) {\n    printf("<b>&%d\\n", 7);\n'
                    "    x[0] = 1;\n}\n")  # fmt: skip

    def problem(k):
        return Problem.of(k, 1, 1, {"x": np.empty(1, np.float32)}, {"x": np.ones(1)})

    result, _ = run(subject_of(path, None, problem))
    assert result.printed == "<b>&7\n" and result.status == "right"
    assert "&lt;b&gt;&amp;7" in bench_html.page(result.data())
    assert "<b>&" not in bench_html.page(result.data())


BARS = {
    "naive": {256: 2.0, 512: 8.0}, "tiled": {256: 1.0, 512: 2.0}, "reduction": {512: 1.0},
    "coalesced, transpose on store": {512: 0.5}, "library": {512: 0.25},
}  # fmt: skip
RECORDED = Recording("NVIDIA Test <9>", "", {"attention": Timed("ms", BARS)})


def test_the_ladder_shows_recorded_times_as_recorded():
    result, _ = run(subject_of("reduction"), N=32, d=16)
    data = Ladder("reduction", RECORDED, {}).data(result)
    assert data["sizes"] == [256, 512] and data["chosen"] == 512
    html = data["html"]["512"]
    assert re.findall(r'scope="row">([\w ,]+)<', html) == ["naive", "tiled", "reduction"]
    assert re.findall(r"--share:([\d.]+)%", html) == ["100.0", "25.0", "12.5"]
    assert re.findall(r"<span>([\d.]+ ms(?: \([\d.]+×\))?)<", html) == [
        "8.000 ms", "2.000 ms (4.0×)", "1.000 ms (8.0×)",
    ]  # fmt: skip
    assert "recorded on NVIDIA Test &lt;9&gt;" in html and "measured on" not in html
    assert html.count('aria-current="true"') == 1 and "no time yet" not in html
    assert "no time yet" in data["html"]["256"]
    assert data["note"] == "Recorded times: this run is simulated, and has none."
    last = Ladder(ladder("fp32")[-1].name, RECORDED, {}).data(result)
    assert 'scope="row">library<' in last["html"]["512"]  # what the last rung is compared with


def test_no_ladder_without_a_rung_and_no_times_out_of_nothing(monkeypatch):
    monkeypatch.setattr(recorded, "load", lambda *_: None)
    result, _ = run(subject_of("naive"), N=32, d=16)
    assert Ladder(None).data(result) == {}
    data = Ladder("naive", measured={}).data(result)
    assert data["sizes"] == [] and data["html"] == {} and "only a GPU can be timed" in data["note"]


# ------------------------------------------------------------------ a GPU, played by the stand-in


@pytest.fixture
def gpu(monkeypatch):
    """Everything thinks that there is a GPU; the simulator's stand-in plays it."""
    if device.is_gpu:
        pytest.skip("there is a real one")
    measured = []

    def measure(launch):
        launch()
        measured.append(launch)
        return float(len(measured))

    monkeypatch.setattr(device, "is_gpu", True)
    monkeypatch.setattr(device, "name", lambda: "Test GPU")
    monkeypatch.setattr(timing, "measure", measure)
    return measured


def test_a_gpu_is_timed_at_a_size_of_its_own(gpu, monkeypatch):
    launched, run_launch = [], kernels.Launch.run
    monkeypatch.setattr(
        kernels.Launch,
        "run",
        lambda one: (launched.append((one.kernel.entry, one.grid)), run_launch(one)),
    )
    subject = subject_of("tiled", timed=[64, 96])
    assert controls_of(subject)[-1].name == "N timed"
    result, stages = run(subject, True, N=32, d=64, **{"N timed": 96})
    assert result.status == "right" and result.timed == {"N": 96}
    assert [k.milliseconds for k in result.kernels] == [1, 2, 3] and result.milliseconds == 6
    assert result.device == "Test GPU"
    assert stages[-4:] == ["running on the GPU", "timing scaled_dot_product", "timing softmax",
                           "timing pv_multiply"]  # fmt: skip
    assert launched == [
        (name, (*grid, 1)[:3])
        for grids in (((2, 2), (1, 1), (2, 4)), ((6, 6), (1, 1), (6, 4)))  # to check, to time
        for name, grid in zip(("scaled_dot_product", "softmax", "pv_multiply"), grids, strict=True)
    ]
    html = bench_html.page(result.data())
    assert "N = 96" in html and "checked and timed on Test GPU" in html
    shown = Ladder("tiled", RECORDED, {})
    data = shown.data(result)
    assert data["chosen"] == 96 and "measured on Test GPU" in data["html"]["96"]
    assert list(shown.measure(result)) == ["timing naive"]
    assert re.findall(r"<span>([\d.]+) ms", shown.data(result)["html"]["96"]) == ["4.000", "6.000"]


def test_a_time_of_other_settings_is_no_time_of_the_ladder(gpu):
    result, _ = run(subject_of("tiled", timed=[64]), True, N=32, d=64, TILE=8)
    assert result.milliseconds == 6
    measured = {}
    Ladder("tiled", RECORDED, measured).data(result)
    assert measured == {}


def test_what_is_wrong_on_the_gpu_is_not_timed(gpu, monkeypatch):
    """The simulator is right, and the GPU gives something else."""
    from helpers import cp

    spoiled = cp.asnumpy
    monkeypatch.setattr(cp, "asnumpy", lambda array: spoiled(array) + np.float32(1))
    result, stages = run(subject_of("tiled", timed=[64]), True, N=32, d=16)
    assert result.status == "wrong" and not gpu and result.milliseconds is None
    assert "timing scaled_dot_product" not in stages


def test_what_is_wrong_on_the_simulator_never_reaches_the_gpu(gpu, file):
    subject = subject_of(file, None, transposed, rows=[21], cols=[37])
    result, stages = run(subject, True, FAULT=1)
    assert result.status == "wrong" and "running on the GPU" not in stages and not gpu


def test_memory_that_is_not_there_is_an_error_tosource_of(gpu, monkeypatch):
    monkeypatch.setattr(timing, "measure", lambda _: (_ for _ in ()).throw(MemoryError("1 GB")))
    result, _ = run(subject_of("tiled", timed=[64]), True, N=32, d=16)
    assert result.status == "error" and "The GPU could not run it: 1 GB" in result.message


@pytest.mark.gpu
def test_a_real_gpu():
    """Right there too, and a larger problem takes longer."""
    subject = subject_of("padded")
    times = []
    for n in (1024, 4096):
        result, _ = run(subject, True, N=100, PAD=0, **{"N timed": n})
        assert result.status == "right", result.message
        assert result.device == device.name() and result.timed == {"N": n}
        times.append(result.milliseconds)
    assert 0 < 4 * times[0] < times[1]
    shown = Ladder("padded", measured={})
    assert "timing naive" in list(shown.measure(result))
    assert shown.data(result)["html"]["4096"].count('class="bench-live"') >= len(ladder("fp32"))


# ------------------------------------------------------------------ the widget, without a page


def test_the_widget_answers_numbered_changes():
    widget = bench("tiled", N=[32], d=[16])
    assert widget.shown["request"] == widget.wanted["request"] == 0
    assert widget.shown["status"] == "right" and widget.settings["TILE"] == 16
    settings = {**widget.wanted["settings"], "TILE": 8}
    widget._handle_custom_msg({"request": 5, "settings": settings}, [])  # as the page does it
    assert widget.shown["request"] == 5 and widget.shown["settings"] == settings
    assert widget.result.kernels[0].block == (8, 8, 1)
    assert 'class="bench-of">TILE=8 ' in widget.shown["head"]
    widget._handle_custom_msg({"request": 6, "settings": {**settings, "TILE": 33}}, [])
    assert widget.wanted == {"request": 6, "settings": settings}  # what is not offered is put back
    widget.set(TILE=32)
    assert widget.wanted["request"] == widget.shown["request"] == 7
    widget._handle_custom_msg({"request": 7, "settings": settings}, [])  # at the same moment
    assert widget.wanted == {"request": 8, "settings": settings} and widget.shown["request"] == 8
    widget.set(TILE=32)
    assert widget.wanted["settings"]["TILE"] == 32 and widget.shown["settings"]["TILE"] == 32
    assert [past.result.settings["TILE"] for past in widget.history] == [16, 8, 32, 8, 32]
    assert "TILE=32" in repr(widget) and repr(widget).endswith(": right>")
    widget.close()


def test_messages_on_another_thread_are_worked_off_by_the_loop(monkeypatch):
    """A kernel with subshells hands them over there; a sleeping loop has to be woken up."""
    threads = set()
    change = Session.change
    monkeypatch.setattr(
        Session, "change",
        lambda *args, **settings: (threads.add(threading.get_ident()), change(*args, **settings)),
    )  # fmt: skip
    monkeypatch.setattr(bench_session, "QUIET", 1e6)

    async def notebook():
        widget = bench("naive", N=[32], d=[16])
        message = {"request": 1, "settings": widget.settings | {"TILE": 8}}
        sender = threading.Timer(0.05, lambda: widget._handle_custom_msg(message, []))
        started = asyncio.get_running_loop().time()
        sender.start()
        while widget.shown["request"] != 1:
            # Nothing but the message and what follows from it wakes this loop for long.
            await asyncio.sleep(0 if widget.state["phase"] != "idle" else 0.02)
            assert asyncio.get_running_loop().time() < started + 20
        sender.join()
        assert widget.shown["settings"]["TILE"] == 8 and threads == {threading.get_ident()}
        widget.close()

    asyncio.run(notebook())


def test_the_widget_leaves_a_result_where_there_are_no_widgets():
    widget = bench("naive", N=[32], d=[16])
    bundle, _ = widget._repr_mimebundle_()
    assert "kernel-listing" in bundle["text/html"] and "<script" not in bundle["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in bundle
    widget.close()


def test_the_core_needs_no_widgets_and_no_plots():
    code = (
        "import sys, helpers.bench as b; r = b.sweep('naive', {'TILE': [8]}, N=[32], d=[16]); "
        "assert r[0]['status'] == 'right'; import helpers.bench.html; "
        "bad = {'anywidget', 'ipywidgets', 'matplotlib', 'IPython'} & set(sys.modules); "
        "assert not bad, bad; import threading; assert threading.active_count() == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
