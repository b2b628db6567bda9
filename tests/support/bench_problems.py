"""What the tests of the bench turn: a kernel with faults to choose from, and ways to run it."""

from __future__ import annotations

import heapq
import itertools

import numpy as np

from helpers.bench import Problem
from helpers.bench.work import controls_of, work
from helpers.kernels import KERNELS

TRANSPOSE = """// b = transpose of a.
#ifndef TILE
#define TILE 16  // [8, 16, 32, 64] threads along each edge of a block
#endif
#ifndef FAULT
#define FAULT 0  // [0, 1, 2, 3, 4, 5] 0 is none
#endif
#if FAULT == 3 && TILE != 8
#error "FAULT 3 needs TILE 8"
#endif

extern "C" __global__ void transpose(
    const float* a,  // [rows, cols]
    float* b,        // [cols, rows]
    int rows, int cols
) {
    const int col = blockIdx.x * TILE + threadIdx.x;
    const int row = blockIdx.y * TILE + threadIdx.y;
#if FAULT == 4
    const int x = colum;
#endif
#if FAULT == 5
    __shared__ float s_all[TILE][TILE * 64];
    s_all[threadIdx.y][threadIdx.x] = col;
    __syncthreads();
    if (s_all[threadIdx.x][threadIdx.y] < 0) return;
#endif
    if (FAULT == 2 || (row < rows && col < cols - (FAULT == 1))) {
        b[col * rows + row] = a[row * cols + col];
    }
}
"""


def transposed(k, rows=21, cols=37):
    tile = k.parameters["TILE"].value
    a = np.random.default_rng(rows).normal(size=(rows, cols)).astype(np.float32)
    args = {"a": a, "b": np.empty((cols, rows), np.float32), "rows": rows, "cols": cols}
    grid = (-(-cols // tile), -(-rows // tile))
    return Problem.of(k, grid, (tile, tile), args, {"b": a.T.astype(np.float64)})


def run(subject, time=False, **settings):
    """A result, and the stages on the way to it."""
    usual = {control.name: control.default for control in controls_of(subject)}
    generator, stages = work(subject, usual | settings, time), []
    while True:
        try:
            stages.append(next(generator))
        except StopIteration as end:
            return end.value, stages


def source_of(name):
    """The text of a file in `kernels/`."""
    return (KERNELS / name).read_text()


class Clock:
    """An event loop whose time passes when a test says so."""

    def __init__(self):
        self.now, self._due, self._numbers = 0.0, [], itertools.count()

    def call_later(self, delay, callback):
        entry = [self.now + delay, next(self._numbers), callback]
        heapq.heappush(self._due, entry)

        class Handle:
            def cancel(self):
                entry[2] = None

        return Handle()

    def advance(self, seconds, steps=None):
        """Let time pass, or only until `steps` callbacks have run."""
        end, done = self.now + seconds, 0
        while self._due and self._due[0][0] <= end and done != steps:
            self.now, _, callback = heapq.heappop(self._due)
            if callback is not None:
                callback()
                done += 1
        if done != steps:
            self.now = end
