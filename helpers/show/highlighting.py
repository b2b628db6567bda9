"""Source code in colours, line by line; a deck can split it between two slides."""

from __future__ import annotations

from html import escape

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String
from pygments.util import ClassNotFound

# Few classes, under one letter each.
_CLASSES = (
    (Comment.Preproc, "p"),
    (Comment, "c"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Decorator, "p"),
    (Name.Builtin, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Number, "m"),
    (String, "s"),
)


def coloured_lines(source: str, language: str, tag: str = "span") -> list[str]:
    """HTML of each line of `source`; plain where the language is not known.

    Args:
        language: as Pygments calls it.
        tag: the element around a word in colour.
    """
    lines = [""]
    for kind, text in _tokens(source, language):
        style = next((name for token, name in _CLASSES if kind is not None and kind in token), "")
        for index, part in enumerate(text.split("\n")):
            if index:
                lines.append("")
            if part:
                html = escape(part, quote=False)
                lines[-1] += f'<{tag} class="{style}">{html}</{tag}>' if style else html
    return lines


def highlight(source: str, language: str = "python") -> str:
    """`source` as a `pre` with one `span` a line."""
    lines = coloured_lines(source.rstrip("\n"), language, "i")
    return '<pre class="lines">' + "\n".join(f"<span>{line}</span>" for line in lines) + "</pre>"


def _tokens(source: str, language: str):
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return [(None, source)]
    # A comment in the last line is one only with its line's end.
    found = list(lexer.get_tokens(f"{source}\n"))
    return [*found[:-1], (found[-1][0], found[-1][1].removesuffix("\n"))]
