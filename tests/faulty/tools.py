"""Reads what compute-sanitizer prints."""

from __future__ import annotations

import re

# What was wrong with the address, a line below the report; versions differ in its first word.
ADDRESS = re.compile(r"(Address|Access to) ")
PLACE = re.compile(r"\bat .*?\.cu:(\d+)")
RACE = re.compile(r"Race reported between|Potential \w+ hazard detected")
# First words of a report of each tool.
STARTS = {
    "memcheck": re.compile(r"Invalid __\w+__ |Invalid \w+ |.* is misaligned"),
    "racecheck": RACE,
    "initcheck": re.compile(r"Uninitialized __\w+__ memory read"),
    "synccheck": re.compile(r"Barrier error detected"),
}
KINDS = {
    "memcheck": "out_of_bounds",
    "racecheck": "race",
    "initcheck": "uninitialised",
    "synccheck": "barrier",
}


def reports(text: str) -> list[str]:
    """The lines that compute-sanitizer itself printed, without its mark."""
    marked = (line for line in text.splitlines() if line.startswith("====="))
    return [line.lstrip("=").rstrip() for line in marked]


def verdicts(tool: str, text: str) -> list[tuple[str, tuple[int, ...]]]:
    """(kind, lines) of each fault that a tool reports, each once, in its order.

    Args:
        tool: memcheck, racecheck, initcheck or synccheck.
        text: what it printed, or the lines of `reports`.
    """
    found: list[tuple[str, list[int]]] = []
    for line in text.splitlines():
        line = line.lstrip("= ")
        address = ADDRESS.match(line)
        if STARTS[tool].search(line) and "SUMMARY" not in line and not address:
            found.append((KINDS[tool], []))
        if not found:
            continue
        found[-1][1].extend(map(int, PLACE.findall(line)))
        if address and "misaligned" in line:
            found[-1] = ("misaligned", found[-1][1])
    return list(dict.fromkeys((kind, tuple(lines[:2])) for kind, lines in found))
