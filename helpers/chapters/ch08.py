"""Chapter 08, FlashAttention: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal
from ..problem.flash import FLASH_BASELINE
from .shared import Arguments, covering, empty, normal, scores, softmax

RUNGS = (FLASH_BASELINE,)


def _attention(case: Case) -> Arguments:
    n, d = case["n"], case["HEAD_DIM"]
    Q, K, V = (normal(n, d, seed=seed) for seed in range(3))
    # Twice as far apart as usual: the largest score often comes late, and matters. And scores of
    # each row around a level of its own, -100 ... 100, so that no constant can be subtracted.
    Q *= 2
    K[:, 0] = 4
    Q[:, 0] = np.linspace(-100, 100, n).round() * np.sqrt(d).round() / 4
    return {"Q": Q, "K": K, "V": V, "O": empty(n, d), "n": n}


def _new_token(case: Case) -> Arguments:
    n, d = case["n"], case["HEAD_DIM"]
    return {"K": normal(n, d), "q": normal(d, seed=1), "S": empty(n), "n": n}


def _halves(case: Case) -> Arguments:
    m, n = case["m"], case["n"]
    Q, K = normal(m, 64, dtype=np.float16), normal(n, 64, seed=1, dtype=np.float16)
    return {"Q": Q, "K": K, "S": empty(m, n), "m": m, "n": n}


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="08_online",
        title="a softmax that is kept up to date",
        task=(
            "A thread walks along the keys, tile by tile. Leave out the keys past the last one, "
            "and put right what was added up under an older maximum."
        ),
        hints=(
            "An old weight $e^{s-m}$ becomes $e^{s-m'}$ if it is multiplied by $e^{m-m'}$.",
            (
                "A weight is 0 if its score is minus infinity. All that was added up is "
                "multiplied, the sum and each element of $O$."
            ),
        ),
        entry="flash_attention",
        cases=({"n": 13, "HEAD_DIM": 32}, {"n": 65, "HEAD_DIM": 16, "B_C": 16}),
        launch=covering((64,), ("n", 64)),
        arguments=_attention,
        results={"O": lambda Q, K, V: softmax(scores(Q, K)) @ V},
        tolerance=3e-5,
        goals=(
            Goal(
                "global_load_sectors",
                "Q, K and V need to be read only once: until the maximum of a row is known, the "
                "largest score so far will do.",
            ),
        ),
        timed={"n": 4096, "HEAD_DIM": 64},
        unlike={"HEAD_DIM": 16, "B_C": 16},
    ),
    Exercise(
        name="08_copies",
        title="copies that nobody waits for",
        task=(
            "Start the copies of a tile of $K$ with `cp_async_16`, and see to it that they have "
            "arrived, those of the other threads as well, before a row is read."
        ),
        hints=(
            "A wait is for groups of copies, and of a thread's own only.",
            "What other threads have waited for is there for all after a barrier.",
        ),
        entry="scores",
        cases=({"n": 50, "HEAD_DIM": 64}, {"n": 133, "HEAD_DIM": 32}),
        launch=covering((64,), ("n", 64)),
        arguments=_new_token,
        results={"S": lambda K, q: K @ q / np.sqrt(len(q))},
        goals=(
            Goal(
                "cp_async_instructions",
                "Each chunk is copied once, by one thread.",
            ),
            Goal(
                "cp_async_instructions",
                "Rows of K are to come by cp_async_16, which copies while its thread goes on.",
                at_least=0.5,
            ),
            Goal("barriers", "One barrier is enough: nothing is written after it."),
        ),
        timed={"n": 1 << 20, "HEAD_DIM": 64},
    ),
    Exercise(
        name="08_fragments",
        title="who holds what",
        task=(
            "Multiply on tensor cores: pick the registers with the right keys, and bring each sum "
            "to its row and its column of $S$."
        ),
        hints=(
            (
                "Lanes 0 to 15 passed rows 0 to 15 of the first chunk, so register 0 comes from "
                "keys 0 to 7, register 1 from keys 8 to 15; lanes 16 to 31 did so for the next "
                "chunk."
            ),
            "The figure of fragments shows which row and column of $C$ a lane has.",
        ),
        entry="scaled_dot_product",
        cases=({"m": 16, "n": 16}, {"m": 21, "n": 35}),
        launch=covering((32,), ("n", 16), ("m", 16)),
        arguments=_halves,
        results={"S": scores},
        goals=(
            Goal(
                "instructions",
                "One mma_m16n8k16 of a warp does 4,096 operations: leave all products to it.",
                slack=1.5,
            ),
        ),
    ),
)
