"""What keeps the class's server from working, found before it starts and said in a sentence."""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import socket
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

HUB = Path(__file__).resolve().parent
# What a student's server begins with: its Python, the packages, the course.
BEGIN = "import sys, jupyterhub, helpers; open(sys.argv[1]).close()"
PLACE = (
    "Put the course where everybody can read it, with a Python that everybody can run (the "
    "system's, not one in /root): there, `rm -rf .venv && make hub PYTHON=/usr/bin/python3`."
)


def refusal(hub) -> str:
    """Why this Hub, configured and not yet started, must not start; empty if nothing is wrong."""
    ports = {"the students' browsers": urlsplit(hub.bind_url), "the Hub": urlsplit(hub.hub.url)}
    if api := getattr(hub.proxy, "traefik_api_url", ""):
        ports["the proxy's settings"] = urlsplit(api)
    for use, url in ports.items():
        if url.port and hub.proxy.should_start and (fault := taken(url.hostname, url.port, use)):
            return fault
    from jupyterhub.spawner import LocalProcessSpawner, SimpleLocalProcessSpawner

    accounts = issubclass(hub.spawner_class, LocalProcessSpawner)
    if accounts and not issubclass(hub.spawner_class, SimpleLocalProcessSpawner):
        return closed_to_students() if os.geteuid() == 0 else ""
    return ""


def taken(host: str | None, port: int, use: str) -> str:
    """Why nobody can listen to a port; empty if it is free."""
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        with socket.socket(family, kind, protocol) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return (
                f"Port {port}, meant for {use}, is taken{listener(port)}. If it is an earlier "
                "start of this server, stop it; otherwise choose another port (`--port` for the "
                "students' browsers, the others in config.py: see TEACHING.md)."
            )
        return f"Port {port} of {host or 'this machine'}, meant for {use}: {error.strerror}."
    return ""


def listener(port: int) -> str:
    """` by NAME (process N)`, where that can be known."""
    with contextlib.suppress(Exception):  # not ours to see, or gone meanwhile
        import psutil

        for one in psutil.net_connections("tcp"):
            if one.status == psutil.CONN_LISTEN and one.laddr.port == port and one.pid:
                return f" by {psutil.Process(one.pid).name()} (process {one.pid})"
    return ""


def closed_to_students(python: Path = Path(sys.executable)) -> str:
    """Why students could not start a server, each by an account of their own; empty if they can.

    It is tried: as the user who owns nothing, in the students' group.
    """
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        return ""
    groups = [one.gr_gid for one in grp.getgrall() if one.gr_name == "students"]
    try:
        done = subprocess.run(
            [python, "-c", BEGIN, HUB / "student.py"], cwd="/", capture_output=True, text=True,
            user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=groups, timeout=120,
        )  # fmt: skip
        if done.returncode == 0:
            return ""
        said = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
    except (OSError, subprocess.SubprocessError) as error:
        said = str(error)
    for path in (python, HUB / "student.py"):
        if (folder := closed_folder(path)) is not None:
            said = f"{folder} is closed to them, and {path} leads through it"
            break
    return f"Students could not start their servers: {said}. {PLACE}"


def closed_folder(path: Path) -> Path | None:
    """The first folder on the way to a file that not everybody may pass; links are followed."""
    path = Path(os.path.abspath(path))
    for _ in range(40):  # as many links as Linux follows
        for folder in reversed(path.parents):
            if not folder.stat().st_mode & stat.S_IXOTH:
                return folder
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / os.readlink(path)))
    for folder in reversed(path.resolve().parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None
