"""`cp.cuda`: one simulated device on which every launch has ended when it returns.

There is no time on it: events and streams can be recorded and waited for, but not measured.
"""

from __future__ import annotations

from ..simulator.limits import CAPABILITY
from . import missing, runtime
from .memory_pools import MemoryPool

__all__ = [
    "Device",
    "Event",
    "MemoryPool",
    "Stream",
    "get_current_stream",
    "get_device_id",
    "get_elapsed_time",
    "is_available",
    "runtime",
]


class Device:
    """The simulated device, with the limits of an H200."""

    def __init__(self, device: int | Device | None = None):
        number = int(device) if device is not None else 0
        runtime.setDevice(number)
        self.id = number

    def use(self) -> Device:
        """Make it the current device, which it is."""
        return self

    def synchronize(self) -> None:
        """Wait for it: every launch has ended already."""

    @property
    def compute_capability(self) -> str:
        """`90`: the capability that the simulator compiles for."""
        return str(CAPABILITY)

    @property
    def attributes(self) -> dict[str, int]:
        """Limits of a launch, by CUDA's names without `cudaDevAttr`."""
        limits = ", ".join(runtime.ATTRIBUTES)
        said = f"{{}} is not among the limits of the simulated device, which are {limits}"
        return missing.Told(runtime.ATTRIBUTES, said)

    @property
    def mem_info(self) -> tuple[int, int]:
        """(free, total) bytes of the host's memory."""
        return runtime.memGetInfo()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exc) -> None:
        pass

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}: {runtime.NAME}>"

    def __getattr__(self, name):
        raise missing.unknown("cp.cuda.Device()", name, dir(type(self)))


def is_available() -> bool:
    """Whether a GPU of CUDA's answers: not here, where `cp` is the stand-in."""
    return False


def get_device_id() -> int:
    """The current device, always 0."""
    return 0


class Stream:
    """A queue of work. Everything runs at once here, in the order of the program."""

    null: Stream | bool
    ptds: Stream
    ptr = 0
    device_id = 0

    def __init__(self, null=False, non_blocking=False, ptds=False, priority: int | None = None):
        self.null, self.non_blocking, self.priority = null, non_blocking, priority or 0

    def use(self) -> Stream:
        """Make it the current stream."""
        return self

    def synchronize(self) -> None:
        """Wait for its work, which has been done."""

    @property
    def done(self) -> bool:
        """Always true."""
        return True

    def record(self, event: Event | None = None) -> Event:
        """Record an event in the stream."""
        event = event if event is not None else Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event, which has happened."""

    def launch_host_func(self, callback, arg) -> None:
        """Call `callback(arg)` behind the work issued so far, which is at once."""
        callback(arg)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc) -> None:
        pass

    def __getattr__(self, name):
        raise missing.unknown("cp.cuda.Stream()", name, dir(type(self)))


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)


def get_current_stream(device_id: int = -1) -> Stream:
    """The stream that launches go to."""
    return Stream.null


class Event:
    """A mark in a stream."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        pass

    def record(self, stream: Stream | None = None) -> None:
        """Set the mark behind the work issued so far."""

    def synchronize(self) -> None:
        """Wait for the mark, which has been reached."""

    @property
    def done(self) -> bool:
        """Always true."""
        return True

    def __getattr__(self, name):
        raise missing.unknown("cp.cuda.Event()", name, dir(type(self)))


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two events, which the simulator does not have.

    Raises:
        RuntimeError: always. A simulated run counts what a kernel does; how long a GPU takes for it
            is measured on a GPU alone.
    """
    raise RuntimeError(
        "The simulator has no milliseconds: it counts what a kernel does, and only a GPU can be "
        "timed. Ask helpers.device.is_gpu before timing."
    )


def __getattr__(name: str):
    raise missing.unknown("cp.cuda", name, __all__)
