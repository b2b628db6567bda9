"""What a caller asks for: a kernel file, one of its kernels, values of its parameters."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Mapping
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
    near = difflib.get_close_matches(Path(name).name, there, n=1)
    asked = f" Did you mean {near[0]}?" if near else ""
    listed = f"it has {', '.join(there)}" if there else "it has no .cu file"
    raise KernelError(f"There is no kernel file {name} in {folder.name}: {listed}.{asked}")


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
        near = difflib.get_close_matches(entry, found, n=1)
        asked = f" Did you mean {near[0]}?" if near else ""
        raise KernelError(f"{file} has no kernel {entry}; it has {names}.{asked}")
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
    """The declared parameters, those in `values` set.

    Raises:
        KernelError: there is no such parameter, or the value is not among its choices.
    """
    for name in values:
        if name not in declared:
            near = difflib.get_close_matches(name.upper(), declared, n=1)
            asked = f" Did you mean {near[0]}?" if near else ""
            listed = ", ".join(f"{p.name} ({_choices(p)})" for p in declared.values())
            has = f"its parameters are {listed}" if declared else "it declares none"
            raise KernelError(f"{file} has no parameter {name}; {has}.{asked}")
    return {
        name: dataclasses.replace(p, value=_choose(p, values[name], file)) if name in values else p
        for name, p in declared.items()
    }


def _choose(parameter: Parameter, value, file: str) -> Value:
    """Return the choice that equals `value`, in the type that the file uses."""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, (int, float, str)):
        raise KernelError(
            f"{file}: the parameter {parameter.name} is one of {_choices(parameter)}, not of type "
            f"{type(value).__name__}."
        )
    for choice in parameter.choices:
        if isinstance(choice, str) == isinstance(value, str) and choice == value:
            return choice
    raise KernelError(
        f"{file}: the parameter {parameter.name} is one of {_choices(parameter)}, not {value!r}."
    )


def _choices(parameter: Parameter) -> str:
    return ", ".join(str(choice) for choice in parameter.choices)
