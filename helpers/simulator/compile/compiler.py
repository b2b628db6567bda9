"""CUDA C to PTX, remembered by everything that decides the outcome."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import SimulatorError
from .entry_names import entries, find_entry, unknown_entry
from .kept_nvrtc import KeptNvrtc
from .providers import (
    Compilation,
    FolderProvider,
    NvrtcProvider,
    Provider,
    Request,
    has_unread_include,
)
from .source_text import includes, main_file

__all__ = [
    "Compiled",
    "FolderProvider",
    "NvrtcProvider",
    "Provider",
    "compile_ptx",
    "set_provider",
    "store",
]

DEFAULT_ARCHITECTURE = "compute_90"
_REMEMBERED = 256
# Options whose value may stand in the next element of the tuple.
_WITH_VALUE = ("-I", "--include-path", "-D", "--define-macro", "-U", "--undefine-macro")
_DEFAULTS = {  # with the options that stand in their place
    f"-arch={DEFAULT_ARCHITECTURE}": ("arch", "gpu-architecture"),
    "-std=c++17": ("std",),
    "-default-device": ("default-device", "device-as-default-execution-space"),
    "-lineinfo": ("lineinfo", "generate-line-info", "G", "device-debug"),
}
# CuPy (cupy/cuda/compiler.py) adds it behind the caller's options, and of two NVRTC takes the last:
# subnormals are flushed whatever the caller asks for.
_ALWAYS = "-ftz=true"
_ARCHITECTURE = ("-arch", "--gpu-architecture")

_provider: Provider = KeptNvrtc()
_cache: OrderedDict[tuple, Compiled] = OrderedDict()


@dataclass(frozen=True, eq=False)
class Compiled:
    """What compiling one source text gave; each compilation is itself alone, and so hashable.

    `entries` maps each kernel's name in the PTX to its name in the source. `filename` is the
    name by which the PTX's `.file` directives and the log call the source: the one passed to
    `compile_ptx`, or that of a `#line 1 "name"` in the source's first line. `includes` maps the
    name of every included file outside the toolkit to its text.
    """

    ptx: str
    entries: dict[str, str]
    log: str
    source: str
    includes: dict[str, str]
    filename: str
    options: tuple[str, ...]
    request: Request
    names: dict[str, str]

    def entry(self, name: str) -> str:
        """Return the name in the PTX of the kernel that the source calls `name`.

        Raises:
            SimulatorError: of kind `launch`, if no kernel or more than one answers to `name`.
        """
        if name in self.names:
            return self.names[name]
        found = find_entry(name, self.entries)
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(self.entries[mangled] for mangled in found)
            raise SimulatorError(
                "launch",
                f"{self.filename} has {len(found)} kernels that {name} may mean: {several}; "
                'give each a name of its own and start it with extern "C" __global__ void.',
            )
        raise SimulatorError("launch", unknown_entry(name, self.entries, self.filename))


def compile_ptx(
    code: str,
    options: tuple[str, ...] | list[str] = (),
    *,
    filename: str = "kernel.cu",
    include_dirs: Iterable[str | os.PathLike] = (),
    name_expressions: tuple[str, ...] = (),
) -> Compiled:
    """Compile CUDA C to PTX for compute capability 9.0, with a `.loc` for every line.

    As under CuPy, `-std=c++17` and `-default-device` (a function without __device__ is compiled all
    the same) are added unless `options` say otherwise, `-ftz=true` in any case, and there are no
    host headers. `-arch=sm_XY` asks for the PTX of that architecture. The same source, options,
    compiler and included texts are compiled once.

    Args:
        code: the source text.
        options: NVRTC's options, such as `("-DTILE=8",)`.
        filename: what messages call the source.
        include_dirs: folders to look for included files in, after those of `-I`.
        name_expressions: template kernels to make, such as `("scale<float>",)`.

    Raises:
        SimulatorError: of kind `compile` (the source or an option is at fault) or `argument`.
    """
    request = request_of(code, options, filename, include_dirs, name_expressions)
    key = (_provider.version, request)
    if key in _cache:
        _cache.move_to_end(key)
        return _cache[key]
    answer = _provider.compile(request)
    compiled = compiled_of(request, answer)
    if not has_unread_include(request):
        _cache[key] = compiled
        if len(_cache) > _REMEMBERED:
            _cache.popitem(last=False)
    return compiled


def set_provider(provider: Provider | None) -> None:
    """Take PTX from `provider` from now on; None goes back to NVRTC."""
    global _provider
    _provider = KeptNvrtc() if provider is None else provider


def store(folder: FolderProvider, compiled: Compiled) -> Path:
    """Keep `compiled` in `folder` for a place without a compiler; returns the file written."""
    return folder.add(compiled.request, Compilation(compiled.ptx, compiled.log, compiled.names))


def request_of(
    code: str,
    options: tuple[str, ...] | list[str],
    filename: str,
    include_dirs: Iterable[str | os.PathLike],
    name_expressions: tuple[str, ...],
) -> Request:
    """What the arguments of `compile_ptx` ask for, checked.

    Raises:
        SimulatorError: of kind `compile` or `argument`.
    """
    options = _as_strings("options", options, "-DTILE=8")
    name_expressions = _as_strings("name_expressions", name_expressions, "scale<float>")
    if not isinstance(code, str):
        raise SimulatorError(
            "argument", f"The source must be a string of CUDA C, not a {type(code).__name__}."
        )
    settings, folders = _split_options(options)
    folders += [os.fspath(folder) for folder in include_dirs]
    folders = [os.path.abspath(folder) for folder in folders]
    return Request(
        source=code,
        filename=filename,
        options=_with_defaults(settings),
        include_dirs=tuple(folders),
        includes=_read_includes(code, folders),
        name_expressions=name_expressions,
    )


def compiled_of(request: Request, answer: Compilation) -> Compiled:
    """What a provider's answer to `request` is to those who asked."""
    known = entries(answer.ptx)
    known |= {mangled: name for name, mangled in answer.names.items()}
    return Compiled(
        ptx=answer.ptx,
        entries=known,
        log=answer.log,
        source=request.source,
        includes={name: text for _, name, text in request.includes},
        filename=main_file(request.source, request.filename),
        options=request.options,
        request=request,
        names=answer.names,
    )


def _as_strings(what: str, values, example: str) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, (tuple, list)):
        raise SimulatorError(
            "argument", f"{what} must be a tuple of strings such as ({example!r},), not {values!r}."
        )
    for value in values:
        if not isinstance(value, str) or not value.strip():
            raise SimulatorError(
                "argument",
                f"{what} must be a tuple of strings such as ({example!r},), "
                f"but {value!r} is in it.",
            )
    return tuple(values)


def _split_options(options: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Separate include folders from the other options, each of which becomes one string."""
    settings: list[str] = []
    folders: list[str] = []
    pending = iter(options)
    for option in pending:
        if option in _WITH_VALUE or option in _ARCHITECTURE:
            value = next(pending, None)
            if value is None:
                raise SimulatorError("compile", f"The option {option} is last and lacks its value.")
            separator = "" if len(option) == 2 else "="
            option = f"{option}{separator}{value}"
        if option.startswith("-I"):
            folders.append(option[2:])
        elif option.startswith("--include-path="):
            folders.append(option.split("=", 1)[1])
        elif option.startswith(tuple(f"{name}=" for name in _ARCHITECTURE)):
            # PTX is made for a virtual architecture; sm_90a names the chip of compute_90a.
            architecture = option.split("=", 1)[1]
            settings.append("-arch=" + re.sub(r"^sm_", "compute_", architecture))
        else:
            settings.append(option)
    return settings, folders


def _with_defaults(settings: list[str]) -> tuple[str, ...]:
    given = {setting.lstrip("-").split("=")[0] for setting in settings}
    added = [option for option, names in _DEFAULTS.items() if given.isdisjoint(names)]
    return (*added, *settings, _ALWAYS)


def _read_includes(code: str, folders: list[str]) -> tuple[tuple[str, str, str], ...]:
    """Read every file that `code` includes from `folders`, and what those include in turn.

    Files of the toolkit and files that no folder has are left to the compiler.
    """
    if not folders:
        return ()
    found: dict[str, tuple[str, str]] = {}
    waiting = [(code, "", "")]
    while waiting:
        text, folder, prefix = waiting.pop()
        for include in includes(text):
            beside = [folder] if folder and include.quoted else []
            for place in [*beside, *folders]:
                path = os.path.normpath(os.path.join(place, include.name))
                if not os.path.isfile(path):
                    continue
                if path not in found:
                    name = prefix + include.name if place == folder else include.name
                    included = Path(path).read_text(encoding="utf-8", errors="replace")
                    found[path] = (name, included)
                    place_of = name[: name.rfind("/") + 1]
                    waiting.append((included, os.path.dirname(path), place_of))
                break
    return tuple((path, name, text) for path, (name, text) in found.items())
