"""What to write in place of what NVRTC does not compile."""

import functools
import re
import tomllib
from importlib.resources import files

from .source_text import mask

NO_FILE = re.compile(r'source file "([^"]*)"')
UNDEFINED = re.compile(r'identifier "([^"]*)" is undefined|namespace "std" has no member "([^"]*)"')
_COMPOUND_LITERAL = re.compile(r"\(\s*(?:struct\s+)?(\w+)\s*\)\s*\{")
_VECTOR = re.compile(r"u?(?:char|short|int|long|longlong)[1-4]|(?:float|double)[1-4]")
# What a program has around its kernels.
_MAIN = re.compile(r"\bmain\s*\(")
_HOST_PART = re.compile(
    r"function main|could not be processed as the required runtime APIs|host function"
    r'|identifier "(?:cuda[A-Z]\w*|cu[A-Z]\w*|FILE|fprintf|stderr|stdout|exit|std|rand|srand)"'
    r'|namespace "std"|name followed by "::"'
)
_OLD_SHUFFLE = re.compile(r"__(shfl|shfl_up|shfl_down|shfl_xor|any|all|ballot)$")
_TEXTURE_HEADER = re.compile(r"texture|surface")
_SAME_ON_GPU = "NVRTC compiles without the host's headers, on a GPU as well"


@functools.cache
def _told() -> dict[str, dict]:
    """The tables of `advice.toml`."""
    tables = tomllib.loads(files(__package__).joinpath("advice.toml").read_text("utf-8"))
    for group in tables["together"]:
        say = group["say"]
        tables["headers"] |= {name: say.replace("$", name) for name in group["names"]}
    return tables


def hint_of(message: str, source: str = "", line: str = "") -> str:
    """Say what to write instead of what NVRTC refuses, or ''.

    Args:
        message: NVRTC's.
        source: the whole source, where it is at hand: a program with a main() is told apart.
        line: the one that the message is about.
    """
    missing = NO_FILE.search(message)
    if (missing or _HOST_PART.search(message)) and _MAIN.search(mask(source)):
        return _told()["hints"]["function main"]
    if missing:
        return _of_header(missing[1])
    undefined = UNDEFINED.search(message)
    if undefined:
        found = _of_name(undefined[1] or undefined[2], bool(undefined[2]))
        if found:
            return found
    if "expected an expression" in message and (literal := _COMPOUND_LITERAL.search(line)):
        name = literal[1]
        made = f" or make_{name}(...)" if _VECTOR.fullmatch(name) else ""
        return f"C++ has no compound literals of C: write {name}{{...}}{made}."
    if "namespace name" in message:
        for pattern, header in _told()["namespaces"].items():
            if re.search(pattern, line):
                return f"It comes with #include <{header}>."
    return next((hint for part, hint in _told()["hints"].items() if part in message), "")


def _of_name(name: str, standard: bool) -> str:
    """What to write for a name that is not there; `standard` if it was looked for in std."""
    if standard:
        return (
            f"{_SAME_ON_GPU}: there is no C++ standard library; drop std:: or write it out, or "
            "take cuda::std:: from a header such as <cuda/std/algorithm>."
        )
    if instead := _told()["names"].get(name):
        return f"{_SAME_ON_GPU}: write {instead} instead."
    if header := next((h for h, names in _told()["come_with"].items() if name in names), ""):
        return f"It comes with #include <{header}>."
    if _OLD_SHUFFLE.match(name):
        return (
            f"Today's GPUs have {name}_sync, whose first argument says which lanes of the warp "
            f"take part: {name}_sync(0xffffffff, ...) for all."
        )
    if re.match(r"cuda[A-Z]", name):
        instead = _told()["calls"].get(re.sub(r"Async$", "", name))
        return f"{name} is called on the CPU, so leave it out{f': {instead}' if instead else ''}."
    return ""


def _of_header(header: str) -> str:
    stem = re.sub(r"\.h$", "", header)
    for name in (header, stem, re.sub(r"^c(?=[a-z])", "", stem)):
        if instead := _told()["headers"].get(name):
            return f"{_SAME_ON_GPU}: {instead}."
    if _TEXTURE_HEADER.search(header):
        return _told()["hints"]["texture is not a template"]
    if "." not in header and "/" not in header:
        return f"{_SAME_ON_GPU}, so the C++ standard library is not there."
    if header.startswith("thrust/"):
        return (
            f"{_SAME_ON_GPU}, so most of thrust is not there: write the loop, or take a block's "
            "or a warp's part from CUB, such as <cub/block/block_reduce.cuh>."
        )
    if header.startswith(("cub/", "torch/", "opencv2/")):
        return f"{_SAME_ON_GPU}: {_told()['headers']['stdlib']}."
    return "No folder given with -I holds it; what serves the program on the CPU is left out."
