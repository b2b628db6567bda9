"""A student's working copy of the course, brought up to date without touching the student's work.

A file that the student has not changed since it was laid there follows the course. One that the
student has changed stays as it is, and the course's new edition is laid beside it once, as
`07_bank_conflicts-new.ipynb`. Files of the student's own are never looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["files", "update"]

STATE = ".course.json"
# What a student gets, as (pattern, whether it is there to be changed). The notebooks take kernels
# from the course itself: the copies in kernels/ are there to be read, as links in a text need.
HANDED_OUT = (
    ("notebooks/*.ipynb", True),
    ("kernels/*.cu", False),
    ("kernels/include/*", False),
    ("helpers/problem/data/README.md", False),
)


def files(course: Path) -> Iterator[tuple[str, bool]]:
    """(path within the course, whether students change it) of each file that is handed out."""
    for pattern, changeable in HANDED_OUT:
        for path in sorted(course.glob(pattern)):
            if path.is_file():
                yield path.relative_to(course).as_posix(), changeable


def update(course: Path, copy: Path) -> list[str]:
    """Bring a working copy up to date; makes it if there is none.

    Args:
        course: the course's folder.
        copy: the student's.

    Returns:
        A sentence for each file of which the student keeps an edition of their own.

    Raises:
        OSError: a file cannot be read or written.
    """
    handed, laid = _read_state(copy)
    said = []
    for name, changeable in files(course):
        data = (course / name).read_bytes()
        edition = _digest(data)
        place = copy / name
        found = _digest_of(place)
        if found not in (None, edition) and found != laid.get(name):
            if handed.get(name) == edition:
                continue  # the student's own, made from the course's newest
            place = _beside(place, copy, laid)
            said.append(
                f"{name} is your own edition and stays; the course's new one is {place.name}."
            )
        if _digest_of(place) != edition:
            _write(place, data, 0o644 if changeable else 0o444)
        handed[name] = laid[place.relative_to(copy).as_posix()] = edition
    state = json.dumps({"handed": handed, "laid": laid}, indent=1, sort_keys=True) + "\n"
    _write(copy / STATE, state.encode(), 0o644)
    return said


def _beside(place: Path, copy: Path, laid: dict[str, str]) -> Path:
    """The first of `-new`, `-new2` ... which is free, or as the course once laid it there."""
    number = 1
    while True:
        other = place.with_stem(f"{place.stem}-new{'' if number == 1 else number}")
        if _digest_of(other) in (None, laid.get(other.relative_to(copy).as_posix())):
            return other
        number += 1


def _read_state(copy: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Which edition of each file was handed out last, and what was laid where, as digests.

    If that is lost, every file that differs from the course counts as the student's.
    """
    try:
        state = json.loads((copy / STATE).read_bytes())
        return dict(state["handed"]), dict(state["laid"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}, {}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest_of(path: Path) -> str | None:
    """None if nothing is there; what is no file counts as the student's."""
    try:
        return _digest(path.read_bytes())
    except FileNotFoundError:
        return "a link to nowhere" if path.is_symlink() else None
    except (IsADirectoryError, PermissionError):
        return "no file to be read"


def _write(path: Path, data: bytes, mode: int) -> None:
    """Put a whole file in place at once, so that a full disk leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
