"""A kernel's C signature, read from its source so that arguments can be checked against it."""

import functools
import re
from dataclasses import dataclass

import numpy as np

# NumPy types and number of elements of each C type on a 64-bit CUDA target (CUDA C++ Programming
# Guide, "Built-in Vector Types"). Alternatives are types of the same bits that hosts use for it.
_SCALARS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "char": ("int8", "uint8"),
    "signed char": ("int8",),
    "unsigned char": ("uint8",),
    "short": ("int16",),
    "unsigned short": ("uint16",),
    "int": ("int32",),
    "unsigned int": ("uint32",),
    "long": ("int64",),
    "unsigned long": ("uint64",),
    "long long": ("int64",),
    "unsigned long long": ("uint64",),
    "float": ("float32",),
    "double": ("float64",),
    "half": ("float16",),
    "bfloat16": ("bfloat16", "uint16"),
}
_SPELLINGS = {
    "size_t": "unsigned long",
    "ptrdiff_t": "long",
    "__half": "half",
    "nv_bfloat16": "bfloat16",
    "__nv_bfloat16": "bfloat16",
}
_PREFIXES = {  # ulonglong of unsigned long long
    base.replace("unsigned ", "u").replace("signed ", "").replace(" ", ""): types
    for base, types in _SCALARS.items()
    if base not in ("bool", "char", "half", "bfloat16")
}
_VECTORS: dict[str, tuple[tuple[str, ...], int]] = {
    f"{prefix}{count}": (types, count)
    for prefix, types in _PREFIXES.items()
    for count in (1, 2, 3, 4)
}
_VECTORS |= {name: (_SCALARS["half"], 2) for name in ("half2", "__half2")}
_VECTORS |= {name: (_SCALARS["bfloat16"], 2) for name in ("nv_bfloat162", "__nv_bfloat162")}
_COMPLEX = {
    "complex<float>": ("complex64",),
    "cuFloatComplex": ("complex64",),
    "cuComplex": ("complex64",),
    "complex<double>": ("complex128",),
    "cuDoubleComplex": ("complex128",),
}
_INTEGER_WORDS = ("signed", "unsigned", "short", "long", "int", "char")
_BUILTIN_WORDS = {*_INTEGER_WORDS, "bool", "float", "double", "void"}
_QUALIFIERS = re.compile(
    r"\b(?:__restrict__|__restrict|restrict|volatile|__grid_constant__|register|struct|class|"
    r"enum|typename)\b|\[\[.*?\]\]|\b(?:alignas|__align__)\s*\([^()]*\)"
)


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel as its source declares it.

    `dtypes` are the names of the NumPy types that fit an element (of what a pointer points to,
    or of a value passed itself), the usual one first; empty where the type is not a known one.
    `vector` is the number of elements of `float4` and its like.
    """

    name: str
    declaration: str
    pointer: bool
    constant: bool
    dtypes: tuple[str, ...]
    vector: int = 1

    @property
    def alignment(self) -> int:
        """Alignment in bytes that an address must have, 1 where the type is not known."""
        if not self.dtypes:
            return 1
        size = 2 if self.dtypes[0] == "bfloat16" else np.dtype(self.dtypes[0]).itemsize
        # Three-element vectors are aligned like one element, and none beyond 16 bytes.
        return min(size * (1 if self.vector == 3 else self.vector), 16)


def signature(
    parameters: str, source: str = "", macros: dict[str, str] | None = None
) -> tuple[Argument, ...]:
    """Read the parameter list of a kernel.

    Args:
        parameters: what stands between its parentheses, without comments.
        source: text without comments whose `#define`, `typedef` and `using` may name types.
        macros: what `-D` options define, such as `{"ELEMENT": "half"}`.
    """
    names = _names(source, tuple((macros or {}).items()))
    texts = _split(parameters.replace("\\\n", " "))  # a line may go on in the next
    if [t.strip() for t in texts] in ([""], ["void"]):
        return ()
    return tuple(_argument(text, index, names) for index, text in enumerate(texts))


@functools.lru_cache(maxsize=32)  # of a source with many kernels, for each of them
def _names(source: str, macros: tuple[tuple[str, str], ...]) -> "_Names":
    return _Names(source, dict(macros))


class _Names:
    """What a source calls types by: its macros and aliases, where each has one meaning."""

    def __init__(self, source: str, macros: dict[str, str]):
        defines = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\S[^\n]*)$", source, re.M)
        aliases = re.findall(r"\busing\s+(\w+)\s*=\s*([^;]+);", source)
        aliases += [
            (name, text) for text, name in re.findall(r"\btypedef\s+([^;{}]+?)(\w+)\s*;", source)
        ]
        self.macros = {**self._unique(defines), **macros}
        self.aliases = self._unique(aliases)

    @staticmethod
    def _unique(pairs: list[tuple[str, str]]) -> dict[str, str]:
        """Drop what is defined in several ways: an #if chooses, which is not evaluated here."""
        meanings: dict[str, set[str]] = {}
        for name, text in pairs:
            meanings.setdefault(name, set()).add(" ".join(text.split()))
        return {name: texts.pop() for name, texts in meanings.items() if len(texts) == 1}

    def expand(self, text: str, keep: str = "") -> str:
        """Replace macros in `text`, and in what replaces them; the word `keep` stays."""
        for _ in range(8):
            replaced = re.sub(
                r"\w+",
                lambda word: word[0] if word[0] == keep else self.macros.get(word[0], word[0]),
                text,
            )
            if replaced == text:
                break
            text = replaced
        return text


def _split(parameters: str) -> list[str]:
    """Split at the commas outside all brackets."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(parameters):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            parts.append(parameters[start:index])
            start = index + 1
    return [*parts, parameters[start:]]


def _argument(text: str, index: int, names: _Names) -> Argument:
    declaration = " ".join(text.split())
    expanded = _QUALIFIERS.sub(" ", names.expand(text)).split("=")[0]
    # `float (*rows)[8]` points to rows of floats; `float rows[8]` is a pointer in a parameter.
    pointer_to_array = re.search(
        r"\(\s*\*\s*(?:const\s+)?(\w*)\s*\)\s*((?:\[[^\]]*\]\s*)*)", expanded
    )
    stars = expanded.count("*")
    if pointer_to_array:
        expanded = expanded[: pointer_to_array.start()] + " * " + pointer_to_array[1]
    expanded, arrays = re.subn(r"\[[^\]]*\]", " ", expanded)
    stars += 1 if arrays and not stars else 0
    before_star, _, after_star = expanded.partition("*")
    name = ""
    declarator = re.sub(r"[*&]|\bconst\b", " ", after_star).split()
    if "*" in expanded:
        name = declarator[-1] if declarator else ""
        base = before_star
    else:
        base = expanded.replace("&", " ")
        trailing = re.search(r"([\w:]+)\s*$", base)
        others = re.sub(r"\bconst\b", " ", base[: trailing.start()]).strip() if trailing else ""
        if trailing and others and trailing[1] not in _BUILTIN_WORDS:
            name = trailing[1]
            base = base[: trailing.start()]
    constant = re.search(r"\bconst\b", before_star if "*" in expanded else base) is not None
    base, more_stars, aliased_constant = _resolve(base, names)
    stars += more_stars
    dtypes, vector = _element(base) if stars <= 1 else (("uint64", "int64"), 1)
    return Argument(
        name or f"argument {index + 1}",
        declaration,
        stars > 0,
        (constant or aliased_constant) if stars else True,
        dtypes,
        vector,
    )


def _resolve(base: str, names: _Names) -> tuple[str, int, bool]:
    """Follow aliases: the plain type, the number of pointers in it, whether it is constant."""
    stars, constant = 0, False
    for _ in range(8):
        base = " ".join(re.sub(r"\bconst\b", " ", base).split())
        alias = names.aliases.get(base)
        if alias is None:
            break
        alias = _QUALIFIERS.sub(" ", names.expand(alias, keep=base))
        stars += alias.count("*")
        constant = constant or "const" in alias.split("*")[0].split()
        base = alias.replace("*", " ")
    return base, stars, constant


def _element(base: str) -> tuple[tuple[str, ...], int]:
    """Return the NumPy types that fit the C type `base` and its number of elements."""
    base = re.sub(r"\s*([<>,])\s*", r"\1", base).split("::")[-1]
    base = _SPELLINGS.get(base, base)
    words = base.split()
    if words and all(word in _INTEGER_WORDS for word in words):
        base = _integer(words)
    if base in _SCALARS:
        return _SCALARS[base], 1
    return _VECTORS.get(base) or (_COMPLEX.get(base, ()), 1)


def _integer(words: list[str]) -> str:
    """Spell an integer type in one way: `long unsigned int` gives `unsigned long`."""
    sign = "unsigned " if "unsigned" in words else ""
    if "char" in words:
        return "signed char" if "signed" in words else f"{sign}char"
    if "short" in words:
        return f"{sign}short"
    longs = words.count("long")
    return sign + (" ".join(["long"] * longs) if longs else "int")
