"""What the steps of a running batch share: the S of step(S, R)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..limits import SIMULATED
from ..ptx.ptxas import SHARED_BASE
from .faults import fault, plain_name
from .layout import Layout
from .memory import Buffer

if TYPE_CHECKING:
    from .run import Run


class Batch:
    """One batch of blocks of a launch: its layout, memories and active mask."""

    def __init__(self, run: Run, layout: Layout, number: int):
        self.layout, self.number = layout, number
        self.entry = run.entry
        self.space = run.space
        self.functions = run.prepared.codes
        self.function_addresses = run.function_addresses
        self.addresses = run.addresses
        self.shared_variables = run.shared_variables
        self.parameters = run.parameters
        self.counting = run.counting
        self.tally = run.tally
        self.print = run.print
        self.heap = run.heap
        self.issued = 0  # instructions up to the end of the block of code that runs
        self.shared = Buffer(layout.nblocks, run.shared_bytes, layout.block_index, SHARED_BASE)
        self._local = None
        self._local_bytes = run.code.depot
        self.sanitizer = run.sanitizer
        self.schedule = run.schedule
        self.mask = None
        self.keep = 0
        self.frame = None
        self.writes = 0
        self.order = run.order
        self.exited = False
        self.arrived: list = []
        self.timed_out = (-1, 0)  # (writes, how often in turn) when time limits ran out
        self._lanes_of: tuple = (None, None)
        self._numbers_of: tuple = (None, (layout.warps * layout.nblocks,
                                          layout.nthreads * layout.nblocks))  # fmt: skip

    @property
    def local(self) -> Buffer:
        """Local memory, made when first touched."""
        if self._local is None:
            layout = self.layout
            row = layout.block_index * layout.nthreads + layout.thread_index
            self._local = Buffer(layout.nblocks * layout.nthreads, self._local_bytes, row, 0)
        return self._local

    def reserve_local(self, nbytes: int, i) -> None:
        """Make room on every thread's stack for a call."""
        if nbytes > SIMULATED.local:
            raise fault(
                self, i.line, "launch", f"a thread needs more than {SIMULATED.local // 1024} KB of "
                "stack; shorten the recursion or its local arrays.",
            )  # fmt: skip
        self._local_bytes = max(self._local_bytes, nbytes)
        if self._local is not None:
            self._local.grow(self.layout.nblocks * self.layout.nthreads, nbytes)

    def parameter(self, name: str, offset: int, dtype: np.dtype) -> np.ndarray:
        """A value of the kernel's parameters."""
        data, start = self.parameters[name]
        return data[start + offset : start + offset + dtype.itemsize].view(dtype)

    def address_of(self, name: str, i) -> int:
        """The address of a variable, a parameter or a function."""
        if name in self.frame.code.local_addresses:
            return self.frame.depot + self.frame.code.local_addresses[name]
        address = self.addresses.get(name, self.function_addresses.get(name))
        if address is None:
            raise fault(
                self, i.line, "unsupported", f"nothing in the source defines `{plain_name(name)}` "
                f"(in `{i.text}`): define it there.",
            )  # fmt: skip
        return address

    def active_lanes(self, mask) -> np.ndarray | None:
        """`Layout.active_lanes`, remembered for the mask in force."""
        if self._lanes_of[0] is mask and mask is not None:
            return self._lanes_of[1]
        lanes = self.layout.active_lanes(mask)
        if mask is not None:
            self._lanes_of = (mask, lanes)
        return lanes

    def active_numbers(self, mask) -> tuple[int, int]:
        """(warps with an active thread, active threads) in the whole batch."""
        layout = self.layout
        if mask is None:
            return layout.warps * layout.nblocks, layout.nthreads * layout.nblocks
        if self._numbers_of[0] is mask:
            return self._numbers_of[1]
        lanes = self.active_lanes(mask)
        counts = np.count_nonzero(lanes.any(axis=-1)), np.count_nonzero(lanes)
        copies = layout.copies(lanes)
        numbers = int(counts[0]) * copies, int(counts[1]) * copies
        self._numbers_of = (mask, numbers)
        return numbers
