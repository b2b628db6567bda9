"""Start one student's server, as that student: JupyterHub's command for each of them.

The student's working copy of the course, `~/attention`, is brought up to date first. Then memory is
limited, here and in every kernel: past MEM_LIMIT bytes a process gets a MemoryError, which a
student can read, and the others are left in peace.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import working_copy  # noqa: E402

COURSE = Path(__file__).resolve().parent.parent.parent
COPY = "attention"  # in the student's home


def limit_memory(limit: str) -> None:
    """Bound the memory that this process and each of its children may write to.

    RLIMIT_DATA and not RLIMIT_AS: CUDA reserves addresses far beyond what it ever uses.

    Args:
        limit: bytes for each process; empty or 0 for no limit.
    """
    import resource

    if int(limit or 0) > 0:
        resource.setrlimit(resource.RLIMIT_DATA, (int(limit), int(limit)))


def main(arguments: list[str]) -> None:
    """Become the student's server."""
    for sentence in working_copy.update(COURSE, Path.home() / COPY):
        print(sentence, flush=True)
    limit_memory(os.environ.get("MEM_LIMIT", ""))
    os.execv(sys.executable, [sys.executable, "-m", "jupyterhub.singleuser", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
