"""Make `.venv` hold what a task needs, at the releases of constraints.txt.

    python3 tools/install.py lab test

The arguments are extras of pyproject.toml. Where nvidia-smi shows a driver, CuPy for its CUDA
release comes on top. What has been installed, and from which files, is written to
`.venv/installed.json`; when nothing has changed since, this returns at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "installed.json"
INPUTS = ("pyproject.toml", "constraints.txt")
CUPY = {"cuda12": "cupy-cuda12x", "cuda13": "cupy-cuda13x"}
# The oldest GPU that the compiler of CUDA 13 still knows; for older ones there is CUDA 12.
OLDEST_FOR_CUDA_13 = 7.5


def main(extras: list[str]) -> int:
    """Install `extras` and the CuPy that fits; returns the exit status."""
    report, capabilities = nvidia_smi()
    cuda, remark = choose_cuda(report, capabilities)
    if remark:
        print(remark)
    state = read_stamp()
    wanted = set(extras)
    if state.get("inputs") == fingerprint():
        wanted |= set(state["extras"])
        if wanted == set(state["extras"]) and state["cuda"] == cuda:
            return 0
    print(
        f"Installing into {VENV.relative_to(ROOT)} (once; about 200 MB to download) ...", flush=True
    )
    if not make_venv():
        return 1
    STAMP.unlink(missing_ok=True)
    if pip(
        "install", "--constraint", "constraints.txt", "--editable", f".[{','.join(sorted(wanted))}]"
    ):
        return _fail("The packages could not be installed; pip's message above says why.")
    if cuda is not None and install_cupy(cuda):
        print(
            f"{CUPY[cuda]} could not be installed (pip's message above says why): the simulator "
            "runs the kernels, and the next start tries again."
        )
        return 0
    write_stamp(wanted, cuda)
    return 0


def nvidia_smi() -> tuple[str, str]:
    """(what `nvidia-smi` prints, the GPUs' compute capabilities); empty without a driver."""
    program = shutil.which("nvidia-smi", path=os.environ.get("PATH", "") + ":/usr/lib/wsl/lib")
    if program is None:
        return "", ""
    ask = ["--query-gpu=compute_cap", "--format=csv,noheader"]
    return _output([program]), _output([program, *ask])


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def choose_cuda(report: str, capabilities: str) -> tuple[str | None, str]:
    """Which CUDA extra fits.

    Args:
        report: what nvidia-smi prints; its head names the newest CUDA that the driver supports.
        capabilities: compute capabilities, one a line.

    Returns:
        (extra, remark): the extra is None without a driver, or with one that is too old.
    """
    found = re.search(r"CUDA(?: \w+)? Version\s*:\s*(\d+)\.(\d+)", report)
    if found is None:
        return None, ""
    major = int(found[1])
    if major < 12:
        return None, (
            f"The NVIDIA driver supports CUDA {found[1]}.{found[2]} and CuPy needs 12.0: the "
            "simulator runs the kernels until the driver is updated."
        )
    known = [float(c) for c in re.findall(r"^\s*(\d+\.\d+)\s*$", capabilities, re.M)]
    old = known and min(known) < OLDEST_FOR_CUDA_13
    return ("cuda12" if major == 12 or old else "cuda13"), ""


def fingerprint() -> str:
    """Changes when a file that decides what is installed does, or when the folder has moved."""
    digest = hashlib.sha256(str(ROOT).encode())
    for name in INPUTS:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def read_stamp() -> dict:
    """What was installed; empty if nothing, or if the environment's Python no longer runs."""
    try:
        state = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return state if python().exists() else {}


def write_stamp(extras: set[str], cuda: str | None) -> None:
    """Say what has been installed."""
    state = {"inputs": fingerprint(), "extras": sorted(extras), "cuda": cuda}
    STAMP.write_text(json.dumps(state, indent=1) + "\n")


def python() -> Path:
    """The environment's Python."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make_venv() -> bool:
    """Create the environment, or leave a working one as it is."""
    if python().exists() and not _run([str(python()), "-m", "pip", "--version"], quiet=True):
        return True
    if _run([sys.executable, "-m", "venv", "--clear", str(VENV)]):
        _fail(
            "The environment could not be made: Python's venv module is incomplete. On Debian and "
            "Ubuntu `apt install python3-venv` completes it."
        )
        return False
    return True


def pip(*arguments: str) -> int:
    """Run the environment's pip in the repository's folder; returns its exit status."""
    command = [str(python()), "-m", "pip", *arguments, "-qq", "--disable-pip-version-check"]
    return _run(command)


def install_cupy(cuda: str) -> int:
    """Install CuPy for one CUDA release, and take the other one away; returns pip's status."""
    print(f"Installing {CUPY[cuda]} for the NVIDIA driver ...", flush=True)
    for other, package in CUPY.items():
        if other != cuda:
            pip("uninstall", "--yes", package)
    return pip("install", "--constraint", "constraints.txt", "--editable", f".[{cuda}]")


def _run(command: list[str], quiet: bool = False) -> int:
    silent = subprocess.DEVNULL if quiet else None
    # A user's habit of installing outside environments must not reach into this one.
    environment = {**os.environ, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
    try:
        return subprocess.call(command, cwd=ROOT, env=environment, stdout=silent, stderr=silent)
    except OSError:
        return 1


def _fail(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
