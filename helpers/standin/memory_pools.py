"""CuPy's memory pools, of which only the freeing matters to a notebook."""

from . import missing


class MemoryPool:
    """Stands for the pool that CuPy takes device memory from; Python frees memory here."""

    def free_all_blocks(self, stream=None) -> None:
        """Give unused memory back: nothing is held, so nothing is done."""

    def __getattr__(self, name):
        raise missing.unknown("cp.get_default_memory_pool()", name, dir(type(self)))


_POOL = MemoryPool()


def get_default_memory_pool() -> MemoryPool:
    """The one pool."""
    return _POOL


def get_default_pinned_memory_pool() -> MemoryPool:
    """The one pool; there is no pinned memory without a GPU."""
    return _POOL
