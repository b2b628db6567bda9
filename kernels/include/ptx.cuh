// PTX instructions that CUDA C has no name for, one function each, and the little of CUDA C's own
// that a kernel on tensor cores needs beside them. Sections named are those of the PTX ISA manual.
// A lane is a thread's number in its warp. From `ldmatrix` on, all 32 lanes call a function
// together.

#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "cp.async and these matrix products need a GPU of compute capability 8.0 or newer."
#endif

// The address that instructions on shared memory take: 32 bits, counted from the first byte there.
__device__ __forceinline__ unsigned shared_address(const void* shared) {
    return (unsigned)__cvta_generic_to_shared(shared);
}

// ---- From global to shared memory ("cp.async", "cp.async.commit_group", "cp.async.wait_group")

// Starts a copy of 16 bytes that goes on without the thread. Of the source only `bytes` bytes are
// read, 16 or 0; the rest of the 16 becomes zeros. Both addresses are multiples of 16.
__device__ __forceinline__ void cp_async_16(void* shared, const void* global, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(shared_address(shared)), "l"(global), "r"(bytes)
                 : "memory");
}

// Makes a group of the copies that this thread has started since it made the last one.
__device__ __forceinline__ void cp_async_commit() {
    asm volatile("cp.async.commit_group;" : : : "memory");
}

// Waits until at most PENDING of this thread's groups are under way. What other threads copied is
// there after a barrier.
template <int PENDING>
__device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" : : "n"(PENDING) : "memory");
}

// ---- From shared memory to registers ("Warp-level matrix load instruction: ldmatrix")

// Loads four 8 x 8 matrices of 16-bit elements. Lane 8 m + i passes the address of row i of matrix
// m, 16 bytes. Register m of lane 4 r + c then holds elements 2 c and 2 c + 1 of row r of matrix m.
__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// The same with each matrix transposed: lane 4 r + c holds elements 2 c and 2 c + 1 of column r.
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// Loads two matrices: lanes 0 to 15 pass the addresses of their rows.
__device__ __forceinline__ void ldmatrix_x2(unsigned (&r)[2], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row))
                 : "memory");
}

// ---- Matrix products ("Matrix Fragments for mma.m16n8k16 with floating point type")

// C += A B for one warp: A is 16 x 16 and B 16 x 8, of 16-bit elements, C is 16 x 8 of floats. With
// g = lane / 4 and t = lane % 4, a lane holds pairs of neighbours,
//   of A  a[0] row g, columns 2 t and 2 t + 1; a[1] row g + 8; a[2] and a[3] the same, 8 columns on
//   of B  b0 column g, rows 2 t and 2 t + 1; b1 the same, 8 rows on
//   of C  c[0] and c[1] row g, columns 2 t and 2 t + 1; c[2] and c[3] row g + 8
template <typename Element>
__device__ void mma_m16n8k16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1);

template <>
__device__ __forceinline__ void mma_m16n8k16<half>(
    float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1
) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void mma_m16n8k16<nv_bfloat16>(
    float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1
) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// ---- Floats and pairs of 16-bit elements ("cvt", "shfl.sync")

// Two floats rounded and put in one register, `low` in its lower half, which comes first in memory.
template <typename Element>
__device__ unsigned pack(float low, float high);

template <>
__device__ __forceinline__ unsigned pack<half>(float low, float high) {
    const half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
}

template <>
__device__ __forceinline__ unsigned pack<nv_bfloat16>(float low, float high) {
    const nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ __forceinline__ float minus_infinity() {
    return __int_as_float(0xff800000);
}

// The value that lane number lane ^ mask passes.
__device__ __forceinline__ float shuffle_xor(float value, int mask) {
    return __shfl_xor_sync(0xffffffffu, value, mask);
}

// Whether `condition` holds for any lane of the warp.
__device__ __forceinline__ bool any_lane(bool condition) {
    return __any_sync(0xffffffffu, condition);
}
