"""A problem: bound to copies of its arrays, what will be written poisoned."""

import numpy as np
import pytest

from helpers import cp
from helpers.kernels import CannotRun, KernelError, load_kernel
from helpers.problem.poison import poisoned
from helpers.problem.problem import Problem

ADD = load_kernel("00_vector_add.cu")
A = np.arange(5, dtype=np.float32)


def problem(expected=None, **args):
    inputs = {"a": A, "b": A, "c": np.zeros(5, np.float32), "n": 5} | args
    return Problem.of(ADD, 1, 32, inputs, expected or {"c": 2.0 * A})


@pytest.mark.parametrize("module", [np, cp], ids=["host", "device"])
def test_a_problem_is_bound_to_copies_and_its_outputs_are_poisoned(module):
    posed = problem()
    prepared = posed.prepare(module)
    assert isinstance(prepared.arrays["a"], module.ndarray)
    assert prepared.arrays["a"] is prepared.arrays["b"]  # one array to all who have it
    assert not np.shares_memory(np.asarray(cp.asnumpy(prepared.arrays["a"])), A)
    assert poisoned(cp.asnumpy(prepared.arrays["c"])).all() and not posed.inputs["c"].any()
    [launch] = prepared.launches
    assert launch.by_name["c"] is prepared.arrays["c"]
    if module is cp:
        prepared.run()
    else:
        launch.simulate(copy=False)
    np.testing.assert_array_equal(cp.asnumpy(prepared.arrays["c"]), posed.exact("c"))


def test_what_is_expected_is_asked_for_when_it_is_needed():
    asked = []
    posed = problem({"c": lambda: asked.append(1) or 2.0 * A})
    posed.prepare()
    assert not asked
    np.testing.assert_array_equal(posed.exact("c"), 2.0 * A)
    assert posed.outputs(posed.launches[0]) == ["c"]


@pytest.mark.parametrize(
    ("posed", "sentence"),
    [
        (problem(m=3), "vector_add takes a, b, c, n; there is no m."),
        (problem({"d": A}), "vector_add takes a, b, c, n; there is no d."),
        (Problem.of(ADD, 1, 32, {"a": A}, {}), "vector_add takes a, b, c, n; b is missing."),
        (problem(a=A.astype(np.float64)), "vector_add: a is float64, but `const float*"),
    ],
)
def test_arguments_that_do_not_fit(posed, sentence):
    with pytest.raises(KernelError) as caught:
        posed.prepare()
    assert str(caught.value).startswith(sentence)


def test_a_geometry_that_no_hardware_takes():
    with pytest.raises(CannotRun, match="a GPU allows at most 1,024"):
        Problem.of(ADD, 1, 2048, {}, {})


def test_a_kernel_may_call_its_arguments_otherwise():
    names = ("x", "y", "sum", "count")
    inputs = dict(zip(names, problem().inputs.values(), strict=True))
    posed = Problem(problem().launches, inputs, {"sum": 2.0 * A}, 1e-6, names)
    prepared = posed.prepare()
    prepared.launches[0].simulate(copy=False)
    np.testing.assert_array_equal(prepared.arrays["sum"], posed.exact("sum"))
