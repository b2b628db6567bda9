"""What an mbarrier object is: one word of 64 bits, and what arriving at it does.

PTX ISA 9.0, "Parallel Synchronization and Communication Instructions: mbarrier". The word is
opaque in PTX; here its fields are, from the lowest bit: the arrivals that each phase expects (20
bits), those still missing in this phase (20), the bytes still missing (21, plus 2^20, since they
may arrive before they are expected), two bits that are 1 and 0 in an initialised object, and the
parity of the phase. A phase is complete when neither arrivals nor bytes are missing: the next one
begins at once, with as many arrivals expected.
"""

import numpy as np

MOST = (1 << 20) - 1  # arrivals, and bytes
_PENDING, _BYTES, _MARK, _PHASE = 20, 40, 61, 63
_BIAS = 1 << 20


def initial(count: np.ndarray) -> np.ndarray:
    """The words of fresh objects that expect `count` arrivals a phase (int64, 1 to MOST)."""
    count = count.astype(np.uint64)
    fixed = np.uint64(_BIAS << _BYTES | 1 << _MARK)
    return count | count << np.uint64(_PENDING) | fixed


def is_valid(words: np.ndarray) -> np.ndarray:
    """Which words are those of initialised objects."""
    return (words >> np.uint64(_MARK)) & np.uint64(3) == 1


def pending(words: np.ndarray) -> np.ndarray:
    """Arrivals that are missing in the phase of a word, or of a state that an arrive returned."""
    return (words >> np.uint64(_PENDING)) & np.uint64(MOST)


def missing(word: int) -> tuple[int, int, int]:
    """(arrivals expected a phase, arrivals missing, bytes missing) of one object."""
    expected, left, bytes_, _ = _fields(int(word))
    return expected, left, bytes_


def parity(words: np.ndarray) -> np.ndarray:
    """The parity of the phase that has not completed yet, or of that of a state: 0 or 1."""
    return words >> np.uint64(_PHASE)


def _fields(word: int) -> tuple[int, int, int, int]:
    bytes_ = (word >> _BYTES & (1 << 21) - 1) - _BIAS
    return word & MOST, word >> _PENDING & MOST, bytes_, word >> _PHASE


def _word(expected: int, left: int, bytes_: int, phase: int) -> int:
    word = expected | left << _PENDING | (bytes_ + _BIAS) << _BYTES
    return word | 1 << _MARK | phase << _PHASE


def arrive(
    memory: np.ndarray, index: np.ndarray, count: np.ndarray, bytes_: np.ndarray, drop: bool
) -> tuple[np.ndarray, np.ndarray, int | None]:
    """Let lanes arrive at objects, one after another.

    Args:
        memory: uint64, 1-D, changed in place. index: intp (lanes,) within it.
        count: int64 (lanes,): how often each lane arrives; 0 only changes the bytes.
        bytes_: int64 (lanes,): bytes that are expected on top before, negative: have come.
        drop: later phases expect `count` arrivals less.

    Returns:
        The words that each lane found, the elements of which a phase completed, and the first lane
        that arrived more often, or with more bytes, than an object can bear (None: all is well).
    """
    found = np.empty(len(index), np.uint64)
    if not drop and not bytes_.any() and not ((memory[index] >> np.uint64(_BYTES)) & MOST).any():
        out = _arrive_together(memory, index, count, found)
        if out is not None:
            return found, out, None
    completed = []
    for lane, (at, arrivals, more) in enumerate(
        zip(index.tolist(), count.tolist(), bytes_.tolist(), strict=True)
    ):
        found[lane] = word = int(memory[at])
        expected, left, missing_bytes, phase = _fields(word)
        expected -= arrivals if drop else 0
        left, missing_bytes = left - arrivals, missing_bytes + more
        if left < 0 or expected < 0 or abs(missing_bytes) > MOST:
            return found, np.array(completed, np.intp), lane
        if left == 0 and missing_bytes == 0:
            left, phase = expected, phase ^ 1
            completed.append(at)
        memory[at] = _word(expected, left, missing_bytes, phase)
    return found, np.unique(np.array(completed, np.intp)), None


def _arrive_together(memory, index, count, found) -> np.ndarray | None:
    """`arrive` without bytes for all lanes at once; None where some arrive too often."""
    order = np.argsort(index, kind="stable")
    at, arrivals = index[order], count[order]
    starts = np.flatnonzero(np.r_[True, at[1:] != at[:-1]])
    sizes = np.diff(np.r_[starts, len(at)])
    total = np.cumsum(arrivals)
    after = total - np.repeat(total[starts] - arrivals[starts], sizes)  # of the lane's object
    before = memory[at]
    expected, left = (before & np.uint64(MOST)).astype(np.int64), pending(before).astype(np.int64)
    if (expected == 0).any() or (arrivals <= 0).any():
        return None

    def state(done: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(phases completed, arrivals missing) once `done` arrivals have come."""
        over = done - left
        phases = np.where(over < 0, 0, 1 + over // expected)
        return phases, np.where(over < 0, -over, expected - over % expected)

    phases, missing_now = state(after - arrivals)
    if (arrivals > missing_now).any():
        return None

    def words(phases: np.ndarray, missing_now: np.ndarray) -> np.ndarray:
        flip = (phases & 1).astype(np.uint64) << np.uint64(_PHASE)
        cleared = before & ~np.uint64(MOST << _PENDING)
        return (cleared | missing_now.astype(np.uint64) << np.uint64(_PENDING)) ^ flip

    found[order] = words(phases, missing_now)
    ends = starts + sizes - 1
    phases, missing_now = state(after)
    memory[at[ends]] = words(phases, missing_now)[ends]
    return at[ends][phases[ends] > 0]
