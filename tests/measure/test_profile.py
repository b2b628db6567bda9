"""The profile lens: what Nsight Compute is asked, what is made of its answer, and why it is not."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from helpers import device, profile, timing
from helpers.kernels import KernelError, load_kernel
from helpers.measure import nsight
from helpers.measure import profile as profile_module
from helpers.measure.profile import (
    PROFILED,
    Launch,
    _pack,
    _replay,
    stall_table,
    stalls,
)
from helpers.measure.recorded import FLASH, FOLDER, load_flash
from helpers.problem.flash import FLASH_BASELINE, FLASH_SWIZZLED
from helpers.problem.flash_hopper import FLASH_PING_PONG, FLASH_TMA
from helpers.problem.flash_inputs import make_inputs
from helpers.problem.flash_overlap import FLASH_RESCALE

# Stands in for ncu: keeps its arguments, runs the program, and writes a page of one kernel.
FAKE = """#!{python}
import csv, json, pathlib, subprocess, sys
arguments = sys.argv[1:]
value = dict(zip(arguments, arguments[1:]))
program = arguments[arguments.index("--log-file") + 2:]
pathlib.Path(r"{folder}/asked.json").write_text(json.dumps(arguments))
status = subprocess.run(program).returncode
rows = json.loads(pathlib.Path(r"{folder}/page.json").read_text())
with open(value["--log-file"], "w", newline="") as log:
    print("==PROF== Connected to process 1", file=log)
    csv.writer(log, quoting=csv.QUOTE_ALL).writerows(rows)
sys.exit(status)
"""


def flash_launch(rung=FLASH_BASELINE, n=96, d=64, **parameters):
    Q, K, V = make_inputs(1, 2, n, d, seed=3)
    return rung.with_parameters(**parameters).launch_of(Q, K, V, np.zeros_like(Q))


def program(folder, text: str) -> None:
    """A program of the name ncu in a folder."""
    path = folder / "ncu"
    path.write_text(text.format(python=sys.executable, folder=folder))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def page(folder, values: dict[str, str]) -> None:
    """What the program says of a kernel: headings, units, values."""
    names = ["ID", "Kernel Name", *values]
    rows = [names, ["", "", *("cycle" for _ in values)], ["0", "k", *values.values()]]
    (folder / "page.json").write_text(json.dumps(rows))


@pytest.fixture
def ncu(monkeypatch, tmp_path):
    """A machine with a GPU and with a program called ncu in `tmp_path`."""
    monkeypatch.setattr(device, "is_gpu", True)
    monkeypatch.setattr(device, "name", lambda: "NVIDIA GPU of a test")
    monkeypatch.setenv("HELPERS_DEVICE", "simulator")  # for the process that it starts
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    program(tmp_path, FAKE)
    return tmp_path


# ------------------------------------------------------------------ measured


def test_a_profile_is_what_ncu_says(ncu):
    values = {name: str(number) for number, name in enumerate(PROFILED, 1)}
    values["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] = "1,234"
    page(ncu, values)
    launch = flash_launch()
    result = profile(launch)
    assert result.live and not result.why_not and result.gpu == "NVIDIA GPU of a test"
    assert result.metrics == {n: float(v.replace(",", "")) for n, v in values.items()}
    rows = {row[0]: row[1:] for row in result.rows}
    counted = launch.kernel.count(
        launch.grid, launch.block, launch.args, launch.shared_mem
    ).counters["global_load_requests"]
    assert rows["global load requests"] == ("1,234", f"{counted:,}")
    assert result.headings == ("", "Nsight Compute, NVIDIA GPU of a test", "simulator")


def test_what_is_asked_of_ncu(ncu):
    page(ncu, {"gpu__time_duration.sum": "5"})
    result = profile(flash_launch(), count=False)
    asked = json.loads((ncu / "asked.json").read_text())
    value = dict(zip(asked, asked[1:], strict=False))
    assert value["--kernel-name"] == "flash_attention" and value["--launch-count"] == "1"
    assert set(value["--metrics"].split(",")) == set(PROFILED)
    assert result.report is None and result.metrics == {"gpu__time_duration.sum": 5.0}
    assert not result.stalls


def test_a_profile_that_was_begun_is_taken_once(ncu, monkeypatch):
    """Of the same launch alone, whatever lies in the array that it writes; timings wait for it."""
    asked, free = [], threading.Event()

    def measured(launch, seconds):
        asked.append(launch)
        assert free.wait(30)
        return {"gpu__time_duration.sum": float(len(asked))}

    monkeypatch.setattr(profile_module, "_measure", measured)
    launch = flash_launch()
    assert profile_module.begin(launch) in timing.begun
    threading.Timer(0.05, free.set).start()
    monkeypatch.setattr(timing, "between_events", lambda *_: float(free.is_set()))
    assert timing.in_turn({"a": lambda: None}, 1) == {"a": [1.0]} and not timing.begun
    again = flash_launch()
    again.args[3][...] = 7.0
    other = flash_launch()
    other.args[1][0, 1, 2, 3] += 1.0
    took = [profile(one, count=False).metrics for one in (other, flash_launch(n=97), again, again)]
    assert [next(iter(metrics.values())) for metrics in took] == [2.0, 3.0, 1.0, 4.0]


def test_a_profile_that_was_begun_and_cannot_be_made_says_why(ncu, monkeypatch):
    monkeypatch.setattr(nsight, "find", lambda: None)
    profile_module.begin(flash_launch()).exception()
    result = profile(flash_launch(), count=False)
    assert not result.live and "There is no Nsight Compute" in result.note


def test_the_launch_is_repeated_as_it_was(tmp_path):
    """In the other process: the same code, options, geometry and arguments give the same O."""
    launch = flash_launch(FLASH_SWIZZLED, n=70, B_R=32, WARPS=2, B_C=32)
    _pack(launch, tmp_path)
    args = _replay(tmp_path)
    expected, _ = FLASH_SWIZZLED.simulate(*launch.args[:3], count=False, B_R=32, WARPS=2, B_C=32)
    np.testing.assert_array_equal(np.asarray(args[3]).view(np.uint16), expected.view(np.uint16))
    assert [type(a) for a in args[4:]] == [np.int32, np.int64, np.int64, np.int32]


def test_tensor_maps_are_made_again_where_the_launch_is_repeated(tmp_path):
    """Their addresses are others there; what they map, and how, is the same."""
    Q, K, V = make_inputs(1, 2, 70, 64)
    launch = FLASH_TMA.launch_of(Q, K, V, np.zeros_like(Q))
    _pack(launch, tmp_path)
    *maps, n = _replay(tmp_path)
    assert [(m.box, m.swizzle) for m in maps] == [(m.box, m.swizzle) for m in launch.args[:4]]
    assert n == 70 and maps[3].array is not launch.args[3].array
    expected, _ = FLASH_TMA.simulate(Q, K, V, count=False)
    np.testing.assert_array_equal(
        np.asarray(maps[3].array).view(np.uint16), expected.view(np.uint16)
    )


def test_an_array_passed_twice_stays_one(tmp_path):
    k = load_kernel("00_vector_add.cu")
    a, c = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    _pack(Launch.of(k, 1, 8, (a, a, c, 8)), tmp_path)
    args = _replay(tmp_path)
    assert args[0] is args[1] and args[2] is not args[0]
    np.testing.assert_array_equal(np.asarray(args[2]), 2 * a)


def test_arguments_are_checked():
    k = load_kernel("00_vector_add.cu")
    with pytest.raises(KernelError, match="n is missing"):
        profile(k, 1, 8, (np.zeros(8, np.float32),) * 3)


def test_it_is_there_without_being_imported_first():
    code = "import helpers; print(helpers.profile.__name__, helpers.measure.profile.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["profile", "helpers.measure.profile"]


# ------------------------------------------------------------------ why not


def test_without_a_gpu(monkeypatch):
    monkeypatch.setattr(device, "is_gpu", False)
    monkeypatch.setattr(device, "notice", "")
    result = profile(flash_launch())
    assert not result.live and result.why_not == "There is no GPU here to profile."


def test_without_ncu(ncu, monkeypatch, tmp_path_factory):
    monkeypatch.setenv("PATH", str(tmp_path_factory.mktemp("nothing")))
    monkeypatch.setenv("CUDA_PATH", str(ncu))
    if nsight.find():
        pytest.skip("this machine has Nsight Compute")
    assert "no Nsight Compute (ncu)" in profile(flash_launch(), count=False).why_not


@pytest.mark.parametrize(
    "text, said",
    [
        ("echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; exit 1",
         "only administrators read the GPU's counters"),
        ("echo '==ERROR== No kernels were profiled.'; exit 9",
         "gave no profile (status 9): ERROR== No kernels were profiled"),
        ("exit 0", "gave no profile (status 0): it said nothing"),
        ("exec sleep 30", "took more than 1 seconds"),
    ],
)  # fmt: skip
def test_ncu_that_cannot(ncu, text, said):
    program(ncu, "#!/bin/sh\nPATH=/bin:/usr/bin\n" + text)
    result = profile(flash_launch(), count=False, seconds=1)
    assert said in result.why_not and result.note.startswith(result.why_not)
    assert not result.live and result.metrics == load_flash().profile("flash_baseline").metrics


def test_a_program_that_is_none(ncu):
    (ncu / "ncu").write_text("no program")
    assert "cannot be started" in profile(flash_launch(), count=False).why_not


# ------------------------------------------------------------------ recorded


@pytest.mark.skipif(device.is_gpu, reason="there is a GPU")
@pytest.mark.parametrize("rung", [FLASH_BASELINE, FLASH_SWIZZLED], ids=lambda r: r.name)
def test_recorded_counters_stand_beside_the_simulators(rung):
    Q, K, V = make_inputs(1, 1, 256, 128)
    result = profile(rung.launch_of(Q, K, V, np.zeros_like(Q)))
    rows = {row[0]: row[1:] for row in result.rows}
    assert rows["shared load wavefronts"][0] == ("147,968" if rung is FLASH_BASELINE else "18,944")
    for name, (recorded, simulated) in rows.items():
        if simulated:
            assert recorded == simulated, name
    assert result.headings[1].endswith(", recorded")


@pytest.mark.skipif(device.is_gpu, reason="there is a GPU")
@pytest.mark.parametrize("rung", [FLASH_RESCALE, FLASH_PING_PONG], ids=lambda r: r.name)
def test_wavefronts_of_accesses_that_meet_others(rung):
    Q, K, V = make_inputs(1, 1, 256, 128)
    result = profile(rung.launch_of(Q, K, V, np.zeros_like(Q)))
    rows = {row[0]: row[1:] for row in result.rows}
    recorded, simulated = rows["shared store wavefronts"]
    assert simulated == "512"
    assert ("meet others at the banks" in result.note) == (recorded != simulated)
    assert (recorded == simulated) == (rung is FLASH_RESCALE)  # alone, each of its accesses


@pytest.mark.skipif(device.is_gpu, reason="there is a GPU")
def test_no_recorded_counters_of_another_size():
    result = profile(flash_launch(n=48))
    rows = {row[0]: row[1:] for row in result.rows}
    assert rows["ldmatrix instructions"][0] == "" and rows["ldmatrix instructions"][1] != ""
    assert "No counters were recorded" in result.note
    other = profile(flash_launch(n=256, d=64, B_C=32), count=False)
    assert "No counters were recorded" in other.note


@pytest.mark.skipif(device.is_gpu, reason="there is a GPU")
def test_nothing_recorded_of_a_kernel():
    k = load_kernel("00_vector_add.cu")
    arrays = (np.zeros(8, np.float32) for _ in range(3))
    result = profile(k, 1, 8, (*arrays, 8))
    assert "No profile of 00_vector_add.cu was recorded." in result.note
    assert [row for row in result.rows if row[1]] == [] and result.report is not None


def test_the_recording_is_what_the_file_holds():
    data = json.loads((FOLDER / f"{FLASH}.json").read_text())
    recording = load_flash()
    first = next(table for table in data["tables"] if table["what"] == "attention")
    assert recording.tflops[4, 16, 4096, 128] == {
        name: rates["4,16,4096,128"] for name, rates in first["times"].items()
    }
    assert len(recording.tflops[2, 16, 8192, 128]) == 5  # the rungs and what PyTorch has
    assert load_flash(FOLDER / "nowhere") is None
    largest = recording.profile("09_flash_swizzled.cu")
    assert largest.shape == (4, 16, 4096, 128)
    assert recording.profile("09_flash_swizzled.cu", (1, 4, 1024, 128)) != largest
    assert recording.profile("FlashAttention-2").file == ""
    assert recording.profile("flash") is None
    assert (FOLDER / f"{FLASH}.json").stat().st_size < 150_000


# ------------------------------------------------------------------ stalls


def test_stalls_are_shares_of_all_waiting():
    name = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    before = {name.format("short_scoreboard"): 6.0, name.format("wait"): 2.0}
    before[name.format("selected")] = 1.0
    after = {name.format("short_scoreboard"): 0.5, name.format("long_scoreboard"): 1.5}
    assert stalls(before) == {"short_scoreboard": 6.0, "wait": 2.0}
    assert stall_table({"before": before, "after": after}).rows == [
        ("long scoreboard", "0.0%", "75.0%"),
        ("short scoreboard", "75.0%", "25.0%"),
        ("wait", "25.0%", "0.0%"),
        ("all, in cycles for each instruction", "8.00", "2.00"),
    ]


@pytest.mark.gpu
def test_a_profile_of_this_gpu():
    from helpers import cp

    Q, K, V = map(cp.asarray, make_inputs(1, 1, 256, 128))
    result = profile(FLASH_SWIZZLED.launch_of(Q, K, V, cp.zeros_like(Q)))
    if not result.live:
        pytest.skip(result.why_not)
    rows = {row[0]: row[1:] for row in result.rows}
    for name in ("shared load wavefronts", "ldmatrix instructions", "global load sectors"):
        assert rows[name][0] == rows[name][1]
    assert result.stalls and 0 < result.metrics["launch__registers_per_thread"] <= 255
