"""Whether what is known of the solution is true of an answer as well."""

import re

from ...simulator.compile.source_text import mask

_CONDITION = re.compile(
    r"\bif ?\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)|([^=;{}]*(?:[=!<>]=[^=;{}]*)*)\?"
)


def is_true(said: str, text: str, lines: list[int]) -> bool:
    """Whether a sentence can be of a text: names, conditions and loops that it speaks of are there.

    The lines are those that would be marked.
    """
    if not lines:
        return "is missing" in said
    rows = mask(text).split("\n")
    marked = "\n".join(rows[n - 1] for n in lines)
    used = [w for w in re.findall(r"[A-Za-z_]\w*", said) if re.search(rf"\b{w}\b", marked)]
    named = re.findall(r"\b(?:index of|over|sets|comparison of|look at|uses|and) (\w+)", said)
    if re.search(r"[Cc]ondition|[Gg]uard|comparison", said) and "missing" not in said:
        if not re.search(r"\bif\b|\?|\bwhile\b|[<>]=?|[!=]=", marked):
            return False
    if blind := re.search(r"does not look at (.+)\.$", said):
        return not re.search(rf"\b{re.escape(blind[1])}\b", _asked(marked))
    known = set(re.findall(r"[A-Za-z_]\w*", "\n".join(rows)))
    code = {w for w in named if w not in ("the", "a", "it", "what", "columns", "where")}
    if "loop over" in said or "comparison of" in said:
        return bool(code) and all(w in used for w in code if w in known) and code <= known
    return code <= known | set(said.lower().split()) - code


def _asked(code: str) -> str:
    """The conditions in some lines, and nothing else of them."""
    return " ".join(a or b for a, b in _CONDITION.findall(code))
