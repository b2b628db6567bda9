"""Timings take turns: between processes and users, whoever dies, whatever lies in the folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.gpu import lock as gpu_lock
from helpers.gpu.lock import GpuBusy, holder, lock_file, one_at_a_time

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534

# A process on a fake GPU: each launch takes 4 ms, and all that is launched is written down.
STUDENT = """
import json, os, sys, time
from helpers import cp, device, timing
launched = []
def launch():
    start = time.monotonic()
    time.sleep(0.004)
    launched.append((start, time.monotonic()))
def between(cp, launch, launches, host):
    launch()
    return 10.0
device.is_gpu, timing.between_events = True, between
device.name = lambda: "fake"
timing.gpu_lock.gpu_uuid = lambda cp: sys.argv[1]
print("ready", flush=True)
sys.stdin.readline()
spans = []
def launches(N):
    launched.clear()
    return {"k": launch}
for N in (1, 2, 3):
    times = timing.sweep(launches, [N])
    assert times.measured == {"k": {N: 10.0}}
    spans.append((launched[0][0], launched[-1][1]))
print(json.dumps(spans))
"""

HOLD = """
import fcntl, os, pwd, sys, time  # while this user can still read the libraries
from helpers.gpu.lock import one_at_a_time
if len(sys.argv) > 2:
    os.umask(0o077)
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
with one_at_a_time(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A folder for locks that is everybody's, as /tmp is."""
    path = tmp_path / "locks"
    path.mkdir()
    path.chmod(0o1777)
    monkeypatch.setenv("HELPERS_LOCKS", str(path))
    monkeypatch.delenv("HELPERS_LOCK_SECONDS", raising=False)
    return path


@pytest.fixture
def start():
    """Starts a Python process and waits until it says something; none is left behind."""
    started = []

    def start(code: str, *arguments: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def spans_of(start, uuids) -> list[list[tuple[float, float]]]:
    """When each of some students' measurements began and ended, all let go at once."""
    students = [start(STUDENT, uuid) for uuid in uuids]
    for student in students:
        assert student.stdout.readline() == "ready\n", student.communicate()[1]
    for student in students:
        student.stdin.write("\n")
        student.stdin.flush()
    return [json.loads(student.communicate(timeout=60)[0]) for student in students]


def overlaps(spans) -> int:
    """Pairs of measurements of different students that share a moment."""
    every = [(a, b, student) for student, own in enumerate(spans) for a, b in own]
    return sum(
        first[2] != second[2] and first[0] < second[1] and second[0] < first[1]
        for number, first in enumerate(every)
        for second in every[number + 1 :]
    )


def test_students_on_one_gpu_measure_one_at_a_time(start):
    spans = spans_of(start, ["one", "one", "one"])
    assert [len(own) for own in spans] == [3, 3, 3]
    assert overlaps(spans) == 0


def test_students_on_two_gpus_do_not_wait_for_each_other(start):
    assert overlaps(spans_of(start, ["one", "other"])) > 0


def test_the_lock_of_a_process_that_was_killed_is_free(start):
    other = start(HOLD, "gpu")
    assert other.stdout.readline() == "held\n"
    assert str(other.pid) in holder(lock_file("gpu")) or not Path("/proc/locks").exists()
    with pytest.raises(GpuBusy), one_at_a_time("gpu", 0):
        pytest.fail("two hold the lock")
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    with one_at_a_time("gpu", 5):
        assert holder(lock_file("gpu")).endswith(f"(process {os.getpid()})")
    assert holder(lock_file("gpu")) == ""


def test_who_waits_is_told_once_for_whom_and_gives_up(start):
    other = start(HOLD, "gpu")
    assert other.stdout.readline() == "held\n"
    said = []
    with pytest.raises(GpuBusy) as error, one_at_a_time("gpu", 0.3, said.append):
        pytest.fail("two hold the lock")
    (sentence,) = said
    assert sentence.startswith("Waiting for the GPU: ")
    assert f"(process {other.pid}) is timing a kernel" in sentence
    assert f"(process {other.pid}): run the cell again later" in str(error.value)


def test_a_wait_ends_well_when_the_other_lets_go(start, capsys):
    other = start(HOLD, "gpu")
    assert other.stdout.readline() == "held\n"
    begun = time.monotonic()
    subprocess.Popen(["sh", "-c", f"sleep 0.7; kill -9 {other.pid}"])
    with one_at_a_time("gpu", 30):
        assert 0.5 < time.monotonic() - begun < 20
    assert capsys.readouterr().err.startswith("helpers: Waiting for the GPU: ")


def test_who_waits_comes_before_who_has_just_measured(start):
    """So nobody sits through the whole sweep of another."""
    with one_at_a_time("gpu", 0):
        other = start(HOLD, "gpu")
        end = time.monotonic() + 30
        while not stands_in_the_queue():
            assert time.monotonic() < end and other.poll() is None
            time.sleep(0.01)
    with pytest.raises(GpuBusy), one_at_a_time("gpu", 0.3):
        pytest.fail("the other's turn was skipped")
    assert other.stdout.readline() == "held\n"


def stands_in_the_queue() -> bool:
    import fcntl

    with open(lock_file("gpu", "queue")) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_an_error_while_measuring_lets_go():
    with pytest.raises(ZeroDivisionError), one_at_a_time("gpu", 0):
        raise ZeroDivisionError
    with one_at_a_time("gpu", 0):
        pass


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can be two users")
def test_another_users_file_can_be_locked(start, folder):
    """Made by a user with a strict umask: others can neither write to it nor remove it."""
    for parent in folder.parents:  # pytest's folders are its user's alone
        if parent.stat().st_uid == os.geteuid() and str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    first = start(HOLD, "gpu", str(NOBODY))
    assert first.stdout.readline() == "held\n", first.communicate()[1]
    assert lock_file("gpu").stat().st_uid == NOBODY
    with pytest.raises(GpuBusy, match=rf"\(process {first.pid}\)"), one_at_a_time("gpu", 0.05):
        pytest.fail("two hold the lock")
    first.communicate("\n")
    second = start(HOLD, "gpu", str(NOBODY - 1))
    assert second.stdout.readline() == "held\n", second.communicate()[1]
    with pytest.raises(GpuBusy), one_at_a_time("gpu", 0.05):
        pytest.fail("two hold the lock")


@pytest.mark.parametrize("obstacle", ["link", "pipe", "folder"])
def test_what_is_in_the_way_is_named(folder, obstacle):
    path = lock_file("gpu", "queue")
    if obstacle == "link":
        path.symlink_to(folder / "elsewhere")
    elif obstacle == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(OSError, match=r"gpu\.queue, the lock .* cannot be used .*: remove it"):
        with one_at_a_time("gpu", 1):
            pytest.fail("that is no lock")
    assert not (folder / "elsewhere").exists()


def test_a_file_that_is_tidied_away_does_not_let_two_in(monkeypatch):
    """Removed after it was opened: a lock on it would be nobody else's."""
    opened, once = gpu_lock._open, []

    def open_and_lose(path):
        handle = opened(path)
        if path.suffix == ".lock" and not once:
            once.append(path)
            path.unlink()
        return handle

    monkeypatch.setattr(gpu_lock, "_open", open_and_lose)
    with one_at_a_time("gpu", 1):
        assert once and holder(lock_file("gpu")).endswith(f"(process {os.getpid()})")


def test_a_missing_folder_and_a_wrong_setting_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HELPERS_LOCKS", str(tmp_path / "none"))
    with pytest.raises(OSError, match="HELPERS_LOCKS name a folder"), one_at_a_time("gpu", 1):
        pytest.fail("there is no lock")
    monkeypatch.setenv("HELPERS_LOCK_SECONDS", "soon")
    with pytest.raises(ValueError, match="HELPERS_LOCK_SECONDS=soon"), one_at_a_time("gpu"):
        pytest.fail("there is no wait")
    with pytest.raises(ValueError, match="does not name a GPU"), one_at_a_time("../gpu", 1):
        pytest.fail("there is no GPU")


class FakeRuntime:
    def __init__(self, uuid):
        self.properties = {"name": b"fake", **({"uuid": uuid} if uuid else {})}

    def getDevice(self):
        return 3

    def getDeviceProperties(self, number):
        assert number == 3
        return self.properties


@pytest.mark.parametrize(
    "uuid, name", [(bytes(range(16)), bytes(range(16)).hex()), (None, "device-3")]
)
def test_a_gpu_is_named_by_its_uuid(uuid, name):
    class cp:
        class cuda:
            runtime = FakeRuntime(uuid)

    assert gpu_lock.gpu_uuid(cp) == name
