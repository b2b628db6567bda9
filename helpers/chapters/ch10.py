"""Chapter 10, overlap: its rungs and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal, Misconception
from ..problem.flash_overlap import OVERLAP
from .shared import NO_ROOM, Arguments, empty, normal

RUNGS = OVERLAP


def _weights(case: Case) -> Arguments:
    m, n = case["m"], case["n"]
    return {"P": normal(m, n), "V": normal(n, 64, seed=1), "O": empty(m, 64), "n": n}


def _scores(case: Case) -> Arguments:
    """Rows at levels of their own; in every fourth the largest score comes last, and by far.

    In others several scores are 2^126 times the first: as weights their sum would be no float.
    """
    m, n = case["m"], case["n"]
    S = 3 * normal(m, n) + np.linspace(-90, 90, m, dtype=np.float32)[:, None]
    S[::4, -1] += 200  # more than powers of two in fp32 bear
    S[1::4, n // 3] += 25
    S[2::4, 32:] += 4
    S[3::4, 32:] = S[3::4, :32].max(axis=1, keepdims=True) + 126.5
    return {"S": S, "V": normal(n, 32, seed=1), "O": empty(m, 32), "n": n}


def _softmax_of_powers(S: np.ndarray, V: np.ndarray) -> np.ndarray:
    P = np.exp2(S - S.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True) @ V


_PLACE = "        stage = t % STAGES;\n"
_NEXT = "const int next = t + STAGES - 1;"
_START = "if (next < tiles) start_copy(s_V[next % STAGES], V, next * TILE, n);"
_MOVED = "if (any_lane(score > row_max)) {"
_MASKS = "for (int mask = 16; mask > 0; mask /= 2) {"
_CORRECTION = "const float correction = exp2f(row_max - new_max);"

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="10_ahead",
        title="copies that run ahead",
        task=(
            "Keep several tiles of $V$ under way: start the first ones before the loop, and one "
            "more in each round. The wait stands already, and so does the one barrier of a round."
            "\n\n`cp_async_wait<N>` lets the last N groups be under way and waits for all that "
            "were made before them: after three groups, `cp_async_wait<1>` waits for the first "
            "two. A commit with no new copy makes an empty group, and that counts as well."
        ),
        hints=(
            "Write down, for STAGES = 3 and five tiles, which groups a thread has made when it "
            "comes to the wait of each round. Of these the last one may be under way, and no "
            "other. Is the tile of that round among those that are there?",
            "Before the loop there are STAGES - 1 groups, and each round makes exactly one, even "
            "where no tile is left: a group may be empty. Tile t lies in place t % STAGES. The "
            "place of tile t + STAGES - 1 is the one that tile t - 1 had, with which all threads "
            "are done since the barrier.",
        ),
        explanation=(
            "cp_async_wait<N> waits until at most the last N groups are under way. At the wait of "
            "round t a thread has made STAGES - 1 + t groups, of which the last STAGES - 2 belong "
            "to later tiles: so tile t is there. That holds in the last rounds only if they make "
            "groups too, empty ones. The copy goes into the place of tile t - 1. It may start only "
            "behind the barrier, when no thread reads that tile any more. So one barrier a tile "
            "does for both."
        ),
        entry="weighted_rows",
        cases=(
            {"m": 3, "n": 45},
            {"m": 2, "n": 61, "STAGES": 4},
            {"m": 2, "n": 7, "STAGES": 2},
            {"m": 1, "n": 5, "STAGES": 4},  # fewer tiles than are started before the loop
        ),
        launch=lambda case, kernel: ((case["m"],), (64,), 0),
        arguments=_weights,
        results={"O": lambda P, V: P @ V},
        tolerance=1e-5,
        counted={"m": 3, "n": 45},
        goals=(
            NO_ROOM,
            Goal(
                "global_load_sectors",
                "Each row of V is copied once. Which tile is copied a second time?",
            ),
            Goal(
                "barriers",
                "One a tile is enough: behind it tile t is whole, and the place of tile t - 1 is "
                "free for the next copy.",
                name="barriers, summed over all warps",
            ),
        ),
        timed={"m": 4096, "n": 4096},
        keeps=("cp_async_wait<STAGES - 2>();",),
        never=(
            (
                r"\bcp_async_wait\w*\s*(?!<\s*STAGES - 2\s*>)[<(]",
                "The result is right, but this waits for copies that were started only just now: "
                "nothing is under way behind the arithmetic. The one wait of a round, which stood "
                "there already, is enough.",
            ),
        ),
        misconceptions=(
            Misconception(
                "All rounds read the first place: tile t lies where its copy went.",
                ((_PLACE, ""),),
            ),
            Misconception(
                "The copy that a round starts is of the tile that is worked on, not of one ahead.",
                ((_NEXT, "const int next = t;"),),
            ),
            Misconception(
                "The copy that a round starts goes to the place of the tile that is worked on.",
                (("s_V[next % STAGES]", "s_V[stage]"),),
            ),
            Misconception(
                "The first copies begin with tile 1: nobody copies tile 0, which the loop takes "
                "first.",
                (("V, ahead * TILE, n)", "V, (ahead + 1) * TILE, n)"),),
            ),
            Misconception(
                "The first copies leave out tile 0 and its place, with which the loop begins.",
                (("int ahead = 0; ahead < STAGES - 1", "int ahead = 1; ahead < STAGES"),),
            ),
            Misconception(
                "The places are counted as if there were one fewer: the copy of a round goes to "
                "the place of the tile that it still reads.",
                (
                    (_PLACE, "        stage = t % (STAGES - 1);\n"),
                    ("s_V[next % STAGES]", "s_V[next % (STAGES - 1)]"),
                ),
            ),
            Misconception(
                "All first copies go to one place, where the last of them stays.",
                (("s_V[ahead]", "s_V[0]"),),
            ),
            Misconception(
                "Round t copies tile t + STAGES into the place of tile t, which it still reads: "
                "there is room for STAGES - 1 tiles ahead of that one.",
                ((_NEXT, "const int next = t + STAGES;"),),
            ),
        ),
    ),
    Exercise(
        name="10_moved",
        title="only where the maximum moved",
        task=(
            "A warp has a row of scores and takes 32 of them at a time. Keep its softmax up to "
            "date, but look for a new maximum, and correct sums, only where one of the 32 is above "
            "the maximum so far."
        ),
        hints=(
            "The maximum of a row and the factor are the same in all lanes, the sums are each "
            "lane's own. What must all 32 lanes decide together, and which of them cannot know it "
            "alone? How many shuffles does a maximum of 32 lanes take?",
            "Ask `any_lane(score > row_max)`. Inside: five shuffles, with 16, 8, 4, 2 and 1, give "
            "all lanes the largest score. Then the factor is a power of two of old minus new, and "
            "both sums are multiplied by it before row_max changes.",
        ),
        explanation=(
            "A vote takes one instruction; a maximum over the warp takes ten, and a correction "
            "some more. In a row of random scores the maximum of the first k groups lies in the "
            "last of them with probability 1 / k, so after a few groups it hardly ever moves. "
            "Weights stay relative to row_max, which belongs to the sums: whoever changes one "
            "changes both. In the first group the factor is 2 to the power of -inf, which is 0."
        ),
        entry="softmax_rows",
        cases=({"m": 7, "n": 37}, {"m": 5, "n": 101}),
        launch=lambda case, kernel: ((case["m"],), (32,), 0),
        arguments=_scores,
        results={"O": _softmax_of_powers},
        tolerance=1e-5,
        counted={"m": 2, "n": 640},
        goals=(
            Goal(
                "instructions",
                "Most groups of 32 scores hold no new maximum. What is done for them beyond asking "
                "all lanes once: shuffles, a factor, products by 1?",
                slack=1.03,
                name="instructions, summed over all warps",
            ),
            Goal(
                "flops",
                "In most groups of 32 scores the maximum stays, and the factor is 1: there is "
                "nothing to compute and nothing to multiply by it.",
                slack=1.02,
                name="additions and multiplications",
            ),
        ),
        timed={"m": 4096, "n": 4096},
        misconceptions=(
            Misconception(
                "The sum of the weights still belongs to the old maximum: it shrinks as O does.",
                (("            row_sum *= correction;\n", ""),),
            ),
            Misconception(
                "Weights count twice in row_sum: the gap adds those that the line below it adds.",
                (
                    (
                        "row_sum *= correction;",
                        "row_sum = row_sum * correction + exp2f(score - new_max);",
                    ),
                ),
            ),
            Misconception(
                "O still belongs to the old maximum: it shrinks as the sum of the weights does.",
                (("            r_O *= correction;\n", ""),),
            ),
            Misconception(
                "The factor is upside down: the maximum has grown, so what was added up shrinks.",
                ((_CORRECTION, "const float correction = exp2f(new_max - row_max);"),),
            ),
            Misconception(
                "Each lane goes on with its own score as the maximum, where a row has one in all "
                "lanes.",
                (("            row_max = new_max;\n", "            row_max = score;\n"),),
            ),
            Misconception(
                "A row is spread over all 32 lanes here, and its maximum is taken over a few.",
                ((_MASKS, "for (int mask = 2; mask > 0; mask /= 2) {"),),
            ),
            Misconception(
                "Each lane shrinks by the growth of its own score, where all of a row share one "
                "maximum.",
                (("new_max = fmaxf(new_max, shuffle_xor(new_max, mask));", "new_max += 0.0f;"),),
            ),
            Misconception(
                "A maximum that is far larger is not taken: weights are powers of two of how far "
                "scores lie above the old one, and their sum becomes infinite.",
                ((_MOVED, "if (any_lane(score > row_max + 127.0f)) {"),),
            ),
            Misconception(
                "The first maximum is kept for ever: a larger one that comes later must be taken.",
                ((_MOVED, "if (key == 0) {"),),
            ),
        ),
    ),
)
