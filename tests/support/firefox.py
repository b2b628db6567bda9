"""A headless Firefox, spoken to by WebDriver BiDi: a page, its scripts, its keys, its troubles."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("firefox", "firefox-esr")
SECONDS = 90.0
# Whatever asks a host gets no answer; nothing is looked up in the background.
_PREFERENCES = {
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}
_KEYS = {
    "ArrowRight": "\ue014",
    "ArrowLeft": "\ue012",
    "Escape": "\ue00c",
    "PageDown": "\ue00f",
    "PageUp": "\ue00e",
    "Tab": "\ue004",
}


def path() -> str | None:
    """The Firefox of this machine, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Firefox:
    """One page of a running Firefox.

    Attributes:
        troubles: errors and warnings of the page, and addresses that it asked hosts for.
    """

    def __init__(self, socket):
        self._socket, self._numbers = socket, itertools.count(1)
        self.troubles: list[str] = []
        self._call("session.new", {"capabilities": {}})
        events = ["log.entryAdded", "network.beforeRequestSent"]
        self._call("session.subscribe", {"events": events})
        tree = self._call("browsingContext.getTree", {})
        self._context = tree["contexts"][0]["context"]

    def open(self, address: str, width: int = 1280, height: int = 720) -> None:
        """Load a page and wait until it has."""
        self.resize(width, height)
        where = {"context": self._context, "url": address, "wait": "complete"}
        self._call("browsingContext.navigate", where)

    def resize(self, width: int, height: int) -> None:
        """Give the page this size."""
        size = {"context": self._context, "viewport": {"width": width, "height": height}}
        self._call("browsingContext.setViewport", size)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, or of the promise that it gives, as JSON can hold it.

        Raises:
            RuntimeError: the page's script fails.
        """
        wrapped = f"(async () => JSON.stringify(await ({expression})))()"
        target = {"context": self._context}
        found = self._call(
            "script.evaluate", {"expression": wrapped, "target": target, "awaitPromise": True}
        )
        if found["type"] == "exception":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return json.loads(found["result"].get("value", "null"))

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true.

        Raises:
            TimeoutError: it does not become so.
        """
        end = time.monotonic() + SECONDS
        while not self.evaluate(f"Boolean({expression})"):
            if time.monotonic() > end:
                raise TimeoutError(expression)
            time.sleep(0.1)

    def press(self, key: str, times: int = 1) -> None:
        """Press a key where the focus is."""
        value = _KEYS.get(key, key)
        actions = [{"type": kind, "value": value} for kind in ("keyDown", "keyUp")] * times
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self._call("input.performActions", {"context": self._context, "actions": [source]})

    def click(self, x: float, y: float, pointer: str = "mouse") -> None:
        """Press and let go there, with a "mouse" or by "touch"."""
        place = {"type": "pointerMove", "x": round(x), "y": round(y)}
        press = [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        source = {"type": "pointer", "id": pointer, "parameters": {"pointerType": pointer}}
        source["actions"] = [place, *press]
        self._call("input.performActions", {"context": self._context, "actions": [source]})

    def tap(self, x: float, y: float) -> None:
        """Touch the page there with a finger."""
        self.click(x, y, "touch")

    def _call(self, method: str, parameters: dict) -> dict:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                if message["type"] == "error":
                    raise RuntimeError(f"{method}: {message['message']}")
                return message["result"]
            self._note(message.get("method"), message.get("params", {}))

    def _note(self, event: str | None, parameters: dict) -> None:
        if event == "log.entryAdded" and parameters["level"] in ("error", "warn"):
            self.troubles.append(str(parameters.get("text")))
        if event == "network.beforeRequestSent":
            address = parameters["request"]["url"]
            if not address.startswith(("file:", "data:", "blob:", "about:")):
                self.troubles.append(f"request: {address}")


@contextlib.contextmanager
def running(profile: Path) -> Iterator[Firefox]:
    """A Firefox with a profile of its own."""
    from websocket import create_connection

    lines = [f'user_pref("{n}", {json.dumps(v)});' for n, v in _PREFERENCES.items()]
    (profile / "user.js").write_text("\n".join(lines))
    command = [path(), "--headless", "--no-remote", "--profile", str(profile)]
    command += ["--remote-debugging-port", "0"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=subprocess.PIPE, text=True)
    try:
        said = ""
        for line in process.stderr:
            said += line
            if found := re.search(r"WebDriver BiDi listening on (ws://\S+)", line):
                break
        else:
            raise RuntimeError(f"Firefox does not start: {said}")
        # It says more now and then, and must not wait for somebody to read it.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        socket = create_connection(f"{found[1]}/session", timeout=SECONDS, suppress_origin=True)
        yield Firefox(socket)
        socket.close()
    finally:
        process.terminate()
        process.wait(timeout=30)
