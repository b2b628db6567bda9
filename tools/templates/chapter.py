"""Chapter 99, skeleton: its exercises."""

from __future__ import annotations

from ..exercises.spec import Case, Exercise
from .shared import SECTORS, TILES, Arguments, covering, empty, normal


def _rows_and_factors(case: Case) -> Arguments:
    m, n = case["m"], case["n"]
    return {"X": normal(m, n), "g": normal(m, seed=1), "Y": empty(m, n), "m": m, "n": n}


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="99_rows",
        title="a number for each row",
        task=(
            "Fill two gaps: the thread's own element, with the guard that it needs, and what "
            "becomes of that element."
        ),
        hints=(
            (
                "Lanes that are neighbours along `threadIdx.x` should read neighbours in memory, "
                "and a row of $X$ lies there in one piece."
            ),
            "Threads past an edge of $Y$ have nothing to do.",
        ),
        entry="scale_rows",
        cases=({"m": 37, "n": 19}, {"m": 16, "n": 33}, {"m": 21, "n": 70, "TILE": 8}),
        launch=covering(TILES, ("n", "TILE"), ("m", "TILE")),
        arguments=_rows_and_factors,
        results={"Y": lambda X, g: g[:, None] * X},
        goals=SECTORS,
        timed={"m": 16384, "n": 1024},
    ),
)
