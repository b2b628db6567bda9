"""How the source declares an array of a module: what its elements are."""

import re

SIZES = {
    "float4": 16, "int4": 16, "uint4": 16, "double2": 16, "float2": 8, "int2": 8, "uint2": 8,
    "double": 8, "long": 8, "long long": 8, "unsigned long long": 8, "size_t": 8, "half": 2,
    "__half": 2, "char": 1, "bool": 1, "short": 2, "unsigned char": 1, "unsigned short": 2,
    "half2": 4, "float": 4, "unsigned int": 4, "unsigned": 4, "int": 4,
}  # fmt: skip
_TYPES = "|".join(sorted((re.escape(t) for t in SIZES), key=len, reverse=True))
_SPACES = {"shared": "__shared__", "global": "__device__", "const": "__constant__"}


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
