"""A JupyterLab for all tests of a worker, with one page, and what is done on it."""

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
from playwright.sync_api import TimeoutError as PageTimeout

ROOT = Path(__file__).resolve().parents[2]
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
IDLE = "#jp-main-statusbar :text('Python 3 (ipykernel) | Idle')"
POLLING = 100  # milliseconds; each frame, as by default, would keep a processor busy
SETTINGS = {
    # All cells are in the page at once, or those out of sight could not be looked at.
    "notebook-extension/tracker": {"windowingMode": "none", "scrollPastEnd": False},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


class Lab:
    """A JupyterLab of its own, with a copy of the chapters and none of the user's settings.

    Attributes:
        folder: what it serves.
        chapters: the copies, in it.
        page: Playwright's, with JupyterLab in it, once `start_page` has been called. It is loaded
            once: that takes longer than most notebooks.
    """

    def __init__(self, folder: Path):
        self.folder, self.chapters, self.page = folder, folder / "notebooks", None
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
        places["JUPYTER_PATH"] = str(ROOT / "tools" / "jupyter")  # as `make lab` has it
        self._process = subprocess.Popen(
            [
                sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
                f"--port={port}", "--ServerApp.ip=127.0.0.1", "--ServerApp.port_retries=0",
                f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={folder}",
                f"--LabApp.user_settings_dir={self._settings}",
                f"--LabApp.workspaces_dir={folder / 'workspaces'}",
                "--LabApp.news_url=None", "--LabApp.extension_manager=readonly",
                "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
                "--LabApp.expose_app_in_browser=True",
            ],
            cwd=folder, env={**os.environ, **places}, stdout=self._log, stderr=self._log,
        )  # fmt: skip
        self._wait()

    def start_page(self, browser) -> None:
        """Open JupyterLab in a new page of Playwright's `browser`."""
        self.page = browser.new_context().new_page()
        self.page.goto(f"{self.address}/lab?reset&token={self.token}")
        self.page.wait_for_function("window.jupyterapp?.shell", polling=POLLING, timeout=60_000)
        self.page.evaluate("jupyterapp.restored.then(() => null)")

    def clear(self) -> None:
        """Close what is open on the page, saved or not, and stop all kernels."""
        self.page.evaluate("[...jupyterapp.shell.widgets('main')].forEach((one) => one.dispose())")
        for session in json.loads(self._ask("sessions")):
            self._ask(f"sessions/{session['id']}", "DELETE")

    def open(self, path: str, theme: str = "light") -> None:
        """Open a notebook in a theme, `light` or `dark`, and wait for its kernel.

        Args:
            path: of the notebook in `folder`.
        """
        self.page.evaluate(
            """([path, theme]) => jupyterapp.commands.execute("apputils:change-theme", { theme })
                .then(() => jupyterapp.commands.execute("docmanager:open", { path }))
                .then(() => null)""",
            [path, THEMES[theme]],
        )
        self.page.locator(".jp-Notebook").wait_for(timeout=60_000)
        idle = self.page.locator(IDLE)
        try:
            idle.wait_for(timeout=30_000)
        except PageTimeout:  # a status can be lost while the page connects: it asks again
            self.page.evaluate(
                "jupyterapp.commands.execute('notebook:reconnect-to-kernel').then(() => null)"
            )
            idle.wait_for(timeout=60_000)

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


def run_all(lab: Lab, path: str, theme: str = "light") -> None:
    """Open a notebook, run all its cells, and wait until the kernel has nothing left to do."""
    lab.open(path, theme)
    lab.page.get_by_role("menuitem", name="Run", exact=True).click()
    lab.page.get_by_role("menuitem", name=re.compile("^Run All Cells")).click()
    # A cell whose source is hidden has an empty prompt.
    lab.page.wait_for_function(
        """() => [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")]
            .every(prompt => /^(\\[\\d+\\]:)?$/.test(prompt.textContent.trim()))""",
        polling=POLLING,
        timeout=180_000,
    )
    lab.page.locator(IDLE).wait_for(timeout=60_000)


def shoot(page, folder: Path | None, name: str) -> None:
    """Make the window as tall as the notebook and take a picture of it, if there is a folder."""
    if folder is None:
        return
    height = page.evaluate(
        """() => {
            const outer = document.querySelector(".jp-WindowedPanel-outer");
            return outer.scrollHeight + innerHeight - outer.clientHeight;
        }"""
    )
    page.set_viewport_size({"width": 1280, "height": height + 20})
    page.evaluate("document.querySelector('.jp-WindowedPanel-outer').scrollTop = 0")
    page.wait_for_timeout(500)
    page.screenshot(path=folder / f"{name}.png")


def saved(lab: Lab, path: str) -> list:
    """The code cells of the open notebook as JupyterLab writes them, with what they gave."""
    lab.page.keyboard.press("Control+s")
    lab.page.wait_for_function(
        "!jupyterapp.shell.currentWidget.context.model.dirty", polling=POLLING, timeout=10_000
    )
    notebook = nbformat.read(lab.folder / path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code), f"{path} was not saved after its run."
    return code
