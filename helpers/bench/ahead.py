"""Compile what the ladder's benches can be turned to, before anybody turns them.

    python -m helpers.bench.ahead [rung ...]

`make lab` starts it beside JupyterLab. What it makes is kept where the next session looks for it
(`compile.kept_nvrtc`), and what is there already is not made again. So the first change of a bench
does not wait for the compiler, on a new machine neither, once this has run for about a minute.
On a GPU the kernels themselves are compiled first, for which CuPy keeps what it makes. Machine code
that chapters show comes next.

    python -m helpers.bench.ahead --listed '[["flash_rescale", {"SLACK": 8}], ...]'

is what a chapter starts on a GPU: these kernels alone, in the order in which its cells want them.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping

from ..gpu import device
from ..kernels.kernel import Kernel
from ..kernels.source import CannotRun, KernelError, Value
from ..problem.ladder import ladder, rung
from ..simulator.compile.compiler import compile_ptx
from ..simulator.compile.kept_nvrtc import kept_folder
from ..simulator.errors import SimulatorError
from .subject import Settings, Subject, subject_of


def names() -> list[str]:
    """The rungs that have a bench."""
    return [one.name for kind in ("fp32", "flash", "hopper") for one in ladder(kind)]


def reached(subject: Subject) -> Iterator[Settings]:
    """The settings that a bench begins with, and those that one control leads to from there."""
    controls = subject.controls()
    usual = {control.name: control.default for control in controls}
    yield usual
    for control in controls:
        for choice in control.choices:
            if choice != control.default:
                yield {**usual, control.name: choice}


def compile_ahead(wanted: Iterable[str]) -> None:
    """Compile the kernels of some rungs' benches, each at what one control turns it to.

    Args:
        wanted: the rungs' names.
    """
    subjects = [subject_of(name) for name in wanted]
    for subject in subjects:
        with contextlib.suppress(CannotRun, KernelError, SimulatorError):
            for launch in subject.problem(next(reached(subject))).launches:
                launch.kernel.machine_code()
    for subject in subjects:
        for settings in reached(subject):
            # Said where it is turned to: settings that do not go together, an edited kernel.
            with contextlib.suppress(CannotRun, KernelError, SimulatorError):
                for launch in subject.problem(settings).launches:
                    compile_ptx(launch.kernel.code, launch.kernel.options)


def compile_listed(listed: Iterable[tuple[str, Mapping[str, Value]]]) -> None:
    """Compile kernels of rungs as a chapter's cells want them.

    First all for the simulator, then the machine code of the rungs as they are, then for a GPU.

    Args:
        listed: names of rungs, each with parameters that differ from the usual ones.
    """
    kernels = [
        (kernel, not values) for name, values in listed for kernel in _kernels(name, **values)
    ]
    if kept_folder() is not None:
        for kernel, _ in kernels:
            compile_ptx(kernel.code, kernel.options)
        with contextlib.suppress(SimulatorError):  # said where it is shown
            for kernel, plain in kernels:
                if plain:
                    kernel.machine_code()
    if device.is_gpu:
        for kernel, _ in kernels:
            kernel.compile()


def _kernels(
    name: str, ELEMENT: str = "half", HEAD_DIM: int = 128, **values: Value
) -> list[Kernel]:
    """The kernels of a rung with some parameters; the first two are of FlashAttention's alone."""
    one = rung(name)
    if one.kind == "fp32":
        return [launch.kernel for launch in one.launches(128, 64, **values)]
    return [one.with_parameters(**values).kernel(ELEMENT, HEAD_DIM)]


def compile_for_gpu(wanted: Iterable[str]) -> None:
    """Compile with CuPy what a bench of each rung begins with, the newest first.

    Args:
        wanted: the rungs' names.
    """
    for name in reversed(list(wanted)):
        subject = subject_of(name)
        with contextlib.suppress(Exception):  # said where it is launched
            for launch in subject.problem(next(reached(subject))).launches:
                launch.kernel.compile()


def main(wanted: list[str]) -> None:
    """Compile for some rungs, or all, or what is listed, out of the way of everything else."""
    if hasattr(os, "nice"):
        os.nice(10)
    if wanted[:1] == ["--listed"]:
        compile_listed(json.loads(wanted[1]))
        return
    if device.is_gpu:
        compile_for_gpu(wanted or names())
    if kept_folder() is not None:  # else nothing is to be kept
        compile_ahead(wanted or names())


if __name__ == "__main__":
    main(sys.argv[1:])
