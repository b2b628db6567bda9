"""What takes long in a chapter on a GPU is begun with its first cell, behind those that come.

    from helpers.bench.begin import begin
    begin("flash_rescale", profiled=(1, 1, 256, 128))

Kernels are compiled in processes of their own: the compiler works on one kernel at a time in each.
What they make lies where the chapter's cells look for it (`helpers.bench.ahead`). Nothing is timed
while the profile is under way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..gpu import device
from ..kernels.source import Value
from ..measure import profile
from ..measure.ladder_times import bars
from ..measure.recorded import Shape
from ..problem.flash_inputs import make_inputs
from ..problem.ladder import ladder, rung

MOST = 4  # processes; each has to import all that the compiler needs
_ROOT = Path(__file__).resolve().parents[2]

_running: list[subprocess.Popen] = []  # kept, so that nobody is warned of processes left behind


def begin(
    upto: str,
    variants: Sequence[Mapping[str, Value]] = (),
    profiled: Shape | None = None,
) -> None:
    """Begin to compile the kernels of a ladder up to a rung, and to profile a launch of it.

    Without a GPU, or outside a notebook, nothing is done.

    Args:
        upto: name of the last rung that the chapter shows.
        variants: parameters of that rung that the chapter's cells run as well; of a rung in fp32
            all that are compared are begun without being named.
        profiled: batch, heads, n and d of the launch that a later cell profiles.

    Raises:
        KernelError: there is no such rung.
    """
    if "ipykernel" not in sys.modules or not device.is_gpu:
        return
    if profiled is not None:
        arrays = make_inputs(*profiled)
        profile.begin(rung(upto).launch_of(*arrays, np.empty_like(arrays[0])))
    if rung(upto).kind == "fp32":
        # the last is what the chapter is about
        listed = [(one.name, dict(settings)) for one, settings in bars(upto).values()][::-1]
    else:
        rungs = ladder(rung(upto).kind)
        listed = [(one.name, {}) for one in rungs[: rungs.index(rung(upto)) + 1]]
    listed += [(upto, dict(values)) for values in variants]
    shares = max(1, min(MOST, (os.cpu_count() or 1) // 2, len(listed)))
    command = [sys.executable, "-m", "helpers.bench.ahead", "--listed"]
    paths = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    _running.extend(
        subprocess.Popen(
            [*command, json.dumps(listed[n::shares])],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
        )
        for n in range(shares)
    )  # fmt: skip
