"""Blocks a multiprocessor against numbers worked out by hand from the CUDA programming guide."""

import pytest

from helpers import simulator

# threads, registers, shared, GPU: blocks by registers, shared memory, warps, blocks
CASES = [
    # 40 * 32 is 1,280 a warp, 12 warps a quarter; (8,192 + 1,024) of 233,472 bytes
    ((256, 40, 8192, "H200"), (6, 25, 8, 32)),
    # 238 * 32 rounds up to 7,680 a warp: 2 a quarter; 49,152 + 1,024
    ((128, 238, 49152, "H200"), (2, 4, 16, 32)),
    ((128, 168, 49152, "A100"), (3, 3, 16, 32)),
    # 33 threads are two warps; 17 * 32 rounds up to 768: 21 a quarter
    ((33, 17, 1, "RTX 3090"), (42, 88, 24, 16)),
    ((1024, 64, 0, "T4"), (1, 16, 1, 16)),
    # a quarter of the registers holds 2 warps of 255: no block of 12 fits
    ((384, 255, 0, "RTX 4090"), (0, 100, 4, 24)),
]


@pytest.mark.parametrize("asked, blocks", CASES, ids=[" ".join(map(str, a)) for a, _ in CASES])
def test_blocks_of_a_multiprocessor(asked, blocks):
    found = simulator.occupancy(*asked)
    assert tuple(found.limits.values()) == blocks
    assert found.blocks == min(blocks)
    assert found.limits[found.limit] == min(blocks)


def test_waves_and_their_tail():
    found = simulator.occupancy(256, 40, 8192, "H200", blocks=1000)
    assert found.at_once == 6 * 132
    assert found.waves() == pytest.approx(1000 / 792)
    assert found.tail() == pytest.approx((2 * 792 - 1000) / 792)
    assert found.waves(792) == 1 and found.tail(792) == 0
    assert "1.26 waves" in found.sentence and "no more registers" in found.sentence


def test_a_wrong_name_is_told_with_the_choices():
    with pytest.raises(simulator.SimulatorError, match="'H300'.*T4, A100, H100, H200, RTX 3090"):
        simulator.gpu("H300")
    assert simulator.gpu("rtx4090").name == "RTX 4090"


@pytest.mark.parametrize("asked", [(0, 32, 0), (1025, 32, 0), (32, 256, 0), (32, 32, 1 << 20)])
def test_what_no_launch_can_have_is_refused(asked):
    with pytest.raises(simulator.SimulatorError, match="whole number"):
        simulator.occupancy(*asked)
