# ruff: noqa: E501 (kernel text reads better unbroken)
"""Random statements that any thread may reach alone."""

from __future__ import annotations

import numpy as np

from .cases import Stream
from .expressions import Scope, condition, expression

ITEMS = 256  # elements of each input array

_BLOCKS = [
    (64,),
    (96,),
    (32,),
    (40,),
    (33,),
    (70,),
    (16, 4),
    (8, 3, 2),
    (7, 5),
    (32, 2),
    (4, 4, 4),
    (5, 5, 2),
    (1,),
    (32, 3),
]
_GRIDS = [(1,), (2,), (3,), (2, 2), (1, 3), (2, 1, 2)]
_ATOMICS = {
    "unsigned": ["Add", "Sub", "Min", "Max", "And", "Or", "Xor", "Inc"],
    "int": ["Add", "Min", "Max"],
    "unsigned long long": ["Add", "Max", "Xor", "Min"],
    "float": ["Add"],
    "double": ["Add"],
}


class Statements:
    """Builds one kernel's text; `lines` grows as statements are drawn."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.stream = s = Stream(22, seed)
        self.block = s.pick(_BLOCKS)
        self.grid = s.pick(_GRIDS)
        self.threads = int(np.prod(self.block))
        while self.threads * int(np.prod(self.grid)) > 256:
            self.grid = s.pick(_GRIDS)
        self.blocks = int(np.prod(self.grid))
        self.live = (
            self.threads - 1 - s.below(self.threads // 2)
            if self.threads > 8 and s.chance(25)
            else self.threads
        )
        self.narrow = [None, None, "double", "half", "__nv_bfloat16"][seed % 5]
        self.dynamic = s.chance(35)
        self.intrinsics = s.chance(50)
        self.atomic = [self._atomic_array(i) for i in range(3)]
        self.header: list[str] = []
        self.counter = 0

    def _atomic_array(self, index: int) -> tuple[str, str, str]:
        kind = self.stream.pick(list(_ATOMICS))
        return f"g{index}", kind, self.stream.pick(_ATOMICS[kind])

    def fresh(self) -> str:
        self.counter += 1
        return f"k{self.counter}"

    # ---- statements that any thread may reach alone
    def assign(self, scope: Scope, indent: str) -> list[str]:
        kinds = [
            k
            for k in (
                "unsigned",
                "unsigned",
                "int",
                "float",
                "float",
                "unsigned long long",
                "double",
                "half",
                "__nv_bfloat16",
            )
            if scope.has(k)
        ]
        kind = self.stream.pick(kinds)
        value = expression(scope, kind, self.stream.between(1, 3))
        if kind in ("float", "double") and self.stream.chance(60):
            value = f"tame({value})"
        return [f"{indent}{scope.target(kind)} = {value};"]

    def statement(self, scope: Scope, indent: str, depth: int) -> list[str]:
        s = self.stream
        inner = indent + "  "
        roll = s.below(22) if depth > 0 else s.below(8)
        if roll < 6:
            return self.assign(scope, indent)
        if roll in (6, 7):
            return self.local_array(scope, indent)
        if roll in (8, 9, 10):
            lines = [f"{indent}if ({condition(scope)}) {{", *self.body(scope, inner, depth - 1)]
            if s.chance(60):
                lines += [f"{indent}}} else {{", *self.body(scope, inner, depth - 1)]
            return [*lines, f"{indent}}}"]
        if roll in (11, 12, 13):
            return self.counted_loop(scope, indent, depth)
        if roll in (14, 15):
            return self.while_loop(scope, indent, depth)
        if roll in (16, 17):
            return self.switch(scope, indent, depth)
        if not scope.kernel:
            return self.assign(scope, indent)
        if roll == 18:
            return self.structs(scope, indent)
        if roll == 19:
            return self.global_atomic(scope, indent)
        if roll == 20:
            return self.private_atomic(scope, indent)
        return self.vector_load(scope, indent)

    def body(self, scope: Scope, indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.stream.between(1, 3)):
            lines += self.statement(scope, indent, depth)
        return lines

    def counted_loop(self, scope: Scope, indent: str, depth: int) -> list[str]:
        s, k = self.stream, self.fresh()
        limit = s.pick(
            [
                str(s.between(2, 6)),
                f"({expression(scope, 'unsigned', 1)} & 7u)",
                f"({expression(scope, 'unsigned', 1)} % 5u)",
            ]
        )
        unroll = s.pick(["", "", "#pragma unroll 1\n", "#pragma unroll\n", "#pragma unroll 2\n"])
        names = {**scope.names, "unsigned": [*scope.names["unsigned"], k]}
        inner = Scope(
            s,
            names,
            scope.sources,
            scope.functions,
            scope.intrinsics,
            (*scope.readonly, k),
            scope.kernel,
        )
        lines = [
            f"{unroll}{indent}for (unsigned {k} = 0; {k} < {limit}; {k} += {s.pick([1, 1, 2])}u) {{"
        ]
        if s.chance(20):
            lines.append(f"{indent}  if ({condition(inner, 1)}) {s.pick(['continue', 'break'])};")
        return [*lines, *self.body(inner, indent + "  ", depth - 1), f"{indent}}}"]

    def while_loop(self, scope: Scope, indent: str, depth: int) -> list[str]:
        s, k = self.stream, self.fresh()
        lines = [f"{indent}for (int {k} = (int)({expression(scope, 'unsigned', 1)} & 15u); ; ) {{"]
        lines.append(f"{indent}  {k} -= 1 + (int)({expression(scope, 'unsigned', 1)} & 1u);")
        lines.append(f"{indent}  if ({k} < 0) break;")
        if s.chance(30):
            lines.append(f"{indent}  if ({condition(scope, 1)}) continue;")
        return [*lines, *self.body(scope, indent + "  ", min(depth - 1, 1)), f"{indent}}}"]

    def switch(self, scope: Scope, indent: str, depth: int) -> list[str]:
        s = self.stream
        cases = s.pick([3, 4, 6, 9])
        lines = [f"{indent}switch ({expression(scope, 'unsigned', 2)} % {cases + s.below(2)}u) {{"]
        for value in range(cases):
            lines += [
                f"{indent}  case {value}:",
                *self.body(scope, indent + "    ", min(depth - 1, 0)),
            ]
            if not s.chance(25):
                lines.append(f"{indent}    break;")
        return [*lines, f"{indent}  default:", *self.assign(scope, indent + "    "), f"{indent}}}"]

    def local_array(self, scope: Scope, indent: str) -> list[str]:
        if not scope.kernel:
            return self.assign(scope, indent)
        index = expression(scope, "unsigned", 1)
        if self.stream.chance(25):
            return [f"{indent}bump(&local[{index} & 7u], {expression(scope, 'unsigned', 1)});"]
        return [
            f"{indent}local[{index} & 7u] {self.stream.pick(['=', '+=', '^='])} {expression(scope, 'unsigned', 2)};"
        ]

    def structs(self, scope: Scope, indent: str) -> list[str]:
        k = self.fresh()
        return [
            f"{indent}Record {k} = records[{expression(scope, 'unsigned', 1)} % {ITEMS // 4}u];",
            f"{indent}{k}.b = tame({k}.b);",
            f"{indent}{k} = twist({k}, {expression(scope, 'unsigned', 1)});",
            f"{indent}{scope.target('unsigned')} ^= (unsigned){k}.a + (unsigned){k}.c * 3u + {k}.d;",
            f"{indent}{scope.target('float')} = {k}.b;",
        ]

    def global_atomic(self, scope: Scope, indent: str) -> list[str]:
        name, kind, op = self.stream.pick(self.atomic)
        value = {
            "float": f"(float)({expression(scope, 'unsigned', 1)} & 15u)",
            "double": f"(double)({expression(scope, 'unsigned', 1)} & 1023u)",
        }.get(kind) or expression(scope, kind, 1)
        value = "6u" if op == "Inc" else value
        return [f"{indent}atomic{op}(&{name}[{expression(scope, 'unsigned', 1)} & 7u], {value});"]

    def private_atomic(self, scope: Scope, indent: str) -> list[str]:
        op = self.stream.pick(
            ["Add", "Sub", "Exch", "Min", "Max", "Inc", "Dec", "And", "Or", "Xor", "CAS"]
        )
        value = expression(scope, "unsigned", 1)
        if op == "CAS":
            value = f"{self.stream.pick(['own[gid]', scope.name('unsigned')])}, {value}"
        return [f"{indent}{scope.target('unsigned')} += atomic{op}(&own[gid], {value});"]

    def vector_load(self, scope: Scope, indent: str) -> list[str]:
        s, k = self.stream, self.fresh()
        kind, parts, count = s.pick(
            [
                ("float4", "xyzw", ITEMS // 4),
                ("float2", "xy", ITEMS // 2),
                ("int2", "xy", ITEMS // 2),
                ("uint4", "xyzw", ITEMS // 4),
                ("short2", "xy", ITEMS),
                ("uchar4", "xyzw", ITEMS),
                ("char2", "xy", 2 * ITEMS),
                ("ushort4", "xyzw", ITEMS // 2),
                ("ulonglong2", "xy", ITEMS // 4),
            ]
        )
        source = "in_f" if kind.startswith("float") else "in_u"
        lines = [
            f"{indent}{kind} {k} = ((const {kind}*){source})[{expression(scope, 'unsigned', 1)} % {count}u];"
        ]
        used = [p for p in parts if s.chance(70)] or [parts[0]]
        for part in used:
            if kind.startswith("float"):
                lines.append(f"{indent}{scope.target('float')} = tame({k}.{part});")
            elif kind.startswith("ulong"):
                lines.append(f"{indent}{scope.target('unsigned long long')} ^= {k}.{part};")
            else:
                lines.append(
                    f"{indent}{scope.target('unsigned')} += (unsigned){k}.{part} * {s.pick([1, 3, 257])}u;"
                )
        return lines
