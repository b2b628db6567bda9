"""An index typed as CUDA C, and what the banks of shared memory make of it.

    analyse("(lane / 8) * 64 + (lane % 8) * 5").verdict.wavefronts

The expression is compiled into a kernel of one warp, run on the simulator and traced. What is typed
is one expression of `lane` without side effects; everything else is refused in one sentence.
"""

import difflib
import re
from typing import NamedTuple

import numpy as np

from helpers import simulator
from helpers.simulator.compile.compile_errors import parse_log
from helpers.simulator.compile.compiler import compile_ptx
from helpers.simulator.errors import SimulatorError
from helpers.simulator.observe.report import Report

from ..bank_film import bank_frames, last_frame
from ..bank_rules import BankVerdict, judge
from ..canvas import Frame, counted, told
from ..events import LANES, WORD, WarpAccess, warp_access

WORDS = 12288  # of shared memory: the 48 KB that a block may have without asking for more
WIDTHS = {4: "float", 8: "float2", 16: "float4"}
KINDS = ("load", "store")
LONGEST = 200
LANES_A_STEP = 4

_TOKENS = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<comment>//|/\*)"
    r"|(?P<digraph><:|:>|<%|%>|%:)"  # other spellings of brackets and braces
    r"|(?P<number>(?:0[xX][0-9a-fA-F]+|0[bB][01]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\w*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<change>\+\+|--|<<=|>>=|[-+*/%&|^]=|(?<![<>=!])=(?!=))"
    r"|(?P<operator><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>?:(),])"
    r"|(?P<other>.)",
    re.DOTALL,
)
_NAMES = frozenset(
    "lane int unsigned long short char bool true false float double min max abs "
    "__popc __clz __ffs __brev".split()
)
# What kernels call it elsewhere.
_FAMILIAR = {"threadIdx": "lane", "tx": "lane", "tid": "lane", "laneId": "lane", "lane_id": "lane"}

_SOURCE = """\
template <class T> struct whole {{ static const bool yes = T(0.5f) == T(0); }};
template <> struct whole<bool> {{ static const bool yes = true; }};
template <class T> struct whole<T*> {{ static const bool yes = false; }};
template <class T> __device__ long long as_index(T value) {{
    static_assert(whole<T>::yes, "index of another type");
    return (long long)value;
}}
__device__ long long index_of(const int lane) {{
    return as_index((
{expression}
    ));
}}
extern __shared__ __align__(16) float s[];
extern "C" __global__ void indices(long long* out) {{
    out[threadIdx.x] = index_of(threadIdx.x);
}}
extern "C" __global__ void load({type}* out) {{
    out[threadIdx.x] = *({type}*)(s + index_of(threadIdx.x));
}}
extern "C" __global__ void store({type}* in) {{
    *({type}*)(s + index_of(threadIdx.x)) = in[threadIdx.x];
}}
"""


class ExpressionError(ValueError):
    """An index that cannot be used; the message says in one sentence why."""


class Analysis(NamedTuple):
    """What a typed index does.

    Attributes:
        expression, width, kind: as asked for.
        indices: the index of each of the 32 lanes, in words of four bytes.
        access: the access, from the trace.
        verdict: its cost, and why.
        report: of the run; its counters hold the wavefronts as well.
    """

    expression: str
    width: int
    kind: str
    indices: tuple[int, ...]
    access: WarpAccess
    verdict: BankVerdict
    report: Report

    @property
    def summary(self) -> str:
        """Wavefronts, actual and ideal, in a few words."""
        v = self.verdict
        conflicts = counted(v.conflicts, "bank conflict") if v.conflicts else "no bank conflict"
        return f"{v.summary}: {conflicts}"


def analyse(expression: str, width: int = 4, kind: str = "load") -> Analysis:
    """Run a shared access whose index each lane computes by `expression`.

    Args:
        expression: CUDA C in terms of `lane`, 0 to 31; the index of a float in shared memory.
        width: bytes a lane: 4 (float), 8 (float2) or 16 (float4).
        kind: "load" or "store".

    Raises:
        ExpressionError: the expression does not compile, is no whole number, has side effects, or
            gives an index outside shared memory or one that `width` does not allow.
        ValueError: `width` or `kind` is none of those.
    """
    if width not in WIDTHS or kind not in KINDS:
        raise ValueError(f"width is 4, 8 or 16 and kind load or store, not {width} and {kind!r}.")
    expression = _checked(expression)
    source = _SOURCE.format(expression=expression, type=WIDTHS[width])
    _compile(source)
    indices = np.zeros(LANES, np.int64)
    _launch(source, "indices", indices, count=False)
    _check_indices(indices, width // WORD, "/" in expression or "%" in expression)
    data = np.zeros((LANES, width // WORD), np.float32)
    report = _launch(source, kind, data)
    access = warp_access(report, "s", kind=kind, space="shared")
    return Analysis(
        expression, width, kind, tuple(int(i) for i in indices), access, judge(access), report
    )


def frames(analysis: Analysis) -> list[Frame]:
    """The figure of an analysis: some lanes a step, and in the last one all of them."""
    where = analysis.expression if len(analysis.expression) <= 60 else "…"
    title = f"{analysis.kind} of {analysis.width} bytes at s[{where}]"
    steps = bank_frames(analysis.access, title, lanes_a_step=LANES_A_STEP, verdict=analysis.verdict)
    return told([*steps[:-1], last_frame(analysis.access, title, analysis.verdict)], -1)


def column_banks(columns: int) -> list[Frame]:
    """A warp walks down a column: lane n loads the start of row n, of `columns` words.

    Raises:
        ExpressionError: the rows do not fit into shared memory.
    """
    found = analyse(f"lane * {columns}")
    return bank_frames(found.access, f"load of 4 bytes at s[lane * {columns}]")


# ---------------------------------------------------------------- what may be typed


def _checked(expression: str) -> str:
    """The expression on one line, if it is one that may be compiled."""
    text = " ".join(str(expression).split())
    if not text:
        raise ExpressionError("Type the index of a word of shared memory, such as lane * 2.")
    if len(text) > LONGEST:
        raise ExpressionError(f"The index has {len(text)} characters; {LONGEST} are the most here.")
    depth = 0
    for match in _TOKENS.finditer(text):
        kind, token = match.lastgroup, match[0]
        if kind == "name" and token not in _NAMES:
            raise ExpressionError(_unknown(token))
        if kind == "number" and re.match(r"\d{20,}", token):
            raise ExpressionError(f"{token} is too large for an index.")
        if kind == "comment":
            raise ExpressionError("Leave comments out; the index is one expression.")
        if kind == "change":
            raise ExpressionError(
                f"{token} would set a value, but an index is only computed, without side effects"
                f"{': compare with ==' if token == '=' else ''}."
            )
        if kind in ("digraph", "other"):
            raise ExpressionError(_foreign(token))
        depth += (token == "(") - (token == ")")
        if depth < 0:
            raise ExpressionError("There is a ) without a ( before it.")
    if depth:
        raise ExpressionError("There is a ( without a ) behind it.")
    return text


def _unknown(name: str) -> str:
    near = _FAMILIAR.get(name) or next(
        iter(difflib.get_close_matches(name, _NAMES, n=1, cutoff=0.7)), None
    )
    if near is None and name.lower() in _NAMES:
        near = name.lower()
    hint = f" Did you mean {near}?" if near else ""
    return f"{name} is not known here: write the index in terms of lane, which is 0 to 31.{hint}"


def _foreign(character: str) -> str:
    if character in ";{}":
        return f"The index is one expression: leave {character} out."
    if character in "[]":
        return "The index reads no array: leave [ and ] out, and type what stands between them."
    if character == ".":
        return "A . belongs to no index: write lane for threadIdx.x."
    return f"{character} has no meaning in an index."


def _compile(source: str) -> None:
    try:
        log = compile_ptx(source, filename="index.cu").log
    except SimulatorError as error:
        raise ExpressionError(_refusal(str(error))) from None
    for diagnostic in parse_log(log):
        if diagnostic.severity == "warning" and "unused" not in diagnostic.message:
            raise ExpressionError(f"The compiler warns of the index: {_plain(diagnostic.message)}.")


def _refusal(message: str) -> str:
    found = re.search(r"error: (.*)", message)
    first = found[1] if found else message
    if "index of another type" in first:
        return "The index is no whole number: use integers alone, or convert it with int(...)."
    if "as_index" in first:
        return "The index has no value: a name of a function or a type stands where one should."
    return f"The compiler refuses the index: {_plain(first)}."


def _plain(message: str) -> str:
    return message.strip().splitlines()[0].split(" argument types are")[0].rstrip(".")


def _launch(source: str, entry: str, array: np.ndarray, count: bool = True) -> Report:
    try:
        return simulator.launch(
            source, entry, 1, LANES, (array,), shared_mem=WORDS * WORD, count=count,
            filename="index.cu", progress=False,
        )  # fmt: skip
    except SimulatorError as error:
        raise ExpressionError(f"The simulator stopped: {_plain(str(error))}.") from None


def _check_indices(indices: np.ndarray, words: int, divides: bool) -> None:
    for lane, index in enumerate(int(i) for i in indices):
        if index < 0:
            hint = " (as a division by zero gives)" if index == -1 and divides else ""
            raise ExpressionError(
                f"Lane {lane} gets the index {index}{hint}; an index is 0 or more."
            )
        if index + words > WORDS:
            raise ExpressionError(
                f"Lane {lane} gets the index {index:,}, but the {WORDS:,} words of shared memory "
                f"(48 KB) end at {WORDS - 1:,}."
            )
        if index % words:
            raise ExpressionError(
                f"Lane {lane} gets the index {index}, but {words * WORD} bytes have to start at a "
                f"multiple of {words} words."
            )
