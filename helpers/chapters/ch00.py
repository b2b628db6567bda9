"""Chapter 00, a first kernel: its exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal, Misconception
from .shared import TOGETHER, Arguments, covering, empty, normal


def _numbers(case: Case) -> Arguments:
    n = case["n"]
    return {"a": normal(n, seed=n), "d": empty(n - 1), "n": n}


def _to_square(case: Case) -> Arguments:
    n = case["n"]
    return {"a": normal(n, seed=n), "b": empty(n), "n": n}


_DIFFERENCE = "d[i] = a[i + 1] - a[i]"
_LOOP, _SQUARE = "for (int i = first; i < n; i += step)", "b[i] = a[i] * a[i];"

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="00_differences",
        title="between neighbours",
        task=(
            "Compute the difference between each element and the next one. There are n elements, "
            "so there are n − 1 differences: who has nothing to do?"
        ),
        hints=(
            "Write down which two elements thread 0 reads, and which the last thread that has a "
            "difference. What would the thread after it read?",
            "Thread number i reads elements i and i + 1 and writes difference i. So i + 1 has to "
            "be an element, too: the guard of the sum of two vectors lets one thread too many in.",
        ),
        explanation=(
            "A guard follows from what a thread touches, not from how many threads there are. Here "
            "the largest index is i + 1, and it has to stay below n."
        ),
        entry="differences",
        cases=({"n": 100}, {"n": 65}, {"n": 2}),
        launch=covering((64,), ("n", 64)),
        arguments=_numbers,
        results={"d": lambda a: np.diff(a)},
        goals=(TOGETHER,),
        counted={"n": 100},
        misconceptions=(
            Misconception(
                "The two neighbours are exchanged: the next element was subtracted from this one, "
                "so every difference has the wrong sign.",
                ((_DIFFERENCE, "d[i] = a[i] - a[i + 1]"),),
            ),
            Misconception(
                "The neighbours are added, not subtracted.",
                ((_DIFFERENCE, "d[i] = a[i + 1] + a[i]"),),
            ),
            Misconception(
                "Every block reads the elements of block 0: `threadIdx.x` is a thread's place in "
                "its block, not in the array.",
                ((_DIFFERENCE, "d[i] = a[threadIdx.x + 1] - a[threadIdx.x]"),),
            ),
            Misconception(
                "The neighbour before was taken in place of the next one, so each difference is "
                "one place too far, and the first one is missing.",
                (
                    ("if (i < n - 1)", "if (i > 0 && i < n - 1)"),
                    (_DIFFERENCE, "d[i] = a[i] - a[i - 1]"),
                ),
            ),
            Misconception(
                "The element after the next one was taken: neighbours lie one place apart.",
                (("if (i < n - 1)", "if (i < n - 2)"), (_DIFFERENCE, "d[i] = a[i + 2] - a[i]")),
            ),
            Misconception(
                "These are the next elements themselves: nothing was subtracted from them.",
                ((_DIFFERENCE, "d[i] = a[i + 1]"),),
            ),
            Misconception(
                "These are distances: a difference is negative where the next element is smaller.",
                results={"d": lambda a: np.abs(np.diff(a))},
            ),
            Misconception(
                "Only the threads of the first block have an element: the guard has to compare i "
                "with the number of elements, not with the size of a block.",
                (("if (i < n - 1)", "if (i < n - 1 && i < blockDim.x)"),),
            ),
            Misconception(
                "Indices were subtracted in place of elements: every difference is 1.",
                (("a[i + 1] - a[i]", "(i + 1) - i"),),
            ),
        ),
    ),
    Exercise(
        name="00_few_threads",
        title="few threads, many elements",
        task=(
            "Two blocks of 64 threads are to square all elements, however many there are. Let each "
            "thread take several, so that neighbouring threads still read neighbours."
        ),
        hints=(
            "There are 128 threads. If thread 0 takes element 0 first and its neighbours take 1, "
            "2, 3 and so on, which element is the next one that nobody has taken?",
            "A thread goes on from its element to the one that lies as many places further as the "
            "launch has threads. `gridDim.x` is the number of blocks. The loop ends at n.",
        ),
        explanation=(
            "In each turn of the loop the threads take 128 neighbouring elements, and then all go "
            "on by 128. A warp's 32 lanes read neighbours in every turn, so a request takes 4 "
            "sectors. The loop's condition is the guard. CUDA's users call it a grid-stride loop."
        ),
        entry="squares",
        cases=({"n": 500}, {"n": 77}, {"n": 300}),
        launch=lambda case, kernel: ((2,), (64,), 0),
        arguments=_to_square,
        results={"b": lambda a: a * a},
        goals=(
            Goal(
                "global_load_sectors",
                "Either elements are read more than once, or the lanes of a warp read elements "
                "that lie far apart. Which elements do lanes 0 and 1 take in the first turn, and "
                "where do all 128 threads go on?",
                slack=1.25,  # a half for each block may begin within a sector
            ),
        ),
        misconceptions=(
            Misconception(
                "Each thread takes one element only, so nobody takes those from 128 on.",
                ((f"{_LOOP} {_SQUARE}", "if (first < n) b[first] = a[first] * a[first];"),),
            ),
            Misconception(
                "Both blocks start at the same elements: `threadIdx.x` is a thread's place in its "
                "block, not in the launch.",
                (("int i = first;", "int i = threadIdx.x;"),),
            ),
            Misconception(
                "All threads start at the same element: each has to start at one of its own.",
                (("int i = first;", "int i = 0;"),),
            ),
            Misconception(
                "The number of turns was rounded down, so the elements that are left over at the "
                "end are nobody's.",
                (
                    (
                        f"{_LOOP} {_SQUARE}",
                        f"for (int i = first, k = 0; k < n / step; k++, i += step) {_SQUARE}",
                    ),
                ),
            ),
            Misconception(
                "In each turn the element was multiplied by the thread's first one, not by itself.",
                (("= a[i] * a[i]", "= a[i] * a[first]"),),
            ),
            Misconception(
                "These are square roots, not squares.",
                (("= a[i] * a[i]", "= sqrtf(a[i])"),),
            ),
            Misconception(
                "b is multiplied by the element, so what it held before goes in: it has to be set.",
                (("b[i] = a[i] * a[i]", "b[i] *= a[i]"),),
            ),
            Misconception(
                "The index was squared, not the element.",
                (("= a[i] * a[i]", "= (float)i * i"),),
            ),
            Misconception(
                "The elements were doubled, not squared.",
                (("= a[i] * a[i]", "= a[i] + a[i]"),),
            ),
            Misconception(
                "A thread writes all of its results to its first place, so only the last one is "
                "left there.",
                (("b[i] =", "b[first] ="),),
            ),
        ),
    ),
)
