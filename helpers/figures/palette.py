"""Colours of the figures, for light and for dark pages.

The hues are those of Okabe and Ito ("Color Universal Design", 2008), told apart under the common
colour blindnesses. Each comes as a line, dark or light enough to read as text on the page (4.5 to 1
at least), and as a fill on which the page's ink reads. A drawing names CSS variables; `css` defines
them, and each name carries its light value for viewers that know no variables.
"""

import re

# name: (on a light page, on a dark page)
COLOURS = {
    "ink": ("#1f2328", "#e8eaed"),
    "muted": ("#57606a", "#a9b1ba"),
    "grid": ("#c3cad2", "#4a5159"),
    "faint": ("#eef0f3", "#22262b"),
    "paper": ("#ffffff", "#111111"),
    "blue": ("#0072b2", "#5aaadc"),
    "blue-fill": ("#b2d5e8", "#0b4363"),
    "orange": ("#9a6a00", "#e69f00"),
    "orange-fill": ("#f8e2b2", "#6b4b06"),
    "green": ("#008561", "#1db08a"),
    "green-fill": ("#b2e2d5", "#095540"),
    "purple": ("#9e5b80", "#d98fb8"),
    "purple-fill": ("#f0d7e5", "#6b4359"),
    "vermillion": ("#c05500", "#f08743"),
    "vermillion-fill": ("#f2cfb2", "#6f3609"),
    "sky": ("#2f7aa3", "#74b9e2"),
    "sky-fill": ("#dceffa", "#325f79"),
    "yellow": ("#7a7400", "#bdb32b"),
    "yellow-fill": ("#f7f09a", "#645f1a"),
    "gray": ("#6c7278", "#9aa1a9"),
    "gray-fill": ("#d9dce0", "#43484e"),
}
# In the order in which warps, blocks or series take them.
HUES = ("blue", "orange", "green", "purple", "vermillion", "sky", "yellow", "gray")
# Every figure of the series gives a matrix the same hue.
MATRIX_HUES = {"X": "gray", "Q": "blue", "K": "orange", "V": "green", "S": "purple", "P": "purple"}
MATRIX_HUES |= {"O": "vermillion"}

MONO = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"

# JupyterLab's own paper and ink, so that a figure suits themes that are neither white nor black.
_OF_THE_PAGE = {
    "ink": "--jp-content-font-color1",
    "paper": "--jp-layout-color0",
}


def colour(name: str) -> str:
    """A colour of `COLOURS`, for a `fill` or a `stroke`.

    Raises:
        ValueError: there is no colour of that name.
    """
    if name == "none":
        return name
    if name not in COLOURS:
        raise ValueError(f"there is no colour {name!r}; there are {', '.join(COLOURS)}.")
    return f"var(--fig-{name}, {COLOURS[name][0]})"


def hue(number: int) -> str:
    """The name of the hue of warp, block or series `number`; hues repeat after eight."""
    return HUES[number % len(HUES)]


def css(selector: str) -> str:
    """The variables that `colour` names, for everything inside `selector`.

    JupyterLab, VS Code and others say on <body> which theme they are in; elsewhere the page's own
    `color-scheme` tells which of the two values holds, which may follow the viewer's preference.
    """
    lines = [f"  --fig-mono: {MONO};"]
    for name, (light, dark) in COLOURS.items():
        value = f"light-dark({light}, {dark})"
        if name in _OF_THE_PAGE:
            value = f"var({_OF_THE_PAGE[name]}, {value})"
        lines.append(f"  --fig-{name}: {value};")
    themes = "".join(
        f'[data-jp-theme-light="{is_light}"] {selector}, .vscode-{scheme} {selector} '
        f"{{ color-scheme: {scheme}; }}\n"
        for is_light, scheme in (("true", "light"), ("false", "dark"))
    )
    return f"{selector} {{\n" + "\n".join(lines) + "\n}\n" + themes


def resolve(svg: str) -> str:
    """`svg` with the light value in place of every variable, for viewers that know none."""
    return re.sub(r"var\(--fig-[\w-]+, ([^()]+)\)", r"\1", svg)
