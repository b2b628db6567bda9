"""What ptxas changes on the way from PTX to machine code, as far as counters show it.

PTX is not what the hardware runs: the assembler joins neighbouring shared accesses into wider ones,
turns a small `if` into predicated instructions, and puts idle loads in front of asynchronous
copies. Since the counters are to be those of the hardware, these habits are modelled here:
`annotate` writes them into the instructions (`plan`, `predicated_off`). The rules were found with
Nsight Compute and from machine code; results never depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import SimulatorError
from ..limits import SIMULATED, WORD
from .constant_loops import Plan, Rounds, UnrolledLoop, constant_rounds, loops
from .linear import Form, LinearForms
from .predication import is_shared, small_ifs
from .program import Block, Graph, union
from .syntax import Instruction, Mem, Module, Reg, Sym, Variable, Vec, items_of

SHARED_BASE = SIMULATED.reserved_shared  # where a block's shared variables start
COPY_DUMMIES = ((0, 0),) * 3
CALLS = ("div", "sqrt", "rcp")  # with .rn these hide a call
# A loop of a constant number of rounds is unrolled whole up to about so many loads and fmas.
WORK = ("ld", "st", "fma")
MOST_UNROLLED = 384


def used_symbols(module: Module, entry: str | None = None) -> set[str]:
    """Names of the variables and functions that some instruction refers to.

    With `entry`, only those that the kernel of that name or a function that it may call refers to.
    """
    if (known := module.symbols.get(entry)) is not None:
        return known
    if entry is None:
        waiting = list(module.functions)
    else:
        waiting = [entry]
        for variable in module.variables.values():  # tables of functions
            waiting += [item.name for item in variable.initial if isinstance(item, Sym)]
    names: set[str] = set()
    seen: set[str] = set()
    while waiting:
        function = module.functions.get(name := waiting.pop())
        if function is None or name in seen:
            continue
        seen.add(name)
        for i in function.instructions:
            for operand in i.operands:
                base = getattr(operand, "base", operand)
                if isinstance(base, Sym) and base.name not in names:
                    names.add(base.name)
                    waiting.append(base.name)
    module.symbols[entry] = names
    return names


def shared_places(
    module: Module, entry: str | None = None
) -> tuple[list[tuple[int, Variable]], int, int]:
    """Where the shared variables lie: ([(address, variable)], static bytes, bytes before dynamic).

    They lie in the order of the PTX at their declared alignment; dynamic shared memory follows,
    16-byte aligned. Variables that nothing refers to take no room, nor do those of other kernels
    than `entry`.
    """
    variables = [v for v in module.variables.values() if v.space == "shared"]
    for f in module.functions.values():
        variables += [v for v in f.variables.values() if v.space == "shared"]
    used = used_symbols(module, entry)
    at, places, dynamic = SHARED_BASE, [], []
    for v in variables:
        if v.size == 0:
            dynamic.append(v)
        elif v.name in used:
            at = -(-at // v.align) * v.align
            places.append((at, v))
            at += v.size
    static = at - SHARED_BASE
    for v in dynamic:
        at = -(-at // max(16, v.align)) * max(16, v.align)
    places += [(at, v) for v in dynamic]
    return places, static, at - SHARED_BASE


@dataclass(slots=True)
class _Word:
    """One shared access on its way to being joined: where each of its words lies."""

    place: int  # in the code that is looked at
    constant: int
    words: tuple[int, ...]  # offsets from the base
    size: int  # bytes of the access as written


class _Made(NamedTuple):
    """One access of the machine code."""

    bytes: tuple[object, int, int]  # base, offset and how many
    word: _Word  # whose instruction it is made at


class _Window:
    """Accesses that nothing keeps from being joined, and the plans of those before.

    A store of a word that is stored already joins none of those before. It takes their place if
    nothing lies between: the same bytes are stored by two instructions, one after the other.
    """

    def __init__(self, alignment: Callable[[object], int], store: bool):
        self.alignment, self.store = alignment, store
        self.bases: dict[object, list[_Word]] = {}
        self.plans: dict[int, Plan | None] = {}
        self.last: _Made | None = None

    def add(self, place: int, form: Form, words: list[int], size: int) -> None:
        base, constant = form
        offsets = tuple(constant + w for w in words)
        known = self.bases.get(base, ())
        if self.store and any(w in a.words for a in known for w in offsets):
            self._flush()
        self.bases.setdefault(base, []).append(_Word(place, constant, offsets, size))

    def close(self) -> None:
        """Nothing that comes joins what came before."""
        self._flush()
        self.last = None

    def _flush(self) -> None:
        made: list[_Made] = []
        for base, accesses in self.bases.items():
            made += self._join(base, accesses)
        self.bases = {}
        if not self.store:
            return
        for one in sorted(made, key=lambda one: one.word.place):
            if self.last is not None and one.bytes == self.last.bytes:
                word, (_, offset, width) = self.last.word, self.last.bytes
                plan = self.plans[word.place]
                plan = ((0, word.size),) if plan is None else plan
                gone = (offset - word.constant, width)
                self.plans[word.place] = tuple(part for part in plan if part != gone)
            self.last = one

    def _join(self, base: object, accesses: list[_Word]) -> list[_Made]:
        alignment = self.alignment(base)
        present: dict[int, _Word] = {}
        aligned: dict[int, int] = {}  # 16-byte window -> alignment known there
        for a in accesses:
            for w in a.words:
                present.setdefault(w, a)
                window = w // 16
                aligned[window] = max(aligned.get(window, alignment), a.size)
        made = []
        for window in sorted({w // 16 for w in present}):
            known = aligned[window]
            if known < 8:
                known = alignment
            here = [w for w in sorted(present) if w // 16 == window]
            for offset, width in self._widths(here, window * 16, known):
                first = min(
                    (present[w] for w in here if offset <= w < offset + width),
                    key=lambda a: a.place,
                )
                made.append(_Made((base, offset, width), first))
        for a in accesses:
            parts = [one.bytes for one in made if one.word is a]
            plan = tuple((offset - a.constant, width) for _, offset, width in parts)
            self.plans[a.place] = plan if plan != ((0, a.size),) else None
        return made

    def _widths(self, words: list[int], start: int, alignment: int):
        """(offset, bytes) of the accesses that serve the words of one 16-byte window."""
        need = 4 if self.store else 3
        if alignment >= 16 and len(words) >= need:
            yield start, 16
            return
        left = set(words)
        if alignment >= 8:
            for pair in (start, start + 8):
                if pair in left and pair + 4 in left:
                    yield pair, 8
                    left -= {pair, pair + 4}
        for w in sorted(left):
            yield w, 4


def _memory(i: Instruction) -> Mem | None:
    return next((o for o in i.operands if isinstance(o, Mem)), None)


def _ends_window(i: Instruction) -> bool:
    if i.opcode in ("bar", "barrier", "membar", "fence", "atom", "red", "stmatrix", "call"):
        return True
    if i.opcode == "cp":
        return True
    if i.opcode == "wmma":
        return i.modifiers[0] != "mma"
    if i.opcode == "st":
        return i.space in ("shared", "generic")
    return i.opcode in CALLS and "rn" in i.modifiers


@dataclass(slots=True)
class Habits:
    """What the assembler does to a function beside what `annotate` writes into it.

    `small_ifs` has, per block that ends in a branch around a small `if`, the shared loads in it.
    `unrolled` has the loops whose loads join otherwise if all their rounds are unrolled.
    """

    small_ifs: dict[int, list[Instruction]] = field(default_factory=dict)
    unrolled: dict[int, UnrolledLoop] = field(default_factory=dict)


def annotate(graph: Graph, module: Module) -> Habits:
    """Write the assembler's habits into a function's instructions."""
    function = graph.function
    entry = function.name if function.entry else None
    read = union(reads for reads, _ in graph.effects)
    _narrow_global_loads(function.instructions, read)
    if not any(is_shared(i) or i.opcode == "cp" for i in function.instructions):
        return Habits()
    places = {v.name: at for at, v in shared_places(module, entry)[0]}
    forms = LinearForms(function, places)
    for start, end in _straight_runs(graph):
        body = function.instructions[start:end]
        addresses = [forms.address(_memory(i)) if is_shared(i) else None for i in body]
        for place, plan in _joined(body, addresses, forms.alignment, read).items():
            body[place].plan = plan
    unrolled = {}
    for head, inside in loops(graph).items():
        rounds = constant_rounds(graph, head, inside, forms)
        if rounds is not None and (loop := _unrolled(graph, rounds, read)) is not None:
            unrolled[head] = loop
    _idle_loads(graph)
    return Habits(small_ifs(graph), unrolled)


def _unrolled(graph: Graph, rounds: Rounds, read: int) -> UnrolledLoop | None:
    """How the loads and stores of a loop join across its rounds; None if they do not."""
    bodies = [graph.blocks[n] for n in rounds.path]
    code = [i for b in bodies for i in graph.function.instructions[b.start : b.end]]
    addresses = [form for of_block in rounds.addresses for form in of_block]
    plans = _joined(code, addresses, rounds.alignment, read)
    if all(plan == code[place].plan for place, plan in plans.items()):
        return None
    path, start = [], 0
    for b in bodies:
        places = range(start, start + b.end - b.start)
        path.append((b.index, [(code[at], plans[at]) for at in places if at in plans]))
        start = places.stop
    work = sum(i.opcode in WORK for i in code)
    return UnrolledLoop(path, rounds.after, work <= MOST_UNROLLED, work <= MOST_UNROLLED)


def _narrow_global_loads(code: list[Instruction], read: int) -> None:
    """Load no more than the elements of a vector that anything reads.

    Two that lie side by side, at an even place, are a pair; any other two are loaded one by one;
    of three, the whole vector is loaded.
    """
    for i in code:
        if i.opcode != "ld" or i.space != "global" or not isinstance(i.operands[0], Vec):
            continue
        items = i.operands[0].items
        used = [
            n for n, item in enumerate(items) if isinstance(item, Reg) and read >> item.slot & 1
        ]
        elem = i.dtype.itemsize
        if not used or len(used) > 2 or len(used) == len(items) or "volatile" in i.modifiers:
            continue
        if len(used) == 2 and elem < WORD:
            continue
        if len(used) == 2 and used[0] % 2 == 0 and used[1] == used[0] + 1:
            i.plan = ((used[0] * elem, 2 * elem),)
        else:
            i.plan = tuple((n * elem, elem) for n in used)


def _is_copy(i: Instruction) -> bool:
    return i.opcode == "cp" and _memory(i) is not None


def _idle_loads(graph: Graph) -> None:
    """Put idle loads before the first asynchronous copy of a block.

    ptxas wants three shared loads since the copies before it, on every way there, and adds three
    that load nothing where it does not see them.
    """
    code = graph.function.instructions
    before: dict[int, list[int]] = {b.index: [] for b in graph.blocks}
    for b in graph.blocks:
        for n in b.after:
            before[n].append(b.index)
    enough = len(COPY_DUMMIES)
    at_end = dict.fromkeys(before, enough)

    def loads_at(b: Block, stop: int) -> int:
        """Shared loads since the last copy, at instruction `stop` of a block."""
        loads = min((at_end[n] for n in before[b.index]), default=0) if b.index else 0
        for i in code[b.start : stop]:
            if _is_copy(i):
                loads = 0
            elif i.opcode == "ldmatrix" or (i.opcode in ("ld", "wmma") and i.space == "shared"):
                loads = min(enough, loads + 1)
        return loads

    changed = True
    while changed:
        changed = False
        for b in graph.blocks:
            loads = loads_at(b, b.end)
            changed |= loads != at_end[b.index]
            at_end[b.index] = loads
    for b in graph.blocks:
        copy = next((at for at in range(b.start, b.end) if _is_copy(code[at])), None)
        if copy is not None and loads_at(b, copy) < enough:
            code[copy].plan = COPY_DUMMIES


def _straight_runs(graph: Graph) -> list[tuple[int, int]]:
    """Stretches of code without a label or a branch inside."""
    runs: list[tuple[int, int]] = []
    for block in graph.blocks:
        if block.continues:
            runs[-1] = (runs[-1][0], block.end)
        else:
            runs.append((block.start, block.end))
    return runs


def _joined(
    code: list[Instruction],
    addresses: list[Form | None],
    alignment: Callable[[object], int],
    read: int,
) -> dict[int, Plan | None]:
    """The plans of the shared loads and stores of straight code that may be joined, by place."""
    return {
        **_joined_kind(code, addresses, alignment, read, store=False),
        **_joined_kind(code, addresses, alignment, read, store=True),
    }


def _joined_kind(code, addresses, alignment, read: int, store: bool) -> dict[int, Plan | None]:
    window = _Window(alignment, store)
    for place, i in enumerate(code):
        mine = is_shared(i) and i.opcode == ("st" if store else "ld")
        if not mine:
            if _ends_window(i) if not store else (_ends_window(i) or is_shared(i)):
                window.close()
            continue
        if not store and (i.predicate is not None or "volatile" in i.modifiers):
            continue
        try:
            elem = i.dtype.itemsize
        except SimulatorError:
            continue
        if i.predicate is not None or "volatile" in i.modifiers or elem < WORD:
            if store:
                window.close()
            continue
        n = i.vector_length
        words = []
        for k, item in enumerate(items_of(i.operands[int(store)])):
            wanted = store or (isinstance(item, Reg) and read >> item.slot & 1)
            if wanted:
                words += range(k * elem, (k + 1) * elem, WORD)
        if not words and not store:
            words = [0]
        window.add(place, addresses[place], words, elem * n)
    window.close()
    return window.plans
