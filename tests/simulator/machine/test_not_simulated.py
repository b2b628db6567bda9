"""What the simulator does not have is refused by its idea, with what to do without."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import simulator
from helpers.simulator.errors import SimulatorError

# What blocks of a cluster do, by kernel; together in one source, for its header takes a second.
IN_CLUSTERS = {
    "meet": "cluster.sync();",
    "rank": "o[0] = cluster.block_rank();",
    "write": "*cluster.map_shared_rank(s, 1) = 2;",
    "alone": "o[blockIdx.x] = 7;",
}
CLUSTERS = "#include <cooperative_groups.h>\n" + "".join(
    f"""extern "C" __global__ void __cluster_dims__(2, 1, 1) {name}(int* o) {{
    auto cluster = cooperative_groups::this_cluster();
    __shared__ int s[4];
    {what}
}}
"""
    for name, what in IN_CLUSTERS.items()
)
TEXTURE = 'extern "C" __global__ void k(int* o) { o[0] = (int)tex1Dfetch<float>(0ull, 1); }'
WIDE = """
typedef unsigned __int128 u128;
extern "C" __global__ void k(u128* o) { atomicCAS(o, (u128)0, (u128)1); }
"""
CHILD = """
__global__ void child(int* o) { o[0] = 1; }
extern "C" __global__ void k(int* o) { child<<<1, 1>>>(o); }
"""


@pytest.mark.parametrize(
    ("code", "entry", "options", "idea"),
    [
        (TEXTURE, "k", (), "has no textures and surfaces: pass the array itself"),
        (
            CHILD,
            "k",
            ("-rdc=true",),
            "a kernel cannot launch kernels here: launch them from Python",
        ),
        (WIDE, "k", ("--device-int128",), "has no 128-bit atomics: lock with a word of 32 bits"),
        (CLUSTERS, "meet", (), "has no clusters of blocks: let every"),
        (CLUSTERS, "rank", (), "has no clusters of blocks"),
        (CLUSTERS, "write", (), "has no clusters"),
    ],
)
def test_the_idea_is_named_and_no_instruction(code, entry, options, idea):
    with pytest.raises(SimulatorError) as error:
        simulator.launch(code, entry, (2,), (32,), (np.zeros(4, np.int32),), options=options)
    assert error.value.kind == "unsupported"
    assert idea in str(error.value) and "`" not in str(error.value)


def test_blocks_of_a_cluster_that_do_not_meet_run():
    o = np.zeros(4, np.int32)
    simulator.launch(CLUSTERS, "alone", (4,), (1,), (o,))
    assert o.tolist() == [7, 7, 7, 7]
    with pytest.raises(SimulatorError, match="the grid has 3 blocks, which is no multiple of the"):
        simulator.launch(CLUSTERS, "alone", (3,), (1,), (o,))
