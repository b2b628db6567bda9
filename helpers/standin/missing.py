"""What the stand-in says about a name of CuPy's that it does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import numpy as np

# Names that people look for, and what serves them on both kinds of machine.
_COUNTS = "a launch's counts are in kernel.report, under helpers.device.counting()"
_AS_KERNEL = "write the kernel as a RawKernel"
_WHOLE = "memory of the device is made with cp.empty(shape, dtype) and freed by Python"
_COPY = "copy with x.set(host), x.get() and y[...] = x"
_NO_TIME = "there are no times without a GPU: ask helpers.device.is_gpu first"
_HEAP = "a kernel's malloc() has all the memory it asks for here"
_LIBRARY = "a library that runs on a GPU alone: NumPy's function of the kind serves here"
_OLD = {  # of NumPy before 2, gone from it
    "float": "float64 or Python's float",
    "int": "int64 or Python's int",
    "float_": "float64",
    "complex_": "complex128",
    "NaN": "nan",
    "NAN": "nan",
    "Inf": "inf",
    "Infinity": "inf",
    "PINF": "inf",
    "product": "prod",
    "cumproduct": "cumprod",
    "alltrue": "all",
    "sometrue": "any",
    "in1d": "isin",
    "row_stack": "vstack",
    "trapz": "trapezoid",
    "round_": "round",
    "msort": "sort(x, axis=0)",
    "asfarray": "asarray(x, dtype=cp.float64)",
}
INSTEAD = {
    **dict.fromkeys(("ElementwiseKernel", "ReductionKernel", "fuse", "vectorize"), _AS_KERNEL),
    **dict.fromkeys(("Function", "Module", "function", "compile_with_cache"), _AS_KERNEL),
    **dict.fromkeys(("profiler", "profile", "nvtx", "profilerStart", "profilerStop"), _COUNTS),
    **dict.fromkeys(("malloc", "mallocManaged", "malloc_async", "free", "hostAlloc"), _WHOLE),
    **dict.fromkeys(("mallocHost", "malloc_managed", "ManagedMemory", "UnownedMemory"), _WHOLE),
    **dict.fromkeys(("memcpy", "memcpyAsync", "memcpyPeer", "memcpy2D"), _COPY),
    **dict.fromkeys(("memset", "memsetAsync"), "fill with x[...] = value"),
    **dict.fromkeys(("get_elapsed_time", "eventElapsedTime"), _NO_TIME),
    **dict.fromkeys(("deviceSetLimit", "deviceGetLimit"), _HEAP),
    **dict.fromkeys(("streamCreate", "streamSynchronize", "ExternalStream"), "use cp.cuda.Stream"),
    **dict.fromkeys(("eventCreate", "eventRecord"), "use cp.cuda.Event"),
    **dict.fromkeys(("cublas", "cufft", "cusolver", "cusparse", "cutensor"), _LIBRARY),
    **dict.fromkeys(("nccl", "cub", "thrust", "curand", "cutlass"), _LIBRARY),
    "fft": "take np.fft of NumPy: cp.asarray(np.fft.fft(x.get()))",
    "sparse": "keep the arrays of the sparse matrix, such as CSR's three, in cp arrays",
    "scatter_add": "write cp.add.at(x, index, value)",
    "scatter_max": "write cp.maximum.at(x, index, value)",
    "deviceGetAttribute": "ask cp.cuda.Device().attributes",
    "alloc_pinned_memory": "there is no pinned memory without a GPU: take a NumPy array",
    "PinnedMemoryPool": "there is no pinned memory without a GPU: take a NumPy array",
    **dict.fromkeys(
        ("texture", "TextureObject"),
        "textures are not simulated: read from an array and clamp the index in the kernel",
    ),
    "Graph": "launch the kernels one after the other, which a graph does not change",
    "RandomState": "draw from cp.random.default_rng(seed)",
    **{name: f"NumPy gave it up: write cp.{now}" for name, now in _OLD.items()},
}
_EIGHT_BITS = (
    "The stand-in has no {0}, which NumPy does not know: keep the 8 bits in cp.uint8, and let the "
    "kernel read them as __nv_fp8_{1}."
)
# Names of types that a kernel has and NumPy has not.
TYPES = {
    "bfloat16": "The stand-in has no bfloat16, which NumPy does not know: keep the 16 bits in "
    "cp.uint16, which are (x.view(cp.uint32) >> 16).astype(cp.uint16) of a float32 array x with "
    "the lower half cut off; a kernel takes them as __nv_bfloat16*.",
    "float8_e4m3fn": _EIGHT_BITS.format("float8_e4m3fn", "e4m3"),
    "float8_e5m2": _EIGHT_BITS.format("float8_e5m2", "e5m2"),
}


class Told(dict):
    """A dictionary that says a sentence about a key that it does not have.

    Args:
        values: what it holds.
        sentence: of a key that is missing, which stands for {}.
    """

    def __init__(self, values, sentence: str):
        super().__init__(values)
        self._sentence = sentence

    def __missing__(self, key):
        raise KeyError(self._sentence.format(key))


def unknown(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for `owner.name`, with the names of `known` that look like it.

    Args:
        owner: how a reader writes the namespace or object, such as `cp.cuda`.
        name: the attribute that was asked for.
        known: the names that `owner` does have.
    """
    if name.startswith("__"):  # protocols that Python and NumPy probe for
        return AttributeError(name)
    message = f"{owner}.{name} is not part of the stand-in that takes CuPy's place without a GPU"
    near = difflib.get_close_matches(name, [k for k in known if k[0] != "_"], n=3)
    if name in TYPES:
        return AttributeError(TYPES[name])
    if name in INSTEAD:
        message += f"; {INSTEAD[name]}."
    elif near:
        message += f"; near it there are {', '.join(near)}."
    elif owner == "cp" and callable(getattr(np, name, None)):
        message += f"; NumPy has it: cp.asarray(np.{name}(...)), with x.get() for an array x."
    else:
        message += "; what needs it runs on a GPU alone."
    return AttributeError(message)
