"""CUDA's own errors, which only a real GPU gives: what each means and what to do."""

import functools
import re
import tomllib
from importlib.resources import files
from typing import NamedTuple

from .panel import Panel

RESTART = "Restart this notebook's kernel (Kernel > Restart) and run the cells again from the top."
FIND_LINE = (
    "To find the line, launch the same on the simulator, which checks every access: "
    "kernel.count(grid, block, args) in place of kernel(grid, block, args), or the whole notebook "
    "with HELPERS_DEVICE=simulator set before JupyterLab starts."
)
_POISONED = (
    "The GPU's context is broken by it: every later call fails with the same error, whatever it "
    "does (cp.asarray, copies such as cp.asnumpy, launches, synchronize), and all arrays on the "
    "GPU are lost."
)
_LATER = (
    "A kernel runs while Python goes on, so the error shows at a later call that waits for it: "
    "the line of Python that is named need not be the one at fault."
)
_NUMBER = re.compile(r"\b(?:CUDA_ERROR_([A-Z0-9_]+)|cudaError([A-Z]\w*))")


class _Meaning(NamedTuple):
    """What an error means; `sticky` says that the context is lost."""

    title: str
    said: str
    todo: str = ""
    sticky: bool = False


@functools.cache
def _meanings() -> dict[str, _Meaning]:
    """By the driver's name without CUDA_ERROR_, in lower case and without underscores."""
    table = tomllib.loads(files(__package__).joinpath("cuda_errors.toml").read_text("utf-8"))
    return {name: _Meaning(**one) for one in table["error"] for name in one.pop("names")}


def cuda_panel(text: str, last_launch: str = "") -> Panel:
    """The panel of an error of CUDA's driver or runtime.

    Args:
        text: what CuPy says, `CUDA_ERROR_ILLEGAL_ADDRESS: an illegal ...` for example.
        last_launch: the kernel launched last, in words; empty if that is not known.
    """
    text = text.strip()
    found = _NUMBER.search(text)
    name = (found[1] or found[2]) if found else ""
    meaning = _meanings().get(name.replace("_", "").lower())
    if meaning is None:
        meaning = _Meaning(
            "CUDA reports an error",
            "It is none that kernels of this course give on their own.",
            f"Run the cell again; if the error comes back, restart: {RESTART}",
        )
    said = [meaning.said]
    todo = meaning.todo
    if meaning.sticky:
        said += [_POISONED, _LATER]
        if last_launch:
            said.append(f"The kernel launched last was {last_launch}.")
        todo = " ".join(filter(None, [RESTART, meaning.todo or FIND_LINE]))
    said.append(f"CUDA says: {text}")
    return Panel(meaning.title, tuple(said), todo)


def memory_panel(text: str) -> Panel:
    """The panel of CuPy's own OutOfMemoryError."""
    meaning = _meanings()["outofmemory"]
    return Panel(meaning.title, (meaning.said, f"CuPy says: {text.strip()}"), meaning.todo)
