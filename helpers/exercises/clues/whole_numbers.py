"""What expressions of whole numbers come to, as they stand in an answer's text."""

import ast
import operator
from collections.abc import Mapping

_STEPS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
}  # fmt: skip


def whole_number(
    text: str, numbers: Mapping[str, int], known: Mapping[str, str], depth: int = 4
) -> int | None:
    """What an expression comes to; None if it holds anything but whole numbers and known names.

    Args:
        numbers: values by name.
        known: expressions by name, which may hold names again, to some depth.
    """

    def of(node: ast.AST) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name) and node.id in numbers:
            return numbers[node.id]
        if isinstance(node, ast.Name) and depth:
            value = whole_number(known[node.id], numbers, known, depth - 1)
            if value is not None:
                return value
        if isinstance(node, ast.BinOp):
            return _STEPS[type(node.op)](of(node.left), of(node.right))
        raise ValueError(text)

    try:
        return of(ast.parse(text.strip().replace("/", "//"), mode="eval").body)
    except (SyntaxError, ValueError, KeyError, TypeError, ZeroDivisionError):
        return None
