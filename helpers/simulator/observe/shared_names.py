"""How the source declares a shared variable: what its elements are."""

from __future__ import annotations

import re

from ..machine.faults import plain_name
from ..ptx.syntax import Variable

SIZES = {
    "float4": 16, "int4": 16, "uint4": 16, "float2": 8, "int2": 8, "uint2": 8, "double": 8,
    "long long": 8, "half": 2, "__half": 2, "char": 1, "short": 2, "unsigned char": 1,
    "unsigned short": 2, "half2": 4, "float": 4, "unsigned int": 4, "unsigned": 4, "int": 4,
}  # fmt: skip
_TYPES = "|".join(sorted((re.escape(t) for t in SIZES), key=len, reverse=True))


def element_size(variable: Variable, source: str) -> int | None:
    """Bytes of an element of a __shared__ array as its declaration has it, or None."""
    name = re.escape(plain_name(variable.name))
    m = re.search(rf"__shared__[^;]*?\b({_TYPES})\b[^;]*?\b{name}\s*\[", source)
    return SIZES[m.group(1)] if m else None
