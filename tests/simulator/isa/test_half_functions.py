"""Mathematical functions of cuda_fp16.h and cuda_bf16.h, against float64; and odd inline assembly.

The headers write these functions in inline PTX that no other code of the course resembles.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from helpers import simulator
from helpers.simulator import SimulatorError

HALF = ("cuda_fp16.h", "half", np.float16)
BFLOAT = ("cuda_bf16.h", "__nv_bfloat16", ml_dtypes.bfloat16)
FUNCTIONS = {
    "hexp": np.exp, "hexp2": np.exp2, "hexp10": lambda x: 10**x, "hlog": np.log, "hlog2": np.log2,
    "hlog10": np.log10, "hrcp": lambda x: 1 / x, "hsqrt": np.sqrt, "hrsqrt": lambda x: x**-0.5,
    "hsin": np.sin, "hcos": np.cos, "htanh": np.tanh, "hfloor": np.floor, "hceil": np.ceil,
    "hrint": np.rint, "htrunc": np.trunc,
}  # fmt: skip
KERNEL = """#include <%s>
extern "C" __global__ void one(const %s* x, %s* out) { int t = threadIdx.x; out[t] = %s(x[t]); }
extern "C" __global__ void two(const %s2* x, %s2* out) { int t = threadIdx.x; out[t] = %s(x[t]); }
"""


@pytest.mark.parametrize("kind", (HALF, BFLOAT), ids=("half", "bfloat16"))
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_of_halves(function, kind):
    header, name, dtype = kind
    x = np.linspace(0.07, 4.7, 64).astype(dtype)

    packed = function.replace("h", "h2", 1)
    code = KERNEL % (header, name, name, function, name, name, packed)
    expected = FUNCTIONS[function](x.astype(np.float64))
    bits = 10 if dtype is np.float16 else 7
    step = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(expected), 1e-3))) - bits)
    for entry, threads in (("one", 64), ("two", 32)):
        out = np.full(64, np.nan, dtype)
        args = [a if dtype is np.float16 else a.view(np.uint16) for a in (x, out)]
        simulator.launch(code, entry, (1,), (threads,), args)
        assert np.all(np.abs(out.astype(np.float64) - expected) <= 1.01 * step + 1e-3), entry


@pytest.mark.parametrize(
    "assembly",
    (
        "{ .reg.b32 t; mov.b32 t, 7; st.global.b32 [%0], t; }",
        "{.reg .b32 t;\\n\\tmov.b32 t,7;st.global.b32 [%0],t;}",
        "{ .reg.pred p; setp.eq.u32 p, 1, 1; @p st.global.b32 [%0], 7; }",
        "{ .reg .b32 a, b;  mov.b32 a, 3; add.u32 b, a, 4; st.global.u32 [ %0 ], b; }",
        "{ .reg.b32 w; mov.u32 w, WARP_SZ; sub.u32 w, w, 25; st.global.u32 [%0+0], w; }",
    ),
)
def test_odd_forms_of_inline_assembly(assembly):
    code = f"""extern "C" __global__ void k(int* o) {{ asm volatile("{assembly}" :: "l"(o)); }}"""
    out = np.zeros(1, np.int32)
    simulator.launch(code, "k", (1,), (1,), (out,))
    assert out[0] == 7


def test_what_cannot_be_read_stops_only_its_own_kernel():
    code = """extern "C" __global__ void odd(int* o) { o[0] = 1;
      asm volatile("{ .reg .v4 .f32 v; }");
    }
    extern "C" __global__ void plain(int* o) { o[0] = 5; }"""
    out = np.zeros(1, np.int32)
    simulator.launch(code, "plain", (1,), (1,), (out,))
    assert out[0] == 5
    with pytest.raises(SimulatorError, match=r"line 2.*\.reg \.v4 \.f32 v"):
        simulator.launch(code, "odd", (1,), (1,), (out,))
    assert out[0] == 5


def test_warp_size():
    code = 'extern "C" __global__ void k(int* o) { o[threadIdx.x] = threadIdx.x % warpSize; }'
    out = np.zeros(64, np.int32)
    simulator.launch(code, "k", (1,), (64,), (out,))
    assert out.tolist() == 2 * list(range(32))
