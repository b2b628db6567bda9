"""Makes the mutants: every barrier, index, guard, loop, swizzle path, stride and scale in turn."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers.kernels import KERNELS

from .hopper_patterns import HOPPER_KINDS, HOPPER_PATTERNS
from .text import Source, matching, split

# Every kernel of a chapter that has its notebook, and the header that computes. include/ptx.cuh has
# an instruction a function, which its callers' mutants and tests of the simulator cover.
CHAPTERS = {path.name[:2] for path in (KERNELS.parent / "notebooks").glob("[0-9]*.ipynb")}
HOPPER_HEADER = "include/hopper.cuh"
FILES = (
    *sorted(path.name for path in KERNELS.glob("*.cu") if path.name[:2] in CHAPTERS),
    HOPPER_HEADER,
    "include/swizzle.cuh",
)
KINDS = ("barrier", "index", "guard", "loop", "swizzle", "stride", "scale", *HOPPER_KINDS)
# A kernel that is a step over another: lines that it shares with that one are judged there alone.
# Barriers that stay where the copies around them move are tested in tests/problem.
_OVERLAP = ("09_flash_swizzled.cu", *(name for name in FILES if name.startswith("10")))
STEPS = dict(zip(_OVERLAP[1:], _OVERLAP, strict=False))
_HOPPER = [name for name in FILES if re.match("11[a-g]_", name)]
STEPS.update(zip(_HOPPER, ("10c_double_buffer.cu", *_HOPPER), strict=False))
STEPS["11g_persistent.cu"] = "11e_ping_pong.cu"
# But what keeps chapter 11's copies and products in order is judged in each kernel: what is in
# flight around such a line is another thing there.
LATER = frozenset(name for name in _HOPPER if name[:3] != "11a")
IN_ORDER, WHOLE = ("barrier", "phase", "group", "proxy"), ("flash_attention", "produce")

# Which arguments of the kernels' own functions are indices or extents.
INDEX_ARGUMENTS = {
    "place": (0, 1), "swizzle": (0, 1), "copy_rows": (2, 3, 4), "copy_tile": (2, 3, 4, 5),
    "multiply_qk": (3,), "scale_and_mask": (1, 2), "store_rows": (4, 5, 6), "load4": (1, 2),
    "store4": (1, 2), "shuffle_xor": (1,), "place_of": (0,), "copy_tiles": (3, 4), "mask": (1, 2),
    "load_q": (2,),
}  # fmt: skip
TOY_PLACE = (1, 2)  # the first argument of `place` in 09_toy_swizzle.cu names a map

DECLARED = re.compile(
    r"(?m)^[ ]*(?:extern |const |__shared__ |__align__\(\d+\) )*"
    r"(?:float4|float|unsigned|int|char|ELEMENT) \w+(?:\[[^\]\n]*\])+(?: = \{\})?;"
)
DEFINED = re.compile(
    r"(?m)^[ ]*(?:(?:const )?(?:int|long long|float\*|ELEMENT\*) \w+|const (?:float|ELEMENT)\* \w+"
    r"|t[xy]) = (?P<value>[^;\n]+);"
)
LOOP = re.compile(
    r"for \(int \w+ = (?P<first>[^;]+); \w+ (?P<compare><|>=) (?P<bound>[^;]+); (?P<step>[^)]+)\)"
)
COMPARE = re.compile(r" (<|>=) ")
WIDER = {"<": "<=", ">=": ">"}
PRODUCT = re.compile(r"\((?:size_t|long long)\)(?:\w+|\([^()]*\)) \* (?P<width>\w+)")
MULTIPLE = re.compile(r"\b(?P<factor>4|8|16|32) \* (?P<index>[a-z]\w*)\b")

# (kind, what is replaced, by what): for what only a few lines have.
PATTERNS = (
    ("barrier", r"__syncthreads\(\);", ""),
    ("barrier", r"__syncthreads\(\);", "__syncwarp();"),
    ("barrier", r"__syncwarp\(\);", ""),
    ("barrier", r"cp_async_wait<0>\(\);", ""),
    ("barrier", r"cp_async_wait<0>\(\);", "cp_async_wait<1>();"),
    ("barrier", r"cp_async_wait<1>\(\);", ""),
    ("barrier", r"cp_async_commit\(\);", ""),
    ("index", r"(?<=\+ )8 \* chunk(?=[;)])", "8 * (chunk + 1)"),
    ("index", r"2 \* \(lane % 4\)", "2 * (lane % 4 + 1)"),
    ("index", r"(?<=\((?:s|p) \+ )j(?=\))", "j + 1"),
    ("index", r"(?<=\*\(float4\*\)\()p \+ j", "p + j - 4"),
    ("index", r"\bi % 2\b", "(i + 1) % 2"),
    ("guard", r"(?<=const float local_max = )s\[0\]", "0.0f"),
    ("guard", r"(?<=float local_max = )s\[0\]", "0.0f"),
    ("guard", r"(?<=float row_max = )s\[0\]", "0.0f"),
    ("guard", r"(?<=r_max\[m\]\[1\] = )minus_infinity\(\)", "0.0f"),
    ("guard", r"(?<=\? s\[j \+ [123]\] : )lowest", "0.0f"),
    ("guard", r"(?<=: )0\.0f", "1.0f"),
    ("guard", r"column > diagonal", "column >= diagonal"),
    ("guard", r"\(CAUSAL && (?:diagonal < B_C - 1|column > diagonal \+ row)\)", "false"),
    ("loop", r"min\(n, first \+ B_R\)", "n"),
    ("loop", r"min\(n, first \+ B_R\)", "min(n, first)"),
    ("guard", r"make_float4\(0, 0, 0, 0\)", "make_float4(1, 0, 0, 0)"),
    ("swizzle", r"(?<=if \()TRANSPOSE_ON_STORE", "!TRANSPOSE_ON_STORE"),
    ("swizzle", r"(?<=\* \()TRANSPOSE_ON_STORE", "!TRANSPOSE_ON_STORE"),
    ("swizzle", r"WARP_ROWS == 4", "WARP_ROWS != 4"),
    ("swizzle", r"\^ (?=(?:16 \* k|8 \* j)\))", "+ "),
    ("guard", r"any_lane\(growth > SLACK\)", "(growth > SLACK)"),
    ("guard", r"any_lane\(growth > SLACK\)", "any_lane(growth < SLACK)"),
    ("scale", r" / sqrtf\(\(float\)(?:d|HEAD_DIM)\)", ""),
    ("scale", r"1\.0f / sqrtf", "sqrtf"),
    ("scale", r" \* scale\b", ""),
    ("scale", r"r_S\[m\]\[j\]\[i\] \*= scale;", ""),
    ("scale", r" / row_sum", ""),
    ("scale", r" \* inverse", ""),
    ("scale", r"1\.0f / (?=sum;|s_data)", ""),
    ("scale", r" - (?:row|new)_max", ""),
    ("scale", r"r_\w+(?:\[[^\]]*\])+ \*= correction;", ""),
    ("scale", r"r_max\[m\]\[h\] - new_max", "new_max - r_max[m][h]"),
    ("scale", r"r_max\[m\]\[h\] = (?:new_max|r_new\[m\]\[h\]);", ""),
    ("scale", r"exp2f\(-growth\)", "exp2f(growth)"),
    ("scale", r" - shift", ""),
    ("scale", r"sum \+= shuffle_xor\(sum, [12]\);", ""),
    ("scale", r"new_max = fmaxf\(new_max, shuffle_xor\(new_max, [12]\)\);", ""),
    ("stride", r"(?<=TILE \+ )PAD", "0"),
    ("stride", r"(?<=TILE \+ )4(?=\])", "0"),
    ("stride", r"(?<=TILE \+ )4(?=\])", "1"),
    ("stride", r"(?<=TILE \+ )4(?=\])", "8"),
    ("stride", r"(?<=row \* )HEAD_DIM", "(HEAD_DIM + 8)"),
    ("stride", r"(?<=row \* )HEAD_DIM", "(HEAD_DIM - 8)"),
    ("stride", r"(?<=B_[RC] \* )HEAD_DIM(?=;)", "(HEAD_DIM - 8)"),
    ("stride", r"(?<=y \* )SIZE(?= \+)", "(SIZE + 1)"),
    ("stride", r"(?<=\[)STRIDE \* ", ""),
    ("stride", r"\(2 \* TILE\)", "TILE"),
    ("index", r"key / B_C(?= % 2)", "(key / B_C + 1)"),
    ("stride", r"(?<= \* )(?:batch|head)_stride", "row_stride"),
    ("stride", r"lane / (?:4|8|16)\b", "lane % 4"),
    ("stride", r"lane % (?:4|8|16)\b", "lane / 8"),
)  # fmt: skip

# Swizzle maps of single files: (file, what is replaced, by what).
SWIZZLES = (
    ("09_flash_swizzled.cu", r"8 \* swizzle\(row, chunk\)", "8 * chunk"),
    ("include/swizzle.cuh", r"chunk \^ \(row % 8\)", "chunk"),
    ("include/swizzle.cuh", r"row % 8", "row % 2"),
    ("include/swizzle.cuh", r"row % 8", "row % 4"),
    ("include/swizzle.cuh", r"row % 8", "row % 16"),
    ("include/swizzle.cuh", r"row % 8", "row / 8"),
    ("include/swizzle.cuh", r"row % 8", "row % 8 + 1"),
    ("include/swizzle.cuh", r"chunk \^", "chunk |"),
    ("include/swizzle.cuh", r"chunk \^", "chunk &"),
    ("include/swizzle.cuh", r"chunk \^ \(row % 8\)", "(chunk + row) % 8"),
    ("09_toy_swizzle.cu", r"row \^ col", "col"),
    ("09_toy_swizzle.cu", r"row \^ col", "row | col"),
    ("09_toy_swizzle.cu", r"row \^ col", "row & col"),
    ("09_toy_swizzle.cu", r"row \^ col", "(row % 2) ^ col"),
    ("09_toy_swizzle.cu", r"\(row \+ col\) % SIZE", "col"),
    ("09_toy_swizzle.cu", r"\(row \+ col\) % SIZE", "(row + 2 * col) % SIZE"),
    ("09_toy_swizzle.cu", r"\(row \+ col\) % SIZE", "(2 * row + col) % SIZE"),
    ("09_toy_swizzle.cu", r"place\(WRITE, y, x\)", "x"),
    ("09_toy_swizzle.cu", r"place\(READ, x, y\)", "y"),
    ("09_toy_swizzle.cu", r"place\(WRITE, y, x\)", "place(NONE, y, x)"),
    ("09_toy_swizzle.cu", r"place\(READ, x, y\)", "place(XOR, x, y)"),
    ("09_toy_swizzle.cu", r"place\(WRITE, y, x\)", "place(LATIN, y, x)"),
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes:
        file: the file in `kernels/`.
        function: the function that is changed.
        line: the number of the changed line.
        kind: one of KINDS.
        start, end, new: text[start:end] becomes `new`.
        before, after: the line's code before and after, without comments.
        number: counts lines of one function that read alike, from 1.
    """

    file: str
    function: str
    line: int
    kind: str
    start: int
    end: int
    new: str
    before: str
    after: str
    number: int

    @property
    def key(self) -> str:
        """What identifies it as long as its own line stays, wherever the line moves."""
        which = f" (number {self.number})" if self.number > 1 else ""
        return f"{self.file}, {self.function}: {self.before}{which}  ->  {self.after}"

    def text(self) -> str:
        """The file with the change."""
        text = (KERNELS / self.file).read_text(encoding="utf-8")
        return text[: self.start] + self.new + text[self.end :]


Edit = tuple[str, int, int, str]


def mutants(file: str | None = None, folder: Path = KERNELS) -> list[Mutant]:
    """Every mutant of one file, or of all, in the order of the lines; none twice."""
    if file is None:
        return [m for one in FILES for m in mutants(one, folder)]
    source = Source((folder / file).read_text(encoding="utf-8"))
    found: dict[tuple, Mutant] = {}
    known = shared_lines(file, folder)
    for kind, start, end, new in _edits(file, source):
        function = source.function(start)
        if function is None:
            continue
        first = source.line_start(start)
        last = source.code.find("\n", end)
        before = source.code[first:last].strip()
        after = (source.code[first:start] + new + source.code[end:last]).strip()
        if before == after or "\n" in before:
            continue
        if before in known and not (file in LATER and kind in IN_ORDER and function in WHOLE):
            continue
        body = next(b for b in source.bodies if b.name == function)
        above = source.code[body.start : first].split("\n")
        number = 1 + sum(line.strip() == before for line in above)
        mutant = Mutant(
            file, function, source.line(start), kind, start, end, new, before, after, number
        )
        found.setdefault((mutant.line, after), mutant)
    return sorted(found.values(), key=lambda m: (m.line, m.start, KINDS.index(m.kind), m.after))


def shared_lines(file: str, folder: Path = KERNELS) -> frozenset[str]:
    """The code of lines that the kernel before has as well; none where there is none before."""
    if file not in STEPS:
        return frozenset()
    code = Source((folder / STEPS[file]).read_text(encoding="utf-8")).code
    return frozenset(line.strip() for line in code.split("\n"))


def _edits(file: str, source: Source) -> Iterator[Edit]:
    code = source.code
    if file == HOPPER_HEADER:  # an instruction a function, and what tells wgmma of a tile
        for kind, pattern, new in HOPPER_PATTERNS:
            for m in re.finditer(pattern, code):
                yield kind, *m.span(), new
        return
    declared = [m.span() for m in DECLARED.finditer(code)]
    for kind, pattern, new in (*PATTERNS, *(HOPPER_PATTERNS if file.startswith("11") else ())):
        for m in re.finditer(pattern, code):
            yield kind, *m.span(), new
    for name, pattern, new in SWIZZLES:
        if name == file:
            for m in re.finditer(pattern, code):
                yield "swizzle", *m.span(), new
    yield from _subscripts(code, declared)
    yield from _definitions(code)
    yield from _calls(file, code)
    yield from _loops(code)
    yield from _guards(code)
    yield from _strides(source, declared)


def _shift(kind: str, code: str, start: int, end: int, by: str) -> Edit:
    return kind, start, end, f"{code[start:end]} {by} 1"


def _subscripts(code: str, declared: list[tuple[int, int]]) -> Iterator[Edit]:
    """Every subscript one further, those of memory also one back; neighbours swapped."""
    for m in re.finditer(r"\b(\w+)(?=\[)", code):
        if any(a <= m.start() < b for a, b in declared):
            continue
        own = m[1].startswith("r_") or m[1] == "sum"  # a thread's registers
        parts, at = [], m.end()
        while code[at] == "[":
            close = matching(code, at)
            parts.append((at + 1, close))
            at = close + 1
        for start, end in parts:
            yield _shift("index", code, start, end, "+")
            if not own:
                yield _shift("index", code, start, end, "-")
        for (a, b), (c, d) in zip(parts, parts[1:], strict=False):
            yield "index", a, d, f"{code[c:d]}][{code[a:b]}"


def _definitions(code: str) -> Iterator[Edit]:
    """Every index or pointer that is computed once, one further; x and y swapped."""
    for m in DEFINED.finditer(code):
        yield _shift("index", code, *m.span("value"), "+")
    for old, new in (("threadIdx.x", "threadIdx.y"), ("threadIdx.y", "threadIdx.x"),
                     ("blockIdx.x", "blockIdx.y"), ("blockIdx.y", "blockIdx.x"),
                     ("blockIdx.z", "blockIdx.y")):  # fmt: skip
        for m in re.finditer(re.escape(old), code):
            yield "index", *m.span(), new


def _calls(file: str, code: str) -> Iterator[Edit]:
    """Indices that are passed to a function, one further; and its swizzle, one path at a time."""
    for m in re.finditer(r"\b(\w+)(?:<[^<>;()]*(?:\([^()]*\))?[^<>;()]*>)?\((?=[^)])", code):
        name = m[1]
        if name not in INDEX_ARGUMENTS or re.search(r"(int|void|float4) $", code[: m.start()]):
            continue
        open_ = m.end() - 1
        close = matching(code, open_)
        arguments = split(code, open_ + 1, close, ",")
        toy = file == "09_toy_swizzle.cu"
        places = TOY_PLACE if toy else INDEX_ARGUMENTS[name]
        for n in places:
            if n < len(arguments):  # a step may pass fewer
                yield _shift("index", code, *arguments[n], "+")
        if name == "place":
            first, second = (code[slice(*arguments[n])] for n in places)
            swapped = f"{second}, {first}"
            yield "index", arguments[places[0]][0], arguments[places[1]][1], swapped
        if name == "place" and not toy:
            plain = f"({first}) * HEAD_DIM + 8 * "
            other = {"08": [f"(({second}) ^ ({first}) % 8)"],
                     "09": [f"({second})", f"(({second}) ^ ({first}) % 4)"]}  # fmt: skip
            for chunk in other["08" if file.startswith("08") else "09"]:
                yield "swizzle", m.start(), close + 1, f"({plain}{chunk})"


def _loops(code: str) -> Iterator[Edit]:
    """The first round left out, one round more, another step."""
    for m in LOOP.finditer(code):
        yield _shift("loop", code, *m.span("first"), "+")
        yield "loop", *m.span("compare"), WIDER[m["compare"]]
        step = m["step"]
        if step.endswith("++"):
            yield "loop", *m.span("step"), f"{step[:-2]} += 2"
        elif "+=" in step:
            yield _shift("loop", code, *m.span("step"), "+")
        else:
            yield "loop", *m.span("step"), re.sub(r"([/*]=) 2", r"\1 4", step)


def _guards(code: str) -> Iterator[Edit]:
    """Every condition that keeps a thread inside left out, and one element too many let in."""
    found = []
    for m in re.finditer(r"\bif (?=\()", code):
        found.append((m.end() + 1, matching(code, m.end())))
    for m in re.finditer(r" \? ", code):
        before = max(code.rfind(c, 0, m.start()) for c in ("=", "(", ","))
        while code[before - 1] in "<>=" or code[before : before + 2] == "==":
            before = max(code.rfind(c, 0, before - 2) for c in ("=", "(", ","))
        found.append((before + 1, m.start()))
    for m in re.finditer(r"const bool inside = (?P<value>[^;]+);", code):
        found.append(m.span("value"))
    for start, end in found:
        for a, b in split(code, start, end, " && "):
            yield "guard", a, b, "true"
            if m := COMPARE.search(code, a, b):
                yield "guard", *m.span(1), WIDER[m[1]]
            if "keys" in code[a:b] or "% 4 ==" in code[a:b]:
                yield "guard", a, b, "false"


def _strides(source: Source, declared: list[tuple[int, int]]) -> Iterator[Edit]:
    """Rows of another length, arrays a little smaller or larger, steps half as long."""
    code = source.code
    for start, end in declared:
        if "__shared__" not in code[start:end] or "[]" in code[start:end]:
            continue
        for n, m in enumerate(re.finditer(r"\[([^\]]*)\]", code[start:end])):
            span = start + m.start(1), start + m.end(1)
            yield _shift("stride", code, *span, "-")
            if n:
                yield _shift("stride", code, *span, "+")
    for m in PRODUCT.finditer(code):
        width = m["width"]
        yield "stride", *m.span("width"), f"({width} + {8 if width == 'row_stride' else 1})"
        if width in "Nd" and source.function(m.start()) != "softmax":  # which has no d
            yield "stride", *m.span("width"), {"N": "d", "d": "N"}[width]
    for m in MULTIPLE.finditer(code):
        yield "stride", *m.span("factor"), str(int(m["factor"]) // 2)


@functools.cache
def all_mutants() -> tuple[Mutant, ...]:
    """Every mutant of the kernels as they are now."""
    return tuple(mutants())
