"""Bounds of the rungs: never above what an H200 took, and out of work that is the rungs' own."""

import numpy as np
import pytest

from helpers.kernels.source import KernelError
from helpers.measure import recorded
from helpers.measure.flash_times import recording_of
from helpers.measure.rung_bounds import rung_bounds, rung_work
from helpers.problem.ladder import ladder, rung
from helpers.simulator import gpu
from helpers.simulator.bounds.demand import as_data, extrapolated

LADDER = recorded.load(recorded.LADDER)
KERNELS = ("scaled_dot_product", "softmax", "pv_multiply")


def share(name: str, N: int, milliseconds: float, entry: str | None = None, **options) -> float:
    found = rung_bounds(name, N, **options)
    least = sum(one.seconds for key, one in found.items() if entry in (None, key))
    return least / (1e-3 * milliseconds)


def test_no_bound_is_above_a_recorded_time():
    shares = {
        (what, name, N): share(name, N, took, None if what == "attention" else what)
        for what in ("attention", *KERNELS)
        for name, times in LADDER.times(what).items()
        if name in rung_work()
        for N, took in times.items()
    }
    for one in (*ladder("flash"), *ladder("hopper")):
        name = one.name.removeprefix("flash_")
        for what in ("attention", "attention, cold"):
            rates = recording_of(one.name).times(what).get(name, {})
            for (b, h, n, d), rate in rates.items():
                took = 4 * b * h * n * n * d / rate * 1e-9
                key = (what, name, b, h, n, d)
                shares[key] = share(f"{one.name}, d = {d}", n, took, heads=b * h)
    assert len(shares) > 180
    assert {key: value for key, value in shares.items() if not 0 < value < 1} == {}


def test_bounds_say_what_limits_a_rung():
    """At N = 16,384, in the order in which the chapters take the limits away."""
    limits = {
        name: rung_bounds(name, 16384)["scaled_dot_product"].limit
        for name in ("naive", "tiled", "coalesced, transpose on load", "register_blocked")
    }
    assert limits == {
        "naive": "L1",
        "tiled": "shared memory",
        "coalesced, transpose on load": "shared memory",
        "register_blocked": "issue slots",
    }
    conflicts = rung_bounds("flash_baseline, d = 128", 4096)["flash_attention"]
    assert "shared memory; 87% of its wavefronts are conflicts" in conflicts.sentence
    assert "tensor cores" in rung_bounds("flash_swizzled, d = 128", 4096)["flash_attention"].why
    for one in ladder("hopper"):
        found = rung_bounds(f"{one.name}, d = 128", 4096)["flash_attention"]
        assert "by wgmma, 4,096 a clock" in found.sentence
        clocks = 4 * 64 * 4096**2 * 128 / (132 * 4096)
        assert found.seconds == pytest.approx(clocks / gpu("H200").clock, rel=1e-3)


@pytest.mark.parametrize(
    "name, entry", [("tiled", "scaled_dot_product"), ("register_blocked", "softmax")]
)
def test_recorded_work_is_the_rungs_own(name, entry):
    """At a size that is none of those recorded: what the polynomial says, blocks counted."""
    launch = rung(name).problem(entry, N=512, d=64).prepare().launches[0]
    report = launch.simulate(copy=False, sample=2).report
    counted = as_data(report.work)
    kept = as_data(extrapolated(rung_work()[name][entry], 512))
    for number in counted.keys() - {"traffic", "issued_as"}:
        # which loads the assembler issues for nobody is known better and better
        within = 0.1 if number == "instructions" else 1e-6
        assert counted[number] == pytest.approx(kept[number], rel=within), number
    assert counted["traffic"] == pytest.approx(kept["traffic"])


def test_sizes_that_tiles_do_not_cover_are_refused():
    with pytest.raises(KernelError, match="multiple of 64"):
        rung_bounds("tiled", 1000)
    with pytest.raises(KernelError, match="No work of 'tile'.*tiled"):
        rung_bounds("tile", 1024)
    assert np.isfinite(rung_bounds("tiled", 1024)["softmax"].seconds)
