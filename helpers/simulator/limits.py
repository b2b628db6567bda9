"""What the hardware allows, by compute capability.

The one table (CUDA C++ Programming Guide, "Compute Capabilities"): the checks of a launch, the
stand-in for CuPy and the figures all read it.
"""

from dataclasses import dataclass

LANES = 32  # threads of a warp
BANKS = 32  # of shared memory
WORD = 4  # bytes that a bank gives at once
SECTOR_BYTES = 32  # that global memory moves at once


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a launch may ask for. Extents are (x, y, z), memory is in bytes."""

    opt_in_shared: int  # of a block that was allowed more than `shared`
    multiprocessor_shared: int
    multiprocessor_threads: int
    multiprocessor_blocks: int
    threads: int = 1024  # of a block
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    shared: int = 48 * 1024  # of a block, static and dynamic together
    reserved_shared: int = 1024  # that the system takes of each block's: variables lie behind it
    shared_unit: int = 128  # a block's shared memory is handed out in multiples of it
    registers: int = 65536  # of a block, and of a multiprocessor
    thread_registers: int = 255
    register_unit: int = 256  # a warp's registers are handed out in multiples of it
    partitions: int = 4  # of a multiprocessor, each with a scheduler and its share of registers
    local: int = 512 * 1024  # of a thread
    constant: int = 64 * 1024


LIMITS = {
    75: Limits(64 * 1024, 64 * 1024, 1024, 16, reserved_shared=0, shared_unit=256),
    80: Limits(163 * 1024, 164 * 1024, 2048, 32),
    86: Limits(99 * 1024, 100 * 1024, 1536, 16),
    89: Limits(99 * 1024, 100 * 1024, 1536, 24),
    90: Limits(227 * 1024, 228 * 1024, 2048, 32),
}
CAPABILITY = 90  # 10 * major + minor of what the simulator compiles for and counts as
SIMULATED = LIMITS[CAPABILITY]
MULTIPROCESSORS = 132  # of an H200
