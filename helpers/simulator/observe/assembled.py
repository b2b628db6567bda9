"""The loads and stores that are counted, held against those in the machine code, line by line.

The assembler may copy a block as often as it likes (it unrolls loops, and splits them into a main
part and a rest), so a line agrees if some number of copies of each block of PTX gives just the
machine's instructions, of every width. Lines that differ are looked at together once more: an
instruction may stand under another line than in PTX.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from ..compile.machine_code import MachineCode, machine_code_of
from ..compile.providers import Request
from ..compile.sass import MachineInstruction
from ..errors import SimulatorError
from ..machine.code import Code
from ..ptx.syntax import Instruction

OTHERWISE = (
    "The assembler makes other {kind} of this line than are counted here ({machine} in the machine "
    "code, {counted} counted)."
)
PREDICATED = (
    "The assembler makes the condition around the {kind} of this line a predicate: warps that skip "
    "them issue them all the same, which is not counted."
)
BRANCHED = (
    "The assembler jumps past the {kind} of this line: warps that skip them do not issue them, "
    "though they are counted."
)
SPILLED = "Registers do not suffice: what moves to and from local memory for it is not counted."

_KINDS = {
    "LDS": "shared loads", "STS": "shared stores", "LDG": "global loads", "STG": "global stores",
    "LDL": "local loads", "STL": "local stores", "LD": "generic loads", "ST": "generic stores",
    "LDSM": "matrix loads", "STSM": "matrix stores", "LDGSTS": "asynchronous copies",
}  # fmt: skip
_WIDTHS = {"128": 16, "64": 8, "U8": 1, "S8": 1, "U16": 2, "S16": 2}
_MOST_TRIES = 20_000
FOUR_TWO_ONE = 7  # copies of a loop that is unrolled by four, then two, then one
ARCHITECTURE = "sm_90"  # whose counters are the model

Widths = Counter[int]  # bytes of a lane -> how many instructions
Place = tuple[int, str]  # line, kind


def differences(code: Code, machine: MachineCode) -> dict[int, str]:
    """A sentence for each line whose loads or stores are other ones in the machine code.

    Args:
        code: of the kernel, with the plans of its accesses.
        machine: what the assembler made of it.
    """
    counted, found = _counted(code), _in_machine(machine.instructions)
    skipped = _not_compared(code)
    wrong: dict[str, list[Place]] = defaultdict(list)
    for place in sorted({*counted, *found}):
        if place[0] in skipped or agree(counted[place].values(), found[place]):
            continue
        wrong[place[1]].append(place)
    told: dict[int, list[str]] = defaultdict(list)
    for kind, places in wrong.items():
        everywhere = [place for place in {*counted, *found} if place[1] == kind]
        if _together(counted, found, places) or _same_number(counted, found, everywhere):
            continue
        for place in places:
            told[place[0]].append(_sentence(kind, counted[place], found[place]))
    for (line, kind), sentence in _predicates(code, machine).items():
        if line not in skipped:
            told[line].append(sentence.format(kind=kind))
    return {line: " ".join(dict.fromkeys(sentences)) for line, sentences in told.items()}


def _predicates(code: Code, machine: MachineCode) -> dict[Place, str]:
    """Shared accesses of which all are predicated where none was thought so, or the other way."""
    counted: dict[Place, set[bool]] = defaultdict(set)
    for i in code.function.instructions:
        if i.opcode in ("ld", "st") and i.space == "shared" and i.line and i.plan != ():
            kind = "shared loads" if i.opcode == "ld" else "shared stores"
            counted[i.line, kind].add(i.predicated_off or i.predicate is not None)
    found: dict[Place, set[bool]] = defaultdict(set)
    for i in machine.instructions:
        kind = _KINDS.get(i.opcode.split(".")[0])
        if i.line and kind in ("shared loads", "shared stores"):
            found[i.line, kind].add(bool(i.predicate))
    pairs = {place: (here, found.get(place)) for place, here in counted.items()}
    told = {place: PREDICATED for place, pair in pairs.items() if pair == ({False}, {True})}
    return told | {place: BRANCHED for place, pair in pairs.items() if pair == ({True}, {False})}


def settle(code: Code, request: Request, entry: str) -> None:
    """Let the machine code decide which loops are unrolled, where their size leaves it in doubt.

    Where there is no machine code, the guess stays.

    Args:
        code: of the kernel.
        request: what was asked of the compiler.
        entry: the kernel's name.
    """
    try:
        found = _in_machine(machine_code_of(request, entry, ARCHITECTURE).instructions)
    except SimulatorError:
        return
    for loop in code.unrolled.values():
        lines = {i.line for _, plans in loop.path for i, _ in plans}
        fits = []
        for whole in (True, False):
            loop.whole = whole
            fits.append(_fit(_counted(code), found, lines, "shared"))
        loop.whole = fits[0] if fits[0] != fits[1] else loop.guess
        loop.known = True
    for block, loop in code.loops.items():
        if loop.unrolled is None:
            lines = {i.line for i in _body(code, block)}
            loop.unrolled = _fit(_counted(code, {block: FOUR_TWO_ONE}), found, lines, "")


def _fit(counted, found, lines: set[int | None], kind: str) -> bool:
    places = [place for place in {*counted, *found} if place[0] in lines and kind in place[1]]
    return all(agree(counted[place].values(), found[place]) for place in places)


def _sentence(kind: str, counted: dict[int, Widths], found: Widths) -> str:
    if kind.startswith("local") and not counted:
        return SPILLED
    own = sum(counted.values(), Counter())
    return OTHERWISE.format(kind=kind, machine=_told(found), counted=_told(own))


def _together(counted, found, places: list[Place]) -> bool:
    """Whether lines agree if it does not matter under which of them an instruction stands."""
    blocks: dict[int, Widths] = defaultdict(Counter)
    for place in places:
        for block, widths in counted[place].items():
            blocks[block] += widths
    return agree(blocks.values(), sum((found[place] for place in places), Counter()))


def _same_number(counted, found, places: list[Place]) -> bool:
    """Whether there are as many instructions of each width, no block being copied."""
    own = sum((widths for place in places for widths in counted[place].values()), Counter())
    return own == sum((found[place] for place in places), Counter())


def _told(widths: Widths) -> str:
    return " and ".join(f"{n} of {w} bytes" for w, n in sorted(widths.items())) or "none"


def _in_machine(instructions: Iterable[MachineInstruction]) -> dict[Place, Widths]:
    found: dict[Place, Widths] = defaultdict(Counter)
    for i in instructions:
        word, *rest = i.opcode.split(".")
        if word in _KINDS and i.line is not None:
            width = next((_WIDTHS[part] for part in rest if part in _WIDTHS), 4)
            found[i.line, _KINDS[word]][0 if word in ("LDSM", "STSM") else width] += 1
    return found


def _counted(code: Code, copies: Mapping[int, int] = {}) -> dict[Place, dict[int, Widths]]:
    """What the simulator counts: by line and kind, then by the block that it stands in.

    `copies` has the blocks of which there are more than one.
    """
    counted: dict[Place, dict[int, Widths]] = defaultdict(lambda: defaultdict(Counter))
    whole = {}
    for head, loop in code.unrolled.items():
        if loop.whole:
            for at, plans in loop.path:
                replaced = {id(i): plan for i, plan in plans}
                whole[at] = True
                for i in _body(code, at):
                    _add(counted, head, i, replaced.get(id(i), i.plan))
    for block in code.graph.blocks:
        if block.index not in whole:
            for i in _body(code, block.index) * copies.get(block.index, 1):
                _add(counted, block.index, i, i.plan)
    return counted


def _body(code: Code, block: int) -> list[Instruction]:
    place = code.graph.blocks[block]
    return code.function.instructions[place.start : place.end]


def _add(counted, block: int, i: Instruction, plan) -> None:
    if i.line is None:
        return
    space = i.space
    if i.opcode in ("ldmatrix", "stmatrix"):
        kind = "matrix loads" if i.opcode == "ldmatrix" else "matrix stores"
        counted[i.line, kind][block][0] += 1
    elif i.opcode in ("ld", "st") and space in ("shared", "global", "local", "generic"):
        try:
            size = i.dtype.itemsize * i.vector_length
        except SimulatorError:
            return
        kind = f"{space} {'loads' if i.opcode == 'ld' else 'stores'}"
        for _, width in plan if plan is not None else ((0, size),):
            counted[i.line, kind][block][width] += 1


def _not_compared(code: Code) -> set[int | None]:
    """Lines with instructions that become more than one of the machine's, or loads of nothing."""
    return {
        i.line
        for i in code.function.instructions
        if i.opcode in ("wmma", "call", "cp", "mbarrier", "atom", "red")
    }


def agree(blocks: Iterable[Widths], total: Widths) -> bool:
    """Whether at least one copy of every block adds up to what is there."""
    alike: Counter[tuple] = Counter(tuple(sorted(b.items())) for b in blocks if b)
    if not alike:
        return not total
    parts = sorted(alike, key=len)
    widths = {width for part in parts for width, _ in part}
    if widths != {width for width, n in total.items() if n}:
        return False
    tries = [_MOST_TRIES]
    return _fits(parts, alike, dict(total), tries)


def _fits(parts: list[tuple], alike: Counter, left: dict[int, int], tries: list[int]) -> bool:
    if not parts:
        return not any(left.values())
    part, rest = parts[-1], parts[:-1]
    most = min(left[width] // n for width, n in part)
    for copies in range(alike[part], most + 1):
        tries[0] -= 1
        if tries[0] < 0:
            return True  # too many ways to say
        after = left | {width: left[width] - copies * n for width, n in part}
        if _fits(rest, alike, after, tries):
            return True
    return False
