"""The steps of mbarriers: objects in shared memory that threads arrive at and wait for.

PTX ISA 9.0, "Parallel Synchronization and Communication Instructions: mbarrier". What an object
holds is in `mbarrier_words`. A `try_wait` suspends its threads until the phase is complete; their
time limit runs out where nothing else can go on (see `waiting`). A `test_wait` only looks.
"""

import numpy as np

from ...isa import mbarrier_words as words
from ...ptx.syntax import Imm, Instruction
from ..elements import active_mask, guard_getter, pieces_of
from ..faults import everyone, fault, where_is
from ..faults import where as first_of
from ..operands import address_getter, getter, putter

_COUNT = np.dtype(np.uint32)
_STATE = np.dtype(np.uint64)
_ONE = Imm(1)


def objects(S, i: Instruction, address: np.ndarray, mask, cache: dict):
    """(words of shared memory, index of the object at each address) for the threads of a mask.

    Raises:
        SimulatorError: an address that is not in shared memory, or is no multiple of 8.
    """
    for region, view, index, sub in pieces_of(S, i, i.space, address, 8, 8, mask, cache, True):
        if region is None and view is S.shared.view(8)[0]:
            return view, index, sub
    raise fault(
        S, i.line, "out_of_bounds", f"{first_of(S, everyone(mask))} uses an mbarrier that is not "
        "in shared memory: declare it __shared__.",
    )  # fmt: skip


def _lanes(S, value: np.ndarray, where: np.ndarray) -> np.ndarray:
    return S.layout.flat(value)[where]


def _check(S, i: Instruction, memory, at: np.ndarray, where: np.ndarray) -> None:
    """Refuse objects that no `mbarrier.init` has made."""
    good = words.is_valid(memory[at])
    if not good.all():
        raise fault(
            S, i.line, "barrier", f"{where_is(S, where[np.argmin(good)])} uses an mbarrier that is "
            "not initialised: let one thread initialise it (init, mbarrier.init), and the block "
            "meet at a barrier before it is used.",
        )  # fmt: skip


class Objects:
    """The object that an instruction names: fetched for the threads that execute it."""

    def __init__(self, i: Instruction, memory):
        self.i, self.address = i, address_getter(i, memory)
        self.guard, self.cache = guard_getter(i), {}

    def __call__(self, S, R, made: bool = True):
        """(guard's predicate, words, index a thread, numbers of the threads); None for nobody.

        Args:
            made: whether the objects have to be initialised.
        """
        p = self.guard(S, R) if self.guard is not None else None
        mask, some = active_mask(S, p)
        if not some:
            return None
        memory, index, sub = objects(S, self.i, self.address(S, R), mask, self.cache)
        where = np.flatnonzero(S.layout.full(everyone(sub)))
        at = _lanes(S, index, where)
        if made:
            _check(S, self.i, memory, at, where)
        return p, memory, at, where


def init_step(i: Instruction):
    """mbarrier.init and mbarrier.inval"""
    named, makes = Objects(i, i.operands[0]), i.modifiers[0] == "init"
    count = getter(i, i.operands[1], _COUNT) if makes else None

    def step(S, R):
        found = named(S, R, made=False)
        if found is None:
            return
        _, memory, at, where = found
        S.writes += 1
        if S.sanitizer is not None:
            S.sanitizer.made(S, i, memory, at, where, makes)
        if not makes:
            memory[at] = 0
            return
        counts = _lanes(S, count(S, R), where).astype(np.int64)
        wrong = (counts < 1) | (counts > words.MOST)
        if wrong.any():
            bad = np.argmax(wrong)
            raise fault(
                S, i.line, "argument", f"{where_is(S, where[bad])} initialises an mbarrier for "
                f"{int(counts[bad]):,} arrivals: it takes 1 to {words.MOST:,}.",
            )  # fmt: skip
        memory[at] = words.initial(counts)

    return step


def arrive(S, i: Instruction, memory, at, where, count, bytes_, drop=False) -> np.ndarray:
    """Threads (`where`, numbers of the batch) arrive at objects; returns the words they found."""
    S.writes += 1
    counts = np.broadcast_to(np.asarray(count, np.int64), at.shape)
    more = np.broadcast_to(np.asarray(bytes_, np.int64), at.shape)
    found, completed, bad = words.arrive(memory, at, counts, more, drop)
    ruled_out = "noComplete" in i.modifiers and completed.size
    if bad is not None or ruled_out:
        bad = 0 if bad is None else bad
        expected, left, missing = words.missing(found[bad])
        missing_now = abs(missing + int(more[bad]))
        if ruled_out:
            why = "it completes a phase, which .noComplete rules out"
        elif left >= counts[bad]:
            why = f"it makes {missing_now:,} bytes wait, of at most {words.MOST:,}"
        else:
            why = (
                f"that is once more than it expects: {left} of {expected} arrivals are missing"
                + (f", and {missing:,} bytes" if missing else "")
            )
        raise fault(
            S, i.line, "barrier", f"{where_is(S, where[bad])} arrives at an mbarrier, and {why}; "
            "make the count of its initialisation the number of arrivals of each phase.",
        )  # fmt: skip
    if S.sanitizer is not None:
        late = _behind(memory, at, found, completed) & (counts > 0)
        some = (counts > 0) & ~late
        S.sanitizer.arrived(S, at[some], where[some], completed)
        if late.any():
            S.sanitizer.arrived(S, at[late], where[late], completed[:0])
    return found


def _behind(memory, at: np.ndarray, found: np.ndarray, completed: np.ndarray) -> np.ndarray:
    """Which of some arrivals came when the last of `completed` phases was over: to the next one."""
    late = np.zeros(len(at), np.bool_)
    for one in completed.tolist() if len(at) > len(completed) else ():
        own = np.flatnonzero(at == one)
        same = words.parity(found[own]) == words.parity(memory[one])
        late[own] = np.logical_and.accumulate(same[::-1])[::-1]
    return late


def _change_step(i: Instruction):
    """mbarrier.arrive, arrive_drop, expect_tx and complete_tx"""
    form = i.modifiers[0]
    operands = list(i.operands)
    arrives = form in ("arrive", "arrive_drop")
    put = putter(i, operands.pop(0)) if arrives else None
    named = Objects(i, operands.pop(0))
    counted = operands.pop(0) if operands else _ONE
    get = getter(i, counted, _COUNT)
    takes_bytes = "expect_tx" in i.modifiers or not arrives
    sign = -1 if form == "complete_tx" else 1

    def step(S, R):
        found = named(S, R)
        if found is None:
            return
        p, memory, at, where = found
        if S.sanitizer is not None:
            S.sanitizer.touched(S, i, memory, at, where)
        number = _lanes(S, get(S, R), where).astype(np.int64)
        count, more = (int(arrives), sign * number) if takes_bytes else (number, 0)
        states = arrive(S, i, memory, at, where, count, more, form == "arrive_drop")
        if put is not None:
            out = np.zeros(S.layout.shape, _STATE)
            out.reshape(-1)[where] = states
            put(S, R, out, p)

    return step


def _awaited(i: Instruction):
    """get(S, R) -> (guard's predicate, is it complete, *where); None for nobody."""
    named = Objects(i, i.operands[1])
    by_parity = "parity" in i.modifiers
    get = getter(i, i.operands[2], _COUNT if by_parity else _STATE)

    def look(S, R):
        found = named(S, R)
        if found is None:
            return None
        p, memory, at, where = found
        wanted = _lanes(S, get(S, R), where)
        if by_parity and (wrong := wanted > 1).any():
            n = int(np.argmax(wrong))
            raise fault(
                S, i.line, "barrier", f"{where_is(S, where[n])} waits at an mbarrier for the "
                f"phase of parity {wanted.astype(np.int32)[n]}: a parity is 0 or 1.",
            )  # fmt: skip
        wanted = wanted.astype(_STATE) if by_parity else words.parity(wanted)
        return p, words.parity(memory[at]) != wanted, memory, at, where

    return look


def _wait_step(i: Instruction):
    """mbarrier.test_wait and try_wait"""
    put, look = putter(i, i.operands[0]), _awaited(i)

    def step(S, R):
        found = look(S, R)
        if found is None:
            return
        p, complete, memory, at, where = found
        out = np.zeros(S.layout.shape, np.bool_)
        out.reshape(-1)[where] = complete
        if S.sanitizer is not None:
            S.sanitizer.watched(S, i, memory, at, where)
            S.sanitizer.waited(S, at[complete], where[complete])
        put(S, R, np.ones(1, np.bool_) if len(where) == out.size and complete.all() else out, p)

    return step


def suspended(i: Instruction):
    """For a try_wait: get(S, R) -> mask of the threads whose phase is not complete, or None."""
    look = _awaited(i)

    def get(S, R):
        found = look(S, R)
        if found is None or found[1].all():
            return None
        _, complete, *_, where = found
        out = np.zeros(S.layout.shape, np.bool_)
        out.reshape(-1)[where[~complete]] = True
        return out

    return get


def what_is_missing(S, i: Instruction, R) -> tuple[int, str]:
    """What the phase lacks that the first thread of the batch's mask waits for with a try_wait.

    Returns how many arrivals, and all of it in words.
    """
    named = Objects(i, i.operands[1])
    found = named(S, R)
    expected, left, bytes_ = words.missing(found[1][found[2][0]])
    told = [f"{left} of {expected} arrivals"] if left else []
    if bytes_:
        told.append(f"{bytes_:,} bytes" if bytes_ > 0 else "the word that bytes were expected")
    return left, " and ".join(told)


def _pending_step(i: Instruction):
    """mbarrier.pending_count: arrivals that were missing when a state was returned"""
    put, get = putter(i, i.operands[0]), getter(i, i.operands[1], _STATE)
    guard = guard_getter(i)

    def step(S, R):
        p = guard(S, R) if guard is not None else None
        put(S, R, words.pending(get(S, R)).astype(np.uint32), p)

    return step


_FORMS = {
    "init": init_step,
    "inval": init_step,
    "arrive": _change_step,
    "arrive_drop": _change_step,
    "expect_tx": _change_step,
    "complete_tx": _change_step,
    "test_wait": _wait_step,
    "try_wait": _wait_step,
    "pending_count": _pending_step,
}


def mbarrier_step(i: Instruction, code):
    """mbarrier.*"""
    form = _FORMS.get(i.modifiers[0])
    if form is None:
        raise i.unsupported(f"does not know the instruction {i.name}")
    return form(i)


def copies_arrive_step(i: Instruction):
    """cp.async.mbarrier.arrive: an arrival once the thread's copies have come, as they have here.

    Without .noinc the phase is made to expect that arrival first: together they change nothing.
    """
    named, alone = Objects(i, i.operands[0]), "noinc" in i.modifiers

    def step(S, R):
        found = named(S, R)
        if found is None:
            return
        _, memory, at, where = found
        if S.sanitizer is not None:
            S.sanitizer.touched(S, i, memory, at, where)
            S.sanitizer.bind(S, at, where)
        if alone:
            arrive(S, i, memory, at, where, 1, 0)

    return step
