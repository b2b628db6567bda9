"""`import cupy` in a notebook or behind `from helpers import cp`: without CuPy, the stand-in.

Code that was written for CuPy then runs as it is. Libraries that look whether CuPy is there go on
to find that it is not: the stand-in is for what the reader writes.
"""

import importlib.machinery
import sys
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path

from . import device

_INSTALLED = ("site-packages", "dist-packages", str(Path(importlib.machinery.__file__).parents[1]))
_HELPERS = str(Path(__file__).parents[1])


class StandInFinder(MetaPathFinder, Loader):
    """Finds `cupy` and its modules in the stand-in, for a cell or a file of the reader's."""

    def find_spec(self, fullname, path=None, target=None):
        """What the import machinery asks for every module that is not loaded.

        Raises:
            ModuleNotFoundError: a module of CuPy's that the stand-in does not have.
        """
        package = fullname.partition(".")[0]
        if package not in ("cupy", "cupyx"):
            return None
        if importlib.machinery.PathFinder.find_spec(package) is not None:
            return None
        if not _asked_by_reader():
            return None
        if self._found(fullname) is None:
            raise ModuleNotFoundError(
                f"{fullname} is not part of the stand-in that takes CuPy's place without a GPU: "
                "write from helpers import cp, which has what the chapters use of CuPy.",
                name=fullname,
            )
        return importlib.machinery.ModuleSpec(fullname, self)

    def exec_module(self, module) -> None:
        """Put the stand-in's own module in the place of the empty one that was made."""
        sys.modules[module.__name__] = self._found(module.__name__)

    def create_module(self, spec):
        """Let the import machinery make an empty one."""

    @staticmethod
    def _found(fullname: str):
        package, *inner = fullname.split(".")
        found = device.cp if package == "cupy" else None
        for name in inner:
            found = getattr(found, name, None)
        return found


def _asked_by_reader() -> bool:
    """Whether the import stands in a cell, or in a file that no package brought along."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<frozen ") and frame.f_code.co_name != "find_spec":
            return not any(part in file for part in (*_INSTALLED, _HELPERS))
        frame = frame.f_back
    return False


FINDER = StandInFinder()


def install() -> None:
    """Let `import cupy` find the stand-in from now on."""
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)
