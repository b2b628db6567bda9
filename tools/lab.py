"""Open JupyterLab on the chapters and print its address.

python tools/lab.py [options of `jupyter lab`]
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def arguments(environment: dict[str, str], platform: str, is_root: bool) -> list[str]:
    """JupyterLab's options: nothing is fetched from the network, and a bare machine will do.

    Args:
        environment: the environment variables.
        platform: `sys.platform`.
        is_root: whether the user is root, as in a container.
    """
    options = [
        f"--ServerApp.root_dir={ROOT}",
        "--LabApp.default_url=/lab/tree/notebooks",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        "--Application.log_level=WARN",
    ]
    if is_root:
        options.append("--allow-root")
    screen = any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    wsl = bool(environment.get("WSL_DISTRO_NAME"))
    if platform.startswith("linux") and not screen and not wsl:
        options.append("--no-browser")
    return options


@contextlib.contextmanager
def compiling_ahead() -> Iterator[None]:
    """Compile the benches' kernels meanwhile; a machine that cannot does without."""
    command = [sys.executable, "-m", "helpers.bench.ahead"]
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    process = None
    with contextlib.suppress(OSError):
        process = subprocess.Popen(
            command, cwd=ROOT / "notebooks", env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    try:
        yield
    finally:
        if process is not None:
            process.terminate()
            process.wait()


def main() -> None:
    """Run JupyterLab until it is stopped."""
    from jupyterlab.labapp import main as lab

    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    options = arguments(dict(os.environ), sys.platform, is_root)
    # tools/jupyter turns off the extension that asks about news and fetches them.
    paths = [str(ROOT / "tools" / "jupyter"), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, paths))
    # ... and colours the cells that begin with %%kernel.
    paths = [str(ROOT / "tools" / "jupyter"), os.environ.get("JUPYTER_PATH", "")]
    os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, paths))
    print("JupyterLab is starting; Control-C, twice, stops it.", flush=True)
    with compiling_ahead():
        lab(options + sys.argv[1:])


if __name__ == "__main__":
    main()
