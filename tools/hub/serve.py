"""Start the class's server, and take everything of it along when it is stopped: `make hub`.

    .venv/bin/python tools/hub/serve.py --config=tools/hub/jupyterhub_config.py

The Hub runs in a process of its own. This one passes signals on to it, and when the Hub has ended,
by whatever it was, ends the proxy that the Hub has left. So neither stays on the port after `make`,
or the terminal, has been stopped.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PATIENCE = 50  # seconds that the Hub may take to stop the students' servers
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


def main(arguments: list[str]) -> int:
    """Serve until stopped; returns the exit status."""
    return supervise(lambda: serve(arguments))


def serve(arguments: list[str]) -> None:
    """Be the Hub."""
    import checks
    from jupyterhub.app import JupyterHub

    class ClassHub(JupyterHub):
        """Refuses what would only fail later, before anything is started."""

        _stopping = False

        def init_proxy(self):
            super().init_proxy()
            if refusal := checks.refusal(self):
                sys.exit(f"\n{refusal}")

        async def shutdown_cancel_tasks(self, sig=None):
            if not self._stopping:  # a second signal does not begin again
                self._stopping = True
                await super().shutdown_cancel_tasks(sig)

    ClassHub.launch_instance(arguments)


def supervise(work: Callable[[], None]) -> int:
    """Run `work` in a process group of its own, and end the group with it.

    Returns:
        its exit status; 0 if it ended after a signal that was passed on.
    """
    parent = os.getpid()
    asked = False
    # Blocked until the child is known, so that none is lost in between.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    _end_with_parent()
    child = os.fork()
    if child == 0:
        _be_child(parent, work)

    def stop(*_) -> None:
        nonlocal asked
        if not asked:
            signal.alarm(PATIENCE)
        asked = True
        os.kill(child, signal.SIGTERM)

    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # under nohup
            signal.signal(number, stop)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    # Not reaped yet, so that its group keeps its number.
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    os.killpg(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    return 0 if asked else abs(os.waitstatus_to_exitcode(status))


def _be_child(parent: int, work: Callable[[], None]) -> None:
    """Never returns."""
    status = 1
    try:
        os.setpgid(0, 0)
        # What a shell ignores in the background would be ignored by all that the Hub starts: it
        # stops them with SIGINT, and would wait for each until its patience ends.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        _end_with_parent()
        if os.getppid() != parent:
            return
        work()
        status = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except (KeyboardInterrupt, asyncio.CancelledError):
        status = 130
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _end_with_parent() -> None:
    """Be sent SIGTERM when the parent ends, even if by a signal that it cannot pass on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGTERM)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
