"""The PTX instructions that are recorded, by subject."""

from __future__ import annotations

import functools

from . import float_instructions as floats
from . import integer_instructions as integers
from .spec import Spec


@functools.cache
def all_specs() -> dict[str, list[Spec]]:
    """Subject -> instructions."""
    return {
        "integer": integers.integer(),
        "carry": integers.carry(),
        "bit": integers.bit(),
        "compare": integers.compare(),
        "video": integers.video(),
        "convert_integers": integers.convert_integers(),
        "convert_floats": floats.convert_floats(),
        "float32": floats.float32(),
        "float64": floats.float64(),
        "half": floats.half(),
        "approximate": floats.approximate(),
    }
