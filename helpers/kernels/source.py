"""What a .cu file says about itself: its includes, its kernels and its parameters."""

import bisect
import codecs
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from helpers.simulator.compile.source_text import includes, mask
from helpers.simulator.errors import Headlined

_PRAGMA_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b.*$", re.MULTILINE)
_CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|endif)\b", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_GUARDED_DEFINE = re.compile(
    r"^[ \t]*#[ \t]*ifndef[ \t]+(?P<guard>\w+)[^\n]*\n(?:[ \t]*(?://[^\n]*)?\n)*"
    r"[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)[ \t]+(?P<value>[^\n]*?)[ \t]*//(?P<comment>[^\n]*)$",
    re.MULTILINE,
)
_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*")
_FLOAT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?[fF]?")

Value = int | float | str


class KernelError(Headlined, ValueError):
    """A kernel file, a parameter or a launch that cannot work; the message says what to do."""


class CannotRun(KernelError):
    """Settings that do not go together, or a launch that no hardware takes."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel file, declared in it as

    `#define TILE 16  // [8, 16, 32] threads along each edge of a tile`, guarded by `#ifndef`.
    """

    name: str
    value: Value
    default: Value
    choices: tuple[Value, ...]
    description: str
    line: int
    spellings: tuple[str, ...]

    @property
    def option(self) -> str:
        """The compiler option that sets the value: `-DTILE=16`."""
        return f"-D{self.name}={self.spellings[self.choices.index(self.value)]}"


@dataclass(frozen=True)
class KernelFunction:
    """A `__global__` function: lines (of its own file) and text of its parameter list.

    `first` is the line of its leading comment, `start` that of its first word, `last` that of
    its closing brace.
    """

    name: str
    parameters: str
    extern_c: bool
    template: bool
    first: int
    start: int
    last: int


def read(path: Path) -> str:
    """Read a source file; line ends become newlines, and a byte order mark is dropped.

    Raises:
        KernelError: if it cannot be read, or is not text in UTF-8.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise KernelError(f"{path.name} cannot be read: {error.strerror or error}.") from None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise KernelError(f"{path.name} is saved as UTF-16; save it as UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise KernelError(
            f"{path.name} is not UTF-8: line {line} has the byte 0x{data[error.start]:02x}; save "
            "the file as UTF-8."
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise KernelError(f"{path.name} is no text: line {line} has a zero byte.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def expand_includes(path: Path, folders: list[Path]) -> str:
    """Return the text of `path` with the files that it includes from `folders` in place.

    A file is found beside the one that includes it or in `folders`; a file in angle brackets
    that is not there belongs to the CUDA toolkit and stays an `#include`. `#line` directives
    keep the files' own line numbers in messages and counters, and each file counts once.

    Raises:
        KernelError: if a quoted file is missing or a file includes itself.
    """
    return _Expansion(path, folders).expand(path, path.name, [], surely=True)


class _Expansion:
    def __init__(self, path: Path, folders: list[Path]):
        self.path, self.folders = path, folders
        self.done: set[Path] = set()

    def expand(self, path: Path, name: str, outer: list[tuple[Path, str]], surely: bool) -> str:
        """Expand `path`; `surely` says that no `#if` around it can leave it out."""
        source = read(path)
        source = _PRAGMA_ONCE.sub("", source) if outer else source
        masked = mask(source)
        stack = [*outer, (path.resolve(), name)]
        pieces = [f'#line 1 "{name}"\n']
        at = 0
        for include in includes(source):
            line = source.count("\n", 0, include.start) + 1
            found = self._find(include.name, path, name, line, include.quoted)
            if found is None:
                continue
            target, target_name = found
            if any(target == p for p, _ in stack):
                chain = [n for p, n in stack[[p for p, _ in stack].index(target) :]]
                raise KernelError(
                    f"{name} line {line} includes {target_name}, which includes itself again: "
                    f"{' -> '.join([*chain, target_name])}; take one of these #include lines out."
                )
            inside = surely and _depth(masked, include.start) == 0
            rest = source.find("\n", include.end)
            rest = len(source) if rest < 0 else rest
            pieces.append(source[at : include.start])
            if target not in self.done:
                body = self.expand(target, target_name, stack, inside)
                if inside:
                    self.done.add(target)
                else:
                    # An #if may leave this copy out, so a later #include needs one of its own.
                    guard = "INCLUDED_" + hashlib.sha256(str(target_name).encode()).hexdigest()[:16]
                    body = f"#ifndef {guard}\n#define {guard}\n{body}\n#endif\n"
                pieces.append(f'{body.rstrip(chr(10))}\n#line {line + 1} "{name}"')
            at = rest
        pieces.append(source[at:])
        return "".join(pieces)

    def _find(self, wanted: str, path: Path, name: str, line: int, quoted: bool):
        for folder in [path.parent, *self.folders]:
            file = folder / wanted
            if file.is_file():
                return file.resolve(), _shown(file, self.path.parent)
        if not quoted:
            return None
        looked_in = ", ".join(dict.fromkeys(_shown(f, self.path.parent) for f in self.folders))
        raise KernelError(
            f'{name} line {line} includes "{wanted}", which is not in {looked_in}; '
            f"headers of the CUDA toolkit go in angle brackets: #include <{wanted}>."
        )


def _shown(file: Path, folder: Path) -> str:
    """The name of `file` in messages: relative to the folder of the .cu file, if it can be."""
    file, folder = file.resolve(), folder.resolve()
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else file.name


def _depth(masked: str, position: int) -> int:
    """How many `#if` are open at `position`."""
    found = _CONDITIONAL.finditer(masked, 0, position)
    return sum(-1 if one[1] == "endif" else 1 for one in found)


def parameters(source: str, file: str) -> dict[str, Parameter]:
    """Read the parameters that `source` declares, each at its default, in order.

    A guarded `#define` is a parameter if its comment starts with a list of choices.

    Raises:
        KernelError: if such a list is not closed or empty, mixes up types, repeats a choice,
            or does not hold the default; `file` is what the message calls the source.
    """
    found: dict[str, Parameter] = {}
    masked = mask(source)
    for match in _GUARDED_DEFINE.finditer(source):
        name, comment = match["name"], match["comment"].strip()
        start = match.start("name")
        if match["guard"] != name or masked[start : match.end("name")] != name:
            continue
        if not comment.startswith("["):
            continue
        line = source.count("\n", 0, start) + 1
        where = f"{file} line {line}: the parameter {name}"
        if "]" not in comment:
            raise KernelError(f"{where} has a list of choices without a closing bracket.")
        listed, description = comment[1:].split("]", 1)
        spellings = tuple(part.strip() for part in listed.split(","))
        if not all(spellings):
            raise KernelError(f"{where} has an empty choice in [{listed}].")
        choices = tuple(_value(text) for text in spellings)
        if len({type(choice) for choice in choices}) > 1:
            raise KernelError(f"{where} mixes numbers and names, or int and float, in [{listed}].")
        if len(set(choices)) < len(choices):
            raise KernelError(f"{where} lists a choice twice in [{listed}].")
        default = _value(match["value"].strip())
        if default not in choices:
            raise KernelError(f"{where} has the default {default}, not one of [{listed}].")
        if name in found:
            raise KernelError(f"{where} is declared twice, first on line {found[name].line}.")
        found[name] = Parameter(
            name, default, default, choices, description.strip(), line, spellings
        )
    return found


def _value(text: str) -> Value:
    if _INTEGER.fullmatch(text):
        return int(text.rstrip("uUlL"), 0) if "x" in text.lower() else int(text.rstrip("uUlL"))
    if _FLOAT.fullmatch(text):
        return float(text.rstrip("fF"))
    return " ".join(text.split())


def kernel_functions(source: str, file: str) -> dict[str, KernelFunction]:
    """Find the `__global__` functions that `source` defines, by name, in order.

    Raises:
        KernelError: if a name is defined twice with different parameters.
    """
    code = _without_directives(mask(source))
    starts = [0, *(m.end() for m in re.finditer("\n", source))]
    external = _extern_c_blocks(source, code)
    found: dict[str, KernelFunction] = {}
    for match in re.finditer(r"\b__global__\b", code):
        head = _name_and_parameters(code, match.end())
        if head is None:
            continue
        name, opening, closing = head
        brace = re.compile(r"\s*\{").match(code, closing + 1)
        if brace is None:
            continue
        begin = max(code.rfind(mark, 0, match.start()) for mark in ";{}") + 1
        before = source[begin : match.start()]
        prefix = code[begin : match.start()]
        begin += len(prefix) - len(prefix.lstrip())
        end = _matching(code, brace.end() - 1)
        direct = re.search(r'\bextern\s*"C"', before) is not None
        function = KernelFunction(
            name=name,
            parameters=code[opening + 1 : closing],
            extern_c=direct or any(a < match.start() < b for a, b in external),
            template=re.search(r"\btemplate\b", prefix) is not None,
            first=_comment_above(source, code, bisect.bisect_right(starts, begin)),
            start=bisect.bisect_right(starts, begin),
            last=bisect.bisect_right(starts, end),
        )
        known = found.get(name)
        if known and known.parameters.split() != function.parameters.split():
            raise KernelError(
                f"{file} defines {name} twice, on lines {known.start} and {function.start}, with "
                "different parameters; give each kernel a name of its own."
            )
        found.setdefault(name, function)
    return found


def _without_directives(masked: str) -> str:
    return _DIRECTIVE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), masked)


def _extern_c_blocks(source: str, code: str) -> list[tuple[int, int]]:
    blocks = []
    for match in re.finditer(r'\bextern\s*"C"\s*\{', source):
        if code[match.end() - 1] == "{":
            blocks.append((match.end() - 1, _matching(code, match.end() - 1)))
    return blocks


def _name_and_parameters(code: str, at: int) -> tuple[str, int, int] | None:
    """Find name and parentheses of the function whose `__global__` ends at `at`."""
    token = re.compile(r"\s*(?:(\w+)|(\S))")
    word = None
    while True:
        found = token.match(code, at)
        if found is None or (found[2] and found[2] in ";{}"):
            return None
        if found[2] == "(":
            opening = found.start(2)
            closing = _matching(code, opening)
            attribute = word is None or word == "alignas" or re.fullmatch(r"__\w+__", word)
            if not attribute:
                return word, opening, closing
            at = closing + 1
            continue
        word = found[1] or word
        at = found.end()


def _matching(code: str, opening: int) -> int:
    """Return where the bracket at `opening` closes, or the end of `code`."""
    left = code[opening]
    right = {"(": ")", "{": "}"}[left]
    depth = 0
    for found in re.compile(f"[{left}{right}]").finditer(code, opening):
        depth += 1 if found[0] == left else -1
        if depth == 0:
            return found.start()
    return len(code) - 1


def _comment_above(source: str, code: str, line: int) -> int:
    """Return the first line of the comment that ends right above `line`, or `line`."""
    text, bare = source.split("\n"), code.split("\n")
    first = line
    while first > 1:
        above = text[first - 2].strip()
        if not above or bare[first - 2].strip() or above.startswith("#"):
            break
        first -= 1
    return first
