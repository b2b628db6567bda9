"""A client for notebooks that does not wait for a reply that has come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from queue import Empty

from nbclient import NotebookClient

_LOOK_EVERY = 1.0  # seconds
_TELL_EVERY = 5.0


class WakingClient(NotebookClient):
    """Looks every second whether the kernel has said something.

    A reply can arrive unnoticed: while one is awaited, an `interact` has its state sent by the same
    socket, and that clears the signal by which ZeroMQ says, once, that something has come
    (zmq_getsockopt(3), ZMQ_FD). The client would wait for good. At the end of a wait the socket
    itself is asked, whatever was signalled.

    Attributes:
        meanwhile: called every few seconds while a cell runs.
    """

    meanwhile: Callable[[], object] | None = None

    async def async_execute_cell(self, *args, **options):
        for channel in (self.kc.shell_channel, self.kc.iopub_channel):
            _look_again(channel)
        telling = asyncio.ensure_future(self._tell())
        try:
            return await super().async_execute_cell(*args, **options)
        finally:
            telling.cancel()

    async def _tell(self) -> None:
        while self.meanwhile is not None:
            await asyncio.sleep(_TELL_EVERY)
            self.meanwhile()


def _look_again(channel) -> None:
    """Let a channel's wait for a message be many short ones."""
    if "get_msg" in vars(channel):
        return
    wait = channel.get_msg

    async def get_msg(timeout: float | None = None):
        end = float("inf") if timeout is None else time.monotonic() + timeout
        while (left := end - time.monotonic()) > _LOOK_EVERY:
            try:
                return await wait(timeout=_LOOK_EVERY)
            except Empty:
                continue
        return await wait(timeout=max(left, 0))

    channel.get_msg = get_msg
