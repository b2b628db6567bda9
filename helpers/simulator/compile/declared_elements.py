"""How the source declares an array of a module: what its elements are."""

import ast
import operator
import re
from collections.abc import Iterable

SIZES = {
    "float4": 16, "int4": 16, "uint4": 16, "double2": 16, "float2": 8, "int2": 8, "uint2": 8,
    "double": 8, "long": 8, "long long": 8, "unsigned long long": 8, "size_t": 8, "half": 2,
    "__half": 2, "char": 1, "bool": 1, "short": 2, "unsigned char": 1, "unsigned short": 2,
    "half2": 4, "float": 4, "unsigned int": 4, "unsigned": 4, "int": 4,
}  # fmt: skip
_TYPES = "|".join(sorted((re.escape(t) for t in SIZES), key=len, reverse=True))
_SPACES = {"shared": "__shared__", "global": "__device__", "const": "__constant__"}
_STEPS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.floordiv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_CONSTANT = r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\S[^\n]*?)[ \t]*(?://.*)?$"
_CONSTEXPR = r"\bconst(?:expr)?\s+(?:static\s+)?(?:int|unsigned|size_t)\s+(\w+)\s*=\s*([^;]+);"


def declared_element(name: str, space: str, source: str) -> tuple[str, int] | None:
    """The type of an array's elements as its declaration has it and their bytes, or None.

    Args:
        name: of the array, in the source.
        space: PTX's state space of it.
        source: the text that declares it.
    """
    # behind __device__ a function may stand as well: its body is not searched
    m = re.search(
        rf"{_SPACES[space]}[^;{{}}]*?\b({_TYPES})\b[^;{{}}]*?\b{re.escape(name)}\s*\[", source
    )
    return (m.group(1), SIZES[m.group(1)]) if m else None


def element_size(name: str, space: str, source: str) -> int | None:
    """Bytes of an element of an array as its declaration has it, or None."""
    return (declared_element(name, space, source) or (None, None))[1]


def named_element(name: str, index: int, source: str, options: Iterable[str] = ()) -> str:
    """An element of a shared array as the source writes it: `s_K[8][0]`, not `s_K[128]`.

    It has one index where the declaration has one, where a dimension is no number that can be
    worked out, and where the array has no such element.

    Args:
        name: of the array, in the source.
        index: which of its elements, as they lie in memory.
        source: the text that declares it.
        options: of the compiler, of which `-DNAME=value` are looked at.
    """
    sizes = declared_sizes(name, source, options)
    places: list[int] = []
    rest = index
    for size in reversed(sizes[1:]):
        rest, place = divmod(rest, size)
        places.insert(0, place)
    if not sizes or index < 0 or rest >= sizes[0]:
        return f"{name}[{index}]"
    return name + "".join(f"[{place}]" for place in (rest, *places))


def declared_sizes(name: str, source: str, options: Iterable[str] = ()) -> tuple[int, ...]:
    """The dimensions of a shared array; empty where one of them cannot be worked out."""
    found = re.search(rf"__shared__[^;{{}}]*?\b{re.escape(name)}\s*((?:\[[^\[\]]+\]\s*)+)", source)
    if found is None:
        return ()
    known = dict(re.findall(_CONSTEXPR, source) + re.findall(_CONSTANT, source, re.MULTILINE))
    known.update(re.findall(r"-D\s*(\w+)=(\S+)", "\n".join(options)))
    sizes = [_value(size, known) for size in re.findall(r"\[([^\[\]]+)\]", found[1])]
    return () if None in sizes or min(sizes) < 1 else tuple(sizes)


def _value(text: str, known: dict[str, str], depth: int = 8) -> int | None:
    """What whole numbers, names and + - * / % come to, or None."""

    def of(node: ast.AST) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name) and depth:
            return _value(known[node.id], known, depth - 1)
        if isinstance(node, ast.BinOp):
            return _STEPS[type(node.op)](of(node.left), of(node.right))
        raise ValueError(text)

    try:
        return of(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, KeyError, TypeError, ZeroDivisionError):
        return None
