"""`cp`: CuPy where an NVIDIA GPU answers, otherwise the stand-in with the same calls.

    from helpers import cp

The choice is made once, when `cp`, `is_gpu` or `notice` is first asked for. `simulator` as value of
HELPERS_DEVICE keeps away from the GPU, `gpu` insists on one. A GPU that cannot be used (no CuPy, a
driver that is broken or too old) is named in one sentence on stderr, and the simulator runs the
kernels.
"""

import contextlib
import functools
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

import numpy

from .. import standin
from ..simulator.errors import Headlined
from ..standin import raw_kernels
from . import driver
from .description import Description

cp: ModuleType  # CuPy or its stand-in
is_gpu: bool  # whether it is CuPy
notice: str  # why a GPU in sight is not used, or ''
launched: str  # the kernel launched last, in words, or ''

VARIABLE = "HELPERS_DEVICE"


class DeviceError(Headlined, RuntimeError):
    """HELPERS_DEVICE asks for something that this machine or this project does not have."""

    headline = "There is no such device to use"


@dataclass
class Choice:
    """The module that plays CuPy, whether it is CuPy, and why a GPU in sight is not used.

    `launched` is the kernel launched last, in words: a GPU tells of a kernel's fault at a later
    call, which does not know the kernel.
    """

    cp: ModuleType
    is_gpu: bool
    notice: str = ""
    launched: str = ""


class _Unusable(Exception):
    """Why there is no GPU to use. `worth_saying` is false on a machine that never had one."""

    def __init__(self, reason: str, worth_saying: bool = True):
        super().__init__(reason)
        self.worth_saying = worth_saying


def choose(wanted: str | None) -> Choice:
    """Decide what `cp` is.

    Args:
        wanted: the value of HELPERS_DEVICE: `simulator`, `gpu`, or empty or None for either.

    Raises:
        DeviceError: another value, or `gpu` where no GPU can be used.
    """
    wanted = (wanted or "").strip()
    if wanted not in ("", "gpu", "simulator"):
        raise DeviceError(
            f"{VARIABLE}={wanted} is not known: set it to simulator or gpu, or leave it unset."
        )
    if wanted == "simulator":
        return Choice(standin, False)
    try:
        return Choice(_cupy(), True)
    except _Unusable as problem:
        if wanted == "gpu":
            raise DeviceError(f"{VARIABLE}=gpu cannot be met: {problem}.") from None
        notice = f"{problem}; the simulator runs the kernels." if problem.worth_saying else ""
        return Choice(standin, False, notice[:1].upper() + notice[1:])


def _cupy() -> ModuleType:
    """CuPy, if it can use a GPU; otherwise _Unusable."""
    installed = importlib.util.find_spec("cupy") is not None
    if not driver.library_found():
        if installed:
            raise _Unusable("CuPy is installed, but this machine has no NVIDIA driver")
        raise _Unusable("this machine has no NVIDIA driver", worth_saying=False)
    # In a process of its own first: a broken driver can hang there and not here.
    answer = driver.ask()
    if answer.problem:
        raise _Unusable(answer.problem, worth_saying=installed or not answer.no_device)
    if not installed:
        raise _Unusable("an NVIDIA GPU is there, but CuPy is not: `make lab` installs it")
    try:
        driver.keep_nvrtc_apart()
        import cupy  # late: an optional package, and NVRTC has to be sorted out before
    except Exception as error:  # whatever a half-installed CuPy raises
        raise _Unusable(f"CuPy cannot be imported ({_first_line(error)})") from None
    try:
        _try_out(cupy, answer.cuda)
    except _Unusable:
        raise
    except Exception as error:  # whatever CUDA makes of a machine that is set up badly
        raise _Unusable(f"CuPy cannot use the GPU ({_first_line(error)})") from None
    for act in _with_cupy:
        act(cupy)
    return cupy


def _try_out(cupy: ModuleType, driver_cuda: tuple[int, int]) -> None:
    """Use the GPU once, and ask whether the compiler still knows it."""
    runtime = cupy.cuda.runtime.runtimeGetVersion()
    built_for = runtime // 1000
    if driver_cuda[0] < built_for:
        raise _Unusable(
            f"this CuPy needs a driver for CUDA {built_for}, and the installed one is for CUDA "
            f"{driver_cuda[0]}.{driver_cuda[1]}: update the driver, or run `make lab` again "
            "to install the CuPy that fits"
        )
    cupy.zeros(1, dtype=cupy.float32).get()
    capability = cupy.cuda.Device().compute_capability
    oldest = min(cupy.cuda.nvrtc.getSupportedArchs())
    if int(capability) < oldest:
        raise _Unusable(
            f"this CuPy compiles for compute capability {oldest / 10} and newer, and the GPU has "
            f"{int(capability) / 10}: run `make lab` again to install the CuPy that fits"
        )


def _first_line(error: Exception) -> str:
    """The first line of a message that says anything, without a closing full stop."""
    lines = [line.strip(" =") for line in str(error).splitlines()]
    text = next((line for line in lines if line), type(error).__name__)
    return text.rstrip(".")


@functools.cache
def _choice() -> Choice:
    made = choose(os.environ.get(VARIABLE))
    if made.notice:
        print(f"helpers: {made.notice}", file=sys.stderr)
    return made


def __getattr__(attribute: str):
    if attribute in ("cp", "is_gpu", "notice", "launched"):
        return getattr(_choice(), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")


def note_launch(kernel: str) -> None:
    """Remember the kernel that is launched now, in words."""
    _choice().launched = kernel


def chosen() -> bool:
    """Whether anything has asked for a device yet."""
    return _choice.cache_info().currsize > 0


_with_cupy: list[Callable[[ModuleType], object]] = []


def with_cupy(act: Callable[[ModuleType], object]) -> None:
    """Have `act(cupy)` called when CuPy is chosen, at once if it has been."""
    _with_cupy.append(act)
    if chosen() and _choice().is_gpu:
        act(_choice().cp)


def name() -> str:
    """The GPU's name, or `simulator (NumPy, no GPU)`."""
    runtime = _choice().cp.cuda.runtime
    return runtime.getDeviceProperties(runtime.getDevice())["name"].decode()


def describe() -> Description:
    """What this machine offers, to print or to show at the end of a notebook's cell."""
    return Description(_gpu_rows() if _choice().is_gpu else _simulator_rows())


def _gpu_rows() -> list[tuple[str, str]]:
    cp = _choice().cp
    device = cp.cuda.Device()
    limits = device.attributes
    free, total = device.mem_info
    shared = limits["MaxSharedMemoryPerBlock"] // 1024
    opt_in = limits["MaxSharedMemoryPerBlockOptin"] // 1024
    nvrtc = cp.cuda.nvrtc.getVersion()
    cuda = cp.cuda.runtime.driverGetVersion()
    return [
        ("GPU", name()),
        ("compute capability", f"{int(device.compute_capability) / 10}"),
        ("multiprocessors", f"{limits['MultiProcessorCount']}"),
        ("memory", f"{total / 2**30:.1f} GiB, {free / 2**30:.1f} GiB free"),
        ("L2 cache", f"{limits['L2CacheSize'] / 2**20:.0f} MiB"),
        ("shared memory", f"{shared} KiB a block, {opt_in} KiB with an opt-in"),
        ("driver", f"{driver.version()}CUDA {cuda // 1000}.{cuda % 1000 // 10}"),
        ("CuPy", f"{cp.__version__} with NVRTC {nvrtc[0]}.{nvrtc[1]}"),
        ("Python", _python()),
    ]


def _simulator_rows() -> list[tuple[str, str]]:
    rows = [
        ("device", name()),
        ("kernels", f"compiled by {_nvrtc()} for compute capability 9.0, run on NumPy"),
        ("counts", "what a profiler counts: accesses to memory, and instructions (of PTX)"),
        ("times", "none: only a GPU can be timed"),
    ]
    with contextlib.suppress(RuntimeError):
        free, total = _choice().cp.cuda.Device().mem_info
        rows.append(("memory", f"{total / 2**30:.1f} GiB, {free / 2**30:.1f} GiB free"))
    if _choice().notice:
        rows.append(("GPU", _choice().notice))
    rows.append(("Python", _python()))
    return rows


def _nvrtc() -> str:
    """NVRTC and its release, as its package says, without loading it."""
    try:
        return f"NVRTC {version('nvidia-cuda-nvrtc')}"
    except PackageNotFoundError:
        return "NVRTC (not installed)"


def _python() -> str:
    return f"{sys.version.split()[0]} with NumPy {numpy.__version__}"


@contextlib.contextmanager
def counting(on: bool = True) -> Iterator[None]:
    """Count what the simulator's kernels do inside the block; `kernel.report` then has it.

    A plain `cp.RawKernel` launch is not counted, since counting takes a few times as long. On a GPU
    this does nothing and a kernel has no `report`: there `simulator.launch` counts, as anywhere.
    """
    with contextlib.nullcontext() if _choice().is_gpu else raw_kernels.counting(on):
        yield
