"""Compile every case with NVRTC, to PTX and to sm_90 machine code, with no GPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def include_folders() -> list[str]:
    """CUDA header folders: those of the installed wheels, then the toolkit's."""
    spec = importlib.util.find_spec("nvidia")
    wheels = [Path(p) / "cu13" / "include" for p in spec.submodule_search_locations] if spec else []
    folders = [*wheels, Path("/usr/local/cuda/include")]
    return [str(folder) for folder in folders if (folder / "cuda_fp16.h").exists()]


def compile_case(
    code: str, options: tuple[str, ...], architecture: str = "sm_90"
) -> tuple[str, int]:
    """PTX text and machine code size in bytes. Raises RuntimeError with NVRTC's log."""
    from cuda.bindings import nvrtc

    failed, program = nvrtc.nvrtcCreateProgram(code.encode(), b"case.cu", 0, [], [])
    flags = [f"--gpu-architecture={architecture}", "-ftz=true", "-lineinfo", *options]
    flags += [f"-I{folder}" for folder in include_folders()]
    encoded = [flag.encode() for flag in flags]
    (failed,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    if int(failed):
        size = nvrtc.nvrtcGetProgramLogSize(program)[1]
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.decode(errors="replace").strip("\0 \n") or str(failed))
    ptx = b" " * nvrtc.nvrtcGetPTXSize(program)[1]
    nvrtc.nvrtcGetPTX(program, ptx)
    machine = nvrtc.nvrtcGetCUBINSize(program)[1] if architecture.startswith("sm_") else 0
    nvrtc.nvrtcDestroyProgram(program)
    return ptx.decode().rstrip("\0"), machine
