"""The files that install, start and describe the project, and what must hold of all its files."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import install  # noqa: E402
import lab  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def tracked(*patterns: str) -> list[Path]:
    """Files under version control; the test is skipped where there is no repository."""
    command = ["git", "ls-files", "-z", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git repository")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def pins() -> dict[str, Requirement]:
    """constraints.txt by package name."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(r.name): r for r in found}


# Packages


def test_every_constraint_is_one_release():
    for requirement in pins().values():
        assert re.fullmatch(r"==[\w.]+", str(requirement.specifier)), requirement


@pytest.mark.parametrize("extra", [None, *EXTRAS])
def test_constraints_hold_every_dependency_of_the_project(extra):
    pinned = pins()
    for line in PROJECT["dependencies"] if extra is None else EXTRAS[extra]:
        wanted = Requirement(line)
        if wanted.name == PROJECT["name"]:  # another extra, looked at by itself
            assert wanted.extras <= set(EXTRAS)
            continue
        pin = pinned.get(canonicalize_name(wanted.name))
        assert pin is not None, f"{wanted.name} is not in constraints.txt"
        release = str(pin.specifier).removeprefix("==")
        assert wanted.specifier.contains(release), f"{pin} is outside {wanted}"


def test_constraints_hold_everything_that_is_installed_with_the_project():
    pinned, seen, missing = pins(), set(), []
    names = ("lab", "slides", "hub", "test")
    installed = [PROJECT["dependencies"], *(EXTRAS[name] for name in names)]
    waiting = [Requirement(line) for lines in installed for line in lines]
    waiting = [wanted for wanted in waiting if wanted.name != PROJECT["name"]]
    while waiting:
        wanted = waiting.pop()
        key = (canonicalize_name(wanted.name), tuple(sorted(wanted.extras)))
        if key in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(key)
        if key[0] not in pinned:
            missing.append(wanted.name)
        try:
            needs = requires(wanted.name) or []
        except PackageNotFoundError:
            pytest.skip(f"{wanted.name} is not installed")
        for line in needs:
            need = Requirement(line)
            extras = [{"extra": extra} for extra in (*wanted.extras, "")]
            if need.marker is None or any(need.marker.evaluate(extra) for extra in extras):
                need.marker = None
                waiting.append(need)
    assert not missing
    assert len(seen) > 80  # JupyterLab alone brings as many


def test_the_compiler_is_the_one_whose_counts_are_known():
    pinned = {name: str(r.specifier) for name, r in pins().items()}
    assert pinned["nvidia-cuda-nvrtc"] == pinned["nvidia-cuda-crt"] == "==13.0.88"
    assert pinned["cuda-bindings"].startswith("==13.0.")
    assert pinned["nvidia-cuda-runtime"].startswith("==13.0.")


def test_the_build_tool_is_one_release():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in build["requires"])


def test_a_first_start_installs_nothing_heavy():
    lines = [*PROJECT["dependencies"], *EXTRAS["lab"], *EXTRAS["slides"]]  # lab contains slides
    names = {Requirement(line).name for line in lines}
    assert not {n for n in names if re.search("cupy|torch|cublas|numba|toolkit|playwright", n)}


def test_environment_yml_installs_the_same_as_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    python, pip, from_pip = environment["dependencies"]
    assert pip == "pip"
    name, wanted = python.split(" ")
    assert name == "python"
    assert SpecifierSet(wanted) == SpecifierSet(PROJECT["requires-python"])
    # pip reads pyproject.toml itself, with every extra that needs no GPU, and nothing besides
    constraint, project = from_pip["pip"]
    assert constraint == "--constraint constraints.txt"
    extras = re.fullmatch(r"--editable \.\[([\w,]+)\]", project)[1].split(",")
    assert sorted(extras) == sorted(set(EXTRAS) - {"cuda12", "cuda13", "bench", "hub"})


def test_all_files_agree_on_the_python_releases():
    wanted = SpecifierSet(PROJECT["requires-python"])
    assert [p for p in PYTHONS if wanted.contains(p)] == list(PYTHONS)
    assert not wanted.contains("3.10") and not wanted.contains("3.15")
    makefile = (ROOT / "Makefile").read_text()
    assert "not (3, 11) <= sys.version_info < (3, 15)" in makefile
    assert "3.11 to 3.14" in makefile


# make


TARGETS = "lab test bench slides hub rehearse grade lint format clean help"


@pytest.mark.parametrize("target", TARGETS.split())
def test_make_has_the_target(target):
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True).stdout
    assert target == "help" or re.search(rf"^make {target} ", shown, re.M)


def test_without_a_suitable_python_make_says_so():
    command = ["make", "lint", "PYTHON=no-such-python false"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.splitlines()[0] == (
        "Python 3.11 to 3.14 is needed, and none of these commands is one: no-such-python false."
    )


@pytest.mark.parametrize(
    "head, capabilities, cuda",
    [
        ("Driver Version: 580.159.04     CUDA Version: 13.0     |", "9.0\n", "cuda13"),
        ("Driver Version: 590.10     CUDA UMD Version: 13.1     |", "12.0\n8.9\n", "cuda13"),
        ("Driver Version: 535.183.01   CUDA Version: 12.2     |", "8.6\n", "cuda12"),
        # a Pascal or Volta GPU under a driver for CUDA 13, whose compiler has dropped them
        ("Driver Version: 580.65.06     CUDA Version: 13.0     |", "6.1\n", "cuda12"),
        ("Driver Version: 580.65.06     CUDA Version: 13.0     |", "9.0\n7.0\n", "cuda12"),
        ("Driver Version: 580.65.06     CUDA Version: 13.0     |", "", "cuda13"),
        ("Driver Version: 470.256.02   CUDA Version: 11.4     |", "8.0\n", None),
        ("NVIDIA-SMI has failed because it couldn't communicate with the driver", "", None),
        ("", "", None),
    ],
)
def test_the_driver_decides_which_cupy_is_installed(head, capabilities, cuda):
    found, remark = install.choose_cuda(head, capabilities)
    assert found == cuda
    assert bool(remark) == ("11.4" in head)
    assert cuda is None or cuda in EXTRAS and cuda in install.CUPY


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A copy of what decides the installation, with a pip that only takes notes."""
    calls = []

    def note(command, quiet=False):
        if command[1:3] == ["-m", "venv"]:
            install.python().parent.mkdir(parents=True, exist_ok=True)
            install.python().touch()
        if "install" in command:
            calls.append(command[command.index("install") + 1 :])
        return 0

    for name in install.INPUTS:
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(install, "STAMP", tmp_path / ".venv" / "installed.json")
    monkeypatch.setattr(install, "_run", note)
    monkeypatch.setattr(install, "nvidia_smi", lambda: ("", ""))
    return tmp_path, calls


def test_what_is_installed_is_not_installed_again(checkout):
    folder, calls = checkout
    assert install.main(["lab"]) == 0
    assert [c[:4] for c in calls] == [["--constraint", "constraints.txt", "--editable", ".[lab]"]]
    assert install.main(["lab"]) == 0 and len(calls) == 1
    assert install.main(["lab", "test"]) == 0 and calls[1][3] == ".[lab,test]"
    assert install.main(["test"]) == 0 and install.main(["lab"]) == 0 and len(calls) == 2
    (folder / "constraints.txt").write_text("numpy==2.4.6\n")
    assert install.main(["lab"]) == 0 and len(calls) == 3
    install.python().unlink()
    assert install.main(["lab"]) == 0 and len(calls) == 4


def test_a_new_driver_brings_its_cupy(checkout, monkeypatch):
    _, calls = checkout
    assert install.main(["lab"]) == 0
    monkeypatch.setattr(install, "nvidia_smi", lambda: ("CUDA Version: 12.2 ", "8.6"))
    assert install.main(["lab"]) == 0
    assert [c[3] for c in calls] == [".[lab]", ".[lab]", ".[cuda12]"]
    assert install.main(["lab"]) == 0 and len(calls) == 3


def test_a_cupy_that_cannot_be_had_is_tried_again(checkout, monkeypatch, capsys):
    _, calls = checkout
    monkeypatch.setattr(install, "nvidia_smi", lambda: ("CUDA Version: 13.0 ", "9.0"))
    real = install._run
    monkeypatch.setattr(
        install, "_run", lambda c, quiet=False: real(c, quiet) or int(".[cuda13]" in c)
    )
    assert install.main(["lab"]) == 0
    assert "the simulator runs the kernels" in capsys.readouterr().out
    assert install.main(["lab"]) == 0
    assert [c[3] for c in calls] == [".[lab]", ".[cuda13]"] * 2


def test_a_python_without_venv_gets_one_sentence(checkout, monkeypatch, capsys):
    monkeypatch.setattr(install, "_run", lambda command, quiet=False: 1)
    assert install.main(["lab"]) == 1
    assert "apt install python3-venv" in capsys.readouterr().err


# JupyterLab


def test_jupyterlab_starts_without_a_screen_and_as_root():
    bare = lab.arguments({}, "linux", True)
    assert "--no-browser" in bare and "--allow-root" in bare
    desk = lab.arguments({"DISPLAY": ":0"}, "linux", False)
    assert "--no-browser" not in desk and "--allow-root" not in desk
    assert "--no-browser" not in lab.arguments({"WSL_DISTRO_NAME": "Debian"}, "linux", False)
    assert "--no-browser" not in lab.arguments({}, "darwin", False)


@pytest.fixture
def jupyterlab(tmp_path):
    """The address of a JupyterLab started as `make lab` does, with settings of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "HOME": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path / "c")}
    environment |= {"JUPYTER_DATA_DIR": str(tmp_path / "d"), "PYTHONUNBUFFERED": "1"}
    environment["HELPERS_COMPILED"] = "off"  # nobody turns a bench here
    command = [sys.executable, str(ROOT / "tools" / "lab.py"), "--no-browser", f"--port={port}"]
    server = subprocess.Popen(
        command, cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(server.stdout), daemon=True)
    reader.start()
    address, deadline = None, time.monotonic() + 60
    while address is None and server.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
        address = next((m[0] for line in lines if (m := re.search(r"http://\S+", line))), None)
    try:
        assert address is not None, "".join(lines)
        yield address
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.browser
def test_jupyterlab_opens_on_the_chapters_and_asks_nothing(jupyterlab, page):
    outside, errors = [], []
    page.on("request", lambda r: "//localhost" in r.url or outside.append(r.url))
    page.on("pageerror", lambda e: errors.append(str(e)))
    assert re.match(r"http://localhost:\d+/lab/tree/notebooks\?token=", jupyterlab)
    page.goto(jupyterlab)
    page.wait_for_selector(".jp-DirListing-content", timeout=60_000)
    # the file browser stands in notebooks/, and the folders beside it can be reached
    page.wait_for_selector(".jp-BreadCrumbs-item[title='notebooks']", timeout=30_000)
    page.wait_for_timeout(2000)  # a question about news would come now
    assert page.locator(".jp-Dialog").count() == 0
    assert "news" not in page.locator("body").inner_text().lower()
    assert not [url for url in outside if not url.startswith(("data:", "blob:"))]
    assert not errors


# Every file


def test_no_file_names_where_packages_come_from():
    hosts = ["py" + "pi.org", "python" + "hosted", "npm" + "js.", "ana" + "conda.", "conda" + ".io"]
    options = ["--index" + "-url", "--extra-" + "index", "find-" + "links", "--trusted" + "-host"]
    wrong = re.compile("|".join(map(re.escape, hosts + options)) + r"|https?://\S*/simple\b")
    found = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue  # recorded arrays
        found += [f"{path.name}: {m[0]}" for m in wrong.finditer(text)]
    assert not found


def test_no_notebook_holds_outputs():
    for path in tracked("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            assert not cell.get("outputs") and not cell.get("execution_count"), path.name


def test_a_kernel_file_has_at_most_300_lines():
    for path in tracked("kernels/*.cu", "kernels/*.cuh"):
        assert len(path.read_text().splitlines()) <= 300, path.name


def test_no_tracked_file_is_large():
    for path in tracked():
        assert path.stat().st_size <= 2**20, path.name


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_style(command):
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "."], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
