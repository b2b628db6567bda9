"""NVRTC with a folder of what it has made: the next session finds its kernels compiled.

The folder is `attention-kernels` in the user's folder for caches; `HELPERS_COMPILED` names another
one, and `HELPERS_COMPILED=off` keeps nothing. A file is named by a hash of all that decides what
is in it: source, included files and where they lie, options, the compiler's version, the toolkit's
headers. Where the process works does not matter: a notebook finds what a script compiled. What
nvdisasm prints of machine code is kept, too. A file is written beside its place and then moved
there, so that nobody reads half of one. Files that were not used for long go first when there is
too much.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import importlib.metadata
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from .providers import (
    Compilation,
    NvrtcProvider,
    Request,
    has_unread_include,
    is_silent,
    toolkit_include_dirs,
)

VARIABLE = "HELPERS_COMPILED"
LARGEST = 128 * 2**20  # bytes of all files together
LOOKS = 32  # files that a process writes between two looks at how large all are
_OFF = ("off", "0")
_FORMAT = 2  # of the files
_written = itertools.count()  # files, by this process


class KeptNvrtc(NvrtcProvider):
    """NVRTC, which is not asked again for what the folder has."""

    def _made(self, request: Request, cubin: bool) -> tuple[Compilation, bytes]:
        folder = kept_folder()
        if folder is None or has_unread_include(request):
            return super()._made(request, cubin)
        file = folder / f"{self._key(request, cubin)}.json"
        if (found := _read(file)) is not None and not (cubin and is_silent(request, found[0])):
            return found
        answer, code = super()._made(request, cubin)
        _write(file, answer, code)
        return answer, code

    def _key(self, request: Request, cubin: bool) -> str:
        # Each line's number stands there beside its file, whose path must be one of this machine.
        paths = [path for path, _, _ in request.includes]
        parts = [_FORMAT, request.key, self.version, cubin, paths, *_toolkit()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def kept_text(parts: list, make: Callable[[], str]) -> str:
    """A text that is made once and kept beside what NVRTC has made.

    Args:
        parts: all that decides what the text is, as JSON can hold it.
        make: makes it. What this raises is not kept.
    """
    folder = kept_folder()
    if folder is None:
        return make()
    key = hashlib.sha256(json.dumps([_FORMAT, "text", *parts]).encode()).hexdigest()
    file = folder / f"{key}.json"
    if (found := _read(file)) is not None:
        return found[0].ptx
    text = make()
    _write(file, Compilation(text, "", {}), b"")
    return text


def kept_folder() -> Path | None:
    """Where compiled kernels are kept; None for nowhere."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.lower() in _OFF:
        return None
    if chosen:
        return Path(chosen)
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    else:
        caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return Path(caches, "attention-kernels")


@functools.cache
def _toolkit() -> tuple:
    """What NVRTC is, to the last digit, and what the toolkit's headers are."""
    packages = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
    versions = []
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(importlib.metadata.version(name))
    headers = (Path(folder, "cuda_fp16.h") for folder in toolkit_include_dirs())
    found = [header.stat() for header in headers if header.is_file()]
    folders = (str(folder) for folder in toolkit_include_dirs())
    return (*versions, *folders, *((one.st_size, one.st_mtime_ns) for one in found))


def _read(file: Path) -> tuple[Compilation, bytes] | None:
    """What a file holds; None if it is not there, or is no such file."""
    try:
        held = json.loads(file.read_bytes())
        made = Compilation(held["ptx"], held["log"], dict(held["names"]), held["folder"])
        code = base64.b64decode(held["cubin"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    with contextlib.suppress(OSError):
        os.utime(file)  # used just now
    return made, code


def _write(file: Path, made: Compilation, code: bytes) -> None:
    """Keep an answer; where that cannot be, nothing is kept."""
    held = {
        "ptx": made.ptx,
        "log": made.log,
        "names": made.names,
        "folder": made.folder,
        "cubin": base64.b64encode(code).decode(),
    }
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=file.parent, suffix=".part")
        try:
            with open(handle, "w", encoding="utf-8") as stream:
                json.dump(held, stream)
            os.replace(beside, file)
        except OSError:
            os.unlink(beside)
            raise
        if next(_written) % LOOKS == 0:  # thousands of files take longer to look at than to compile
            _make_room(file.parent)


def _make_room(folder: Path) -> None:
    """Remove the files that were not used for longest, if all are too large together."""
    found = []
    with os.scandir(folder) as files:
        for file in files:
            with contextlib.suppress(OSError):  # another process removes files, too
                held = file.stat()
                found.append((held.st_mtime_ns, held.st_size, file.path))
    left = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if left <= LARGEST:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        left -= size
