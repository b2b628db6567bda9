"""`import cupy` in a notebook without CuPy: the stand-in, and a sentence for what it has not."""

from __future__ import annotations

import importlib.machinery
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "tools/environment/etc/ipython/ipython_config.py"
WITHOUT_CUPY = pytest.mark.skipif(  # a package's, not the stand-in's
    importlib.machinery.PathFinder.find_spec("cupy") is not None, reason="CuPy is installed"
)
CELL = """
import cupy as cp
from cupy.cuda import Stream
try:
    import cupyx
except ImportError as error:
    print(error)
from helpers import cp as ours
print(cp is ours, Stream is ours.cuda.Stream)
sys_modules = __import__("sys").modules
del sys_modules["cupy"]
import cupy
print(cupy is ours)
"""


@WITHOUT_CUPY
def test_a_cell_gets_the_stand_in_before_and_behind_the_import_of_helpers():
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor"]
    command += [f"--config={CONFIG}", "-c", CELL]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    told, *same = done.stdout.strip().split("\n")
    assert told.startswith("cupyx is not part of the stand-in") and "from helpers import cp" in told
    assert same == ["True True", "True"], done.stdout + done.stderr


@WITHOUT_CUPY
def test_a_program_gets_the_stand_in_behind_the_import_of_cp():
    code = "from helpers import cp\nimport cupy\nprint(cupy is cp, __import__('cupy') is cp)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "True True\n", done.stderr


def test_a_library_that_looks_for_cupy_does_not_find_the_stand_in():
    code = "from helpers.gpu import import_cupy\nimport_cupy.install()\n"
    code += "import importlib.util\nprint(importlib.util.find_spec('cupy_not_there'))\n"
    code += "exec(compile('import cupy', '/x/site-packages/lib/a.py', 'exec'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    if importlib.machinery.PathFinder.find_spec("cupy") is None:
        assert done.stdout == "None\n" and "No module named 'cupy'" in done.stderr
