"""What NVRTC's log says, as one sentence with the offending line and a way out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import SimulatorError
from .source_text import includes, numbered_lines

_DIAGNOSTIC = re.compile(
    r"(?P<file>.*)\((?P<line>\d+)\): "
    r"(?P<severity>catastrophic error|error|warning|note|remark)(?: #\d+(?:-D)?)?: (?P<message>.*)"
)
_NO_PLACE = re.compile(
    r"(At end of source|Command-line error)(?:: (?:catastrophic )?error)?: (?P<message>.*)"
)
# What NVRTC says first of a parameter list that it could not read: consequences, not causes.
_CONSEQUENCE = re.compile(
    r'"__global__" does not apply here|namespace scope variable|incomplete type "void"'
)
_NO_FILE = re.compile(r'(?:cannot|could not) open source file "([^"]*)"')
_UNDEFINED = re.compile(
    r'identifier "([^"]*)" is undefined|namespace "std" has no member "([^"]*)"'
)
_LOG_LINES_SHOWN = 60

_SAME_ON_GPU = "NVRTC compiles without the host's headers, on a GPU as well"

_INSTEAD_OF_NAME = {
    "INFINITY": "__int_as_float(0x7f800000)",
    "HUGE_VALF": "__int_as_float(0x7f800000)",
    "NAN": "__int_as_float(0x7fffffff)",
    "FLT_MAX": "3.402823466e+38f",
    "FLT_MIN": "1.175494351e-38f",
    "FLT_EPSILON": "1.192092896e-07f",
    "DBL_MAX": "1.7976931348623157e+308",
    "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.2204460492503131e-16",
    "INT_MAX": "2147483647",
    "INT_MIN": "(-2147483647 - 1)",
    "UINT_MAX": "0xffffffffu",
    "LLONG_MAX": "9223372036854775807ll",
    "M_PI": "3.14159265358979f",
    "M_LOG2E": "1.44269504088896f",
    "int8_t": "signed char",
    "uint8_t": "unsigned char",
    "int16_t": "short",
    "uint16_t": "unsigned short",
    "int32_t": "int",
    "uint32_t": "unsigned int",
    "int64_t": "long long",
    "uint64_t": "unsigned long long",
    "intptr_t": "long long",
    "uintptr_t": "size_t",
    "uint": "unsigned int",
}
_HEADER_OF_NAME = {
    **dict.fromkeys(
        ("half", "half2", "__half", "__half2", "__float2half", "__half2float"), "cuda_fp16.h"
    ),
    **dict.fromkeys(
        ("nv_bfloat16", "nv_bfloat162", "__nv_bfloat16", "__nv_bfloat162", "__float2bfloat16"),
        "cuda_bf16.h",
    ),
    **dict.fromkeys(("nvcuda", "wmma"), "mma.h"),
}
_TYPES = "unsigned int for uint32_t, unsigned char for uint8_t, long long for int64_t"
_LIMITS = "3.402823466e+38f for FLT_MAX, __int_as_float(0x7f800000) for INFINITY"
_BUILT_IN = "{} without any header, so leave the #include out"
_INSTEAD_OF_HEADER = {
    "stdint": f"leave the #include out and write {_TYPES}",
    "math": _BUILT_IN.format("expf, sqrtf, fmaxf and the other functions are there"),
    "float": f"leave the #include out and write {_LIMITS}",
    "limits": f"leave the #include out and write {_LIMITS}, 2147483647 for INT_MAX",
    "assert": _BUILT_IN.format("assert() is there"),
    "stdio": _BUILT_IN.format("printf() is there"),
    "stddef": _BUILT_IN.format("size_t is there"),
    "stdlib": "it belongs to host code, so leave the #include out",
    "string": "it belongs to host code, so leave the #include out",
    "cuda": "it belongs to host code, and kernels need no header for CUDA itself: leave it out",
    "cooperative_groups": "it comes with the package nvidia-cuda-cccl, which `make lab` installs",
}
_INSTEAD_OF_OPTION = {
    "-O": "device code is optimised fully anyway, so leave it out",
    "--optimize": "device code is optimised fully anyway, so leave it out",
    "-Wall": "leave it out; NVRTC's warnings are on",
    "-Xcompiler": "there is no host compiler, so leave it out",
    "-std": "write it in one piece, such as -std=c++17",
}


_HINTS = {
    "unrecognized preprocessing directive": "A comment starts with //; # starts a directive such "
    "as #include.",
    'operand of "*" must be a pointer': "If a power is meant, C has no ** for it: write powf(x, y) "
    "or x * x.",
    "must have pointer-to-object type": "A pointer takes one index: element (row, i) of an array "
    "whose rows have d elements is [row * d + i].",
    'class "uint3" has no member': "The members of threadIdx and blockIdx are x, y and z.",
    'class "dim3" has no member': "The members of blockDim and gridDim are x, y and z.",
}


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning of the compiler; `excerpt` is its source line and the caret below."""

    file: str | None
    line: int | None
    severity: str
    message: str
    excerpt: tuple[str, str] | None = None


def parse_log(log: str) -> list[Diagnostic]:
    """Read the diagnostics of an NVRTC log in order, each with the excerpt printed below it."""
    found: list[Diagnostic] = []
    lines = log.splitlines()
    for index, text in enumerate(lines):
        match = _DIAGNOSTIC.match(text)
        if match is None:
            no_place = _NO_PLACE.match(text)
            if no_place:
                at_end = " at the end of the source" if no_place[1].startswith("At") else ""
                found.append(Diagnostic(None, None, "error", no_place["message"] + at_end))
            continue
        severity = "error" if "error" in match["severity"] else match["severity"]
        excerpt, detail = None, []
        for below, after in zip(lines[index + 1 :], lines[index + 2 :], strict=False):
            if not below.strip() or _DIAGNOSTIC.match(below):
                break
            if after.strip() == "^":
                # NVRTC indents the source line by two spaces; the caret moves with it.
                excerpt = (below[2:].rstrip("\r"), after[2:])
                break
            detail.append(below.strip())
        message = " ".join([match["message"], *detail])
        found.append(Diagnostic(match["file"], int(match["line"]), severity, message, excerpt))
    return found


def compile_error(log: str, source: str, filename: str) -> SimulatorError:
    """Turn the log of a failed compilation into a `SimulatorError` of kind `compile`.

    Its message is the first error as one sentence (with what to write instead, where that is
    known), the offending source line with a caret, and then the log. Its `line` is that of the
    error if it lies in `filename`, the name that `source` goes by, and None otherwise.
    """
    log = log.strip("\x00\n ")
    error = _first_error(log, source, filename)
    error.code, error.file, error.log = source, filename, log
    return error


def _first_error(log: str, source: str, filename: str) -> SimulatorError:
    errors = [d for d in parse_log(log) if d.severity == "error"]
    if not errors:
        text = re.sub(r"^nvrtc: error: ", "", log) or "NVRTC failed and left no message"
        return SimulatorError("compile", f"{filename}: {_end(text)}")
    first = _at_own_include(_cause(errors), source, filename)
    where = "" if first.file is None else f"{first.file}:{first.line}: "
    hint = hint_of(first.message)
    sentence = f"{where or filename + ': '}error: {_end(first.message)}" + (
        f" {hint}" if hint else ""
    )
    parts = [sentence]
    excerpt = first.excerpt or _own_line(first, source, filename)
    if excerpt:
        code, caret = excerpt
        number = str(first.line)
        parts.append(f"  {number} | {code}\n  {' ' * len(number)} | {caret}".rstrip())
    shown = log.splitlines()
    if len(shown) > _LOG_LINES_SHOWN:
        left = len(shown) - _LOG_LINES_SHOWN
        shown = [*shown[:_LOG_LINES_SHOWN], f"... and {left} lines more"]
    parts.append("NVRTC's log:\n" + "\n".join(shown))
    line = first.line if first.file == filename else None
    return SimulatorError("compile", "\n\n".join(parts), line)


def option_error(log: str, filename: str, options: tuple[str, ...]) -> SimulatorError:
    """Turn NVRTC's refusal of an option into one sentence that names it."""
    log = log.strip("\x00\n ")
    unknown = re.search(r"unrecognized option (.*?) found", log)
    if unknown:
        option = unknown[1]
        hint = next((h for o, h in _INSTEAD_OF_OPTION.items() if option.startswith(o)), None)
        if hint is None and re.match(r"\w+=", option):
            hint = f"a macro is defined with -D{option}"
        tail = f": {hint}" if hint else f" (the options were {', '.join(options)})"
        message = f"{filename}: NVRTC does not know the option {option}{tail}."
    else:
        text = re.sub(r"^nvrtc: error: ", "", log).replace("\n", "; ") or "no reason given"
        message = f"{filename}: NVRTC refuses the options {', '.join(options)}: {_end(text)}"
    return SimulatorError("compile", message)


def hint_of(message: str) -> str:
    """Say what to write instead of a name or header that NVRTC does not have, or ''."""
    undefined = _UNDEFINED.search(message)
    if undefined:
        name = undefined[1] or undefined[2]
        if undefined[2]:
            return f"{_SAME_ON_GPU}: there is no C++ standard library; drop std:: or write it out."
        if name in _INSTEAD_OF_NAME:
            return f"{_SAME_ON_GPU}: write {_INSTEAD_OF_NAME[name]} instead."
        if name in _HEADER_OF_NAME:
            return f"It comes with #include <{_HEADER_OF_NAME[name]}>."
    missing = _NO_FILE.search(message)
    if missing:
        header = missing[1]
        stem = re.sub(r"\.h$", "", header)
        stem = stem if stem in _INSTEAD_OF_HEADER else re.sub(r"^c(?=[a-z])", "", stem)
        if stem in _INSTEAD_OF_HEADER:
            return f"{_SAME_ON_GPU}: {_INSTEAD_OF_HEADER[stem]}."
        if "." not in header:
            return f"{_SAME_ON_GPU}, so the C++ standard library is not there."
        return "No folder given with -I holds it."
    for part, hint in _HINTS.items():
        if part in message:
            return hint
    if "without execution space annotations" in message:
        return "Write __device__ in front of the function."
    return ""


def _cause(errors: list[Diagnostic]) -> Diagnostic:
    """Return the first error, or the unknown name on its line that it comes from."""
    first = errors[0]
    if _CONSEQUENCE.search(first.message):
        for error in errors:
            same_line = (error.file, error.line) == (first.file, first.line)
            if same_line and _UNDEFINED.search(error.message):
                return error
    return first


def _at_own_include(error: Diagnostic, source: str, filename: str) -> Diagnostic:
    """Move "cannot open X", met inside a toolkit header, to the source's own `#include`.

    `#include <cuda.h>` fails for want of <stdlib.h>, deep in a file that nobody here wrote.
    """
    if error.file in (None, filename) or not _NO_FILE.search(error.message):
        return error
    stem = error.file.split("/")[0].removesuffix(".h")
    lines = numbered_lines(source, filename)
    for include in includes(source):
        if include.name.removesuffix(".h") == stem and not include.quoted:
            file, line, text = lines[source.count("\n", 0, include.start)]
            message = f'cannot open source file "{include.name}"'
            caret = " " * max(text.find(include.name), 0) + "^"
            return Diagnostic(file, line, "error", message, (text, caret))
    return error


def _own_line(error: Diagnostic, source: str, filename: str) -> tuple[str, str] | None:
    for file, line, text in numbered_lines(source, filename):
        if (file, line) == (error.file, error.line):
            return text, "^" * len(text.strip())
    return None


def _end(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else sentence + "."
