"""What a caller asks for: a kernel file, one of its kernels, values of its parameters."""

import dataclasses
import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from .source import KernelError, KernelFunction, Parameter, Value


def name_of(what: str, given) -> str:
    """`given` as the name of a file or folder; `what` names it in the KernelError otherwise."""
    if not isinstance(given, (str, os.PathLike)):
        example = "02_naive.cu" if what == "file" else "kernels"
        raise KernelError(f'{what} is a name or a path, such as "{example}", not {given!r}.')
    return os.fspath(given)


def find_file(file: str | os.PathLike, folder: Path) -> Path:
    """The path of a file in `folder`, or of one by its own path.

    Raises:
        KernelError: there is none, or `file` is no name.
    """
    name = name_of("file", file)
    for path in (folder / name, Path(name)):
        if path.is_file():
            return path.resolve()
    there = sorted(path.name for path in folder.glob("*.cu"))
    listed = f"it has {', '.join(there)}" if there else "it has no .cu file"
    raise KernelError(
        f"There is no kernel file {name} in {folder.name}: {listed}.{meant(Path(name).name, there)}"
    )


def find_function(found: dict[str, KernelFunction], entry: str | None, file: str) -> KernelFunction:
    """The kernel named `entry` of those found in a file, or the only one.

    Raises:
        KernelError: there is none, the choice is left open, or it has no plain name.
    """
    names = ", ".join(found)
    if not found:
        raise KernelError(f'{file} has no kernel: write one as extern "C" __global__ void.')
    if entry is None:
        if len(found) > 1:
            raise KernelError(
                f"{file} has {len(found)} kernels ({names}); name one, as in "
                f'load_kernel("{file}", "{next(iter(found))}").'
            )
        entry = next(iter(found))
    if not isinstance(entry, str):
        raise KernelError(
            f'The kernel\'s name is text, such as "{next(iter(found))}", not {entry!r}.'
        )
    if entry not in found:
        raise KernelError(f"{file} has no kernel {entry}; it has {names}.{meant(entry, found)}")
    function = found[entry]
    if function.template or not function.extern_c:
        what = "is a template" if function.template else 'does not start with extern "C"'
        raise KernelError(
            f"{file} line {function.start}: the kernel {entry} {what}, so it has no plain name to "
            f'be found by; write extern "C" __global__ void {entry}(...).'
        )
    return function


def set_parameters(
    declared: dict[str, Parameter], values: Mapping[str, Value], file: str
) -> dict[str, Parameter]:
    """The declared parameters of a file, or of what is called so, those in `values` set.

    Raises:
        KernelError: there is no such parameter, or the value is not among its choices.
    """
    for name in values:
        if name not in declared:
            listed = ", ".join(
                f"{p.name} ({', '.join(map(str, p.choices))})" for p in declared.values()
            )
            has = f"its parameters are {listed}" if declared else "it declares none"
            asked = meant(name.upper(), declared)
            raise KernelError(f"{file} has no parameter {name}; {has}.{asked}")
    chosen = {
        name: pick(f"{file}: the parameter {name}", declared[name].choices, value)
        for name, value in values.items()
    }
    return {n: dataclasses.replace(p, value=chosen.get(n, p.value)) for n, p in declared.items()}


def pick(what: str, choices: Sequence[Value], value) -> Value:
    """The choice that equals `value`, as it stands there: 8 rather than 8.0.

    Args:
        what: what is chosen, for the message.
        choices: what there is.
        value: of Python or of NumPy.

    Raises:
        KernelError: there is none.
    """
    value = value.item() if isinstance(value, np.generic) else value
    known = isinstance(value, (int, float, str))
    for choice in choices if known else ():
        if isinstance(choice, str) == isinstance(value, str) and choice == value:
            return choice
    given = repr(value) if known else f"of type {type(value).__name__}"
    raise KernelError(f"{what} is one of {', '.join(map(str, choices))}, not {given}.")


def meant(name: str, known: Iterable[str]) -> str:
    """` Did you mean NAME?`, of what looks like a name that is not known; '' if nothing does."""
    near = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {near[0]}?" if near else ""
