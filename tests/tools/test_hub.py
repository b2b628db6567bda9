"""The class's server: working copies, memory limits, the configuration, and the rehearsal."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import runpy
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traitlets.config import Config

ROOT = Path(__file__).resolve().parents[2]
HUB = ROOT / "tools" / "hub"
sys.path.insert(0, str(HUB))

import checks  # noqa: E402
import rehearsal  # noqa: E402
import student  # noqa: E402
from working_copy import STATE, files, update  # noqa: E402


@pytest.fixture
def course(tmp_path):
    """A course of two chapters and a kernel."""
    folder = tmp_path / "course"
    for name, text in {
        "notebooks/01_one.ipynb": "one",
        "notebooks/02_two.ipynb": "two",
        "kernels/02_two.cu": "kernel",
        "kernels/include/two.cuh": "header",
        "kernels/exercises/solution.cu": "not for students",
        "README.md": "neither",
    }.items():
        write(folder / name, text)
    return folder


@pytest.fixture
def copy(tmp_path):
    return tmp_path / "home" / "attention"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def contents(folder: Path) -> dict[str, str]:
    """Text by path, the state apart."""
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {name: path.read_text() for name, path in found.items() if name != STATE}


# A student's working copy


def test_a_first_copy_is_whole_and_a_second_changes_nothing(course, copy):
    assert update(course, copy) == []
    first = contents(copy)
    assert first == {
        "notebooks/01_one.ipynb": "one",
        "notebooks/02_two.ipynb": "two",
        "kernels/02_two.cu": "kernel",
        "kernels/include/two.cuh": "header",
    }
    stamps = {p: p.stat().st_mtime_ns for p in copy.rglob("*.ipynb")}
    assert update(course, copy) == []
    assert contents(copy) == first
    assert stamps == {p: p.stat().st_mtime_ns for p in copy.rglob("*.ipynb")}


def test_notebooks_can_be_changed_and_kernels_only_read(course, copy):
    update(course, copy)
    mode = {name: stat.S_IMODE((copy / name).stat().st_mode) for name in contents(copy)}
    assert mode["notebooks/01_one.ipynb"] == 0o644
    assert mode["kernels/02_two.cu"] == mode["kernels/include/two.cuh"] == 0o444


def test_what_a_student_has_not_touched_follows_the_course(course, copy):
    update(course, copy)
    write(course / "notebooks/01_one.ipynb", "one, corrected")
    write(course / "notebooks/03_three.ipynb", "three")
    assert update(course, copy) == []
    assert (copy / "notebooks/01_one.ipynb").read_text() == "one, corrected"
    assert (copy / "notebooks/03_three.ipynb").read_text() == "three"


def test_what_a_student_has_changed_stays_and_the_new_edition_lies_beside_it(course, copy):
    update(course, copy)
    mine, new = copy / "notebooks/01_one.ipynb", copy / "notebooks/01_one-new.ipynb"
    write(mine, "my work")
    write(copy / "notebooks/my_kernels/answer.cu", "my answer")
    assert update(course, copy) == []  # the course has nothing new
    assert not new.exists()
    write(course / "notebooks/01_one.ipynb", "second edition")
    (sentence,) = update(course, copy)
    assert "notebooks/01_one.ipynb is your own" in sentence and "01_one-new.ipynb" in sentence
    assert (mine.read_text(), new.read_text()) == ("my work", "second edition")
    new.unlink()  # a student who does not want it is not offered it again
    assert update(course, copy) == [] and not new.exists()
    write(course / "notebooks/01_one.ipynb", "third edition")
    update(course, copy)
    write(new, "my work on the third")
    write(course / "notebooks/01_one.ipynb", "fourth edition")
    update(course, copy)
    assert {name: text for name, text in contents(copy).items() if "one" in name} == {
        "notebooks/01_one.ipynb": "my work",
        "notebooks/01_one-new.ipynb": "my work on the third",
        "notebooks/01_one-new2.ipynb": "fourth edition",
    }
    assert (copy / "notebooks/my_kernels/answer.cu").read_text() == "my answer"


def test_a_chapter_that_was_deleted_comes_back_new(course, copy):
    update(course, copy)
    (copy / "notebooks/01_one.ipynb").rename(copy / "notebooks/mine.ipynb")
    assert update(course, copy) == []
    assert (copy / "notebooks/01_one.ipynb").read_text() == "one"
    assert (copy / "notebooks/mine.ipynb").read_text() == "one"


@pytest.mark.parametrize("state", [None, "", "[]", '{"handed": 3, "laid": {}}', "\0\xff"])
def test_without_its_state_nothing_of_the_students_is_lost(course, copy, state):
    update(course, copy)
    write(copy / "notebooks/01_one.ipynb", "my work")
    (copy / STATE).unlink() if state is None else write(copy / STATE, state)
    assert len(update(course, copy)) == 1
    assert (copy / "notebooks/01_one.ipynb").read_text() == "my work"
    assert (copy / "notebooks/01_one-new.ipynb").read_text() == "one"


def test_links_and_folders_of_a_student_stay(course, copy):
    update(course, copy)
    for name in ("01_one", "02_two"):
        (copy / f"notebooks/{name}.ipynb").unlink()
    (copy / "notebooks/01_one.ipynb").mkdir()
    (copy / "notebooks/02_two.ipynb").symlink_to(copy / "nowhere")
    assert len(update(course, copy)) == 0  # handed out before, and the course has not changed
    write(course / "notebooks/01_one.ipynb", "new")
    write(course / "notebooks/02_two.ipynb", "new")
    assert len(update(course, copy)) == 2
    assert (copy / "notebooks/01_one.ipynb").is_dir()
    assert (copy / "notebooks/02_two.ipynb").is_symlink()
    assert not (copy / "nowhere").exists()


STEPS = st.lists(
    st.tuples(st.sampled_from("course student-new student drop update".split()), st.integers(0, 2)),
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_no_order_of_events_loses_a_students_words(tmp_path_factory, steps):
    """Whatever was last written by the student is still there, until they write or drop it."""
    folder = tmp_path_factory.mktemp("order")
    course, copy = folder / "course", folder / "copy"
    write(course / "notebooks/a.ipynb", "edition 0")
    update(course, copy)
    theirs: dict[str, str] = {}
    for number, (step, which) in enumerate([*steps, ("update", 0)]):
        name = f"notebooks/a{'-new' if step == 'student-new' else ''}.ipynb"
        if step == "course":
            write(course / "notebooks/a.ipynb", f"edition {which}")
        elif step == "drop":
            (copy / "notebooks/a.ipynb").unlink(missing_ok=True)
            theirs.pop("notebooks/a.ipynb", None)
        elif step == "update":
            update(course, copy)
            now = contents(copy)
            assert {n: now.get(n) for n in theirs} == theirs
            assert (course / "notebooks/a.ipynb").read_text() in now.values() or theirs
        else:
            theirs[name] = f"work {number}"
            write(copy / name, theirs[name])


def test_every_chapter_of_the_course_is_handed_out_and_no_solution():
    names = dict(files(ROOT))
    assert {p.name for p in (ROOT / "notebooks").glob("*.ipynb")} == {
        Path(name).name for name, changeable in names.items() if changeable
    }
    assert "kernels/02_naive.cu" in names and "helpers/problem/data/README.md" in names
    assert not [name for name in names if "solution" in name or "exercises" in name]


# A student's process

ALLOCATE = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
import student
student.limit_memory(sys.argv[2])
code = '''
import numpy as np
try:
    print(np.empty(50_000_000).nbytes)  # 400 MB
except MemoryError:
    print("MemoryError")
'''
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip())
"""


@pytest.mark.parametrize(
    "limit, seen", [("300000000", "MemoryError"), ("", "400000000"), ("0", "400000000")]
)
def test_a_kernel_gets_a_memory_error_and_not_the_machine(limit, seen):
    done = subprocess.run(
        [sys.executable, "-c", ALLOCATE, str(HUB), limit], capture_output=True, text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.stdout.strip() == seen, done.stderr


def test_a_student_gets_a_copy_a_limit_and_a_server(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEM_LIMIT", "2147483648")
    monkeypatch.setattr(student, "limit_memory", lambda limit: seen.append(limit))
    monkeypatch.setattr(os, "execv", lambda path, command: seen.append((path, command)))
    student.main(["--port=1"])
    command = [sys.executable, "-m", "jupyterhub.singleuser", "--port=1"]
    assert seen == ["2147483648", (sys.executable, command)]
    assert (tmp_path / "attention/notebooks/00_start_here.ipynb").is_file()


# The Hub's configuration


@pytest.fixture
def configure(monkeypatch, tmp_path):
    """Runs the configuration as JupyterHub does; `traefik` is a program that does nothing."""
    program = tmp_path / "bin" / "traefik"
    write(program, "#!/bin/sh\n")
    program.chmod(0o755)
    for name in [n for n in os.environ if n.startswith("HUB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("HUB_FOLDER", str(tmp_path / "hub"))

    def configure(root: bool = False, **variables: str) -> Config:
        monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        config = Config()

        def load_subconfig(path):
            exec(Path(path).read_text(), {"c": config})

        runpy.run_path(
            str(HUB / "jupyterhub_config.py"),
            {"get_config": lambda: config, "load_subconfig": load_subconfig},
        )
        return config

    return configure


def test_a_trial_has_one_password_for_the_class_and_another_for_the_teacher(configure, tmp_path):
    c, folder = configure(), tmp_path / "hub"
    assert c.JupyterHub.authenticator_class == "shared-password"
    both = c.SharedPasswordAuthenticator
    assert both.user_password == (folder / "class_password").read_text().strip()
    assert len(both.user_password) >= 8 and len(both.admin_password) >= 32  # JupyterHub's rule
    for path in folder.glob("*password"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert configure().SharedPasswordAuthenticator == both  # the same at the next start
    assert c.Spawner.args[-1] != "--allow-root"


def test_root_starts_servers_as_the_students_who_have_accounts(configure):
    c = configure(root=True)
    assert c.JupyterHub.authenticator_class == "pam"
    assert c.PAMAuthenticator.allowed_groups == {"students", "teachers"}
    assert c.PAMAuthenticator.admin_groups == {"teachers"}
    assert c.JupyterHub.spawner_class.endswith(".LocalProcessSpawner")
    assert "allow_all" not in c.Authenticator
    assert "--allow-root" not in c.Spawner.args


def test_names_of_students_are_names_of_folders(configure):
    pattern = re.compile(configure().Authenticator.username_pattern)
    assert pattern.fullmatch("ada-1")
    assert not any(map(pattern.fullmatch, ("", "..", "a/b", "-a", "A", "a" * 33)))


def test_what_a_teacher_sets_counts(configure, tmp_path):
    write(tmp_path / "hub" / "config.py", "c.JupyterHub.port = 1234\nc.Spawner.mem_limit = '3G'\n")
    c = configure(HUB_IDLE="5", HUB_MEMORY="1G")
    assert c.JupyterHub.port == 1234 and c.Spawner.mem_limit == "3G"
    (tmp_path / "hub" / "config.py").unlink()
    assert configure().Spawner.mem_limit == "1G"
    assert configure(HUB_MEMORY="0").Spawner.mem_limit == "0G"
    assert "--timeout=300" in c.JupyterHub.services[0]["command"]
    assert "--MappingKernelManager.cull_idle_timeout=300" in c.Spawner.args


@pytest.mark.parametrize(
    "root, variables, sentence",
    [
        (False, {"HUB_LOGIN": "accounts"}, "which only root can do"),
        (False, {"HUB_LOGIN": "oauth"}, "HUB_LOGIN=oauth is not known"),
        (True, {"PATH": "/nowhere"}, "There is no traefik"),
    ],
)
def test_what_cannot_be_is_said(configure, monkeypatch, root, variables, sentence):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(SystemExit, match=sentence):
        configure(root, **variables)


def test_the_students_folder_is_the_same_in_both_files(configure):
    assert configure().Spawner.notebook_dir == f"~/{student.COPY}"


# Starting and stopping


def test_a_port_that_is_taken_is_named_with_its_use():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        other.listen()
        for host in ("127.0.0.1", "0.0.0.0", None):
            said = checks.taken(host, port, "the Hub")
            assert said.startswith(f"Port {port}, meant for the Hub, is taken"), host
        assert f"(process {os.getpid()})" in said
        assert checks.taken("127.0.0.1", *rehearsal.free_ports(1), "the Hub") == ""
        free = "http://127.0.0.1:{}".format(*rehearsal.free_ports(1))
        taken = f"http://127.0.0.1:{port}"
        for place in range(3):
            url = [free] * place + [taken] + [free] * (2 - place)
            proxy = SimpleNamespace(should_start=True, traefik_api_url=url[2])
            hub = SimpleNamespace(bind_url=url[0], hub=SimpleNamespace(url=url[1]), proxy=proxy)
            assert f"Port {port}, " in checks.refusal(hub)


@pytest.fixture
def open_folder():
    """A folder that everybody may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="course-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_python_in_a_closed_folder_is_refused(open_folder, monkeypatch):
    closed = open_folder / "home"
    write(closed / "versions/bin/python3", "#!/bin/sh\nexit 1\n")
    (closed / "versions/bin/python3").chmod(0o755)
    write(open_folder / "bin/student.py", "")
    (open_folder / "bin/python").symlink_to("python3")
    (open_folder / "bin/python3").symlink_to(closed / "versions/bin/python3")
    assert checks.closed_folder(open_folder / "bin/python") is None
    closed.chmod(0o700)
    assert checks.closed_folder(open_folder / "bin/python") == closed
    # Whoever runs this test: root, as `nobody`; others may not become `nobody`.
    said = checks.closed_to_students(open_folder / "bin/python")
    assert said.startswith(f"Students could not start their servers: {closed} is closed to them")
    sentence = "a Python that everybody can run (the system's, not one in /root)"
    assert sentence in said
    assert sentence.replace("/root", "`/root`") in " ".join(
        (ROOT / "TEACHING.md").read_text().split()
    )
    done = subprocess.CompletedProcess([], 0, "", "")
    monkeypatch.setattr(checks.subprocess, "run", lambda *a, **o: done)
    assert checks.closed_to_students() == ""


WORK = f"""
import subprocess, sys, time
sys.path.insert(0, {str(HUB)!r})
import serve
def work():
    started = subprocess.Popen(["sleep", "600"])  # as the Hub starts its proxy
    print(started.pid, flush=True)
    time.sleep(600)
sys.exit(serve.supervise(work))
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="the class's server runs on Linux")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_stops_make_stops_the_hub_and_its_proxy(tmp_path, number):
    recipe = re.search(
        r"^hub:.*\n(?:\t.*\n)*?\t@(.*)serve\.py", (ROOT / "Makefile").read_text(), re.M
    )
    assert recipe[1].startswith("exec ")  # or a shell would stand between make and it
    write(tmp_path / "work.py", WORK)
    write(tmp_path / "Makefile", f"hub:\n\t@exec {sys.executable} work.py $(ARGS)\n")
    # SIGINT is ignored, as in the background of a shell. A make under another names its folder.
    make = subprocess.Popen(
        ["make", "--no-print-directory", "hub"], cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    proxy = int(make.stdout.readline())
    assert alive(proxy)
    ignored = re.search(r"SigIgn:\t(\w+)", Path(f"/proc/{proxy}/status").read_text())[1]
    assert not int(ignored, 16) >> (signal.SIGINT - 1) & 1
    make.send_signal(number)
    make.wait(30)
    end = time.monotonic() + 30
    while alive(proxy) and time.monotonic() < end:
        time.sleep(0.02)
    assert not alive(proxy)
    assert make.stdout.read() == ""  # nobody holds the pipe any more: the Hub is gone, too


# The rehearsal


class Socket:
    """A kernel's websocket that answers with prepared messages."""

    def __init__(self, *messages):
        self.messages, self.asked = list(messages), []

    async def write_message(self, text):
        self.asked.append(json.loads(text))

    async def read_message(self):
        if not self.messages:
            return None
        kind, content, binary = (*self.messages.pop(0), False)[:3]
        parent = {"msg_id": self.asked[0]["header"]["msg_id"]}
        text = json.dumps(
            {"header": {"msg_type": kind}, "parent_header": parent, "content": content}
        )
        if not binary:
            return text
        raw = text.encode()
        head = [2, 12, 12 + len(raw)]  # two parts: the message, and a buffer
        return b"".join(n.to_bytes(4, "big") for n in head) + raw + b"\xff\xfe"


IDLE = ("status", {"execution_state": "idle"})


@pytest.mark.parametrize(
    "messages, error",
    [
        ([("execute_reply", {"status": "ok"}), IDLE], ""),
        ([("comm_msg", {}, True), IDLE, ("execute_reply", {"status": "ok"})], ""),
        (
            [("execute_reply", {"status": "error", "ename": "E", "evalue": "why"}), IDLE],
            "E: why",
        ),
        ([("status", {"execution_state": "restarting"})], "the kernel died"),
        ([("execute_reply", {"status": "ok"})], "the kernel is gone"),
    ],
)
def test_the_rehearsal_sees_errors(messages, error):
    socket = Socket(*messages)
    assert asyncio.run(rehearsal.execute(socket, "1 / 0")) == error
    assert socket.asked[0]["content"]["code"] == "1 / 0"


def test_memory_is_counted_for_the_student_whose_process_it_is():
    code = "x = b'x' * 60_000_000; print('ready', flush=True); input()"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "JUPYTERHUB_USER": name},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        for name in ("ada", "ada", "bob", "somebody-else")
    ]
    try:
        for process in started:
            process.stdout.readline()
        ada, bob = rehearsal.Student("ada"), rehearsal.Student("bob")
        memory = rehearsal.Memory([ada, bob], hub=-1)
        memory.look()
    finally:
        for process in started:
            process.communicate(b"\n")
    assert 120e6 < ada.memory < 160e6 and 60e6 < bob.memory < 80e6
    assert memory.everybody == ada.memory + bob.memory
    memory.look()
    assert memory.everybody > 180e6  # peaks stay


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("jupyterhub") is None,
    reason="JupyterHub is not installed: `make test` does",
)
def test_a_student_runs_a_chapter_through_the_hub(tmp_path):
    log = tmp_path / "hub.log"
    command = [
        sys.executable, HUB / "rehearsal.py", "--students=1", "--chapter=00_start_here",
        f"--log={log}", "--seconds=300",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    said = done.stdout + done.stderr + log.read_text()
    assert done.returncode == 0, said
    cells = json.loads((ROOT / "notebooks/00_start_here.ipynb").read_text())["cells"]
    number = sum(cell["cell_type"] == "code" for cell in cells)
    assert re.search(rf"^student01 .* {number} +\d+ MiB +none$", done.stdout, re.M), said
