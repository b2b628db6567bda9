"""The stand-in for CuPy: the same assertions hold for it and, on a GPU, for CuPy itself."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest

from helpers import standin
from helpers.simulator.errors import SimulatorError

ADD = r"""
extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + 2 * b[i];
}
"""
# Static shared memory of 100 floats, at most 256 threads a block.
SHARED = r"""
extern "C" __global__ void __launch_bounds__(256) k(float* x, int n) {
  __shared__ float s[100];
  s[threadIdx.x % 100] = x[0];
  __syncthreads();
  if (threadIdx.x < n) x[threadIdx.x] = s[(threadIdx.x * 7) % 100];
}
"""
# 40 bytes of constant memory and 160 bytes of local memory.
LOCAL = r"""
__constant__ float c[10];
extern "C" __global__ void k(float* x, int n) {
  float a[40];
  for (int i = 0; i < 40; i++) a[i] = x[i];
  for (int i = 0; i < n; i++) a[(i * i) % 40] += a[i % 40];
  x[threadIdx.x] = a[n % 40] + c[n % 10];
}
"""
SCALARS = r"""
extern "C" __global__ void k(long long* out, long long i, double x, bool yes, const float* p) {
  out[0] = i; out[1] = (long long)(x * 4); out[2] = yes; out[3] = p == nullptr;
}
"""


@pytest.fixture(params=["stand-in", pytest.param("CuPy", marks=pytest.mark.gpu)])
def cp(request):
    """The stand-in, and CuPy where there is a GPU."""
    if request.param == "stand-in":
        return standin
    from helpers import device

    return device.cp


def host(*shape, dtype=np.float32):
    """Values that differ along every axis, negative ones among them."""
    n = int(np.prod(shape))
    return (np.arange(n) * 1.75 - n / 3).reshape(shape).astype(dtype)


# Arrays


def test_upload_copies_and_download_copies(cp):
    a = host(3, 5)
    x = cp.asarray(a)
    a[1, 2] = 99
    assert isinstance(x, cp.ndarray)
    assert float(x[1, 2]) == float(host(3, 5)[1, 2])
    back = cp.asnumpy(x)
    back[0, 0] = 77
    assert type(back) is np.ndarray
    assert float(x[0, 0]) == float(host(3, 5)[0, 0])
    assert type(x.get()) is np.ndarray
    assert cp.asarray(x) is x
    assert cp.array(x) is not x
    assert cp.asnumpy(a) is a


def test_asarray_converts(cp):
    x = cp.asarray([[1, 2.5], [3, 4]], dtype=np.float16)
    assert (x.dtype, x.shape) == (np.float16, (2, 2))
    assert cp.asarray(np.asfortranarray(host(3, 4))).flags.f_contiguous
    assert cp.ascontiguousarray(cp.asarray(host(3, 4)).T).flags.c_contiguous
    with pytest.raises(ValueError, match="Unsupported dtype"):
        cp.asarray(np.array(["text"]))


@pytest.mark.parametrize(
    "function, arguments",
    [
        ("exp", (host(3, 4),)),
        ("sqrt", (np.abs(host(7)),)),
        ("maximum", (host(4, 3), 0.5)),
        ("where", (host(5) > 0, host(5), np.float32(0))),
        ("matmul", (host(3, 4), host(4, 2))),
        ("dot", (host(4), host(4))),
        ("einsum", ("ij,kj->ik", host(3, 4), host(2, 4))),
        ("sum", (host(3, 4), 1)),
        ("mean", (host(3, 4), 0)),
        ("std", (host(3, 4),)),
        ("argmax", (host(3, 4), 1)),
        ("cumsum", (host(6),)),
        ("stack", ([host(3), host(3) + 1],)),
        ("concatenate", ([host(2, 3), host(1, 3)],)),
        ("transpose", (host(2, 3),)),
        ("isnan", (np.array([1, np.nan, np.inf], np.float32),)),
        ("clip", (host(6), -1, 1)),
        ("tril", (host(3, 3),)),
        ("linspace", (0, 1, 7)),
        ("arange", (3, 11, 2)),
        ("eye", (3,)),
        ("full", ((2, 3), 1.5, np.float32)),
        ("zeros_like", (host(2, 3),)),
    ],
)
def test_functions_give_what_numpy_gives(cp, function, arguments):
    def upload(value):
        if isinstance(value, list):
            return [upload(v) for v in value]
        return cp.asarray(value) if isinstance(value, np.ndarray) else value

    found = getattr(cp, function)(*map(upload, arguments))
    expected = getattr(np, function)(*arguments)
    assert isinstance(found, cp.ndarray)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(cp.asnumpy(found), expected, rtol=1e-6, atol=1e-6)


def test_elements_and_reductions_are_arrays_without_dimensions(cp):
    x = cp.asarray(host(3, 4))
    found = x[1, 2], x.sum(), x.max(), x.mean(), x.std(), x.argmax(), cp.allclose(x, x), x[0] @ x[1]
    for value in found:
        assert isinstance(value, cp.ndarray)
        assert value.shape == ()
    assert f"{x.max():.2f}" == f"{host(3, 4).max():.2f}"
    assert repr(x[1, 2]) == f"array({host(3, 4)[1, 2]}, dtype=float32)"
    assert len(list(x[0])) == 4


def test_an_element_is_a_view(cp):
    x = cp.zeros((2, 3), np.float32)
    element = x[1, 2]
    element += 5
    x[0] += x[1]
    np.testing.assert_array_equal(cp.asnumpy(x), [[0, 0, 5], [0, 0, 5]])


def test_methods_and_numpy_functions_stay_on_the_device(cp):
    x = cp.asarray(host(3, 4))
    for value in (x.T, x.reshape(4, 3), x.astype(np.float16), x + 1, -x, x @ x.T, np.exp(x), x > 0):
        assert isinstance(value, cp.ndarray)
    assert isinstance(np.sum(x, axis=0), cp.ndarray)
    y = cp.empty_like(x)
    assert cp.add(x, x, out=y) is y
    np.testing.assert_array_equal(cp.asnumpy(y), 2 * host(3, 4))


@pytest.mark.parametrize(
    "mix",
    [
        lambda cp, x, h: x + h,
        lambda cp, x, h: h - x,
        lambda cp, x, h: cp.exp(h),
        lambda cp, x, h: cp.maximum(x, h),
        lambda cp, x, h: cp.stack([x, h]),
        lambda cp, x, h: np.testing.assert_allclose(x, h),
    ],
)
def test_device_and_host_arrays_do_not_mix(cp, mix):
    with pytest.raises(TypeError):
        mix(cp, cp.asarray(host(4)), host(4))


def test_host_arrays_are_not_assigned_into_device_arrays(cp):
    x = cp.zeros(4, np.float32)
    with pytest.raises(ValueError):
        x[:3] = host(3)
    x[:3] = cp.asarray(host(3))
    x[3] = np.float32(8)
    x.set(cp.asnumpy(x) * 2)
    np.testing.assert_array_equal(cp.asnumpy(x), [*(2 * host(3)), 16])


def test_get_fills_an_array_of_the_same_shape(cp):
    x = cp.asarray(host(2, 3))
    out = np.zeros((2, 3), np.float32)
    x.get(out=out)
    np.testing.assert_array_equal(out, host(2, 3))
    with pytest.raises(ValueError):
        x.get(out=np.zeros(6, np.float32))


@pytest.mark.filterwarnings("error")
def test_overflow_gives_no_warning(cp):
    x = cp.asarray(np.array([1000, -1, 0], np.float32))
    assert [str(v) for v in cp.asnumpy(cp.exp(x))][:1] == ["inf"]
    assert np.isnan(cp.asnumpy(cp.log(x))[1])
    assert np.isinf(cp.asnumpy(1 / x)[2])


def test_testing_takes_arrays_of_both_kinds(cp):
    cp.testing.assert_allclose(cp.asarray(host(5)), host(5))
    assert cp.allclose(cp.asarray(host(5)), host(5))
    assert not cp.allclose(cp.asarray(host(5)), host(5) + 1)
    with pytest.raises(AssertionError):
        cp.testing.assert_allclose(cp.asarray(host(5)), host(5) + 1)


def test_random_numbers(cp):
    cp.random.seed(5)
    first = cp.asnumpy(cp.random.randn(300, 70, dtype=np.float32))
    cp.random.seed(5)
    assert np.array_equal(first, cp.asnumpy(cp.random.randn(300, 70, dtype=np.float32)))
    assert first.dtype == np.float32
    assert abs(first.mean()) < 0.03 and abs(first.std() - 1) < 0.03
    flat = cp.asnumpy(cp.random.uniform(2, 3, (50, 40)))
    assert flat.dtype == np.float64 and 2 <= flat.min() < 2.02 and 2.98 < flat.max() < 3
    whole = cp.asnumpy(cp.random.randint(3, 6, size=500))
    assert set(whole.tolist()) == {3, 4, 5}
    generator = cp.random.default_rng(7)
    assert generator.standard_normal((4, 3), dtype=np.float32).shape == (4, 3)
    assert 0 <= float(generator.uniform(0, 1, 1)[0]) < 1
    assert cp.random.rand(3).dtype == np.float64


def test_array_module(cp):
    assert cp.get_array_module(cp.zeros(1)) is cp
    assert cp.get_array_module(np.zeros(1)) is np
    assert abs(float(cp.linalg.norm(cp.asarray(host(9)))) - np.linalg.norm(host(9))) < 1e-5


# Kernels


def test_a_kernel_runs_and_leaves_the_host_array_alone(cp):
    n = 1000
    a, b = host(n), host(n)[::-1].copy()
    before = a.copy()
    kernel = cp.RawKernel(ADD, "add")
    x = cp.asarray(a)
    c = cp.full(n, np.nan, np.float32)
    kernel((4,), (256,), (x, cp.asarray(b), c, np.int32(n - 1)))
    found = cp.asnumpy(c)
    np.testing.assert_array_equal(found[:-1], (a + 2 * b)[:-1])
    assert np.isnan(found[-1])
    kernel((4,), (256,), (x, x, x, np.int32(n)), shared_mem=64, stream=cp.cuda.Stream.null)
    np.testing.assert_array_equal(cp.asnumpy(x), 3 * before)
    np.testing.assert_array_equal(a, before)


def test_python_scalars_are_64_bits_wide_and_none_is_a_null_pointer(cp):
    out = cp.full(4, -1, np.int64)
    cp.RawKernel(SCALARS, "k")((1,), (1,), (out, -(2**40), 2.75, True, None))
    assert cp.asnumpy(out).tolist() == [-(2**40), 11, 1, 1]


def test_missing_and_zero_extents_are_one(cp):
    x = cp.zeros(300, np.float32)
    kernel = cp.RawKernel(ADD, "add")
    kernel((0,), (300, 0), (cp.ones(300, np.float32), x + 1, x, np.int32(300)))
    assert cp.asnumpy(x).tolist() == [3.0] * 300


def test_module_with_several_kernels(cp):
    code = ADD + ADD.replace("add", "twice").replace("2 * b[i]", "a[i]")
    module = cp.RawModule(code=code, options=("-std=c++17",))
    x, c = cp.asarray(host(40)), cp.zeros(40, np.float32)
    module.get_function("twice")((1,), (64,), (x, x, c, np.int32(40)))
    np.testing.assert_array_equal(cp.asnumpy(c), 2 * host(40))
    with pytest.raises(RuntimeError):
        module.get_function("thrice")


def test_options_reach_the_compiler(cp):
    code = ADD.replace("2 *", "FACTOR *")
    c = cp.zeros(5, np.float32)
    kernel = cp.RawKernel(code, "add", options=("-DFACTOR=3",))
    kernel((1,), (32,), (cp.ones(5, np.float32), cp.ones(5, np.float32), c, np.int32(5)))
    assert cp.asnumpy(c).tolist() == [4.0] * 5
    assert kernel.options == ("-DFACTOR=3",)
    assert (kernel.name, kernel.__name__, kernel.backend) == ("add", "add", "nvrtc")


def test_attributes(cp):
    kernel = cp.RawKernel(SHARED, "k")
    found = kernel.attributes
    assert found["max_threads_per_block"] == kernel.max_threads_per_block == 256
    assert found["shared_size_bytes"] == 400
    assert found["max_dynamic_shared_size_bytes"] == 49152 - 400
    assert found["preferred_shared_memory_carveout"] == -1
    local = cp.RawKernel(LOCAL, "k").attributes
    assert local.keys() == found.keys()
    assert (local["const_size_bytes"], local["local_size_bytes"]) == (40, 160)
    assert local["max_threads_per_block"] == 1024


def test_dynamic_shared_memory_needs_an_opt_in(cp):
    kernel = cp.RawKernel(SHARED, "k")
    x = cp.zeros(256, np.float32)

    def launch(size):
        kernel((1,), (32,), (x, np.int32(1)), shared_mem=size)

    launch(48752)
    with pytest.raises(RuntimeError):
        launch(48753)
    with pytest.raises(RuntimeError):
        kernel.max_dynamic_shared_size_bytes = 232449 - 400
    kernel.max_dynamic_shared_size_bytes = 232048
    assert kernel.max_dynamic_shared_size_bytes == 232048
    launch(232048)
    kernel.max_dynamic_shared_size_bytes = 1000
    with pytest.raises(RuntimeError):
        launch(2000)


@pytest.mark.parametrize(
    "call",
    [
        lambda cp, k, x: k([1], (32,), (x, np.int32(1))),
        lambda cp, k, x: k((1,), 32, (x, np.int32(1))),
        lambda cp, k, x: k((1,), (32,), (host(4), np.int32(1))),
        lambda cp, k, x: k((1,), (32,), (x, "one")),
        lambda cp, k, x: k((1,), (32,), (x, [1])),
        lambda cp, k, x: cp.RawKernel(ADD, "add", options=["-DA"]),
        lambda cp, k, x: cp.RawModule(),
    ],
)
def test_arguments_of_another_type_are_refused(cp, call):
    with pytest.raises(TypeError):
        call(cp, cp.RawKernel(SHARED, "k"), cp.zeros(64, np.float32))


def test_kernels_take_no_other_attributes(cp):
    kernel = cp.RawKernel(ADD, "add")
    with pytest.raises(AttributeError):
        _ = kernel.registers
    with pytest.raises(AttributeError):
        kernel.num_regs = 3
    with pytest.raises(AttributeError):
        kernel.max_dynamic_shared_size = 3


def test_events_streams_and_devices(cp):
    start, end = cp.cuda.Event(), cp.cuda.Event()
    with cp.cuda.Stream() as stream:
        start.record()
        end.record(stream)
        stream.synchronize()
    end.synchronize()
    assert end.done
    cp.cuda.get_current_stream().synchronize()
    with cp.cuda.Device(0) as device:
        device.synchronize()
    limits = device.attributes
    assert device.id == 0
    assert limits["WarpSize"] == 32 and limits["MaxThreadsPerBlock"] == 1024
    assert 0 < device.mem_info[0] <= device.mem_info[1]
    assert cp.cuda.runtime.getDeviceCount() >= 1
    properties = cp.cuda.runtime.getDeviceProperties(0)
    assert properties["maxGridSize"] == (2147483647, 65535, 65535)
    cp.cuda.runtime.deviceSynchronize()
    cp.get_default_memory_pool().free_all_blocks()
    with pytest.raises(RuntimeError):
        cp.cuda.Device(99).use()
    x = cp.zeros(4)
    assert x.device == device and x.data.ptr > 0


def test_streams_of_every_sort(cp):
    for stream in (cp.cuda.Stream(non_blocking=True, priority=-1), cp.cuda.Stream.ptds):
        with stream:
            x = cp.ones(3)
        stream.synchronize()
        assert x.get().tolist() == [1, 1, 1]
    assert cp.cuda.is_available() is (cp is not standin)


def test_ufuncs_have_their_methods(cp):
    x = cp.zeros(3, cp.int32)
    cp.add.at(x, cp.asarray([0, 2, 2]), 1)
    assert x.get().tolist() == [1, 0, 2]
    assert int(cp.add.reduce(x)) == 3
    assert cp.multiply.outer(x, x).get().tolist() == [[1, 0, 2], [0, 0, 0], [2, 0, 4]]
    assert isinstance(cp.add, cp.ufunc) and isinstance(x.dtype, cp.dtype)


def test_arrays_are_saved_and_loaded(cp, tmp_path):
    cp.save(tmp_path / "x.npy", cp.arange(3))
    loaded = cp.load(tmp_path / "x.npy")
    assert isinstance(loaded, cp.ndarray) and loaded.get().tolist() == [0, 1, 2]


# What the stand-in alone says


@pytest.mark.parametrize(
    "ask, owner, near",
    [
        (lambda: standin.aray, "cp.aray", "array"),
        (lambda: standin.ElementwiseKernel, "cp.ElementwiseKernel", "RawKernel"),
        (lambda: standin.cuda.Evnt, "cp.cuda.Evnt", "Event"),
        (lambda: standin.cuda.runtime.getDeviceCont, "cp.cuda.runtime", "getDeviceCount"),
        (lambda: standin.cuda.Device().synchronise, "cp.cuda.Device()", "synchronize"),
        (lambda: standin.cuda.profiler, "cp.cuda.profiler", "kernel.report"),
        (lambda: standin.cuda.runtime.malloc(8), "cp.cuda.runtime.malloc", "cp.empty"),
        (lambda: standin.add.att, "cp.add.att", "at"),
        (lambda: standin.show_config(), "cp.show_config", "np.show_config"),
        (lambda: standin.random.rnd, "cp.random.rnd", "rand"),
        (lambda: standin.linalg.normm, "cp.linalg.normm", "norm"),
        (lambda: standin.testing.assert_close, "cp.testing", "assert_allclose"),
        (lambda: standin.zeros(3).gett, "x.gett", "get"),
        (lambda: standin.RawKernel(ADD, "add").num_reg, "RawKernel.num_reg", "num_regs"),
        (lambda: standin.quux, "cp.quux", "GPU alone"),
    ],
)
def test_an_unknown_name_is_said_to_be_no_part_of_the_stand_in(ask, owner, near):
    with pytest.raises(AttributeError) as error:
        ask()
    message = str(error.value)
    assert owner in message and "is not part of the stand-in" in message and near in message


def test_there_is_no_time_without_a_gpu():
    with pytest.raises(RuntimeError, match="no milliseconds"):
        standin.cuda.get_elapsed_time(standin.cuda.Event(), standin.cuda.Event())


def test_a_type_that_numpy_does_not_know_is_named_with_what_serves(monkeypatch):
    def refuse(name):  # as NumPy does where nothing has taught it the type
        raise TypeError(f"data type {name!r} not understood")

    monkeypatch.setattr(standin, "_np", SimpleNamespace(dtype=refuse))
    with pytest.raises(TypeError, match=r"keep the 16 bits in cp\.uint16"):
        standin.dtype("bfloat16")
    with pytest.raises(AttributeError, match=r"keep the 8 bits in cp\.uint8"):
        _ = standin.float8_e4m3fn


def test_a_property_without_a_meaning_says_so():
    properties = standin.cuda.runtime.getDeviceProperties(0)
    assert properties["l2CacheSize"] == 60 * 2**20 and properties["cooperativeLaunch"] == 1
    with pytest.raises(KeyError, match="clockRate is not among the properties"):
        _ = properties["clockRate"]


def test_unknown_limits_are_listed():
    with pytest.raises(KeyError, match="MaxThreadsPerBlock"):
        _ = standin.cuda.Device().attributes["ClockRate"]


@pytest.mark.parametrize(
    "setting", [{"jitify": True}, {"translate_cucomplex": True}, {"backend": "nvcc"}]
)
def test_what_the_simulator_does_not_have_is_refused(setting):
    with pytest.raises(ValueError, match="simulator"):
        standin.RawKernel(ADD, "add", **setting)


def test_a_launch_is_counted_only_when_asked():
    from helpers import device

    x = standin.ones(64, np.float32)
    kernel = standin.RawKernel(ADD, "add")
    assert kernel.report is None

    def launch():
        kernel((1,), (64,), (x, x, x, np.int32(64)))
        return kernel.report.counters

    def nothing(counts):
        return not any(counts.values())

    assert nothing(launch())
    if device.is_gpu:
        from helpers.standin.raw_kernels import counting
    else:
        counting = device.counting
    with counting():
        # two warps, two loads and a store of 128 bytes each
        counts = launch()
        assert counts["global_load_sectors"] == 16 and counts["global_store_sectors"] == 8
        with counting(False):
            assert nothing(launch())
    assert nothing(launch())


def test_errors_of_the_simulator_pass_through():
    x = standin.zeros(8, np.float32)
    kernel = standin.RawKernel(ADD, "add")
    with pytest.raises(SimulatorError) as error:
        kernel((1,), (32,), (x[::2], x, x, np.int32(4)))
    assert error.value.kind == "argument"
    with pytest.raises(SimulatorError) as error:
        standin.RawKernel("__global__ void broken( {", "broken").compile()
    assert error.value.kind == "compile"


def test_compile_writes_the_log():
    log = io.StringIO()
    code = 'extern "C" __global__ void k(float* x) { int unused; x[0] = 1; }'
    standin.RawKernel(code, "k").compile(log_stream=log)
    assert "unused" in log.getvalue()


def test_the_names_of_the_stand_in_exist():
    for name in standin.__all__:
        assert getattr(standin, name) is not None or name == "newaxis"
    assert dir(standin) == sorted(standin.__all__)


@pytest.mark.gpu
def test_cupy_has_every_name_of_the_stand_in():
    import cupy

    def missing(theirs, names):
        return [name for name in names if not hasattr(theirs, name)]

    assert not missing(cupy, standin.__all__)
    for module in ("cuda", "linalg", "random", "testing"):
        ours, theirs = getattr(standin, module), getattr(cupy, module)
        assert not missing(theirs, ours.__all__)
    ours, theirs = standin.cuda.runtime, cupy.cuda.runtime
    assert not missing(theirs, ours.__all__)
    kernel = [name for name in dir(standin.RawKernel) if not name.startswith("_")]
    assert missing(cupy.RawKernel, kernel) == ["report"]
