"""What NVRTC's log says, as one sentence with the offending line and a way out."""

import re
from dataclasses import dataclass

from ..errors import SimulatorError
from .advice import NO_FILE, UNDEFINED, hint_of
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
_LOG_LINES_SHOWN = 60

_INSTEAD_OF_OPTION = {
    "-O": "device code is optimised fully anyway, so leave it out",
    "--optimize": "device code is optimised fully anyway, so leave it out",
    "-Wall": "leave it out; NVRTC's warnings are on",
    "-Xcompiler": "there is no host compiler, so leave it out",
    "-std": "write it in one piece, such as -std=c++17",
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
    excerpt = first.excerpt or _own_line(first, source, filename)
    hint = hint_of(first.message, source, excerpt[0] if excerpt else "")
    sentence = f"{where or filename + ': '}error: {_end(first.message)}" + (
        f" {hint}" if hint else ""
    )
    parts = [sentence]
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


def _cause(errors: list[Diagnostic]) -> Diagnostic:
    """Return the first error, or the unknown name on its line that it comes from."""
    first = errors[0]
    if _CONSEQUENCE.search(first.message):
        for error in errors:
            same_line = (error.file, error.line) == (first.file, first.line)
            if same_line and UNDEFINED.search(error.message):
                return error
    return first


def _at_own_include(error: Diagnostic, source: str, filename: str) -> Diagnostic:
    """Move "cannot open X", met inside a toolkit header, to the source's own `#include`.

    `#include <cuda.h>` fails for want of <stdlib.h>, deep in a file that nobody here wrote; and
    what fails in thrust in any other way is no fault of the source's either.
    """
    if error.file in (None, filename):
        return error
    if not NO_FILE.search(error.message) and not error.file.startswith("thrust/"):
        return error
    stem = error.file.split("/")[0].removesuffix(".h")
    lines = numbered_lines(source, filename)
    for include in includes(source):
        if include.name.split("/")[0].removesuffix(".h") == stem and not include.quoted:
            file, line, text = lines[source.count("\n", 0, include.start)]
            message = f'cannot open source file "{include.name}"'
            if not NO_FILE.search(error.message):
                message = f'source file "{include.name}" does not compile'
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
