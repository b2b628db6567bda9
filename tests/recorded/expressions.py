# ruff: noqa: E501 (kernel text reads better unbroken)
"""Random CUDA C expressions whose value C++ defines, so that a compiler has no liberties.

Arithmetic that could overflow is unsigned, shift counts are masked, divisors are odd, conversions from floats to integers are
the intrinsics, and a NaN never shows its bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .cases import Stream

LETTERS = {
    "unsigned": "u",
    "int": "i",
    "unsigned long long": "w",
    "float": "f",
    "double": "d",
    "half": "x",
    "__nv_bfloat16": "y",
}


@dataclass
class Scope:
    """What an expression may use: names by type, arrays and functions as C templates with `@`."""

    stream: Stream
    names: dict[str, list[str]]
    sources: list[str] = field(default_factory=list)  # unsigned-valued templates, @ an index
    functions: list[str] = field(
        default_factory=list
    )  # unsigned-valued templates, @ and # arguments
    intrinsics: bool = False  # float arithmetic through __fadd_rn and so on
    readonly: tuple[str, ...] = ()
    kernel: bool = (
        False  # in the kernel itself, where its arguments and the helper functions are at hand
    )

    def has(self, kind: str) -> bool:
        return bool(self.names.get(kind))

    def name(self, kind: str) -> str:
        return self.stream.pick(self.names[kind])

    def target(self, kind: str) -> str:
        return self.stream.pick([n for n in self.names[kind] if n not in self.readonly])


def expression(scope: Scope, kind: str, depth: int) -> str:
    """An expression of type `kind`."""
    makers = {
        "unsigned": _unsigned,
        "int": _signed,
        "unsigned long long": _wide,
        "float": _float,
        "double": _double,
        "half": _half,
        "__nv_bfloat16": _bfloat,
    }
    return makers[kind](scope, depth)


def condition(scope: Scope, depth: int = 2) -> str:
    """A boolean expression."""
    s = scope.stream
    roll = s.below(12) if depth > 0 else s.below(5)
    if roll >= 10:
        return f"({condition(scope, depth - 1)} {s.pick(['&&', '||', '!=', '=='])} {condition(scope, depth - 1)})"
    if roll == 9:
        return f"!({condition(scope, depth - 1)})"
    kinds = [
        k for k in ("unsigned", "int", "float", "unsigned long long", "double") if scope.has(k)
    ]
    kind = s.pick(kinds)
    op = s.pick(["<", "<=", ">", ">=", "==", "!="])
    if roll in (3, 4) and kind == "unsigned":
        return f"(({_unsigned(scope, depth - 1)} & {s.pick([1, 2, 3, 4, 6])}u) {s.pick(['==', '!='])} 0u)"
    return f"({expression(scope, kind, depth - 1)} {op} {expression(scope, kind, depth - 1)})"


def _unsigned(scope: Scope, depth: int) -> str:  # noqa: C901  one branch a kind of expression
    s = scope.stream

    def e(kind: str = "unsigned") -> str:
        return expression(scope, kind, depth - 1)

    if depth <= 0 or s.chance(15):
        roll = s.below(10)
        if roll < 5:
            return scope.name("unsigned")
        if roll < 7 and scope.has("int"):
            return f"(unsigned){scope.name('int')}"
        return s.pick(
            ["3u", "7u", "17u", "0x80000000u", "0xff00ffu", "2654435761u", "1u", "255u", "40503u"]
        )
    roll = s.below(34)
    if roll < 12:
        return f"({e()} {s.pick(['+', '-', '*', '&', '|', '^'])} {e()})"
    if roll == 12:
        return f"({e()} {s.pick(['<<', '>>'])} ({e()} & 31u))"
    if roll == 13:
        return f"({e()} {s.pick(['/', '%'])} ({e()} | 1u))"
    if roll == 14:
        return f"{s.pick(['min', 'max'])}({e()}, {e()})"
    if roll == 15:
        return f"({condition(scope, depth - 1)} ? {e()} : {e()})"
    if roll == 16:
        return f"(unsigned){s.pick(['__popc', '__brev'])}({e()})"
    if roll == 17:
        return f"(unsigned){s.pick(['__clz', '__ffs'])}((int)({e()}))"
    if roll == 18:
        return f"__byte_perm({e()}, {e()}, {e()})"
    if roll == 19:
        which = s.pick(["l", "r", "lc", "rc"])
        return f"__funnelshift_{which}({e()}, {e()}, {e()})"
    if roll == 20:
        return f"{s.pick(['__umulhi', '__umul24', '__uhadd', '__urhadd'])}({e()}, {e()})"
    if roll == 21:
        return f"__usad({e()}, {e()}, {e()})"
    if roll in (22, 29) and scope.has("half"):
        return f"half_bits({e('half')})"
    if roll == 22:
        return f"__dp4a({e()}, {e()}, {e()})"
    if roll == 23:
        which = s.pick(
            ["__vadd2", "__vsub4", "__vmaxu4", "__vabsdiffu4", "__vavgu4", "__vcmpgts2", "__vmins2"]
        )
        return f"{which}({e()}, {e()})"
    if roll in (24, 25) and scope.has("float"):
        return f"bits({e('float')})"
    if roll == 26 and scope.has("float"):
        which = s.pick(
            [
                "__float2uint_rn",
                "__float2uint_rz",
                "(unsigned)__float2int_rd",
                "(unsigned)__float2int_ru",
            ]
        )
        return f"{which}({e('float')})"
    if roll == 27 and scope.has("unsigned long long"):
        return f"(unsigned)({e('unsigned long long')} >> ({e()} & 63u))"
    if roll == 28:
        cast = s.pick(
            ["(unsigned char)", "(unsigned short)", "(unsigned)(signed char)", "(unsigned)(short)"]
        )
        return f"((unsigned){cast}({e()}))"
    if roll == 29 and scope.has("int"):
        return f"(unsigned)({e('int')})"
    if roll in (30, 31) and scope.sources:
        return s.pick(scope.sources).replace("@", e())
    if roll in (32, 33) and scope.functions and depth > 1:
        return s.pick(scope.functions).replace("@", e()).replace("#", e())
    return f"({e()} + {e()})"


def _signed(scope: Scope, depth: int) -> str:
    s = scope.stream

    def e(kind: str = "int") -> str:
        return expression(scope, kind, depth - 1)

    if depth <= 0:
        return scope.name("int") if s.chance(70) else s.pick(["-3", "5", "1000003", "-65537", "12"])
    roll = s.below(12)
    if roll < 3:
        return f"(int)({e('unsigned')})"
    if roll == 3:
        return f"(({e()} >> 1) {s.pick(['/', '%'])} ({e()} | 1))"
    if roll == 4:
        return f"({e()} >> ({e('unsigned')} & 31u))"
    if roll == 5:
        return f"{s.pick(['min', 'max'])}({e()}, {e()})"
    if roll == 6:
        return f"abs({e()} >> 1)"
    if roll == 7:
        return f"{s.pick(['__mulhi', '__mul24', '__hadd', '__rhadd'])}({e()}, {e()})"
    if roll == 8:
        return f"((int){s.pick(['(signed char)', '(short)', '(unsigned char)'])}({e('unsigned')}))"
    if roll == 9 and scope.has("float"):
        return f"{s.pick(['__float2int_rn', '__float2int_rz'])}({e('float')})"
    if roll == 10:
        return f"({condition(scope, depth - 1)} ? {e()} : {e()})"
    return f"({e()} {s.pick(['&', '|', '^'])} {e()})"


def _wide(scope: Scope, depth: int) -> str:
    s = scope.stream

    def e(kind: str = "unsigned long long") -> str:
        return expression(scope, kind, depth - 1)

    if depth <= 0:
        return scope.name("unsigned long long") if s.chance(75) else "0x9e3779b97f4a7c15ull"
    roll = s.below(13)
    if roll < 4:
        return f"({e()} {s.pick(['+', '-', '*', '&', '|', '^'])} {e()})"
    if roll == 4:
        return f"({e()} {s.pick(['<<', '>>'])} ({e('unsigned')} & 63u))"
    if roll == 5:
        return f"({e()} {s.pick(['/', '%'])} ({e()} | 1ull))"
    if roll == 6:
        signed = f"((long long)({e()}) >> 1) {s.pick(['/', '%'])} ((long long)({e()}) | 1ll)"
        return f"((unsigned long long)({signed}))"
    if roll == 7:
        return f"{s.pick(['min', 'max', '__umul64hi'])}({e()}, {e()})"
    if roll == 8:
        which = s.pick(["__popcll", "__brevll", "(unsigned)__clzll", "(unsigned)__ffsll"])
        return f"(unsigned long long){which}({e()})"
    if roll == 9:
        return f"((unsigned long long)({e('unsigned')}) * ({e('unsigned')}))"
    if roll == 10:
        return f"(unsigned long long)(long long)({e('int')})"
    if roll == 11 and scope.has("double"):
        return f"bits({e('double')})"
    return f"({condition(scope, depth - 1)} ? {e()} : {e()})"


def _float(scope: Scope, depth: int) -> str:  # noqa: C901  one branch a kind of expression
    s = scope.stream

    def e(kind: str = "float") -> str:
        return expression(scope, kind, depth - 1)

    if depth <= 0:
        constants = ["1.5f", "-0.75f", "3.0f", "0.1f", "1e-3f", "-2.0f", "1e30f", "1e-38f"]
        return scope.name("float") if s.chance(75) else s.pick(constants)
    roll = s.below(20)
    if roll < 8:
        op = s.pick("+-*")
        if scope.intrinsics:
            named = {"+": "__fadd_rn", "-": "__fsub_rn", "*": "__fmul_rn"}[op]
            return f"{named}({e()}, {e()})"
        return f"({e()} {op} {e()})"
    if roll in (8, 9):
        return f"fmaf({e()}, {e()}, {e()})"
    if roll == 10:
        return f"({e()} / {e()})"
    if roll == 11:
        return f"sqrtf(fabsf({e()}))"
    if roll in (12, 13):
        return f"{s.pick(['fminf', 'fmaxf'])}({e()}, {e()})"
    if roll == 14:
        return f"{s.pick(['fabsf', '-', 'floorf', 'ceilf', 'truncf', 'rintf'])}({e()})"
    if roll == 15:
        return f"({condition(scope, depth - 1)} ? {e()} : {e()})"
    if roll == 16:
        return f"(float)({e(s.pick(['int', 'unsigned']))})"
    if roll == 17 and scope.has("double"):
        return f"(float)({e('double')})"
    if roll == 17 and scope.has("half"):
        return f"__half2float({e('half')})"
    if roll == 17 and scope.has("__nv_bfloat16"):
        return f"__bfloat162float({e('__nv_bfloat16')})"
    if roll == 18:
        which = s.pick(["__fadd_rz", "__fmul_ru", "__fsub_rd", "__fmul_rz", "__fadd_rd"])
        return f"{which}({e()}, {e()})"
    return f"__uint_as_float(({e('unsigned')} & 0x807fffffu) | 0x3f000000u)"


def _double(scope: Scope, depth: int) -> str:
    s = scope.stream

    def e(kind: str = "double") -> str:
        return expression(scope, kind, depth - 1)

    if depth <= 0:
        return scope.name("double") if s.chance(75) else s.pick(["1.25", "-0.1", "1e-10", "3.0"])
    roll = s.below(11)
    if roll < 4:
        named = s.pick(["__dadd_rn", "__dmul_rn", "__dsub_rn"])
        return f"{named}({e()}, {e()})"
    if roll == 4:
        return f"fma({e()}, {e()}, {e()})"
    if roll == 5:
        return f"({e()} / {e()})"
    if roll == 6:
        return f"sqrt(fabs({e()}))"
    if roll == 7:
        return f"{s.pick(['fmin', 'fmax'])}({e()}, {e()})"
    if roll == 8:
        return f"{s.pick(['fabs', '-', 'floor', 'rint'])}({e()})"
    if roll == 9:
        return f"(double)({e(s.pick(['int', 'float', 'unsigned', 'unsigned long long']))})"
    return f"({condition(scope, depth - 1)} ? {e()} : {e()})"


def _half(scope: Scope, depth: int) -> str:
    s = scope.stream

    def e() -> str:
        return expression(scope, "half", depth - 1)

    if depth <= 0:
        return scope.name("half")
    roll = s.below(9)
    if roll < 4:
        return (
            f"{s.pick(['__hadd_rn', '__hsub_rn', '__hmul_rn', '__hmin', '__hmax'])}({e()}, {e()})"
        )
    if roll == 4:
        return f"__hfma({e()}, {e()}, {e()})"
    if roll == 5:
        return f"{s.pick(['__hneg', '__habs', 'hfloor', 'hrint'])}({e()})"
    if roll == 6:
        return f"__float2half_rn({expression(scope, 'float', depth - 1)})"
    if roll == 7:
        pair = f"{s.pick(['__hadd2_rn', '__hmul2_rn'])}(__halves2half2({e()}, {e()}), __float2half2_rn({scope.name('float')}))"
        return f"{s.pick(['__low2half', '__high2half'])}({pair})"
    return f"__int2half_rn({expression(scope, 'int', depth - 1)} & 4095)"


def _bfloat(scope: Scope, depth: int) -> str:
    s = scope.stream

    def e() -> str:
        return expression(scope, "__nv_bfloat16", depth - 1)

    if depth <= 0:
        return scope.name("__nv_bfloat16")
    roll = s.below(7)
    if roll < 4:
        return (
            f"{s.pick(['__hadd_rn', '__hsub_rn', '__hmul_rn', '__hmin', '__hmax'])}({e()}, {e()})"
        )
    if roll == 4:
        return f"__hfma({e()}, {e()}, {e()})"
    if roll == 5:
        return f"{s.pick(['__hneg', '__habs'])}({e()})"
    return f"__float2bfloat16_rn({expression(scope, 'float', depth - 1)})"
