"""Each extra of pyproject.toml by itself: what it is meant to serve works with nothing else there.

For each extra a virtual environment is made in which links stand for its packages, those that they
need, and no others; so nothing is downloaded, and what a developer's environment holds besides
cannot hide a package that is missing.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OWN = canonicalize_name(PROJECT["name"])
PREFIX = Path(sys.prefix).resolve()
LINKED = (Path(sysconfig.get_path("purelib")).resolve().relative_to(PREFIX), Path("share/jupyter"))

# What runs kernels, counts and times, on a machine that has nothing but a GPU as well.
BARE = """
import helpers.kernels.arguments, helpers.problem.attention, helpers.gpu.device, helpers.gpu.driver
import helpers.bench.subject, helpers.bench.work
import helpers.problem.flash_inputs, helpers.gpu.lock, helpers.kernels.lookup
import helpers.kernels.kernel
import helpers.problem.ladder, helpers.measure.profile, helpers.problem.rungs
import helpers.simulator.compile.signature
import helpers.simulator, helpers.kernels.source, helpers.standin, helpers.measure.timing
import sys
from importlib.util import find_spec
assert all(find_spec(name) is None for name in ("ipywidgets", "IPython", "jinja2"))
listing = helpers.kernels.load_kernel("02_naive.cu", "softmax").show()
assert listing._repr_html_() is None and "softmax" in repr(listing)
print(len(sys.modules))
"""
# As nbconvert's command and JupyterLab's menu do, with a made-up notebook.
EXPORT = """
import nbformat, sys
from nbconvert.exporters import get_export_names, get_exporter
for name in get_export_names():
    get_exporter(name)
assert {"html", "slides", "markdown", "offline_slides", "offline_page"} <= {*get_export_names()}
cells = [nbformat.v4.new_markdown_cell("# A title with $x$"), nbformat.v4.new_code_cell("6 * 7")]
kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), "n.ipynb")
for name in sys.argv[1:]:
    text, _ = get_exporter(name)().from_filename("n.ipynb")
    assert "A title with" in text, text
"""
CHAPTER = """
import helpers.bench, helpers.exercises.grade, helpers.figures, helpers.figures.player
import helpers.kernels.listing, helpers.panels, helpers.measure.tables, matplotlib
import helpers.slides.build, helpers.slides.exporters, helpers.slides.content.live
"""


def closure(extras: tuple[str, ...]) -> dict[str, Distribution]:
    """The packages that an installation with some extras brings, the project itself apart."""
    found: dict[str, Distribution] = {}
    seen: set[tuple] = set()
    waiting = [Requirement(f"{OWN}[{','.join(extras)}]")]
    while waiting:
        wanted = waiting.pop()
        name, chosen = canonicalize_name(wanted.name), frozenset(wanted.extras)
        if (name, chosen) in seen:
            continue
        seen.add((name, chosen))
        if name == OWN:
            lines = [*PROJECT["dependencies"]]
            lines += [e for extra in chosen for e in PROJECT["optional-dependencies"][extra]]
        else:
            try:
                found[name] = distribution(name)
            except PackageNotFoundError:
                pytest.skip(f"{name} is not installed: `make test` does")
            lines = found[name].requires or []
        for need in map(Requirement, lines):
            asked = [{"extra": extra} for extra in (*chosen, "")]
            if need.marker is None or any(map(need.marker.evaluate, asked)):
                waiting.append(need)
    return found


def places(package: Distribution) -> set[Path]:
    """Where the modules and the data of a package lie, below the environment's folder."""
    base = os.path.relpath(Path(package.locate_file("")).resolve(), PREFIX)
    record = (package.read_text("RECORD") or "").splitlines()
    names = {os.path.normpath(os.path.join(base, line[0])) for line in csv.reader(record)}
    parts = tuple(f"{part}{os.sep}" for part in LINKED)
    return {Path(n) for n in names if n.startswith(parts) and not n.endswith((".pyc", ".pth"))}


def link(mine: set[Path], others: set[Path], folder: Path) -> None:
    """Link files into `folder`; a folder that holds none of the others' is one link."""
    theirs = {parent for path in others for parent in path.parents}
    made: set[Path] = set()
    for path in sorted(mine):
        below = [parent for parent in reversed(path.parents) if parent not in LINKED]
        below = [p for p in below if any(p.is_relative_to(part) for part in LINKED)]
        top = next((part for part in [*below, path] if part not in theirs), path)
        if top not in made:
            made.add(top)
            (folder / top).parent.mkdir(parents=True, exist_ok=True)
            (folder / top).symlink_to(PREFIX / top)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Makes the environment of some extras: `environment("lab")` is the path of its Python."""
    files = {canonicalize_name(d.metadata["Name"]): places(d) for d in distributions()}

    def make(*extras: str) -> Path:
        wanted = {*closure(extras), OWN}
        folder = tmp_path_factory.mktemp("-".join(extras) or "core") / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        mine = {path for name in wanted for path in files[name]}
        link(mine, {p for name in files.keys() - wanted for p in files[name]}, folder)
        (folder / LINKED[0] / "course.pth").write_text(f"{ROOT}\n")
        return folder / "bin" / "python"

    return make


def run(python: Path, code: str, *arguments: str) -> str:
    """What a program prints in an environment, with nothing of this one's around it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    folder = python.parent.parent
    own |= {"JUPYTER_CONFIG_DIR": str(folder / "c"), "JUPYTER_DATA_DIR": str(folder / "d")}
    done = subprocess.run(
        [python, "-c", code, *arguments], cwd=folder, env=own, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_bare_machine_runs_and_times_kernels(environment):
    assert int(run(environment(), BARE)) > 50


def test_decks_are_made_without_jupyterlab(environment):
    code = CHAPTER + "import sys, ipykernel_launcher\nassert 'jupyterlab' not in sys.modules\n"
    run(environment("slides"), code)


def test_jupyterlab_alone_exports_by_every_way(environment):
    run(environment("lab"), CHAPTER + EXPORT, "html", "slides", "markdown", "offline_slides")


def test_the_class_server_serves_what_jupyterlab_does(environment):
    names = "jupyterhub.app jupyterhub.singleuser jupyterhub_idle_culler jupyterlab.labapp"
    names += " jupyterhub_traefik_proxy"
    run(environment("lab", "hub"), "\n".join(f"import {name}" for name in names.split()))


def test_without_what_decks_need_all_other_exports_work(environment):
    """As in an environment of one's own, in which there is nbconvert and the course's core."""
    python = environment("slides")
    for gone in ("ziamath", "sphinx_revealjs"):
        (python.parent.parent / LINKED[0] / gone).unlink()
    last = "get_exporter('offline_slides')().from_filename('n.ipynb')\n"
    tried = f"try:\n    {last}except Exception as error:\n    print(error)\n"
    told = run(python, EXPORT + tried, "html")
    assert re.match("(ziamath|sphinx_revealjs) is not installed, and this export needs it", told)
    assert "tools/install.py slides" in told
