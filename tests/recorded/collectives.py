# ruff: noqa: E501 (kernel text reads better unbroken)
"""Random statements that all live threads of a block reach together."""

from __future__ import annotations

from .expressions import Scope, condition, expression
from .statements import Statements


class Collectives(Statements):
    """Statements with barriers, shuffles, votes and shared memory."""

    # ---- statements that all live threads of the block reach together
    def collective(self, scope: Scope, indent: str) -> list[str]:
        s = self.stream
        roll = s.below(12)
        if roll < 3:
            return self.exchange(scope, indent)
        if roll == 3:
            return self.shared_bins(scope, indent)
        if roll == 4:
            which = s.pick(["count", "or", "and"])
            return [
                f"{indent}{scope.target('unsigned')} += (unsigned)__syncthreads_{which}({condition(scope)});"
            ]
        if roll in (5, 6, 7):
            return self.shuffle(scope, indent)
        if roll == 8:
            return self.masked_shuffle(scope, indent)
        if roll in (9, 10):
            which = s.pick(["ballot", "any", "all"])
            return [
                f"{indent}{scope.target('unsigned')} ^= (unsigned)__{which}_sync(warp_mask, {condition(scope)});"
            ]
        return self.match(scope, indent)

    def exchange(self, scope: Scope, indent: str) -> list[str]:
        s = self.stream
        shift = s.between(1, 37)
        kind, array = s.pick(
            [("unsigned", "sh_u"), ("float", "sh_f"), ("unsigned", "sh_s"), ("unsigned", "sh_c")]
        )
        if self.dynamic and s.chance(50):
            kind, array = "unsigned", "dyn"
        other = s.pick(
            [
                f"(tid + {shift}u) % live",
                "live - 1u - tid",
                f"({expression(scope, 'unsigned', 1)}) % live",
            ]
        )
        target = scope.target(kind)
        value = expression(scope, kind, 2)
        op = "=" if kind == "float" else s.pick(["=", "^=", "+="])
        if array == "sh_u" and s.chance(40):  # padded rows of 8, two indices
            lines = [f"{indent}sh_2[tid >> 3][tid & 7u] = {value};", f"{indent}__syncthreads();"]
            lines.append(f"{indent}{{ unsigned o = {other}; {target} {op} sh_2[o >> 3][o & 7u]; }}")
        else:
            lines = [
                f"{indent}{array}[tid] = {value};",
                f"{indent}__syncthreads();",
                f"{indent}{target} {op} {array}[{other}];",
            ]
        return [*lines, f"{indent}__syncthreads();"]

    def shared_bins(self, scope: Scope, indent: str) -> list[str]:
        s = self.stream
        op = s.pick(["Add", "Min", "Max", "And", "Or", "Xor", "Sub"])
        return [
            f"{indent}for (unsigned t = tid; t < 16u; t += live) bins[t] = t * {s.pick([1, 77777, 0x1234567])}u;",
            f"{indent}__syncthreads();",
            f"{indent}if ({condition(scope)}) atomic{op}(&bins[{expression(scope, 'unsigned', 1)} & 15u], {expression(scope, 'unsigned', 2)});",
            f"{indent}__syncthreads();",
            f"{indent}{scope.target('unsigned')} += bins[(tid + {s.below(16)}u) & 15u];",
            f"{indent}__syncthreads();",
        ]

    def shuffle(self, scope: Scope, indent: str) -> list[str]:
        s = self.stream
        kind = s.pick(
            [
                k
                for k in ("unsigned", "float", "int", "unsigned long long", "double")
                if scope.has(k)
            ]
        )
        target, value = scope.target(kind), expression(scope, kind, 1)
        if self.live % 32:  # a partly filled warp: only lanes below are surely there
            width = s.pick([32, 16, 8])
            call = s.pick(
                [
                    f"__shfl_up_sync(warp_mask, {value}, {s.below(20)}u, {width})",
                    f"__shfl_sync(warp_mask, {value}, (int)({expression(scope, 'unsigned', 1)} % lanes))",
                ]
            )
        else:
            width = s.pick([32, 32, 16, 8, 4, 2])
            how = s.pick(["up", "down", "xor", ""])
            amount = (
                f"{s.below(width)}" if how else f"(int)({expression(scope, 'unsigned', 1)} & 63u)"
            )
            if how in ("up", "down") and s.chance(30):
                amount = "(lane & 3u)"
            call = f"__shfl{'_' if how else ''}{how}_sync(warp_mask, {value}, {amount}, {width})"
        return [f"{indent}{target} = {call};"]

    def masked_shuffle(self, scope: Scope, indent: str) -> list[str]:
        """Half of the lanes shuffle among themselves, the other half may too."""
        s = self.stream
        if self.live % 32:
            return self.shuffle(scope, indent)
        bit = 1 << s.below(5)
        masks = [
            sum(1 << lane for lane in range(32) if bool(lane & bit) == side)
            for side in (False, True)
        ]
        lines = []
        for side in (0, 1):
            target, value = scope.target("unsigned"), expression(scope, "unsigned", 1)
            other = s.below(32) & ~bit
            index = f"(int)(({expression(scope, 'unsigned', 1)} & {31 & ~bit}u) | {bit if side else 0}u)"
            call = s.pick(
                [
                    f"__shfl_xor_sync({masks[side]:#x}u, {value}, {other})",
                    f"__shfl_sync({masks[side]:#x}u, {value}, {index})",
                    f"(unsigned)__reduce_add_sync({masks[side]:#x}u, {value})",
                    f"__ballot_sync({masks[side]:#x}u, {condition(scope, 1)})",
                    f"__reduce_max_sync({masks[side]:#x}u, {value})",
                ]
            )
            head = (
                f"{indent}if (lane & {bit}u) {{"
                if side == 1
                else f"{indent}if (!(lane & {bit}u)) {{"
            )
            lines += [head, f"{indent}  {target} ^= {call};", f"{indent}}}"]
        return lines

    def match(self, scope: Scope, indent: str) -> list[str]:
        s = self.stream
        target, k = scope.target("unsigned"), self.fresh()
        kind = s.pick(["unsigned", "unsigned long long"])
        value = f"(({kind})({expression(scope, kind, 1)}) & {s.pick([0, 1, 3, 7])})"
        if s.chance(60):
            return [f"{indent}{target} ^= __match_any_sync(warp_mask, {value});"]
        return [
            f"{indent}int {k};",
            f"{indent}{target} ^= __match_all_sync(warp_mask, {value}, &{k});",
            f"{indent}{scope.target('int')} = {k} + {s.below(9)};",
        ]
