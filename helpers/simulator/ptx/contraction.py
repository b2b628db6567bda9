"""Products and sums of 16-bit floats that ptxas makes one operation, rounded once.

PTX allows it where neither says `.rn`. NVRTC leaves halves to ptxas, and a float's product it has
joined itself. The rules were read from machine code of CUDA 13.0 for sm_90 (HFMA2 in place of HMUL2
and HADD2), and results with them are an H200's to the bit: a product is joined with its sums if all
that reads it are sums in the same stretch of code without branches and calls, barriers apart. Where
both operands of a sum are such products, the one that is read less often is joined, or else the
first; the other one is then rounded.
"""

from ..isa.instructions import operation
from .program import destination_count, reads_and_writes
from .syntax import Function, Instruction, Reg

_KINDS = ("f16", "f16x2", "bf16", "bf16x2")
_ENDS = frozenset("bra brx ret exit trap call".split())


def contract(f: Function) -> None:
    """Join products and sums of halves, in place: a sum becomes an `fma`, its product a `mov`."""
    code = f.instructions
    if not any(_joinable(i, "mul") for i in code):
        return
    stretch, stretches = 0, []
    labelled = set(f.labels.values())
    writes: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    for n, i in enumerate(code):
        stretch += n in labelled
        stretches.append(stretch)
        stretch += i.opcode in _ENDS
        read, written = reads_and_writes(i)
        for slot in _slots(written):
            writes[slot] = writes.get(slot, 0) + 1
        for slot in _slots(read):
            readers.setdefault(slot, []).append(n)
    products = {}
    for n, i in enumerate(code):
        if not _joinable(i, "mul"):
            continue
        slot = i.operands[0].slot
        inputs = [o.slot for o in i.operands[1:] if isinstance(o, Reg)]
        reading = readers.get(slot, [])
        if reading and writes[slot] == 1 and all(
            at > n and stretches[at] == stretches[n] and _sum_of(code[at], i, slot)
            for at in reading
        ) and not _written(code[n : reading[-1]], inputs):  # fmt: skip
            products[slot] = n
    for slot, readers_of in _choose(code, products, readers).items():
        product = code[products[slot]]
        for at in readers_of:
            _join(code[at], product, slot)
        kind = "b32" if product.modifiers[-1].endswith("x2") else "b16"
        product.opcode, product.modifiers = "mov", (kind,)
        product.operands = product.operands[:2]


def _joinable(i: Instruction, *opcodes: str) -> bool:
    return (
        i.opcode in opcodes
        and i.modifiers[-1] in _KINDS
        and i.predicate is None
        and "rn" not in i.modifiers
        and isinstance(i.operands[0], Reg)
        and (i.opcode != "mul" or "sat" not in i.modifiers)
    )


def _sum_of(i: Instruction, product: Instruction, slot: int) -> bool:
    """Whether `i` is a sum of the product in register `slot`, which stands in it once."""
    if not _joinable(i, "add", "sub") or i.modifiers[-1] != product.modifiers[-1]:
        return False
    if ("ftz" in i.modifiers) != ("ftz" in product.modifiers):
        return False
    joined = operation("fma", ("rn", *i.modifiers))
    return joined is not None and [_slot(o) for o in i.operands[1:]].count(slot) == 1


def _choose(
    code: list[Instruction], products: dict[int, int], readers: dict[int, list[int]]
) -> dict[int, list[int]]:
    """The products that are joined, by register, with the places of their sums."""
    joined: dict[int, list[int]] = {}
    rounded: set[int] = set()
    for at in sorted({at for slot in products for at in readers[slot]}):
        slots = [_slot(o) for o in code[at].operands[1:]]
        if any(slot in joined for slot in slots):
            continue
        able = [slot for slot in slots if slot in products and slot not in rounded]
        if able:
            chosen = min(able, key=lambda slot: len(readers[slot]))
            joined[chosen] = readers[chosen]
            for place in readers[chosen]:
                rounded |= {_slot(o) for o in code[place].operands[1:]} - {chosen}
    return joined


def _join(i: Instruction, product: Instruction, slot: int) -> None:
    first, second = i.operands[1:]
    opcode, other = "fma", second
    if _slot(first) != slot:
        opcode, other = "fma" if i.opcode == "add" else "fnma", first
    elif i.opcode == "sub":
        opcode = "fms"
    i.opcode, i.modifiers = opcode, ("rn", *i.modifiers)
    i.operands = type(i.operands)((i.operands[0], *product.operands[1:], other))


def _slot(operand) -> int | None:
    return operand.slot if isinstance(operand, Reg) else None


def _written(code: list[Instruction], slots: list[int]) -> bool:
    wanted = sum(1 << slot for slot in set(slots))
    return any(destination_count(i) and reads_and_writes(i)[1] & wanted for i in code)


def _slots(bits: int):
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
