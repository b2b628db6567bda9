"""The NVIDIA driver of this machine, asked without CuPy."""

import contextlib
import ctypes
import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
SECONDS = 30.0

# Error numbers with a mend of their own (CUresult in the CUDA Driver API).
NO_DEVICE = 100
MENDS = {
    803: "the NVIDIA driver and its libraries are of different releases: restart the machine",
    804: "the NVIDIA driver is too old for this GPU's compatibility library: update the driver",
}

_PROBE = """
import ctypes, json, sys
cuda = ctypes.CDLL(sys.argv[1])
error = cuda.cuInit(0)
version, count, text = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_char_p()
if error:
    cuda.cuGetErrorString(error, ctypes.byref(text))
else:
    cuda.cuDriverGetVersion(ctypes.byref(version))
    error = cuda.cuDeviceGetCount(ctypes.byref(count))
print(json.dumps([error, version.value, count.value, (text.value or b"").decode()]))
"""


@dataclass(frozen=True)
class Answer:
    """What the driver says. `problem` is empty if it has a GPU; `cuda` is what it supports."""

    problem: str = ""
    no_device: bool = False
    cuda: tuple[int, int] = (0, 0)


def library_found() -> bool:
    """Whether the driver's library can be loaded; quick, and true of a broken driver too."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


def ask(seconds: float = SECONDS) -> Answer:
    """Start the driver in a process of its own, so that a crash or a hang there does no harm.

    Args:
        seconds: how long it may take; usual is a fraction of one, and several where many GPUs
            have been idle.
    """
    command = [sys.executable, "-I", "-S", "-c", _PROBE, LIBRARY]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        error, version, count, text = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return Answer(f"the NVIDIA driver has not answered within {seconds:g} s")
    except (OSError, ValueError):
        return Answer("the NVIDIA driver crashes when it is started")
    if error == NO_DEVICE or (not error and count == 0):
        return Answer("the NVIDIA driver finds no GPU", no_device=True)
    if error:
        return Answer(
            MENDS.get(error, f"the NVIDIA driver does not start ({text or 'error'}, {error})")
        )
    return Answer(cuda=(version // 1000, version % 1000 // 10))


def version() -> str:
    """The driver's release and a comma, such as `580.65.06, `; empty where it is not to be read."""
    with contextlib.suppress(OSError):
        text = Path("/proc/driver/nvidia/version").read_text()
        if found := re.search(r"Kernel Module.*?(\d+\.\d+(?:\.\d+)?)", text):
            return f"{found[1]}, "
    return ""


def keep_nvrtc_apart() -> None:
    """With CuPy for CUDA 12, let CuPy have NVRTC 12 and the simulator NVRTC 13.

    Both look for "nvrtc" through cuda.pathfinder, which prefers the newer one in site-packages and
    remembers one for the whole process. A CUDA 12 driver cannot load what NVRTC 13 makes. So each
    is led to its own: a library that is loaded already is what cuda.pathfinder takes.
    """
    with contextlib.suppress(PackageNotFoundError):
        distribution("cupy-cuda12x")
        packages = importlib.util.find_spec("nvidia")
        for folder in map(Path, packages.submodule_search_locations if packages else []):
            old = folder / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"
            new = folder / "cu13" / "lib" / "libnvrtc.so.13"
            if old.is_file() and new.is_file():
                _bind(old, new)
                return


def _bind(old: Path, new: Path) -> None:
    from cuda import pathfinder  # late: there are no wheels for macOS

    ctypes.CDLL(str(old))
    import cupy  # late: an optional package, after the NVRTC that it is to find

    cupy.cuda.nvrtc.getVersion()  # binds CuPy's functions
    ctypes.CDLL(str(new))
    for builtins in new.parent.glob("libnvrtc-builtins.so.13*"):
        ctypes.CDLL(str(builtins))
    pathfinder.load_nvidia_dynamic_lib.cache_clear()
    from cuda.bindings import nvrtc  # late: after the NVRTC that it is to find

    nvrtc.nvrtcVersion()  # binds the simulator's
