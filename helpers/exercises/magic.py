"""`%%kernel NAME.cu`: edit CUDA C in a cell, keep it as a file, and see at once if it compiles.

The file is `my_kernels/NAME.cu` beside the notebook, and its first line is the cell's own, as a
comment: so the numbers of the file's lines are those of the cell.
"""

import os
import re
from pathlib import Path

from ..kernels.kernel import KERNELS, load_kernel
from ..kernels.source import KernelError, kernel_functions
from ..panels.error_panels import panel_of
from ..show import Shows, render, shell
from ..simulator.errors import SimulatorError
from .answer import ANSWERS

MAGIC = "%%kernel"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*\.cu")


class Written(Shows):
    """What the magic shows of a file that compiles.

    Attributes:
        path: the file.
        kernels: names of the kernels in it.
    """

    def __init__(self, path: Path, kernels: tuple[str, ...], then: str):
        self.path, self.kernels, self._then = path, kernels, then
        names = " and ".join(kernels)
        self._said = f"{ANSWERS}/{path.name} is written, and {names} in it compiles."

    def html(self):
        return render("written.html", said=self._said, then=self._then)

    def __repr__(self) -> str:
        return f"{self._said} Next: {self._then}"


def cell_text(line: str, body: str) -> str:
    """Text of the file that a cell makes: its first line as a comment, and its other lines.

    Args:
        line: what stands behind `%%kernel`.
        body: the other lines.
    """
    return f"// {MAGIC} {line.strip()}\n{body.rstrip()}\n"


def file_name(line: str) -> str:
    """The file's name, out of what stands behind `%%kernel`.

    Raises:
        KernelError: it is no plain name of a .cu file.
    """
    name = line.strip().strip("\"'")
    if not name:
        raise KernelError(f"Name a file behind {MAGIC}, as in {MAGIC} 03_window.cu.")
    if not _NAME.fullmatch(name):
        plain = re.split(r"[\\/\s]", name)[-1]
        plain = plain if _NAME.fullmatch(plain) else "my_kernel.cu"
        raise KernelError(
            f"{MAGIC} takes the plain name of a .cu file and puts it into {ANSWERS}/, out of the "
            f"way of the course's own: write {MAGIC} {plain}, not {name!r}."
        )
    return name


def write(line: str, body: str, folder: Path | None = None) -> Path:
    """Write a cell to its file; what was there before and differs is kept as `NAME.cu.old`.

    Args:
        line: what stands behind `%%kernel`.
        body: the other lines of the cell.
        folder: where `my_kernels/` is or will be; the current folder if None.

    Raises:
        KernelError: the name is not a plain one, or the file cannot be written.
    """
    name = file_name(line)
    place = Path.cwd() if folder is None else folder
    if place.resolve().is_relative_to(KERNELS):
        raise KernelError(
            f"{MAGIC} writes beside the notebook, and this notebook runs in the course's "
            f"{KERNELS.name}/: open a copy of it elsewhere."
        )
    path, text = place / ANSWERS / name, cell_text(line, body)
    try:
        path.parent.mkdir(exist_ok=True)
        if path.is_file() and (before := path.read_bytes()) != text.encode():
            path.with_name(f"{name}.old").write_bytes(before)
        fresh = path.with_name(f".{name}.{os.getpid()}")
        fresh.write_text(text, encoding="utf-8", newline="\n")
        fresh.replace(path)  # at once: a check never reads half a file
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it holds half a character"
        raise KernelError(f"{ANSWERS}/{name} cannot be written: {reason}.") from None
    return path


def kernel_magic(line: str, cell: str):
    """The magic itself; gives what the cell shows: that it compiles, or why it does not."""
    try:
        path = write(line, cell)
        functions = kernel_functions(path.read_text(encoding="utf-8"), path.name)
        names = tuple(functions) or (None,)
        for name in names:
            load_kernel(path, name).ptx()
    except (KernelError, SimulatorError) as error:
        return panel_of(error)
    answers = (KERNELS / "exercises" / path.name).is_file()
    then = f'check("{path.stem}")' if answers else f'load_kernel("{ANSWERS}/{path.name}")'
    return Written(path, names, then)


def register() -> None:
    """Make the magic known to IPython, if that is running."""
    if (found := shell()) is not None:
        found.register_magic_function(kernel_magic, "cell", "kernel")
