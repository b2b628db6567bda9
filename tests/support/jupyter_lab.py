"""A JupyterLab of a test's own, and what is done on its pages."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
SETTINGS = {
    # All cells are in the page at once, or those out of sight could not be looked at.
    "notebook-extension/tracker": {"windowingMode": "none", "scrollPastEnd": False},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


class Lab:
    """A JupyterLab of its own, with a copy of the chapters and none of the user's settings."""

    def __init__(self, folder: Path):
        self.chapters = folder / "notebooks"
        shutil.copytree(ROOT / "notebooks", self.chapters, ignore=shutil.ignore_patterns(".*"))
        self._settings = folder / "settings"
        for name, values in SETTINGS.items():
            self._set(name, values)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address, self.token = f"http://127.0.0.1:{port}", secrets.token_hex(16)
        self._log = (folder / "lab.log").open("w+")
        places = {
            f"JUPYTER_{name}": str(folder / name.lower())
            for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
        }
        self._process = subprocess.Popen(
            [
                sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
                f"--port={port}", "--ServerApp.ip=127.0.0.1", "--ServerApp.port_retries=0",
                f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={folder}",
                f"--LabApp.user_settings_dir={self._settings}",
                f"--LabApp.workspaces_dir={folder / 'workspaces'}",
                "--LabApp.news_url=None", "--LabApp.extension_manager=readonly",
                "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            ],
            cwd=folder, env={**os.environ, **places}, stdout=self._log, stderr=self._log,
        )  # fmt: skip
        self._wait()

    def prepare(self, chapter: str, theme: str) -> None:
        """Put a fresh copy of a chapter in place, stop older kernels, and set the theme."""
        for session in json.loads(self._ask("sessions")):
            self._ask(f"sessions/{session['id']}", "DELETE")
        shutil.copy(ROOT / "notebooks" / f"{chapter}.ipynb", self.chapters)
        self.set_theme(theme)

    def set_theme(self, theme: str) -> None:
        """`light` or `dark`, for pages that are opened from now on."""
        self._set("apputils-extension/themes", {"theme": THEMES[theme]})

    def _ask(self, what: str, method: str = "GET") -> bytes:
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(
            f"{self.address}/api/{what}", method=method, headers=headers
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read()

    def _set(self, name: str, values: dict) -> None:
        path = self._settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                self._ask("status")
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        self.close()
        self._log.seek(0)
        pytest.fail(f"JupyterLab did not start: {self._log.read()[-2000:]}")

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_) -> None:
        self.close()
        self._log.close()

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def run_all(page, lab: Lab, chapter: str) -> None:
    """Open a chapter, run all its cells, and wait until the kernel has nothing left to do."""
    page.goto(f"{lab.address}/lab/tree/notebooks/{chapter}.ipynb?reset&token={lab.token}")
    page.locator(".jp-Notebook").wait_for(timeout=60_000)
    idle = page.locator("#jp-main-statusbar").get_by_text("Python 3 (ipykernel) | Idle")
    idle.wait_for(timeout=60_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("^Run All Cells")).click()
    # A cell whose source is hidden has an empty prompt.
    page.wait_for_function(
        """() => [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")]
            .every(prompt => /^(\\[\\d+\\]:)?$/.test(prompt.textContent.trim()))""",
        timeout=180_000,
    )
    idle.wait_for(timeout=60_000)


def shoot(page, folder: Path | None, name: str) -> None:
    """Make the window as tall as the notebook, and a picture of it if there is a folder."""
    height = page.evaluate(
        """() => {
            const outer = document.querySelector(".jp-WindowedPanel-outer");
            return outer.scrollHeight + innerHeight - outer.clientHeight;
        }"""
    )
    page.set_viewport_size({"width": 1280, "height": height + 20})
    page.evaluate("document.querySelector('.jp-WindowedPanel-outer').scrollTop = 0")
    page.wait_for_timeout(500)
    if folder:
        page.screenshot(path=folder / f"{name}.png")


def saved(lab: Lab, page, chapter: str):
    """The notebook as JupyterLab writes it, with what the cells gave."""
    page.keyboard.press("Control+s")
    path = lab.chapters / f"{chapter}.ipynb"
    for _ in range(100):
        page.wait_for_timeout(100)
        try:
            notebook = nbformat.read(path, as_version=4)
        except nbformat.reader.NotJSONError:  # half written
            continue
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        if all(cell.execution_count for cell in code):
            return code
    pytest.fail(f"{chapter} was not saved after its run.")
