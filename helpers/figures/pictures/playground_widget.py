"""The bank playground in a notebook: an index to type, its width, and the figure that follows."""

import asyncio
from html import escape

import ipywidgets as widgets

from ...show import KeepsHtml
from ..player import Player
from .playground import KINDS, WIDTHS, Analysis, ExpressionError, analyse, frames

WAIT = 0.4  # seconds without a key before anything is compiled
_STATUS = '<div role="status" style="{style}">{text}</div>'
_STYLES = {
    "busy": "opacity: 0.75; font-style: italic",
    "good": "font-size: 17px; font-weight: 600",
    "bad": "font-size: 17px; border-left: 4px solid #d55e00; padding-left: 8px",
}


class BankPlayground(KeepsHtml, widgets.VBox):
    """Type the index of a shared access as CUDA C in terms of `lane`; it is compiled and drawn.

    While something is typed or computed the figure is hidden, so that what is on screen always
    belongs to what is typed.

    Args:
        expression, width, kind: to begin with, as for `playground.analyse`.
        wait: seconds without a key before the index is compiled.
    """

    def __init__(
        self,
        expression: str = "(lane / 8) * 64 + (lane % 8) * 5",
        width: int = 4,
        kind: str = "load",
        *,
        wait: float = WAIT,
    ):
        self.analysis: Analysis | None = None
        self._wait, self._pending = wait, None
        wide = {"description_width": "64px"}
        self.expression = widgets.Text(
            value=expression, description="index", placeholder="lane * 2", style=wide,
            layout={"width": "min(560px, 96%)"}, continuous_update=True,
        )  # fmt: skip
        self.width = widgets.ToggleButtons(
            options=[(f"{n} bytes ({name})", n) for n, name in WIDTHS.items()], value=width,
            description="a lane", style={"button_width": "132px", **wide},
        )  # fmt: skip
        self.kind = widgets.ToggleButtons(
            options=list(KINDS), value=kind, description="access",
            style={"button_width": "132px", **wide},
        )  # fmt: skip
        self.status = widgets.HTML()
        self.player = Player([], name="Bank playground", alt="Lanes of a warp into the banks")
        for control in (self.expression, self.width, self.kind):
            control.observe(self._changed, "value")
        choices = widgets.HBox(
            [self.width, self.kind], layout={"flex_flow": "row wrap", "grid_gap": "4px 28px"}
        )
        super().__init__([self.expression, choices, self.status, self.player])
        self.update()

    def _repr_html_(self) -> str:
        """What is typed, what comes of it, and the figure, for where nothing can be typed."""
        typed = f"<p><code>{escape(self.expression.value)}</code></p>"
        return typed + self.status.value + (self.player._repr_html_() if self.analysis else "")

    def update(self) -> None:
        """Analyse and draw what is typed now."""
        self._cancel()
        self.analysis = None
        try:
            found = analyse(self.expression.value, self.width.value, self.kind.value)
            steps = frames(found)
        except ExpressionError as error:
            self._say("bad", str(error))
            return
        except Exception as error:  # a widget's callback has nowhere to show a traceback
            self._say("bad", f"This index could not be run ({type(error).__name__}: {error}).")
            return
        self.analysis = found
        self.player.frames = steps
        self.player.index = len(steps) - 1
        self.player.layout.display = None
        self._say("good", found.summary)

    def _changed(self, _change) -> None:
        self._cancel()
        self.analysis = None
        self.player.layout.display = "none"
        self._say("busy", "compiling and running …")
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no loop to wait in, as in a script
            self.update()
            return
        self._pending = loop.call_later(self._wait, self.update)

    def _cancel(self) -> None:
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None

    def _say(self, kind: str, text: str) -> None:
        if kind != "good":
            self.player.layout.display = "none"
        self.status.value = _STATUS.format(style=_STYLES[kind], text=escape(text))
