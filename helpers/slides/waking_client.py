"""A client for notebooks that does not wait for a reply that has come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nbclient import NotebookClient

_ASK_EVERY = 5.0  # seconds


class WakingClient(NotebookClient):
    """Asks the kernel for a word while a cell runs.

    A reply can arrive unnoticed: while one is awaited, an `interact` has its state sent by the same
    socket, and that clears the signal by which ZeroMQ says, once, that something has come
    (zmq_getsockopt(3), ZMQ_FD). The client would wait for good; the next reply wakes it.

    Attributes:
        meanwhile: called whenever it has asked.
    """

    meanwhile: Callable[[], object] | None = None

    async def async_execute_cell(self, *args, **options):
        asking = asyncio.ensure_future(self._ask())
        try:
            return await super().async_execute_cell(*args, **options)
        finally:
            asking.cancel()

    async def _ask(self) -> None:
        while True:
            await asyncio.sleep(_ASK_EVERY)
            self.kc.kernel_info()
            if self.meanwhile is not None:
                self.meanwhile()
