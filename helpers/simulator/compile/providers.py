"""Where PTX comes from: NVRTC, or a folder of PTX made earlier where no compiler runs."""

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..errors import SimulatorError
from .compile_errors import compile_error, option_error
from .source_text import has_computed_include, main_file

# NVRTC looks for quoted includes in the folder of the program's name. CuPy compiles in a fresh
# temporary folder, where there are none; a folder that cannot exist gives the same.
_NOWHERE = "/source-given-as-text/"
_NAMES = "// names: "
# What CuPy has in its own folder of headers, by the names that sources include.
_OWN_HEADERS = {"cupy/complex.cuh": Path(__file__).with_name("complex.cuh")}
# What stands before a path in NVRTC's log and in PTX.
_IN_LOG = r'^|(?<=compilation of ")'
_IN_PTX = r'^[ \t]*\.file[ \t]+\d+[ \t]+"'

VERBOSE = "--ptxas-options=-v"  # the assembler then says in the log what each kernel takes


@dataclass(frozen=True)
class Request:
    """One source text to compile, with everything that decides what comes out.

    `includes` maps the path of every file that the source includes from `include_dirs` to the
    pair (name as the source writes it, text). `name_expressions` name template kernels to make.
    """

    source: str
    filename: str
    options: tuple[str, ...]
    include_dirs: tuple[str, ...] = ()
    includes: tuple[tuple[str, str, str], ...] = ()
    name_expressions: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """A sha256 over source, included texts, options and names: no path of this machine."""
        included = sorted((name, text) for _, name, text in self.includes)
        parts = [self.filename, self.source, included, self.options, self.name_expressions]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Compilation:
    """What a compiler made.

    Attributes:
        ptx: as it is to be run, without paths of this machine.
        log: what the compiler says, likewise.
        names: the mangled name of each of the request's expressions.
        folder: the working directory then, whose path stands in machine code beside line numbers.
    """

    ptx: str
    log: str
    names: dict[str, str]
    folder: str = ""


class Provider(Protocol):
    """Makes PTX of a `Request`; `version` tells compilers with different output apart."""

    @property
    def version(self) -> str: ...

    def compile(self, request: Request) -> Compilation: ...


class NvrtcProvider:
    """Compiles with NVRTC through `cuda.bindings`; needs neither a GPU nor a driver."""

    def __init__(self) -> None:
        self._module = None

    @property
    def version(self) -> str:
        _, major, minor = self._nvrtc().nvrtcVersion()
        return f"nvrtc {major}.{minor}"

    def compile(self, request: Request) -> Compilation:
        """Compile `request`.

        Raises:
            SimulatorError: of kind `compile`, with NVRTC's log as the source's author should
                see it: no temporary folders, included files by the names they are included by.
        """
        return self._made(request, cubin=False)[0]

    def machine_code(self, request: Request) -> tuple[Compilation, bytes]:
        """Compile `request`, whose `-arch` is a chip's, such as sm_90; the bytes are its cubin.

        Raises:
            SimulatorError: as for `compile`.
        """
        return self._made(request, cubin=True)

    def architectures(self) -> tuple[int, ...]:
        """The compute capabilities that NVRTC makes machine code for, such as 90 for 9.0."""
        status, found = self._nvrtc().nvrtcGetSupportedArchs()
        _require(self._nvrtc(), status, "NVRTC")
        return tuple(found)

    def _made(self, request: Request, cubin: bool) -> tuple[Compilation, bytes]:
        answer, code = self._asked(request, cubin)
        if cubin and is_silent(request, answer):
            # Beside a driver, NVRTC takes the cubin out of the driver's cache, and says nothing of
            # the registers that were asked for with it.
            return self._asked(request, cubin, "--no-cache")
        return answer, code

    def _asked(self, request: Request, cubin: bool, *more: str) -> tuple[Compilation, bytes]:
        """What NVRTC makes of a request, with some options more."""
        nvrtc = self._nvrtc()
        folders = [*request.include_dirs, *toolkit_include_dirs()]
        options = [*request.options, *more, *(f"-I{folder}" for folder in folders)]
        name = (_NOWHERE + request.filename).encode()
        status, program = nvrtc.nvrtcCreateProgram(
            request.source.encode(),
            name,
            len(_OWN_HEADERS),
            [file.read_bytes() for file in _OWN_HEADERS.values()],
            [header.encode() for header in _OWN_HEADERS],
        )
        _require(nvrtc, status, request.filename)
        try:
            for expression in request.name_expressions:
                (status,) = nvrtc.nvrtcAddNameExpression(program, expression.encode())
                _require(nvrtc, status, request.filename)
            encoded = [option.encode() for option in options]
            (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
            log = _text(nvrtc, program, "ProgramLog", request.filename)
            log = own_names(request, _IN_LOG)(log)
            main = main_file(request.source, request.filename)
            if status == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION:
                raise option_error(log, request.filename, request.options)
            if status == nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION:
                raise compile_error(log, request.source, main)
            _require(nvrtc, status, request.filename)
            names = {}
            for expression in request.name_expressions:
                status, lowered = nvrtc.nvrtcGetLoweredName(program, expression.encode())
                _require(nvrtc, status, request.filename)
                names[expression] = lowered.decode()
            ptx = _text(nvrtc, program, "PTX", request.filename)
            code = _bytes(nvrtc, program, "CUBIN", request.filename) if cubin else b""
        finally:
            nvrtc.nvrtcDestroyProgram(program)
        return Compilation(own_names(request, _IN_PTX)(ptx), log, names, os.getcwd()), code

    def _nvrtc(self):
        if self._module is None:
            try:
                from cuda.bindings import nvrtc  # late: no wheels on some machines; slow to load

                status, *_ = nvrtc.nvrtcVersion()
            except Exception as error:  # the loader raises several types of its own
                raise SimulatorError(
                    "compile",
                    "No CUDA compiler was found: install the packages cuda-bindings and "
                    "nvidia-cuda-nvrtc, or give a folder of prebuilt PTX to "
                    "helpers.simulator.compile.compiler.set_provider "
                    f"({type(error).__name__}: {error}).",
                ) from error
            _require(nvrtc, status, "NVRTC")
            self._module = nvrtc
        return self._module


def is_silent(request: Request, answer: Compilation) -> bool:
    """Whether the assembler was asked what kernels take and the answer does not say it."""
    return VERBOSE in request.options and not answer.log


class FolderProvider:
    """Answers from a folder of PTX files made earlier, one per request and named by its key.

    For places where no compiler runs, such as a browser. `add` fills the folder elsewhere.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)

    @property
    def version(self) -> str:
        return f"folder {self.path}"

    def compile(self, request: Request) -> Compilation:
        """Return the stored answer to `request`.

        Raises:
            SimulatorError: of kind `compile`, if the folder has none.
        """
        file = self.path / f"{request.key}.ptx"
        if not file.is_file():
            filename = main_file(request.source, request.filename)
            options = ", ".join(request.options)
            raise SimulatorError(
                "compile",
                f"{filename}: there is no compiler here, and {self.path} has no prebuilt PTX for "
                f"this source with the options {options}; build the folder again where NVRTC runs.",
            )
        names, ptx = {}, file.read_text(encoding="utf-8")
        if ptx.startswith(_NAMES):
            first, ptx = ptx.split("\n", 1)
            names = json.loads(first.removeprefix(_NAMES))
        return Compilation(ptx, "", names)

    def add(self, request: Request, answer: Compilation) -> Path:
        """Store `answer` as what this folder gives for `request`; returns the file written."""
        self.path.mkdir(parents=True, exist_ok=True)
        file = self.path / f"{request.key}.ptx"
        head = f"{_NAMES}{json.dumps(answer.names)}\n" if answer.names else ""
        file.write_text(head + answer.ptx, encoding="utf-8")
        return file


def has_unread_include(request: Request) -> bool:
    """Whether files that were not read decide what comes out, so that it cannot be remembered."""
    texts = [request.source, *(text for _, _, text in request.includes)]
    return bool(request.include_dirs) and any(has_computed_include(text) for text in texts)


@functools.cache
def toolkit_include_dirs() -> tuple[str, ...]:
    """Find the folders of the CUDA toolkit's headers (cuda_fp16.h, crt/) among the packages."""
    found: list[str] = []
    spec = importlib.util.find_spec("nvidia")
    roots = sorted(spec.submodule_search_locations or []) if spec else []
    for header in ("cuda_fp16.h", "crt/host_defines.h", "cccl/nv/target"):
        for root in roots:
            # The wheels of CUDA 13 share nvidia/cu13/include; older ones had a folder each.
            shared = sorted(Path(root).glob(f"cu[0-9]*/include/{header}"), reverse=True)
            for file in [*shared, *Path(root).glob(f"cuda_*/include/{header}")]:
                folder = str(file)[: -len(header) - 1]
                folder = f"{folder}/cccl" if header.startswith("cccl/") else folder
                if folder not in found:
                    found.append(folder)
                break
    if not found:
        # A toolkit from conda or the system's own, which this package knows how to find.
        with contextlib.suppress(Exception):
            from cuda.pathfinder import (  # late: only where no wheel has the headers
                find_nvidia_header_directory,
            )

            found += filter(None, [find_nvidia_header_directory("cudart")])
    return tuple(found)


def own_names(request: Request, before: str, folder: str = "") -> Callable[[str], str]:
    """A function that replaces paths of this machine by the names that the source uses.

    Args:
        request: what was compiled.
        before: a regular expression of what stands before a path.
        folder: the working directory when it was compiled; the one of now, if left out.
    """
    names = {_NOWHERE: "", os.path.join(folder or os.getcwd(), ""): ""}
    names |= {f"{folder}/": "" for folder in toolkit_include_dirs()}
    names |= {path: name for path, name, _ in request.includes}
    longest_first = sorted(names, key=len, reverse=True)
    paths = re.compile(f"({before})({'|'.join(map(re.escape, longest_first))})", re.MULTILINE)
    return lambda text: paths.sub(lambda found: found[1] + names[found[2]], text)


def _text(nvrtc, program, what: str, filename: str) -> str:
    return _bytes(nvrtc, program, what, filename).rstrip(b"\0").decode(errors="replace")


def _bytes(nvrtc, program, what: str, filename: str) -> bytes:
    status, size = getattr(nvrtc, f"nvrtcGet{what}Size")(program)
    _require(nvrtc, status, filename)
    buffer = bytearray(size)
    (status,) = getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    _require(nvrtc, status, filename)
    return bytes(buffer)


def _require(nvrtc, status, filename: str) -> None:
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        reason = status.name.removeprefix("NVRTC_ERROR_").lower().replace("_", " ")
        raise SimulatorError("compile", f"{filename}: NVRTC stopped with the error: {reason}.")
