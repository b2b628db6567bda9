"""A tile of which a part is read that no thread has stored: how much of it is stored, and where."""

import math
import re

import numpy as np

from ...kernels.kernel import Kernel
from ...simulator.compile.declared_elements import declared_sizes, element_size
from ...simulator.observe.findings import Finding
from ..diagnosis import own_lines, whole
from ..spec import Case, Exercise
from ..trial import simulate

_READ = re.compile(r"reads (s_\w+)\[.*, which nothing has written")


def part_stored(
    exercise: Exercise, text: str, case: Case, kernel: Kernel, finding: Finding
) -> tuple[str, list[int]] | None:
    """What the first block stores of a tile that is read where nothing was stored; and the lines.

    Nothing is said where a student's own line reads, which may be at fault, where the lines that
    store are given, or where they store more than an element at a time.

    Args:
        text: the answer.
        case: where it is wrong.
        kernel: its kernel at that case.
        finding: the sanitizer's.
    """
    own = own_lines(exercise, whole(text))
    found = _READ.search(str(finding))
    if found is None or own & set(finding.lines):
        return None
    name = found[1]
    total = math.prod(declared_sizes(name, kernel.source, kernel.options))
    report = simulate(exercise, case, kernel, quiet=True).report
    stores = [a for a in report.of_block(kind="store", space="shared") if a.array == name]
    lines = {a.line for a in stores}
    size = element_size(name, "shared", kernel.source)
    if not stores or any(a.bytes != size for a in stores):
        return None
    if not lines <= own:
        return None
    stored = len(np.unique(np.concatenate([a.indices[a.active] for a in stores])))
    if not stored < total:
        return None
    said = (
        f"{name} has {total} elements, and the threads of a block store {stored} of them: the rest "
        "is left as it was."
    )
    return said, sorted(lines)
