"""One timing at a time: a lock between all processes of a machine, for each GPU.

    with one_at_a_time(uuid):
        ...  # nobody else who asks for the same GPU is in here

The lock is `flock` on a file of the GPU's name in a folder that every user can write to. The
system lets go of it when its holder ends, however it ends, and reading the file is enough to lock
it, whoever made it. Who wants it stands in a queue, so that a long series of timings lets others in
between two of them.
"""

import contextlib
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..simulator.errors import Headlined

FOLDER = "HELPERS_LOCKS"  # environment variable: another folder, the same for everybody
WAIT = "HELPERS_LOCK_SECONDS"  # environment variable: how long to wait at most
SECONDS = 300.0
_POLL = 0.02
_SILENT = 0.5  # seconds of waiting that need no message


class GpuBusy(Headlined, TimeoutError):
    """Another process has kept the GPU to itself for too long."""

    headline = "The GPU is busy"


def gpu_uuid(cp) -> str:
    """The current GPU's UUID in hexadecimal digits, the same in every process that sees it.

    Its number, as in `device-0`, if CUDA names none.
    """
    runtime = cp.cuda.runtime
    number = runtime.getDevice()
    uuid = runtime.getDeviceProperties(number).get("uuid")
    return bytes(uuid).hex() if uuid else f"device-{number}"


@contextlib.contextmanager
def one_at_a_time(
    uuid: str, seconds: float | None = None, say: Callable[[str], object] | None = None
) -> Iterator[None]:
    """Hold the lock of one GPU.

    Args:
        uuid: names the GPU; letters, digits and hyphens.
        seconds: how long to wait at most; by default HELPERS_LOCK_SECONDS, or else 300.
        say: is told once who is waited for; by default that is written to stderr.

    Raises:
        GpuBusy: the wait was longer than that.
        ValueError: HELPERS_LOCK_SECONDS is not a number of seconds, or `uuid` no name of a file.
    """
    if os.name == "nt":  # it has no flock, and a class's server runs Linux
        yield
        return
    if re.fullmatch(r"[\w-]+", uuid) is None:
        raise ValueError(f"{uuid!r} does not name a GPU: letters, digits and hyphens are expected.")
    wait = _Wait(_seconds() if seconds is None else seconds, say or _to_stderr)
    with contextlib.ExitStack() as held:
        with _locked(lock_file(uuid, "queue"), wait):
            held.enter_context(_locked(lock_file(uuid), wait))
        yield


def lock_file(uuid: str, purpose: str = "lock") -> Path:
    """The file that stands for a GPU.

    /tmp by name, not Python's choice: TMPDIR can be another one for each user.
    """
    return Path(os.environ.get(FOLDER) or "/tmp") / f"attention-gpu-{uuid}.{purpose}"


def holder(path: Path) -> str:
    """Who has locked a file, such as `alice (process 4711)`; empty if that cannot be told."""
    try:
        file = path.stat()
        device = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
        locks = Path("/proc/locks").read_text()
        found = re.search(rf"^\d+: FLOCK .* (\d+) {device} ", locks, re.M)
        if found is None:
            return ""
        owner = os.stat(f"/proc/{found[1]}").st_uid
    except OSError:
        return ""
    try:
        import pwd  # late: not on Windows

        name = pwd.getpwuid(owner).pw_name
    except (ImportError, KeyError):
        name = f"user {owner}"
    return f"{name} (process {found[1]})"


class _Wait:
    """One wait, for the queue and then for the GPU: a deadline and a single message."""

    def __init__(self, seconds: float, say: Callable[[str], object]):
        self.seconds = seconds
        self.start = time.monotonic()
        self.say: Callable[[str], object] | None = say

    def once_more(self, path: Path) -> None:
        """Sleep a little; GpuBusy if the time is up."""
        waited = time.monotonic() - self.start
        # The queue's own lock is held by somebody who waits as well: name the one at the GPU.
        gpu = path.with_suffix(".lock")
        if waited >= self.seconds:
            raise GpuBusy(
                f"Others have been timing kernels on this GPU for {waited:.0f} seconds, now "
                f"{holder(gpu) or 'an unknown process'}: run the cell again later, or have that "
                "process stopped if it hangs."
            )
        if self.say is not None and waited >= min(_SILENT, self.seconds / 2):
            who = holder(gpu) or "another process"
            self.say(f"Waiting for the GPU: {who} is timing a kernel on it.")
            self.say = None
        time.sleep(_POLL)


@contextlib.contextmanager
def _locked(path: Path, wait: _Wait) -> Iterator[None]:
    import fcntl  # late: not on Windows

    while True:
        handle = _open(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(handle, path):
                break
        except BlockingIOError:
            os.close(handle)
            wait.once_more(path)
        except BaseException:
            os.close(handle)
            raise
        else:  # somebody tidied the folder between opening and locking
            os.close(handle)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)  # for forked children, too, that share the handle
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _open(path: Path) -> int:
    """Open the file to be locked; whoever needs it first makes it.

    It is opened for reading alone: where a folder is everybody's, the system keeps other users'
    files from being opened for writing or with O_CREAT. Links and pipes that somebody may have put
    in its place are not followed.
    """
    while True:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            _make(path)
            continue
        except OSError as error:
            raise _unusable(path, error.strerror) from None
        if stat.S_ISREG(os.fstat(handle).st_mode):
            return handle
        os.close(handle)
        raise _unusable(path, "it is not a file")


def _make(path: Path) -> None:
    """Make an empty file that everybody can read, under its name only when it is that."""
    try:
        handle, draft = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    except OSError as error:
        raise _unusable(path, error.strerror) from None
    try:
        os.fchmod(handle, 0o644)  # whatever the user's umask is
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(handle)
        os.unlink(draft)


def _unusable(path: Path, reason: str | None) -> OSError:
    return OSError(
        f"{path}, the lock for timings on this GPU, cannot be used ({reason}): remove it, or let "
        f"{FOLDER} name a folder that every user can write to."
    )


def _seconds() -> float:
    text = os.environ.get(WAIT, "").strip()
    try:
        value = float(text) if text else SECONDS
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ValueError(f"{WAIT}={text} is not a number of seconds.")
    return value


def _to_stderr(sentence: str) -> None:
    print(f"helpers: {sentence}", file=sys.stderr, flush=True)
