"""One launch as an object: checked once, then run, counted, simulated, refused."""

import numpy as np
import pytest

from helpers import cp, device
from helpers.gpu.tensor_map import tensor_map
from helpers.kernels import KernelError, Launch, load_kernel
from helpers.kernels.launches import refusal

ADD = load_kernel("00_vector_add.cu")
A, B = np.arange(5, dtype=np.float32), np.full(5, 10, np.float32)


def launch(grid=1, block=32, **args):
    c = np.full(5, np.nan, np.float32)
    return Launch.of(ADD, grid, block, {"a": A, "b": B, "c": c, "n": 5} | args)


def test_arguments_by_name_are_put_in_order_and_typed():
    one = launch(block=(32, 1))
    assert (one.grid, one.block, one.shared_mem) == ((1, 1, 1), (32, 1, 1), 0)
    assert one.args[0] is A and one.args[1] is B
    assert (one.args[3].dtype, one.by_name["n"]) == (np.int32, 5)
    assert repr(one) == "<Launch of vector_add, grid (1, 1, 1) and block (32, 1, 1)>"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({"a": A, "b": B, "n": 5}, "vector_add takes a, b, c, n; c is missing."),
        ({"a": A, "b": B, "c": A, "n": 5, "m": 5}, "vector_add takes a, b, c, n; there is no m."),
        ((A, B, A), "vector_add takes 4 arguments (a, b, c, n), got 3: n is missing."),
        ((A, B, A.astype(np.float64), 5), "vector_add: c is float64, but `float* c` needs"),
    ],
)
def test_what_does_not_fit_is_told_when_the_launch_is_made(args, sentence):
    with pytest.raises(KernelError) as caught:
        Launch.of(ADD, 1, 32, args)
    assert str(caught.value).startswith(sentence)


def test_simulating_gives_what_the_kernel_wrote():
    one = launch()
    report, arrays = one.simulate()
    np.testing.assert_array_equal(arrays["c"], A + 10)
    assert np.isnan(one.by_name["c"]).all()
    assert report.counters == one.count().counters
    assert report.counters["global_load_requests"] == 2
    one.simulate(copy=False, count=False)
    np.testing.assert_array_equal(one.by_name["c"], A + 10)


BOX = r"""
struct alignas(64) Map { unsigned long long words[16]; };
extern "C" __global__ void box(const __grid_constant__ Map to, float* a, int x) {
  __shared__ alignas(128) float s[32];
  s[threadIdx.x] = threadIdx.x + a[0];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];"
      :: "l"(&to), "r"(x), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
"""


@pytest.mark.parametrize("array", [np.zeros, cp.zeros], ids=["numpy", "cp"])
def test_a_tensor_maps_array_is_copied_too(tmp_path, array):
    (tmp_path / "box.cu").write_text(BOX)
    to, a = array(40, np.float32), array(1, np.float32)
    one = Launch.of(load_kernel(tmp_path / "box.cu"), 1, 32, (tensor_map(to, (32,), 0), a, 4))
    report, arrays = one.simulate(sanitize=True)
    wanted = np.r_[np.zeros(4), np.arange(32), np.zeros(4)]
    np.testing.assert_array_equal(arrays["to"], wanted)
    assert not report.findings and not cp.asnumpy(to).any()
    one.simulate(copy=False)
    np.testing.assert_array_equal(cp.asnumpy(to), wanted)


def test_running_takes_arrays_of_the_device_alone():
    with pytest.raises(KernelError, match=r"a is a NumPy array in host memory.*cp\.asarray\(a\)"):
        launch().run()
    a, b, c = cp.asarray(A), cp.asarray(B), cp.zeros(5, cp.float32)
    launch(a=a, b=b, c=c).run()
    np.testing.assert_array_equal(cp.asnumpy(c), A + 10)
    assert device.launched == (
        "vector_add of 00_vector_add.cu, grid (1, 1, 1) and block (32, 1, 1)"
    )


def test_a_launch_without_its_arguments_asks_for_them():
    open_ = Launch.of(ADD, 1, 32)
    for start in (open_.run, open_.count):
        with pytest.raises(KernelError, match="a, b, c and n are missing"):
            start()
    with_args = open_.with_args((A, B, np.zeros(5, np.float32), 5))
    assert with_args.count().counters == launch().count().counters


def test_why_it_cannot_run():
    assert launch().refusal() is None
    assert "1,025, and a GPU allows at most 1,024" in refusal(ADD, 1, 1025)
    assert "more than the 232,448" in refusal(ADD, 1, 32, 232_449)
    flash = load_kernel("09_flash_swizzled.cu")  # 4 warps by its __launch_bounds__
    assert "256 threads, and its __launch_bounds__ promise at most 128" in refusal(flash, 1, 256)
    impossible = load_kernel("09_flash_swizzled.cu", B_R=32, WARPS=4)
    assert "says: B_R must be a multiple of 16 * WARPS" in refusal(impossible, 1, 128)
    wide = load_kernel("03_tiled.cu", "scaled_dot_product").altered(TILE=128)
    assert "its tiles take 131,072 bytes" in refusal(wide, 1, 1)


def test_a_kernel_can_be_altered_beyond_its_choices():
    tiled = load_kernel("03_tiled.cu", "scaled_dot_product")
    small = tiled.altered(TILE=4)
    assert small.parameters["TILE"].value == 4 and "-DTILE=4" in small.options
    assert tiled.parameters["TILE"].value == 16
    with pytest.raises(KernelError, match="has no parameter TILES"):
        tiled.altered(TILES=4)
    doubled = ADD.altered(ADD.code.replace("a[i] + b[i]", "2.0f * a[i] + b[i]"))
    args = (A, B, np.zeros(5, np.float32), 5)
    np.testing.assert_array_equal(
        Launch.of(doubled, 1, 32, args).simulate().arrays["c"], 2 * A + 10
    )
