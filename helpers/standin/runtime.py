"""`cp.cuda.runtime`: the few questions that a notebook asks it.

The simulated device has the limits of an H200, as read there through CuPy 14.2; its memory is the
host's.
"""

import os

from ..simulator.limits import CAPABILITY, LANES, SIMULATED
from . import missing

NAME = "simulator (NumPy, no GPU)"

__all__ = [
    "CUDARuntimeError",
    "deviceCanAccessPeer",
    "deviceSynchronize",
    "driverGetVersion",
    "getDevice",
    "getDeviceCount",
    "getDeviceProperties",
    "is_hip",
    "memGetInfo",
    "runtimeGetVersion",
    "setDevice",
]

# Names as in `cp.cuda.Device.attributes`.
ATTRIBUTES = {
    "CooperativeLaunch": 1,
    "L2CacheSize": 62914560,
    "MaxPersistingL2CacheSize": 39321600,
    "GlobalMemoryBusWidth": 6016,
    **{f"MaxBlockDim{axis}": most for axis, most in zip("XYZ", SIMULATED.block, strict=True)},
    "MaxBlocksPerMultiprocessor": SIMULATED.multiprocessor_blocks,
    **{f"MaxGridDim{axis}": most for axis, most in zip("XYZ", SIMULATED.grid, strict=True)},
    "MaxRegistersPerBlock": SIMULATED.registers,
    "MaxRegistersPerMultiprocessor": SIMULATED.registers,
    "MaxSharedMemoryPerBlock": SIMULATED.shared,
    "MaxSharedMemoryPerBlockOptin": SIMULATED.opt_in_shared,
    "MaxSharedMemoryPerMultiprocessor": SIMULATED.multiprocessor_shared,
    "MaxThreadsPerBlock": SIMULATED.threads,
    "MaxThreadsPerMultiProcessor": SIMULATED.multiprocessor_threads,
    "MultiProcessorCount": 132,
    "ReservedSharedMemoryPerBlock": SIMULATED.reserved_shared,
    "TotalConstantMemory": SIMULATED.constant,
    "WarpSize": LANES,
}


is_hip = False


class CUDARuntimeError(RuntimeError):
    """What CuPy raises when the CUDA runtime refuses a call."""


def getDeviceCount() -> int:  # noqa: N802 (CUDA's name)
    """One simulated device."""
    return 1


def getDevice() -> int:  # noqa: N802
    """The current device, always 0."""
    return 0


def setDevice(device: int) -> None:  # noqa: N802
    """Choose the current device; there is only 0."""
    if device != 0:
        raise CUDARuntimeError(f"There is one simulated device, 0, and no device {device}.")


def deviceCanAccessPeer(device: int, peer: int) -> int:  # noqa: N802
    """Whether one device reads another's memory: 0, for there is one."""
    setDevice(device)
    setDevice(peer)
    return 0


def deviceSynchronize() -> None:  # noqa: N802
    """Wait for the device; a simulated launch has ended when it returns."""


def driverGetVersion() -> int:  # noqa: N802
    """0, as CUDA answers where no driver is installed."""
    return 0


def runtimeGetVersion() -> int:  # noqa: N802
    """The CUDA release that the simulator's compiler and headers belong to."""
    return 13000


def memGetInfo() -> tuple[int, int]:  # noqa: N802
    """(free, total) bytes of the host's memory.

    Raises:
        CUDARuntimeError: the operating system does not say.
    """
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page
    except (AttributeError, ValueError, OSError):
        raise CUDARuntimeError(
            "This operating system does not say how much memory there is."
        ) from None


# Yes and no as a program may branch on them, and as they are here.
_ABLE = """
    cooperativeLaunch unifiedAddressing globalL1CacheSupported localL1CacheSupported
""".split()
_UNABLE = """
    ECCEnabled canMapHostMemory computeMode concurrentKernels concurrentManagedAccess
    computePreemptionSupported cooperativeMultiDeviceLaunch deviceOverlap asyncEngineCount
    directManagedMemAccessFromHost hostNativeAtomicSupported integrated isMultiGpuBoard
    kernelExecTimeoutEnabled managedMemory pageableMemoryAccess streamPrioritiesSupported tccDriver
""".split()
_NO_PROPERTY = (
    "{} is not among the properties of the simulated device: it has those that bound a launch or "
    "say what a kernel may use, and neither clocks nor a place on a bus nor textures."
)


def getDeviceProperties(device: int) -> dict:  # noqa: N802
    """Properties of device 0, named as in `cudaDeviceProp`; the sizes are an H200's.

    Asking for one that it does not have, such as a clock rate, is a KeyError that says so.
    """
    setDevice(device)
    a = ATTRIBUTES
    found = {
        "name": NAME.encode(),
        "major": CAPABILITY // 10,
        "minor": CAPABILITY % 10,
        "warpSize": a["WarpSize"],
        "multiProcessorCount": a["MultiProcessorCount"],
        "maxThreadsPerBlock": a["MaxThreadsPerBlock"],
        "maxThreadsPerMultiProcessor": a["MaxThreadsPerMultiProcessor"],
        "maxBlocksPerMultiProcessor": a["MaxBlocksPerMultiprocessor"],
        "maxThreadsDim": tuple(a[f"MaxBlockDim{axis}"] for axis in "XYZ"),
        "maxGridSize": tuple(a[f"MaxGridDim{axis}"] for axis in "XYZ"),
        "regsPerBlock": a["MaxRegistersPerBlock"],
        "regsPerMultiprocessor": a["MaxRegistersPerMultiprocessor"],
        "sharedMemPerBlock": a["MaxSharedMemoryPerBlock"],
        "sharedMemPerBlockOptin": a["MaxSharedMemoryPerBlockOptin"],
        "sharedMemPerMultiprocessor": a["MaxSharedMemoryPerMultiprocessor"],
        "reservedSharedMemPerBlock": a["ReservedSharedMemoryPerBlock"],
        "totalConstMem": a["TotalConstantMemory"],
        "totalGlobalMem": memGetInfo()[1],
        "l2CacheSize": a["L2CacheSize"],
        "persistingL2CacheMaxSize": a["MaxPersistingL2CacheSize"],
        "memoryBusWidth": a["GlobalMemoryBusWidth"],
        **dict.fromkeys(_ABLE, 1),
        **dict.fromkeys(_UNABLE, 0),
        "singleToDoublePrecisionPerfRatio": 2,
    }
    return missing.Told(found, _NO_PROPERTY)


def __getattr__(name: str):
    raise missing.unknown("cp.cuda.runtime", name, __all__)
