"""What a kernel takes of a multiprocessor, read from its machine code, with no GPU.

The numbers stand in the section `.nv.info` of the cubin that NVRTC makes: records of a format byte, an attribute
byte and a 16-bit size; those of format 4 hold a symbol's number and a value.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

REGCOUNT, FRAME_SIZE = 0x2F, 0x11
SYMBOLS = 2  # type of the section with the symbols
RESERVED_SHARED = (
    1024  # bytes that CUDA takes of a block's shared memory from compute capability 9.0 on
)


class Resources(NamedTuple):
    """Registers and stack bytes (spilled registers among them) of a thread, shared bytes of a block."""

    registers: int
    stack: int
    shared: int


def machine_code(code: str, options: tuple[str, ...], architecture: str = "sm_90") -> bytes:
    """The cubin that NVRTC makes, with the options of CuPy. Raises RuntimeError with NVRTC's log."""
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(code.encode(), b"kernel.cu", 0, [], [])
    flags = [f"--gpu-architecture={architecture}", "-ftz=true", *options]
    encoded = [flag.encode() for flag in flags]
    (failed,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    if int(failed):
        log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.decode(errors="replace").strip("\0 \n") or str(failed))
    cubin = b" " * nvrtc.nvrtcGetCUBINSize(program)[1]
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(program)
    return cubin


def resources(cubin: bytes) -> dict[str, Resources]:
    """What each kernel of a cubin (a 64-bit ELF file) takes, by name."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    count, names = struct.unpack_from("<HH", cubin, 0x3C)
    # name, type, flags, address, offset, size, link, info, alignment, entry size
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + 64 * n) for n in range(count)]

    def text(strings: int, at: int) -> str:
        start = sections[strings][4] + at
        return cubin[start : cubin.index(b"\0", start)].decode()

    by_name = {text(names, section[0]): section for section in sections}
    symbols = next(section for section in sections if section[1] == SYMBOLS)
    found: dict[tuple[str, int], int] = {}
    at, size = by_name[".nv.info"][4], by_name[".nv.info"][5]
    end = at + size
    while at < end:
        form, attribute, length = struct.unpack_from("<BBH", cubin, at)
        at += 4
        if form == 4:
            if length == 8:
                symbol, value = struct.unpack_from("<II", cubin, at)
                (name,) = struct.unpack_from("<I", cubin, symbols[4] + 24 * symbol)
                found[text(symbols[6], name), attribute] = value
            at += length
    kernels = [name for name, attribute in found if attribute == REGCOUNT]
    shared = {
        name: max(0, by_name[f".nv.shared.{name}"][5] - RESERVED_SHARED)
        if f".nv.shared.{name}" in by_name
        else 0
        for name in kernels
    }
    return {
        name: Resources(found[name, REGCOUNT], found.get((name, FRAME_SIZE), 0), shared[name])
        for name in kernels
    }
