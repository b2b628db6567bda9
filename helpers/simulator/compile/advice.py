"""What to write in place of what NVRTC does not compile."""

from __future__ import annotations

import re

from .source_text import mask

NO_FILE = re.compile(r'source file "([^"]*)"')
UNDEFINED = re.compile(r'identifier "([^"]*)" is undefined|namespace "std" has no member "([^"]*)"')
_COMPOUND_LITERAL = re.compile(r"\(\s*(?:struct\s+)?(\w+)\s*\)\s*\{")
_VECTOR = re.compile(r"u?(?:char|short|int|long|longlong)[1-4]|(?:float|double)[1-4]")
# What a program has around its kernels.
_MAIN = re.compile(r"\bmain\s*\(")
_HOST_PART = re.compile(
    r"function main|could not be processed as the required runtime APIs|host function"
    r'|identifier "(?:cuda[A-Z]\w*|cu[A-Z]\w*|FILE|fprintf|stderr|stdout|exit|std|rand|srand)"'
    r'|namespace "std"|name followed by "::"'
)
_WHOLE_PROGRAM = (
    "This is a whole program, and only its kernels are wanted here: leave out main(), the "
    "#includes of the CPU's side and every function that calls cudaMalloc, cudaMemcpy or "
    "kernel<<<...>>>. Python makes the memory, with cp.asarray and cp.zeros, and launches: "
    "kernel(grid, block, arguments)."
)

_SAME_ON_GPU = "NVRTC compiles without the host's headers, on a GPU as well"

_INSTEAD_OF_NAME = {
    "INFINITY": "__int_as_float(0x7f800000)",
    "HUGE_VALF": "__int_as_float(0x7f800000)",
    "NAN": "__int_as_float(0x7fffffff)",
    "FLT_MAX": "3.402823466e+38f",
    "FLT_MIN": "1.175494351e-38f",
    "FLT_EPSILON": "1.192092896e-07f",
    "DBL_MAX": "1.7976931348623157e+308",
    "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.2204460492503131e-16",
    "INT_MAX": "2147483647",
    "INT_MIN": "(-2147483647 - 1)",
    "UINT_MAX": "0xffffffffu",
    "LLONG_MAX": "9223372036854775807ll",
    "M_PI": "3.14159265358979f",
    "M_LOG2E": "1.44269504088896f",
    "int8_t": "signed char",
    "uint8_t": "unsigned char",
    "int16_t": "short",
    "uint16_t": "unsigned short",
    "int32_t": "int",
    "uint32_t": "unsigned int",
    "int64_t": "long long",
    "uint64_t": "unsigned long long",
    "intptr_t": "long long",
    "uintptr_t": "size_t",
    "uint": "unsigned int",
}
_HEADER_OF_NAME = {
    **dict.fromkeys(
        ("half", "half2", "__half", "__half2", "__float2half", "__half2float"), "cuda_fp16.h"
    ),
    **dict.fromkeys(
        ("nv_bfloat16", "nv_bfloat162", "__nv_bfloat16", "__nv_bfloat162", "__float2bfloat16"),
        "cuda_bf16.h",
    ),
    **dict.fromkeys(("nvcuda", "wmma"), "mma.h"),
}
_TYPES = "unsigned int for uint32_t, unsigned char for uint8_t, long long for int64_t"
_LIMITS = "3.402823466e+38f for FLT_MAX, __int_as_float(0x7f800000) for INFINITY"
_BUILT_IN = "{} without any header, so leave the #include out"
_OF_THE_HOST = "it belongs to host code, so leave the #include out"
_OWN_STD = "CUDA has its own: write #include <cuda/std/{0}> and cuda::std:: for std::"
_INSTEAD_OF_HEADER = {
    "stdint": f"leave the #include out and write {_TYPES}",
    "math": _BUILT_IN.format("expf, sqrtf, fmaxf and the other functions are there"),
    "float": f"leave the #include out and write {_LIMITS}",
    "limits": f"leave the #include out and write {_LIMITS}, 2147483647 for INT_MAX",
    "assert": _BUILT_IN.format("assert() is there"),
    "stdio": _BUILT_IN.format("printf() is there"),
    "stddef": _BUILT_IN.format("size_t is there"),
    "cuda": "it belongs to host code, and kernels need no header for CUDA itself: leave it out",
    "cooperative_groups": "it comes with the package nvidia-cuda-cccl, which `make lab` installs",
    **dict.fromkeys(
        """
        stdlib string iostream iomanip fstream sstream ios chrono thread mutex random memory
        vector map set unordered_map list deque queue stack exception stdexcept time ctime
        sys/time.h unistd.h omp bits/stdc++.h cublas_v2 cufft cusparse cusolverDn curand
        cuda_profiler_api helper_cuda helper_functions helper_timer helper_string helper_math
        book.h common/book.h
        """.split(),
        _OF_THE_HOST,
    ),
    **{
        name: _OWN_STD.format(name)
        for name in """algorithm array atomic barrier bit complex functional initializer_list
        iterator numeric optional ratio tuple type_traits utility variant""".split()
    },
    "curand_kernel": "it comes with the package nvidia-curand (release 10.4.0.35 for CUDA 13): "
    "install that with pip, here and on a machine with a GPU",
}
_TEXTURES = (
    "There are no textures or surfaces here: pass the array itself, and clamp or wrap the index "
    "in the kernel."
)
_TEXTURE_HEADER = re.compile(r"texture|surface")
_INSTEAD_OF_CALL = {
    "cudaMalloc": "a kernel has malloc(), free() and new, and Python makes arrays with cp.zeros",
    "cudaFree": "a kernel has malloc(), free() and new, and Python frees arrays itself",
    "cudaMemcpy": "a kernel copies with an assignment, element by element",
    "cudaMemset": "a kernel sets elements by an assignment",
    "cudaDeviceSynchronize": "a kernel waits for its block with __syncthreads()",
}
_OLD_SHUFFLE = re.compile(r"__(shfl|shfl_up|shfl_down|shfl_xor|any|all|ballot)$")
_HINTS = {
    "function main": _WHOLE_PROGRAM,
    "could not be processed as the required runtime APIs": "A kernel cannot launch kernels here: "
    "launch them from Python, one after the other, and leave out functions of the CPU.",
    "host function": "Leave out what runs on the CPU: Python takes its place.",
    "annotation on lambda": "NVRTC has no such option and needs none: leave __device__ out of the "
    "lambda, as in [=](auto x) { ... }, and it is device code.",
    "texture is not a template": _TEXTURES,
    "surface is not a template": _TEXTURES,
    "wmma::fragment<": "wmma has fragments of 16x16x16, 32x8x16 and 8x32x16 (half, bfloat16, "
    "8-bit integers), 16x16x8 (tf32) and 8x8x4 (double); accumulators are float, half, int or "
    "double.",
    'no member "this_multi_grid"': "CUDA 13 has no grids over several GPUs any more.",
    "unrecognized preprocessing directive": "A comment starts with //; # starts a directive such "
    "as #include.",
    'operand of "*" must be a pointer': "If a power is meant, C has no ** for it: write powf(x, y) "
    "or x * x.",
    "must have pointer-to-object type": "A pointer takes one index: element (row, i) of an array "
    "whose rows have d elements is [row * d + i].",
    'class "uint3" has no member': "The members of threadIdx and blockIdx are x, y and z.",
    'class "dim3" has no member': "The members of blockDim and gridDim are x, y and z.",
}
_NAMESPACES = {
    r"\b(?:nvcuda|wmma)\b": "mma.h",
    r"\b(?:cooperative_groups|cg)\b": "cooperative_groups.h",
    r"\bcub\b": "cub/cub.cuh",
    r"\bcuda::std\b": "cuda/std/array",
    r"\bcuda::barrier\b": "cuda/barrier",
    r"\bcuda::pipeline\b": "cuda/pipeline",
}


def hint_of(message: str, source: str = "", line: str = "") -> str:
    """Say what to write instead of what NVRTC refuses, or ''.

    Args:
        message: NVRTC's.
        source: the whole source, where it is at hand: a program with a main() is told apart.
        line: the one that the message is about.
    """
    missing = NO_FILE.search(message)
    if (missing or _HOST_PART.search(message)) and _MAIN.search(mask(source)):
        return _WHOLE_PROGRAM
    if missing:
        return _of_header(missing[1])
    undefined = UNDEFINED.search(message)
    if undefined:
        found = _of_name(undefined[1] or undefined[2], bool(undefined[2]))
        if found:
            return found
    if "expected an expression" in message and (literal := _COMPOUND_LITERAL.search(line)):
        name = literal[1]
        made = f" or make_{name}(...)" if _VECTOR.fullmatch(name) else ""
        return f"C++ has no compound literals of C: write {name}{{...}}{made}."
    if "namespace name" in message:
        for pattern, header in _NAMESPACES.items():
            if re.search(pattern, line):
                return f"It comes with #include <{header}>."
    return next((hint for part, hint in _HINTS.items() if part in message), "")


def _of_name(name: str, standard: bool) -> str:
    """What to write for a name that is not there; `standard` if it was looked for in std."""
    if standard:
        return (
            f"{_SAME_ON_GPU}: there is no C++ standard library; drop std:: or write it out, or "
            "take cuda::std:: from a header such as <cuda/std/algorithm>."
        )
    if name in _INSTEAD_OF_NAME:
        return f"{_SAME_ON_GPU}: write {_INSTEAD_OF_NAME[name]} instead."
    if name in _HEADER_OF_NAME:
        return f"It comes with #include <{_HEADER_OF_NAME[name]}>."
    if _OLD_SHUFFLE.match(name):
        return (
            f"Today's GPUs have {name}_sync, whose first argument says which lanes of the warp "
            f"take part: {name}_sync(0xffffffff, ...) for all."
        )
    if re.match(r"cuda[A-Z]", name):
        instead = _INSTEAD_OF_CALL.get(re.sub(r"Async$", "", name))
        return f"{name} is called on the CPU, so leave it out" + (
            f": {instead}." if instead else "."
        )
    return ""


def _of_header(header: str) -> str:
    stem = re.sub(r"\.h$", "", header)
    for name in (header, stem, re.sub(r"^c(?=[a-z])", "", stem)):
        if name in _INSTEAD_OF_HEADER:
            return f"{_SAME_ON_GPU}: {_INSTEAD_OF_HEADER[name]}."
    if _TEXTURE_HEADER.search(header):
        return _TEXTURES
    if "." not in header and "/" not in header:
        return f"{_SAME_ON_GPU}, so the C++ standard library is not there."
    if header.startswith("thrust/"):
        return (
            f"{_SAME_ON_GPU}, so most of thrust is not there: write the loop, or take a block's "
            "or a warp's part from CUB, such as <cub/block/block_reduce.cuh>."
        )
    if header.startswith(("cub/", "torch/", "opencv2/")):
        return f"{_SAME_ON_GPU}: {_OF_THE_HOST}."
    return "No folder given with -I holds it; what serves the program on the CPU is left out."
