"""Rehearse a class: students come in at once, and each runs a chapter on a server of their own.

    .venv/bin/python tools/hub/rehearsal.py --students 10 --chapter 07_bank_conflicts

A Hub of its own is started from jupyterhub_config.py, on free ports and with a folder that goes
away afterwards. Each student's server is asked for, the chapter is read from the student's working
copy, and every code cell is run through the proxy and a websocket, as JupyterLab does it. Printed
are each student's times, errors and peak memory: the proportional set size (PSS) of server and
kernel, in which pages that processes share are shared out among them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

HUB = Path(__file__).resolve().parent
MIB = 2**20

OWN_CONFIG = """
c.JupyterHub.port = {port}
c.JupyterHub.hub_port = {hub_port}
c.JupyterHub.log_level = "WARN"
c.TraefikFileProviderProxy.traefik_api_url = "http://127.0.0.1:{api_port}"
c.JupyterHub.services.append({{"name": "rehearsal", "api_token": "{token}"}})
c.JupyterHub.load_roles.append(
    {{
        "name": "rehearsal",
        "scopes": ["admin:users", "admin:servers", "access:servers"],
        "services": ["rehearsal"],
    }}
)
"""


@dataclass
class Student:
    """What is measured of one student: seconds, bytes, and what went wrong."""

    name: str
    start: float = 0.0
    chapter: float = 0.0
    cells: int = 0
    memory: int = 0
    errors: list[str] = field(default_factory=list)


class Hub:
    """A running Hub, asked by a service's token."""

    def __init__(self, url: str, token: str):
        self.url = url
        self.headers = {"Authorization": f"token {token}"}

    async def ask(self, method: str, path: str, body=None, expect: tuple[int, ...] = ()):
        """The answer to a request as JSON, or as bytes if it is none; None if it is empty."""
        request = HTTPRequest(
            self.url + path, method=method, headers=self.headers, request_timeout=300,
            body=json.dumps(body) if method in ("POST", "PUT", "PATCH") else None,
        )  # fmt: skip
        answer = await AsyncHTTPClient().fetch(request, raise_error=False)
        if answer.code >= 400 and answer.code not in expect:
            raise RuntimeError(f"{method} {path}: {answer.code} {answer.body[:300]!r}")
        if "json" in answer.headers.get("Content-Type", "") and answer.body:
            return json.loads(answer.body)
        return answer.body or None

    async def connect(self, path: str):
        """A websocket."""
        url = "ws" + self.url.removeprefix("http") + path
        return await websocket_connect(
            HTTPRequest(url, headers=self.headers), max_message_size=2**30
        )


@contextlib.contextmanager
def running_hub(folder: Path, log):
    """Start a Hub on free ports; yields it and its process."""
    token, ports = secrets.token_hex(16), free_ports(3)
    names = dict(zip(("port", "hub_port", "api_port"), ports, strict=True))
    (folder / "config.py").write_text(OWN_CONFIG.format(token=token, **names))
    environment = {**os.environ, "HUB_FOLDER": str(folder), "HUB_LOGIN": "trial"}
    command = [sys.executable, HUB / "serve.py", f"--config={HUB / 'jupyterhub_config.py'}"]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
    )
    try:
        yield Hub(f"http://127.0.0.1:{names['port']}", token), process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its proxy, too
            process.wait()


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens to at the moment."""
    with contextlib.ExitStack() as held:
        found = [held.enter_context(socket.socket()) for _ in range(number)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


async def until_up(hub: Hub, process: subprocess.Popen, seconds: float = 120) -> None:
    """Wait for the Hub to answer through its proxy."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError, HTTPClientError, RuntimeError):
            await hub.ask("GET", "/hub/api/")
            return
        await asyncio.sleep(0.2)
    raise RuntimeError("The Hub did not start; its log says why.")


async def attend(hub: Hub, student: Student, chapter: str) -> None:
    """Come in, run a chapter, and leave."""
    begun = time.monotonic()
    await hub.ask("POST", f"/hub/api/users/{student.name}/server", {})
    while True:
        user = await hub.ask("GET", f"/hub/api/users/{student.name}")
        server = user["servers"].get("")
        if server is None:
            student.errors.append("the server did not start")
            return
        if server["ready"]:
            break
        await asyncio.sleep(0.5)
    student.start = time.monotonic() - begun
    own, path = f"/user/{student.name}", f"notebooks/{chapter}.ipynb"
    await hub.ask("GET", f"{own}/lab/tree/{path}")
    notebook = (await hub.ask("GET", f"{own}/api/contents/{path}"))["content"]
    begun = time.monotonic()
    session = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
    session = await hub.ask("POST", f"{own}/api/sessions", session)
    socket = await hub.connect(f"{own}/api/kernels/{session['kernel']['id']}/channels")
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        error = await execute(socket, "".join(cell["source"]))
        student.cells += 1
        if error:
            student.errors.append(f"cell {number}: {error}")
    student.chapter = time.monotonic() - begun
    socket.close()


async def execute(socket, code: str) -> str:
    """Run one cell; an error's name and text, or nothing."""
    identity = uuid.uuid4().hex
    header = {"msg_id": identity, "msg_type": "execute_request", "username": "", "session": "",
              "version": "5.3", "date": ""}  # fmt: skip
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {},
               "allow_stdin": False, "stop_on_error": False}  # fmt: skip
    await socket.write_message(
        json.dumps(
            {
                "header": header,
                "parent_header": {},
                "metadata": {},
                "content": content,
                "channel": "shell",
                "buffers": [],
            }
        )  # fmt: skip
    )
    error, replied, idle = "", False, False
    while not (replied and idle):
        raw = await socket.read_message()
        if raw is None:
            return "the kernel is gone"
        if isinstance(raw, bytes):  # a message with buffers: how many parts, where each begins
            begin, end = (int.from_bytes(raw[4 * n : 4 * n + 4], "big") for n in (1, 2))
            raw = raw[begin : end if int.from_bytes(raw[:4], "big") > 1 else None]
        message = json.loads(raw)
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "status" and content["execution_state"] in ("restarting", "dead"):
            return "the kernel died"
        if message["parent_header"].get("msg_id") != identity:
            continue
        if kind == "execute_reply":
            replied = True
            if content["status"] != "ok":
                error = f"{content.get('ename')}: {content.get('evalue')}"
        elif kind == "status":
            idle = content["execution_state"] == "idle"
    return error


class Memory:
    """Watches the processes of the students and of the Hub."""

    def __init__(self, students: list[Student], hub: int):
        self.students = {student.name: student for student in students}
        self.hub = hub
        self.everybody = self.hub_peak = 0
        self._owner: dict[int, str] = {}

    async def watch(self) -> None:
        """Look once a second, until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(1)

    def look(self) -> None:
        """Take the present sizes into the peaks."""
        sizes = dict.fromkeys([*self.students, ""], 0)
        for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
            owner = self._owner_of(pid)
            if owner in sizes:
                sizes[owner] += pss(pid)
        self.hub_peak = max(self.hub_peak, sizes.pop(""))
        for name, size in sizes.items():
            self.students[name].memory = max(self.students[name].memory, size)
        self.everybody = max(self.everybody, sum(sizes.values()))

    def _owner_of(self, pid: int) -> str | None:
        """A student's name; the empty string for the Hub, its proxy and its services."""
        if not self._owner.get(pid):  # a server is the Hub's until it has its own environment
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                session = os.getsid(pid)
            except OSError:
                return None
            user = [e[15:].decode() for e in environment if e.startswith(b"JUPYTERHUB_USER=")]
            if user:
                self._owner[pid] = user[0][1:] if user[0].startswith("=") else user[0]
            elif session == self.hub:
                return ""
        return self._owner.get(pid)


def pss(pid: int) -> int:
    """Bytes of a process, pages that it shares counted in part; 0 if it is gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


async def rehearse(number: int, chapter: str, seconds: float, folder: Path, log) -> bool:
    """Run the class and print what was seen; whether all went well."""
    students = [Student(f"student{n:02d}") for n in range(1, number + 1)]
    load = os.getloadavg()[0]
    with running_hub(folder, log) as (hub, process):
        await until_up(hub, process)
        await hub.ask("POST", "/hub/api/users", {"usernames": [s.name for s in students]})
        memory = Memory(students, process.pid)
        watching = asyncio.create_task(memory.watch())
        begun = time.monotonic()
        done = await asyncio.gather(
            *(asyncio.wait_for(attend(hub, s, chapter), seconds) for s in students),
            return_exceptions=True,
        )
        took = time.monotonic() - begun
        memory.look()
        watching.cancel()
        for student, problem in zip(students, done, strict=True):
            if isinstance(problem, BaseException):
                student.errors.append(f"{type(problem).__name__}: {problem}")
        for student in students:
            path = f"/hub/api/users/{student.name}/server"
            with contextlib.suppress(RuntimeError, OSError):
                await hub.ask("DELETE", path, expect=(404, 400))
    print("student       server starts   chapter  cells  peak memory  errors")
    for s in students:
        print(
            f"{s.name:<12}{s.start:>13.1f} s{s.chapter:>8.1f} s{s.cells:>7}"
            f"{s.memory / MIB:>9.0f} MiB  {'; '.join(s.errors) or 'none'}"
        )
    print(
        f"{number} students, {chapter}: {took:.0f} s from the first to the last; all students' "
        f"processes at once at most {memory.everybody / MIB:,.0f} MiB, Hub and proxy "
        f"{memory.hub_peak / MIB:.0f} MiB; {os.cpu_count()} cores, load {load:.1f} beforehand."
    )
    return not any(s.errors for s in students)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=10)
    parser.add_argument("--chapter", default="07_bank_conflicts", help="a notebook, without .ipynb")
    parser.add_argument("--seconds", type=float, default=1800, help="that a student may take")
    parser.add_argument("--log", type=Path, help="a file for what the Hub says")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rehearsal_") as folder, contextlib.ExitStack() as held:
        log = held.enter_context(open(options.log or os.devnull, "w"))
        well = asyncio.run(
            rehearse(options.students, options.chapter, options.seconds, Path(folder), log)
        )
    return 0 if well else 1


if __name__ == "__main__":
    raise SystemExit(main())
