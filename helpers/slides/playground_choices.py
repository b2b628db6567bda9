"""The bank playground without a kernel: typical indices to choose from, in place of one to type."""

from __future__ import annotations

from html import escape

from helpers.figures.pictures.playground import ExpressionError, analyse, frames
from helpers.figures.pictures.playground_widget import BankPlayground
from helpers.figures.player import Player

from .content.choices import Choices, state_of

# A column without and with padding, and the same for 16 bytes a lane; one row of buttons.
INDICES = ("lane", "lane * 32", "lane * 33", "lane * 16", "lane * 20")
WIDTHS = {4: "4 bytes", 16: "16 bytes"}


def choices_of(playground: BankPlayground) -> Choices:
    """Controls with a result for each of `INDICES` and what is typed, and for two widths.

    What is no index for a width says why, as it does in a notebook.
    """
    typed, kind = playground.expression.value, playground.kind.value
    width = playground.width.value if playground.width.value in WIDTHS else 4
    indices = [*INDICES, *([] if typed in INDICES else [typed])]
    results = []
    for index in indices:
        for count, name in WIDTHS.items():
            player = Player([])
            try:
                found = analyse(index, count, kind)
                player.frames, said = frames(found), ""
                player.index = len(player.frames) - 1
            except ExpressionError as error:
                said = f"<p>{escape(str(error))}</p>"
            values = {key: state_of(player)[key] for key in ("frames", "index")}
            player.close()
            results.append(
                {
                    "settings": {"index": index, "width": name},
                    "html": said,
                    "changes": [{"target": playground.player.model_id, "values": values}],
                }
            )
    return Choices(
        controls=[
            {"name": "index", "label": "index", "choices": indices},
            {"name": "width", "label": "a lane", "choices": list(WIDTHS.values())},
        ],
        settings={"index": typed, "width": WIDTHS[width]},
        results=results,
    )
