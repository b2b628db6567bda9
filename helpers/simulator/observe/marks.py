"""Lines whose counters are not a GPU's: what it does by itself there is not simulated."""

from __future__ import annotations

from collections.abc import Iterable

from ..ptx.program import call_target
from ..ptx.syntax import Function, Instruction, Module, Sym

_STACK = "the traffic of the stack, where a GPU keeps what a call leaves behind, is not counted"
POINTER = f"A call through a pointer: {_STACK}."
RECURSION = f"A function that calls itself: {_STACK}."
PRINTF = "printf: the buffer that a GPU prints through is not counted."
HEAP = "malloc, new and free: what a GPU reads and writes to find memory is not counted."
HALVES = "An atomic on 16-bit values: a GPU goes round a loop of 32-bit ones, which is not counted."
_OF_CALL = {"vprintf": PRINTF, "malloc": HEAP, "free": HEAP}


def not_counted(module: Module, functions: Iterable[Function]) -> dict[int, str]:
    """What is not counted as on a GPU, by line of the source.

    Args:
        module: that the functions are of.
        functions: those that a launch may come to.
    """
    found: dict[int, list[str]] = {}
    calling = {name: _called(function) for name, function in module.functions.items()}
    for function in functions:
        recursive = function.name in _reached(calling, calling.get(function.name, ()))
        for i in function.instructions:
            told = RECURSION if recursive else _of(i)
            if told and i.line is not None and told not in found.setdefault(i.line, []):
                found[i.line].append(told)
    return {line: " ".join(told) for line, told in sorted(found.items()) if told}


def _of(i: Instruction) -> str:
    if i.opcode == "call":
        target = call_target(i)[1]
        return _OF_CALL.get(target.name, "") if isinstance(target, Sym) else POINTER
    if i.opcode in ("atom", "red"):
        kind = i.modifiers[-1]
        # pairs in global memory are one instruction of the hardware
        pair = kind in ("f16x2", "bf16x2") and i.space != "global"
        return HALVES if pair or kind in ("f16", "bf16", "b16") else ""
    return ""


def _called(function: Function) -> set[str]:
    calls = (call_target(i)[1] for i in function.instructions if i.opcode == "call")
    return {target.name for target in calls if isinstance(target, Sym)}


def _reached(calling: dict[str, set[str]], start: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += calling.get(name, ())
    return seen
