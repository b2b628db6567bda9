r"""LaTeX as notebooks write it, put into the words that ziamath draws right.

Jupyter's MathJax knows macros that are defined in one cell and used in another, and more commands
and environments than ziamath does. What is left unknown is found after the translation to MathML:
there ziamath writes the command itself.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"\\([a-zA-Z]+\*?|.)")
_DEFINES = re.compile(
    r"\\(?:(?P<new>newcommand|renewcommand|providecommand)\*?|(?P<operator>DeclareMathOperator)"
    r"(?P<star>\*?)|(?P<def>def))\s*(?P<brace>\{?)\s*\\(?P<name>[a-zA-Z]+)\s*(?(brace)\})"
    r"(?:\[(?P<count>\d)\])?(?P<marks>(?:#\d)*)\s*(?=\{)"
)
_DEEPEST = 20  # macros that macros use
# Those that ziamath lays out as the field does; it shows any other as one row, without a word.
_ENVIRONMENTS = frozenset(
    "align align* aligned array bmatrix Bmatrix cases equation equation* gather gather* gathered "
    "matrix multline multline* pmatrix smallmatrix split substack vmatrix Vmatrix".split()
)
_FENCED = frozenset(("pmatrix", "bmatrix", "vmatrix", "Bmatrix", "Vmatrix", "cases", "dcases"))
_SAME = {
    "eqnarray": ("array", "{rcl}"),
    "dcases": ("cases", ""),
    "alignedat": ("align*", ""),
    "alignat": ("align*", ""),
    # Jupyter numbers no equations.
    "align": ("align*", ""),
    "flalign": ("align*", ""),
    "equation": ("equation*", ""),
    "multline": ("gather*", ""),
    "gather": ("gather*", ""),
    "gathered": ("gather*", ""),
}
_WORDS = (
    # What says how to break, number or space a formula, and shows nothing.
    (r"\\(?:label|vspace|require|cline|allowbreak)\*?\s*\{[^{}]*\}", ""),
    (
        r"\\(?:nonumber|notag|nolimits|relax|displaylimits|allowdisplaybreaks|hline|toprule|midrule"
        r"|bottomrule|noindent|centering|protect|break|newline)(?![a-zA-Z])",
        "",
    ),
    (r"\\\\\s*\[\s*-?[\d.]+\s*(?:ex|em|pt|mm|cm|px)\s*\]", r"\\\\ "),
    (r"\\smash\s*(?:\[[bt]\])?", ""),
    (r"\\hfill(?![a-zA-Z])", r"\\quad "),
    (r"\\eqref\s*\{([^{}]*)\}", r"\\text{(\1)}"),
    (r"\\ref\s*\{([^{}]*)\}", r"\\text{\1}"),
    (r"\\tag\*\s*\{([^{}]*)\}", r"\\qquad\\text{\1}"),
    (r"\\tag\s*\{([^{}]*)\}", r"\\qquad\\text{(\1)}"),
    # The same in other words.
    (r"\\bmod(?![a-zA-Z])", r"\\;\\mathrm{mod}\\; "),
    (r"\\not\s*=", r"\\neq "),
    (r"\\not\s*\\in(?![a-zA-Z])", r"\\notin "),
    (r"\\left\s*<", r"\\left\\langle "),
    (r"\\right\s*>", r"\\right\\rangle "),
    (r"\\intertext\s*\{([^{}]*)\}", r" \\text{\1} \\\\ "),
    (r"\\qed(?![a-zA-Z])", r"\\square "),
    (r"\\genfrac\s*\{\(\}\s*\{\)\}\s*\{0pt\}\s*\{[0-3]?\}", r"\\binom"),
    (r"\\mathbbm(?![a-zA-Z])", r"\\mathbb"),
    # TeX sets a thin space between a bracket that closes and one that opens.
    (r"(\\end\{(?:[pbvBV]|small)?(?:matrix|array)\})\s*(?=\\begin\{)", r"\1\\,"),
    (r"(\\right(?:\\[a-zA-Z]+|\\?[^\s\\]))\s*(?=\\left(?![a-zA-Z]))", r"\1\\,"),
)
_MENDED = [(re.compile(pattern), instead) for pattern, instead in _WORDS]


class TexError(ValueError):
    """LaTeX that would not be drawn right."""


def prepare(tex: str, macros: dict[str, tuple[int, str]], display: bool = False) -> str:
    r"""A formula without macros of its own, in words that ziamath knows.

    Args:
        tex: LaTeX without dollars.
        macros: (number of arguments, body) of what has been defined; what `tex` defines is added.
        display: set on a line of its own.

    Raises:
        TexError: it has an environment that would be drawn wrong, or macros without an end.
    """
    tex = re.sub(r"(?<!\\)%[^\n]*", "", tex)  # comments
    tex = _expanded(_defined(tex, macros), macros)
    for pattern, instead in _MENDED:
        tex = pattern.sub(instead, tex)
    tex = _operators(tex, display)
    tex = _texts(tex)
    return " ".join(_environments(tex).split())


def argument(tex: str, at: int) -> tuple[str, int]:
    """The argument of a command that begins at `at` or behind blanks, and where it ends."""
    while at < len(tex) and tex[at].isspace():
        at += 1
    if at >= len(tex):
        raise TexError("an argument is missing")
    if tex[at] != "{":
        end = _NAME.match(tex, at).end() if tex[at] == "\\" and at + 1 < len(tex) else at + 1
        return tex[at:end], end
    depth, end = 0, at
    while end < len(tex):
        if tex[end] == "\\":
            end += 1
        elif tex[end] in "{}":
            depth += 1 if tex[end] == "{" else -1
            if not depth:
                return tex[at + 1 : end], end + 1
        end += 1
    raise TexError("a brace is not closed")


def _defined(tex: str, macros: dict[str, tuple[int, str]]) -> str:
    """`tex` without its definitions, which are kept in `macros`."""
    while found := _DEFINES.search(tex):
        body, end = argument(tex, found.end())
        count = int(found["count"] or 0) or found["marks"].count("#")
        if found["operator"]:
            body = rf"\operatorname{found['star']}{{{body}}}"
        macros[found["name"]] = (count, body)
        tex = tex[: found.start()] + tex[end:]
    return tex


def _expanded(tex: str, macros: dict[str, tuple[int, str]], depth: int = 0) -> str:
    if not macros:
        return tex
    if depth > _DEEPEST:
        raise TexError("a macro uses itself")
    done, at, found_one = "", 0, False
    for found in re.finditer(r"\\([a-zA-Z]+)|\\.", tex, re.S):
        if found.start() < at or found[1] not in macros:
            continue
        count, body = macros[found[1]]
        done += tex[at : found.start()]
        at, found_one = found.end(), True
        for number in range(1, count + 1):
            value, at = argument(tex, at)
            body = body.replace(f"#{number}", value)
        # In braces, for what is set above or below a macro belongs to all of it.
        done += f"{{{body}}}" if not body.startswith(r"\operatorname") else f"{body} "
    done += tex[at:]
    return _expanded(done, macros, depth + 1) if found_one else done


def _operators(tex: str, display: bool) -> str:
    r"""Names with limits below them, as `\operatorname*{arg\,max}_x` has them."""
    pattern = re.compile(
        r"\\(?:operatorname\*|operatorname(?=\s*\{[a-z]+\\[,;])|mathop)(?![a-zA-Z])"
    )
    while found := pattern.search(tex):
        name, end = argument(tex, found.end())
        plain = re.fullmatch(r"\s*\\(?:mathrm|text|rm)\s*\{?([^{}\\]*)\}?\s*", name)
        name = plain[1].strip() if plain else name
        words = re.split(r"(?:\s|~|\\[,;: !])+", name.strip())
        drawn = r"\,".join(rf"\mathrm{{{word}}}" for word in words)
        drawn = f"{{{name}}}" if "\\" in "".join(words) else f"{{{drawn}}}"
        below = re.match(r"\s*(?:\\limits)?\s*_", tex[end:])
        if display and below:
            limit, end = argument(tex, end + below.end())
            drawn = rf"\underset{{{limit}}}{{{drawn}}}\,"
        tex = tex[: found.start()] + drawn + " " + tex[end:]
    return tex


def _texts(tex: str) -> str:
    r"""Formulas inside `\text{…}` become formulas beside it, and signs of XML are written out."""
    done, at = "", 0
    pattern = re.compile(r"\\(text|textrm|textbf|textit|texttt|textsf|mbox|hbox)\s*(?=\{)")
    while found := pattern.search(tex, at):
        inner, end = argument(tex, found.end())
        parts = re.split(r"(?<!\\)\$", inner)
        pieces = [
            f" {part} " if number % 2 else rf"\{found[1]}{{{_escaped(part)}}}"
            for number, part in enumerate(parts)
            if part
        ]
        done += tex[at : found.start()] + "".join(pieces)
        at = end
    return done + tex[at:]


def _escaped(text: str) -> str:
    # latex2mathml copies a text into its XML as it is.
    text = text.replace(r"\&", "&").replace(r"\_", "_").replace(r"\%", "%")
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _environments(tex: str) -> str:
    """Environments under names that ziamath knows, and rules of arrays as columns of bars."""
    begin = re.compile(r"\\begin\s*\{([a-zA-Z]+)(\*?)\}")
    at = 0
    while found := begin.search(tex, at):
        name, star = found[1], found[2]
        end = _end_of(tex, found)
        inner, rest = tex[found.end() : end], tex[end + len(rf"\end{{{name}{star}}}") :]
        closing = ""
        opening = f"{name}{star}"
        if name in ("alignat", "alignedat"):
            inner = inner[argument(inner, 0)[1] :]
        if name.endswith("matrix") and star:
            inner, opening = re.sub(r"\A\s*\[[lcr]\]", "", inner), name
        if name == "rcases":
            opening, closing = "array", r"\right\}"
            inner = "{ll}" + inner
        elif name in _SAME:
            opening, columns = _SAME[name]
            inner = columns + inner
        if opening not in _ENVIRONMENTS:
            raise TexError(f"the environment {name} is not known")
        if opening == "array":
            inner = _ruled(inner)
        if name in _FENCED:  # brackets of a row become as high as all that stands in it
            closing = "}"
        before = {"}": "{", "": ""}.get(closing, r"\left.")
        front = tex[: found.start()] + before + rf"\begin{{{opening}}}"
        tex = front + inner + rf"\end{{{opening}}}" + closing + rest
        at = len(front)
    return tex


def _end_of(tex: str, begin: re.Match) -> int:
    name = re.escape(begin[1] + begin[2])
    depth = 1
    for found in re.finditer(rf"\\(begin|end)\s*\{{{name}\}}", tex[begin.end() :]):
        depth += 1 if found[1] == "begin" else -1
        if not depth:
            return begin.end() + found.start()
    raise TexError(f"the environment {begin[1]} does not end")


def _ruled(inner: str) -> str:
    """An array whose rules between columns are drawn as bars in every row."""
    spec, end = argument(inner, 0)
    columns = re.sub(r"[^lcr|]", "", re.sub(r"@\{[^{}]*\}|p\{[^{}]*\}", "l", spec)).strip("|")
    if "|" not in columns or re.search(r"\\begin\b", inner[end:]):
        return f"{{{columns.replace('|', '') or 'c'}}}" + inner[end:]
    bars = [at for at, letter in enumerate(columns) if letter == "|"]
    places = [at - before for before, at in enumerate(bars)]
    rows = []
    for row in re.split(r"\\\\", inner[end:]):
        if not row.strip():
            rows.append(row)
            continue
        cells = re.split(r"(?<!\\)&", row)
        for place in reversed(places):
            cells.insert(place, r" \vert ")
        rows.append("&".join(cells))
    return f"{{{columns.replace('|', 'c')}}}" + r"\\".join(rows)
