"""`panel_of`: an error of the simulator, of `load_kernel` or of CuPy as one panel."""

import difflib
import linecache
import re
import traceback
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from helpers.gpu import device
from helpers.kernels.listing import Listing
from helpers.simulator.compile.advice import hint_of
from helpers.simulator.compile.compile_errors import Diagnostic, compile_error, parse_log
from helpers.simulator.compile.source_text import mask, numbered_lines
from helpers.simulator.errors import Headlined, Interrupted, SimulatorError

from .brackets import unmatched
from .cuda_errors import cuda_panel, memory_panel
from .excerpts import excerpt
from .panel import Panel

HELPERS = str(Path(__file__).resolve().parent.parent)
_CELL = re.compile(r"<ipython-input|.*ipykernel_")  # as IPython and ipykernel call a cell's file
_CUDA = ("CUDADriverError", "CUDARuntimeError")
_MOST = 4  # diagnostics told one by one

_TITLES = {
    "compile": "The kernel does not compile",
    "launch": "The launch is refused",
    "argument": "An argument does not fit",
    "unsupported": "The simulator cannot run this",
    "out_of_bounds": "Out of bounds",
    "misaligned": "A misaligned access",
    "uninitialised": "Memory is read before it was written",
    "barrier": "A barrier that not all threads reach",
    "endless_loop": "An endless loop",
    "race": "A race",
    "async": "An asynchronous copy was not waited for",
    "trap": "The kernel stopped itself",
    "assert": "An assert() failed",
}
_UNDEFINED = re.compile(r'identifier "(\w+)" is undefined')
_BUILT_IN = (
    "threadIdx blockIdx blockDim gridDim __syncthreads __syncwarp __shfl_down_sync __shared__ "
    "float double int unsigned half float4 fmaxf fminf expf sqrtf powf fabsf min max return"
).split()
_STATE = re.compile(
    r" (?P<state>No argument was changed\.|The launch stopped there: [^\n]* may be part-written\.)$"
)


def panel_of(error: BaseException) -> Panel:
    """The panel of an error: what happened, where in the source, what to do.

    Known are `SimulatorError`, `Interrupted` and `KernelError`, and by their names CuPy's
    `CUDADriverError`, `CUDARuntimeError`, `CompileException` and `OutOfMemoryError`. Of any other
    exception the panel holds the type and the message. The traceback is in `details`.
    """
    panel = _panel(error)
    found = _called_from(error)
    shown = "The error showed" if type(error).__name__ in _CUDA else "It was called"
    called = f"{shown} on {found}" if found else ""
    said = (*panel.said, called) if called else panel.said
    details = "".join(traceback.format_exception(error)).strip()
    return replace(panel, said=said, details=panel.details or details)


def _panel(error: BaseException) -> Panel:
    name = type(error).__name__
    text = str(error).strip()
    if isinstance(error, SimulatorError):
        return _compile_panel(error) if error.log else _simulator_panel(error)
    if isinstance(error, Interrupted):
        return replace(_simulator_panel(error), title="Interrupted", kind="note")
    if isinstance(error, Headlined):
        return Panel(error.headline, (text,))
    if name == "CompileException":
        return _cupy_compile_panel(error, text)
    if name in _CUDA:
        return cuda_panel(text, device.launched)
    if name == "OutOfMemoryError":
        return memory_panel(text)
    return Panel(name, (text or "It has no message.",))


def _simulator_panel(error: SimulatorError | Interrupted) -> Panel:
    title = _TITLES.get(getattr(error, "kind", ""), "The launch failed")
    place = f" on line {error.line}" if error.line else ""
    place += f" of {error.file}" if place and error.file else ""
    said, state = _state(str(error).strip())
    listing = _excerpt(error, [error.line]) if error.line else None
    return Panel(f"{title}{place}", tuple(filter(None, [said, state])), "", listing)


def _state(text: str) -> tuple[str, str]:
    """Split off the closing sentence on what became of the arguments."""
    found = _STATE.search(text)
    return (text[: found.start()], found["state"]) if found else (text, "")


def _compile_panel(error: SimulatorError) -> Panel:
    """What the compiler refuses, the lines marked; its log is folded away."""
    sentence = str(error).split("\n\n")[0].removeprefix(f"{error.file}: ")
    errors = [d for d in parse_log(error.log) if d.severity == "error"]
    first = re.match(r"(?P<file>.*):(?P<line>\d+): ", sentence)
    if not first:  # the log names no place
        line, todo = _bracket(error) or (0, "")
        listing = excerpt(error.code, error.file, [line]) if line else None
        return Panel(
            _TITLES["compile"], (_capital(sentence.removeprefix("error: ")),), todo, listing,
            details=error.log, summary="NVRTC's log",
        )  # fmt: skip
    what = sentence[first.end() :].removeprefix("error: ")
    file, line = first["file"], int(first["line"])
    said = [f"{_place(file, line, error)}: {what}"]
    others = [d for d in errors if d.line is None or d.message.rstrip(".") not in sentence]
    said += [_told(d, error) for d in others[: _MOST - 1]]
    if len(others) > _MOST - 1:
        said.append(f"{len(others) - _MOST + 1} errors more are in the log below.")
    told = [Diagnostic(file, line, "error", ""), *others[: _MOST - 1]]
    shown = (
        _excerpt(error, [d.line for d in told if d.file == name and d.line], name)
        for name in dict.fromkeys(d.file for d in told if d.file)
    )
    listing = next(filter(None, shown), None)  # of the first file whose text is at hand
    todo = []
    if what.startswith('expected a ";"'):
        before = _code_before(error.code, file, line)
        todo.append(f"Look at the end of line {before}: a missing ; is seen where the next starts.")
    elif "unrecognized token" in what:
        todo.append(_odd_character(error.code, file, line))
    elif undefined := _UNDEFINED.search(what):
        todo.append(_meant(undefined[1], error.code))
    if bracket := _bracket(error):
        todo.append(bracket[1])
    if others:
        todo.append("Mend the first error first: others often follow from it.")
    return Panel(
        _TITLES["compile"], tuple(said), " ".join(filter(None, todo)), listing,
        details=error.log, summary="NVRTC's log",
    )  # fmt: skip


def _meant(name: str, code: str) -> str:
    """The name that looks like an unknown one, as a question."""
    words = dict.fromkeys([*re.findall(r"[A-Za-z_]\w*", mask(code)), *_BUILT_IN])
    words.pop(name, None)
    near = difflib.get_close_matches(name, words, n=1, cutoff=0.65) if len(name) > 2 else []
    return f"Did you mean {near[0]}?" if near else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _bracket(error: SimulatorError) -> tuple[int, str] | None:
    """Line and sentence of a bracket without its other one, in the code that was compiled."""
    if not error.code:
        return None
    return unmatched(error.code, [n for _, n, _ in numbered_lines(error.code, error.file)])


def _odd_character(code: str, file: str, line: int) -> str:
    """What a character that C++ does not know is called, and what may have been meant."""
    rows = (text for number, text in _rows_of(code, file) if number == line)
    odd = next((c for row in rows for c in row if ord(c) > 126 or c in "`@$"), "")
    if not odd:
        return ""
    if odd.isascii():
        return f"The character {odd} in line {line} has no meaning in C++."
    name = unicodedata.name(odd, "a character without a name").lower()
    shown = f"{odd} " if odd.isprintable() and not odd.isspace() else ""
    return (
        f"The character {shown}in line {line} is the Unicode one called {name}; outside of "
        "comments and strings a kernel is written in plain ASCII characters."
    )


def _code_before(code: str, file: str, line: int) -> int:
    """The last line before `line` that holds code."""
    before = (
        number
        for number, text in _rows_of(code, file)
        if number < line and text.strip() and not text.startswith("#line")
    )
    return max(before, default=line)


def _rows_of(code: str, file: str) -> Iterator[tuple[int, str]]:
    """Number and text of the lines of one file, without comments and strings."""
    numbered, texts = numbered_lines(code, file), mask(code).split("\n")
    for (name, number, _), text in zip(numbered, texts, strict=True):
        if name == file:
            yield number, text


def _place(file: str, line: int, error: SimulatorError) -> str:
    return f"Line {line}" if file == error.file else f"Line {line} of {file}"


def _told(diagnostic: Diagnostic, error: SimulatorError) -> str:
    message = f"{diagnostic.message.rstrip('.')}. {hint_of(diagnostic.message)}".strip()
    if diagnostic.line is None or diagnostic.file is None:
        return _capital(message)
    return f"{_place(diagnostic.file, diagnostic.line, error)}: {message}"


def _excerpt(error, lines: list[int], file: str = "") -> Listing | None:
    """Lines of the error's own file, or of one that a `#line` names in its code."""
    code, file = error.code, file or error.file
    if file != error.file:
        if f'"{file}"' not in code:
            return None
        code = f'#line 1 "{error.file}"\n{code}'  # the text before the first #line is its own
    return excerpt(code, file, lines) if code else None


def _cupy_compile_panel(error: BaseException, log: str) -> Panel:
    """CuPy's CompileException, as `cp.RawKernel` raises it; its `name` is a temporary file's."""
    source, name = getattr(error, "source", ""), str(getattr(error, "name", "") or "")
    if name:
        log = log.replace(name, "kernel.cu")
    return _compile_panel(compile_error(log, source or "", "kernel.cu"))


def _called_from(error: BaseException) -> str:
    """The line of a notebook's cell that led here, or ''."""
    found = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if file.startswith(HELPERS) or not _CELL.match(file):
            continue
        text = linecache.getline(file, number).strip()
        found = f"line {number} of the cell: {text}" if text else ""
    return found
