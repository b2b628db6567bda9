"""The sanitizer: what it finds, what it leaves alone, and the schedule that shows a fault."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import simulator
from helpers.kernels import load_kernel


def kernel(body, parameters="float* a"):
    return f'extern "C" __global__ void k({parameters}) {{\n{body}\n}}\n'


def values(n=64):
    return np.arange(n, dtype=np.float32)


def findings(body, *args, parameters="float* a", grid=1, block=64, **more):
    report = simulator.launch(
        kernel(body, parameters), "k", grid, block, args, sanitize=True, **more
    )
    return report.findings


SHARED = "__shared__ float s[64]; int t = threadIdx.x;\n"
COPY = (
    SHARED + "unsigned d = (unsigned)__cvta_generic_to_shared(&s[t]);\n"
    'asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(d), "l"(a + t) : "memory");\n'
)
COMMIT = 'asm volatile("cp.async.commit_group;" ::: "memory");'
WAIT = 'asm volatile("cp.async.wait_group 0;" ::: "memory");'
MAXIMUM = "for (int h = 32; h; h >>= 1) { if (t < h) s[t] = fmaxf(s[t], s[t + h]);"
MAXIMUM += "__syncthreads(); }\n"
SUM = "for (int h = 32; h; h >>= 1) { if (t < h) s[t] += s[t + h]; __syncthreads(); }\n"


@pytest.mark.parametrize(
    ("body", "kind", "lines", "words"),
    [
        (SHARED + "s[t] = a[t];\na[t] = s[63 - t];", "race", (3, 4),
         ("s[63]", "thread (63, 0, 0)", "wrote it in line 3", "reads it in line 4",
          "__syncthreads()")),
        (SHARED + "s[t] = a[t]; __syncthreads();\nfloat v = s[63 - t];\ns[t] = v + 1;\na[t] = v;",
         "race", (4, 5), ("read it in line 4", "writes it in line 5")),
        (SHARED + "s[t] = a[t];\n__syncthreads();" + MAXIMUM + "float m = s[0];\n"
         "s[t] = expf(a[t] - m);\n__syncthreads();\n" + SUM + "a[t] = s[0];", "race", (5, 6),
         ("s[0]", "read it in line 5", "writes it in line 6")),
        (SHARED + "s[t / 2] = t;\n__syncthreads();\na[t] = s[t / 2];", "race", (3, 3),
         ("let one thread write",)),
        (SHARED + "if (t < 60) s[t] = a[t];\n__syncthreads();\na[t] = s[63 - t];", "uninitialised",
         (5,), ("s[63]", "nothing has written")),
        ("int t = threadIdx.x;\na[t] = t;\na[t + 64] = a[63 - t];", "race", (3, 4), ("a[63]",)),
        # a type that only the compiler knows: elements as they are aligned
        ("typedef double T; __shared__ T s[64]; int t = threadIdx.x;\ns[t] = a[t];\n"
         "a[t] = s[63 - t];", "race", (3, 4), ("race on s[63]",)),
    ],
)  # fmt: skip
def test_faults_within_a_block(body, kind, lines, words):
    found = findings(body, values(128))
    assert [f.kind for f in found] == [kind]
    assert found[0].lines == lines
    for word in words:
        assert word in found[0].message


@pytest.mark.parametrize(
    "body",
    [
        SHARED + "s[t] = a[t]; __syncthreads();\na[t] = s[63 - t];",
        SHARED + "s[t] = a[t];\n__syncthreads();" + MAXIMUM + "float m = s[0]; __syncthreads();\n"
        "s[t] = expf(a[t] - m);\n__syncthreads();\n" + SUM + "a[t] = s[0];",
        SHARED + "s[t] = a[t]; __syncwarp();\na[t] = s[t ^ 5];",
        SHARED + "if (t < 32) { s[t] = a[t]; __syncwarp(); a[t] = s[31 - t]; }",
        SHARED + "if (t == 0) s[0] = 3; __syncthreads(); a[t] = s[0];",
        SHARED + "s[0] = 7; __syncthreads(); a[t] = s[0];",
        SHARED + "s[t] = 0; __syncthreads(); atomicAdd(&s[t & 3], 1.f); __syncthreads();"
        "a[t] = s[t & 3];",
        "atomicAdd(&a[threadIdx.x & 3], 1.f);",
        "if (threadIdx.x >= 40) return; __shared__ float s[64]; s[threadIdx.x] = a[threadIdx.x];"
        "__syncthreads(); a[threadIdx.x] = s[39 - threadIdx.x];",
    ],
)
def test_correct_kernels_have_no_finding(body):
    assert findings(body, values()) == []


def test_warp_barriers_order_only_the_lanes_they_name():
    body = SHARED + "if (t < 32) {\ns[t] = a[t];\nif (t < 16) __syncwarp(0xffff);\n"
    assert findings(body + "a[t] = s[t < 16 ? t ^ 8 : t]; }", values()) == []
    found = findings(body + "a[t] = s[t ^ 16]; }", values())
    assert {f.kind for f in found} == {"race"}
    assert found[0].lines == (4, 6)
    assert "__syncwarp()" in found[0].message


def test_blocks_are_never_ordered():
    found = findings("a[threadIdx.x] += blockIdx.x;", values(), grid=3, batch_threads=64)
    assert {f.kind for f in found} == {"race"}
    (block, _), (other, _) = found[0].threads
    assert block != other
    assert "blocks run in no order" in found[0].message
    assert findings("a[threadIdx.x + 64 * blockIdx.x] += 1;", values(192), grid=3) == []


def test_copies_that_were_not_waited_for():
    parameters = "const float* a, float* b"
    args = values(), values()
    end = "\n__syncthreads();\nb[t] = s[63 - t];"
    assert findings(COPY + COMMIT + WAIT + end, *args, parameters=parameters) == []
    for missing in (COMMIT, WAIT, ""):
        found = findings(COPY + missing + end, *args, parameters=parameters)
        assert [f.kind for f in found] == ["async"], missing
        assert found[0].lines == (4, 7)
    found = findings(COPY + COMMIT + WAIT + "\nb[t] = s[63 - t];", *args, parameters=parameters)
    assert [f.kind for f in found] == ["race"]
    own = COPY + COMMIT + WAIT + "\nb[t] = s[t];"
    assert findings(own, *args, parameters=parameters) == []


def test_different_barriers_in_the_branches():
    body = SHARED + "if (t < 20) { s[t] = 1;\n__syncthreads(); } else { s[t] = a[t];\n"
    found = findings(body + "__syncthreads(); }\na[t] = s[63 - t];", values())
    assert [(f.kind, f.lines) for f in found] == [("barrier", (4, 5))]


@pytest.mark.parametrize("schedule", ["warps", "warps_reversed"])
def test_a_missing_barrier_gives_wrong_numbers_where_warps_take_turns(schedule):
    right, wrong = SHARED + "s[t] = a[t]; __syncthreads();\n", SHARED + "s[t] = a[t];\n"
    for body, equal in ((right, True), (wrong, False)):
        a = values()
        simulator.launch(kernel(body + "a[t] = s[63 - t];"), "k", 1, 64, (a,), schedule=schedule)
        assert np.array_equal(a, values()[::-1]) == equal


def test_schedules_give_the_same_results_and_an_unknown_one_a_sentence():
    k = load_kernel("03_tiled.cu", "scaled_dot_product", TILE=16)
    rng = np.random.default_rng(3)
    q, key = rng.standard_normal((2, 37, 19), dtype=np.float32)
    results = []
    for schedule in ("lockstep", "warps", "warps_reversed"):
        s = np.full((37, 37), np.nan, np.float32)
        args = q, key, s, np.int32(37), np.int32(19)
        report = simulator.launch(
            k.code, k.entry, (3, 3), (16, 16), args, k.options, schedule=schedule, sanitize=True
        )
        assert report.findings == []
        results.append((s, report.counters))
    for s, counters in results[1:]:
        np.testing.assert_array_equal(s, results[0][0])
        assert counters == results[0][1]
    with pytest.raises(simulator.SimulatorError, match="lockstep, warps, warps_reversed"):
        simulator.launch(kernel("a[0] = 1;"), "k", 1, 1, (values(),), schedule="random")


def test_lanes_that_an_instruction_of_their_warp_does_not_name():
    half = "__shfl_sync(0x0000ffff, a[t], 3)"
    for body, line in (
        (f"int t = threadIdx.x;\na[t] = {half};", 3),
        ("int t = threadIdx.x;\na[t] = __ballot_sync(0x7fffffff, t & 1);", 3),
        (SHARED + "s[t] = a[t];\n__syncwarp(0xffff);\na[t] = s[t];", 4),
    ):
        found = findings(body, values(), block=32)
        assert [(f.kind, f.lines) for f in found] == [("barrier", (line,))]
        assert "is not among the lanes" in found[0].message
    body = f"int t = threadIdx.x; if (t < 16) a[t] = {half};"
    assert findings(body, values(), block=32) == []


def test_a_named_barrier_for_some_warps_is_no_fault():
    body = SHARED + "if (t < 32) {\ns[t] = a[t];\n"
    body += 'asm volatile("bar.sync 1, 32;" ::: "memory");\na[t] = s[31 - t]; }'
    a = values()
    assert findings(body, a) == []
    np.testing.assert_array_equal(a, np.r_[31:-1:-1, 32:64])


def test_what_a_copy_on_its_way_must_not_meet():
    parameters, end = "const float* a, float* b", COMMIT + WAIT + "\n__syncthreads();\nb[t] = s[t];"
    found = findings(COPY + "s[t] = 1;\n" + end, values(), values(), parameters=parameters)
    assert [(f.kind, f.lines) for f in found] == [("async", (4, 5))]
    assert "writes s[0] while the cp.async of line 4" in found[0].message
    # its source is read like any other word
    body = COPY.replace("a + t", "b + t") + COMMIT + WAIT + "\nb[t ^ 1] = 2;"
    found = findings(body, values(), values(), parameters=parameters)
    assert [(f.kind, f.lines) for f in found] == [("race", (4, 6))]


def test_volatile_is_no_barrier_in_shared_memory_but_a_flag_in_global():
    shared = SHARED.replace("__shared__", "__shared__ volatile")
    found = findings(shared + "s[t] = a[t];\na[t] = s[t ^ 1];", values(), block=32)
    assert [(f.kind, f.lines) for f in found] == [("race", (3, 4))]
    flag = "volatile float* f = a;\nif (threadIdx.x == 0) f[0] = 1;\n"
    assert findings(flag + "while (f[0] == 0);", values()) == []
    found = findings(flag + "float v = a[0];\na[threadIdx.x + 1] = v;", values(66))
    # the compiler may load a[0] before the flag is set
    assert [(f.kind, sorted(f.lines)) for f in found] == [("race", [3, 4])]


def test_variables_of_the_module_are_followed():
    """A __device__ variable is memory that all threads share."""
    code = (
        "__device__ int count;\n"
        'extern "C" __global__ void k(float* S) {\n'
        "    S[threadIdx.x] = count;\n"
        "    count = 7;\n"
        "}\n"
    )
    report = simulator.launch(code, "k", (1,), (64,), (np.zeros(64, np.float32),), sanitize=True)
    (found,) = report.findings
    assert (found.kind, found.lines) == ("race", (3, 4))
    assert "count[0]" in found.message
    once = code.replace("    count = 7;", "    atomicAdd(&count, 1);").replace(
        "S[threadIdx.x] = count", "S[threadIdx.x] = 0"
    )
    report = simulator.launch(once, "k", (2,), (64,), (np.zeros(64, np.float32),), sanitize=True)
    assert all("count" not in finding.message for finding in report.findings)


def test_a_variable_without_a_first_value_shows():
    """What C++ leaves undefined is no zero here: NaN, or all bits set."""
    code = (
        'extern "C" __global__ void k(float* S, const float* A, int n) {\n'
        "    float sum;\n"
        "    for (int i = 0; i < n; i++) sum += A[i];\n"
        "    S[threadIdx.x] = sum;\n"
        "}\n"
    )
    S, A = np.zeros(2, np.float32), np.array([1, 2, 4], np.float32)
    simulator.launch(code, "k", (1,), (2,), (S, A, np.int32(3)))
    assert np.isnan(S).all()
    simulator.launch(code.replace("sum;\n    for", "sum = 0;\n    for"), "k", (1,), (2,),
                     (S, A, np.int32(3)))  # fmt: skip
    assert (S == 7).all()


@pytest.mark.parametrize(("size", "groups", "words"), [(17, 0, "read 17"), (16, -1, "not -1")])
def test_what_has_no_meaning_to_a_copy_is_refused(size, groups, words):
    code = f"""
extern "C" __global__ void k(const float4* A, float4* B, int size) {{
    __shared__ float4 s[32];
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::
        "r"(to), "l"(A + threadIdx.x), "r"(size) : "memory");
    asm volatile("cp.async.commit_group; cp.async.wait_group {groups};" ::: "memory");
    B[threadIdx.x] = s[threadIdx.x];
}}
"""
    A = np.arange(128, dtype=np.float32)
    with pytest.raises(simulator.SimulatorError, match=words):
        simulator.launch(code, "k", (1,), (32,), (A, np.zeros_like(A), np.int32(size)))
