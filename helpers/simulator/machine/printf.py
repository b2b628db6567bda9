"""Calls that the simulator answers itself: printf (its formats: ISO C 7.21.6.1) and assert."""

import math
import re
from collections.abc import Callable, Iterator

import numpy as np

from ..errors import SimulatorError
from ..ptx.syntax import Instruction
from .elements import gather, pieces_of
from .faults import everyone, fault, where, where_is

_SPEC = re.compile(
    r"%([-+ #0]*)(-?\d+|\*)?(?:\.(\d*|\*))?(hh|h|ll|l|z|j|t|L)?([diouxXeEfFgGaAcsp%])"
)
_LONGEST = 4096  # characters of a string without an end


def _argument_sizes(text: str) -> list[tuple[str, int]]:
    """(kind, bytes) of every argument that a format asks for, `*` among them."""
    out = []
    for _, width, precision, length, kind in _SPEC.findall(text):
        if kind == "%":
            continue
        out += [("*", 4)] * ((width == "*") + (precision == "*"))
        narrow = kind in "dicouxX" and length not in ("l", "ll", "z", "j", "t")
        out.append((kind, 4 if narrow else 8))
    return out


def _integer(number: int, flags: str, width: str, precision: str | None, kind: str) -> str:
    sign = ""
    if kind in "di":
        sign = "-" if number < 0 else "+" if "+" in flags else " " if " " in flags else ""
    digits = format(abs(number), {"o": "o", "x": "x", "X": "X"}.get(kind, "d"))
    if precision is not None:
        digits = digits.rjust(int(precision or 0), "0") if number or int(precision or 0) else ""
    if "#" in flags and kind == "o" and not digits.startswith("0"):
        digits = "0" + digits
    if "#" in flags and kind in "xX" and number:
        sign = "0" + kind
    return _padded(sign, digits, flags, width, zeros=precision is None)


def _floating(number: float, flags: str, width: str, precision: str | None, kind: str) -> str:
    negative = math.copysign(1.0, number) < 0
    sign = "-" if negative else "+" if "+" in flags else " " if " " in flags else ""
    number = abs(number)
    if not math.isfinite(number):
        digits = "nan" if number != number else "inf"
    elif kind in "aA":
        mantissa, exponent = number.hex()[2:].split("p")
        digits = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        digits, sign = f"{digits}p{exponent}", sign + "0x"
    else:
        form = "%" + ("#" if "#" in flags else "")
        form += f".{precision or 0}" if precision is not None else ""
        digits = (form + kind.lower()) % number
    if kind in "EFGA":
        digits, sign = digits.upper(), sign.upper()
    return _padded(sign, digits, flags, width, zeros=math.isfinite(number))


def _padded(sign: str, digits: str, flags: str, width: str, zeros: bool) -> str:
    room = int(width or 0) - len(sign)
    if "-" in flags:
        return sign + digits.ljust(room)
    if "0" in flags and zeros:
        return sign + digits.rjust(room, "0")
    return (sign + digits).rjust(int(width or 0))


def format_printf(text: str, values: Iterator[int], string: Callable[[int], str]) -> str:
    """Format as C's printf does.

    Args:
        text: the format.
        values: the bits of each argument, in order, `*` among them.
        string: gives the text behind the address of a %s.
    """

    def one(m: re.Match) -> str:
        flags, width, precision, length, kind = m.groups()
        if kind == "%":
            return "%"
        if width == "*":
            width = str(_signed(next(values), 32))
        if precision == "*":
            asked = _signed(next(values), 32)
            precision = str(asked) if asked >= 0 else None
        if width and width.startswith("-"):
            flags, width = flags + "-", width[1:]
        bits = next(values)
        if kind in "diouxX":
            size = {"hh": 8, "h": 16, None: 32}.get(length, 64)
            number = bits & ((1 << size) - 1)
            if kind in "di":
                number = _signed(number, size)
            return _integer(number, flags, width, precision, kind)
        if kind in "eEfFgGaA":
            number = float(np.array([bits], np.uint64).view(np.float64)[0])
            return _floating(number, flags, width, precision, kind)
        if kind == "c":
            shown = chr(bits & 0xFF)
        elif kind == "p":
            shown = hex(bits) if bits else "(nil)"
        else:
            shown = string(bits) if bits else "(null)"
            shown = shown if precision is None else shown[: int(precision or 0)]
        return _padded("", shown, flags, width, zeros=False)

    return _SPEC.sub(one, text)


def _signed(bits: int, size: int) -> int:
    bits &= (1 << size) - 1
    return bits - (1 << size) if bits >> (size - 1) else bits


# ---------------------------------------------------------------- what a thread's addresses hold


def words_at(S, i: Instruction, address: np.ndarray, size: int, mask) -> np.ndarray:
    """The words of `size` bytes at every thread's generic address, one for each thread."""
    pieces = pieces_of(S, i, "generic", address, size, size, mask, {}, False)
    return S.layout.flat(gather(pieces, 1)[0])


def string_at(S, i: Instruction, address: int, flat: int) -> str:
    """A zero-terminated string in global or constant memory, or in a thread's own memory."""
    region = S.space.find(address, address + 1)
    if region is not None:
        start = address - region.start
        data = region.data[start : start + _LONGEST].tobytes()
        return data.split(b"\0")[0].decode("utf-8", "replace")
    only = np.zeros(S.layout.shape, np.bool_)
    only.reshape(-1)[flat] = True
    out = bytearray()
    while len(out) < _LONGEST:
        place = np.array([address + len(out)], np.uint64).view(np.int64)
        try:
            byte = int(words_at(S, i, place, 1, only)[flat])
        except SimulatorError:
            raise _mismatch(S, i, only) from None
        if not byte:
            break
        out.append(byte)
    return out.decode("utf-8", "replace")


def _mismatch(S, i: Instruction, mask) -> SimulatorError:
    return fault(
        S, i.line, "out_of_bounds", f"printf in {where(S, mask)} is asked for more than it was "
        "given: match the format to the number and types of the arguments.",
    )  # fmt: skip


def vprintf(S, i: Instruction, arguments: list[np.ndarray]) -> np.ndarray:
    """printf from a kernel: threads print in the order of blocks, then of threads.

    Returns how many arguments each thread printed (CUDA C++ Programming Guide, "Formatted Output").
    """
    formats = S.layout.full(arguments[0].view(np.int64))
    mask = S.layout.full(everyone(S.mask))
    buffers = arguments[1].view(np.int64)
    lines: dict[int, str] = {}
    printed = np.zeros(S.layout.shape, np.int32)
    for address in np.unique(formats[mask]):
        here = (formats == address) & mask
        if not address:
            printed[here] = -1
            continue
        threads = np.flatnonzero(here)
        text = string_at(S, i, int(address), int(threads[0]))
        asked = _argument_sizes(text)
        printed[here] = len(asked)
        columns, at = [], 0
        for _, size in asked:
            at = -(-at // size) * size
            try:
                words = words_at(S, i, buffers + at, size, here)
            except SimulatorError:
                raise _mismatch(S, i, here) from None
            columns.append(words[threads].tolist())
            at += size
        rows = zip(*columns, strict=True) if columns else [()] * len(threads)
        for flat, row in zip(threads.tolist(), rows, strict=True):
            lines[flat] = format_printf(
                text, iter(row), lambda place, flat=flat: string_at(S, i, place, flat)
            )
    S.print("".join(lines[flat] for flat in sorted(lines)))
    return printed


def assertion(S, i: Instruction, arguments: list[np.ndarray]) -> np.ndarray:
    """A failed assert() stops the launch."""
    mask = everyone(S.mask)
    flat = int(np.argmax(S.layout.full(mask)))
    address = int(S.layout.flat(arguments[0].view(np.int64))[flat])
    said = string_at(S, i, address, flat)
    raise fault(S, i.line, "assert", f"assertion `{said}` failed in {where(S, mask)}.")


def malloc(S, i: Instruction, arguments: list[np.ndarray]) -> np.ndarray:
    """Memory from the device's heap for every active thread; 0 for those that get none."""
    sizes = S.layout.full(arguments[0].view(np.uint64))
    out = np.zeros(S.layout.shape, np.uint64)
    for thread in np.flatnonzero(S.layout.full(everyone(S.mask))).tolist():
        out.flat[thread] = S.heap().take(int(sizes.flat[thread]))
    return out


def free(S, i: Instruction, arguments: list[np.ndarray]) -> np.ndarray:
    """Give memory back to the device's heap."""
    addresses = S.layout.full(arguments[0].view(np.int64))
    for thread in np.flatnonzero(S.layout.full(everyone(S.mask))).tolist():
        if not S.heap().give_back(int(addresses.flat[thread])):
            raise fault(
                S, i.line, "out_of_bounds", f"{where_is(S, thread)} frees what malloc did not "
                "give, or has freed it before; free each pointer once.",
            )  # fmt: skip
    return np.zeros(1, np.uint64)


BUILTIN = {"vprintf": vprintf, "__assertfail": assertion, "malloc": malloc, "free": free}
