"""Figures that are drawn from a changed kernel: what they show has to follow it."""

from __future__ import annotations

import contextlib
from unittest import mock

from helpers.figures import runs
from helpers.kernels import load_kernel


@contextlib.contextmanager
def changed(file: str, code: str):
    """Inside the block, figures run `code` where they would run a file of `kernels/`."""

    def load(name: str, entry: str):
        kernel = load_kernel(name, entry)
        return kernel.altered(code) if name == file else kernel

    with mock.patch.object(runs, "load_kernel", load):
        yield
