"""Panels in place of tracebacks, in a notebook and in IPython.

An exception with the method `_render_traceback_` says itself what IPython shows of it; `install`
gives it to those of this project and to CuPy's. The exception stays what it is: a cell that raises
fails, for nbclient too, with the whole message.
"""

import contextlib
import traceback
from types import ModuleType

from ..gpu import device
from ..show import in_notebook
from ..simulator.errors import Headlined
from . import folded_answers
from .error_panels import panel_of

# Where CuPy has them; the modules are its own names for those of cupy_backends.
_CUPY = (
    ("cuda.driver", "CUDADriverError"),
    ("cuda.runtime", "CUDARuntimeError"),
    ("cuda.compiler", "CompileException"),
    ("cuda.memory", "OutOfMemoryError"),
)


def install() -> None:
    """Let IPython show this project's errors as panels, and CuPy's if CuPy is ever chosen.

    Answers are folded from here on, too.
    """
    Headlined._render_traceback_ = render
    folded_answers.install()
    device.with_cupy(install_cupy)


def install_cupy(cupy: ModuleType) -> tuple[str, ...]:
    """Let IPython show CuPy's errors as panels; returns the names of those found.

    Args:
        cupy: the module. What it does not have, or does not let be changed, stays as it is.
    """
    done = []
    for place, name in _CUPY:
        found = cupy
        for part in [*place.split("."), name]:
            found = getattr(found, part, None)
        with contextlib.suppress(AttributeError, TypeError):
            if isinstance(found, type):
                found._render_traceback_ = render
                done.append(name)
    return tuple(done)


def render(error: BaseException) -> list[str]:
    """What IPython shows of an error, which it calls this for: in a notebook a short line, below
    the panel that is displayed at the first call; elsewhere the panel's text."""
    try:
        panel = panel_of(error)
        if not in_notebook():
            return [repr(panel)]
        # IPython asks a second time, to keep what was shown.
        if not getattr(error, "_panel_shown", False):
            with contextlib.suppress(AttributeError):
                error._panel_shown = True
            from IPython.display import display  # late: there is none on a bare machine

            display(panel)
    except Exception:  # the error must be seen, whatever goes wrong with its panel
        return traceback.format_exception(error)
    return [f"{type(error).__name__}, shown above."]
