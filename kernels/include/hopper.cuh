// What GPUs of compute capability 9.0 add for matrix products, one function each: warpgroups that
// multiply out of shared memory (wgmma), copies of tiles by the tensor memory accelerator (TMA),
// barriers in shared memory that threads and copies arrive at (mbarriers). Sections named are those
// of the PTX ISA manual. A warpgroup is four warps, threads 128 w to 128 w + 127 of a block.
//
// Architecture: sm_90a
// wgmma belongs to this one architecture, and code compiled for it runs on no other.

#pragma once

#include "ptx.cuh"

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "wgmma and setmaxnreg need compute capability 9.0 and -arch=sm_90a, of CUDA 12.0 or newer."
#endif

// ---- Warps and warpgroups ("setmaxnreg", "bar.sync", "bar.arrive")

// The number of this thread's warpgroup, in a form that the compiler knows to be the same in all
// lanes of a warp.
__device__ __forceinline__ int warpgroup_index() {
    return __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
}

// Lets each thread of a warpgroup have more registers, once others have given theirs back.
template <int REGISTERS>
__device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(REGISTERS));
}

// Gives back what each thread of a warpgroup has beyond so many registers.
template <int REGISTERS>
__device__ __forceinline__ void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(REGISTERS));
}

// Waits at barrier `barrier`, 1 to 15, until `threads` threads have come to it. __syncthreads is
// barrier 0 and all threads.
__device__ __forceinline__ void barrier_sync(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
}

// Comes to it and does not wait.
__device__ __forceinline__ void barrier_arrive(int barrier, int threads) {
    asm volatile("bar.arrive %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
}

// ---- Barriers in shared memory ("mbarrier")
//
// A phase of an mbarrier is complete when as many threads have arrived as it was made for, and all
// bytes have come that were announced. Then the next phase begins. Phases are told apart by their
// parity: 0 for the first.

typedef unsigned long long Mbarrier;

__device__ __forceinline__ void mbarrier_init(Mbarrier* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :
                 : "r"(shared_address(barrier)), "r"(arrivals)
                 : "memory");
}

// Arrives, and announces `bytes` bytes that copies will bring in this phase.
__device__ __forceinline__ void mbarrier_expect(Mbarrier* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(Mbarrier* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                 :
                 : "r"(shared_address(barrier))
                 : "memory");
}

// One lane of the warp arrives for all of it.
__device__ __forceinline__ void mbarrier_arrive_warp(Mbarrier* barrier) {
    if (threadIdx.x % 32 == 0) {
        mbarrier_arrive(barrier);
    }
}

// Waits until the phase of this parity is complete. A try suspends the thread for a while.
__device__ __forceinline__ void mbarrier_wait(Mbarrier* barrier, int parity) {
    int complete;
    do {
        asm volatile("{\n"
                     ".reg .pred complete;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
                     "selp.b32 %0, 1, 0, complete;\n"
                     "}"
                     : "=r"(complete)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
    } while (!complete);
}

// ---- Two ways into shared memory ("fence.proxy.async")

// TMA and wgmma reach shared memory by another way (the async proxy) than loads and stores do.
// What this thread wrote before, and the mbarriers that it made, they find after this fence.
__device__ __forceinline__ void fence_async() {
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}

// ---- Copies of tiles by TMA ("cp.async.bulk.tensor")

// Tells TMA of an array in global memory: its sizes and strides, the box that one copy moves, and
// how the box is swizzled in shared memory. The host encodes it; a kernel takes it by value, as
// `const __grid_constant__ TensorMap`.
struct alignas(64) TensorMap {
    unsigned long long words[16];
};

// Starts copying the box that begins at element (x, y, z, w) of a 4-dimensional array, x along its
// rows, to shared memory. What lies outside of the array comes as zeros. All bytes of the box
// arrive at `barrier`. One thread calls it.
__device__ __forceinline__ void tma_load(
    void* shared, const TensorMap& map, Mbarrier* barrier, int x, int y, int z, int w
) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];"
                 :
                 : "r"(shared_address(shared)), "l"(&map), "r"(shared_address(barrier)), "r"(x),
                   "r"(y), "r"(z), "r"(w)
                 : "memory");
}

// Starts copying a box from shared memory to the array; what lies outside of it is left out.
__device__ __forceinline__ void tma_store(
    const TensorMap& map, const void* shared, int x, int y, int z, int w
) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group "
                 "[%0, {%2, %3, %4, %5}], [%1];"
                 :
                 : "l"(&map), "r"(shared_address(shared)), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

// Makes a group of the copies from shared memory that this thread has started.
__device__ __forceinline__ void tma_store_commit() {
    asm volatile("cp.async.bulk.commit_group;" : : : "memory");
}

// Waits until all of them have read shared memory.
__device__ __forceinline__ void tma_store_wait() {
    asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory");
}

// ---- Products of a warpgroup ("wgmma.mma_async")
//
// D += A B, with A 64 x 16 and B 16 x N of 16-bit elements, D 64 x N of floats. Warp w of the
// warpgroup has rows 16 w to 16 w + 15 of D: c[j] is the 16 x 8 part with columns 8 j on, spread
// over its lanes as in mma_m16n8k16. So are the four registers of A, if it comes from registers.

// Says where a tile lies in shared memory ("Matrix descriptor"): its address and two strides in
// bytes, for tiles with rows of 128 bytes that are swizzled in groups of eight, 1,024 bytes.
//   rows along k (K-major)   group_stride from eight rows to the next; the other is not used
//   rows along N (MN-major)  group_stride from eight rows of k to the next,
//                            panel_stride from 64 columns to the next
__device__ __forceinline__ unsigned long long describe(
    const void* shared, int group_stride = 1024, int panel_stride = 16
) {
    const unsigned long long swizzle_128 = 1ull << 62;
    return swizzle_128 | (unsigned long long)(group_stride / 16) << 32 |
           (unsigned long long)(panel_stride / 16) << 16 | (shared_address(shared) & 0x3ffff) / 16;
}

// Products read and write registers behind the compiler's back. Here it takes some as changed, and
// moves nothing that has to do with them past this point. No instruction comes of it.
template <int TILES>
__device__ __forceinline__ void settle(float (&r)[TILES][4]) {
    #pragma unroll
    for (int i = 0; i < 4 * TILES; i++) {
        asm volatile("" : "+f"(r[i / 4][i % 4]) : : "memory");
    }
}

template <int TILES>
__device__ __forceinline__ void settle(unsigned (&r)[TILES][4]) {
    #pragma unroll
    for (int i = 0; i < 4 * TILES; i++) {
        asm volatile("" : "+r"(r[i / 4][i % 4]) : : "memory");
    }
}

// Comes before products, with the registers of A and D that they take: what has been written to
// these, they find.
template <typename... Registers>
__device__ __forceinline__ void wgmma_fence(Registers&... registers) {
    (settle(registers), ...);
    asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
}

// Makes a group of the products that the warpgroup has started since it made the last one.
__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}

// Waits until at most PENDING groups are under way; `registers` are then what the others made.
template <int PENDING, typename... Registers>
__device__ __forceinline__ void wgmma_wait(Registers&... registers) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(PENDING) : "memory");
    (settle(registers), ...);
}

template <typename Element>
constexpr bool IS_HALF = false;
template <>
constexpr bool IS_HALF<half> = true;

// The registers of D as wgmma's text and as operands of asm: 32 for N = 64, 64 for N = 128.
#define D32_TEXT \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define D64_TEXT \
    D32_TEXT ", " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
    "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define D4(j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define D32 D4(0), D4(1), D4(2), D4(3), D4(4), D4(5), D4(6), D4(7)
#define D64 D32, D4(8), D4(9), D4(10), D4(11), D4(12), D4(13), D4(14), D4(15)

// A predicate says whether D is added to. The last number of wgmma says that B is MN-major.
#define WGMMA(ADD, SHAPE, TYPE, D, OPERANDS) \
    "{\n.reg .pred add;\n" \
    "setp.ne.b32 add, " ADD ", 0;\n" \
    "wgmma.mma_async.sync.aligned." SHAPE ".f32." TYPE "." TYPE " {" D "}, " OPERANDS ";\n}"

// A from shared memory, K-major: `a` and `b` describe A and B.
template <typename Element, bool MN_MAJOR, int TILES>
__device__ __forceinline__ void wgmma(
    float (&c)[TILES][4], unsigned long long a, unsigned long long b, bool add
) {
    static_assert(TILES == 8 || TILES == 16, "D has 64 or 128 columns.");
    #define INPUTS "l"(a), "l"(b), "r"((int)add), "n"((int)MN_MAJOR)
    #define OPERANDS_64 "%32, %33, add, 1, 1, 0, %35"
    #define OPERANDS_128 "%64, %65, add, 1, 1, 0, %67"
    if constexpr (TILES == 8 && IS_HALF<Element>) {
        asm volatile(WGMMA("%34", "m64n64k16", "f16", D32_TEXT, OPERANDS_64) : D32 : INPUTS);
    } else if constexpr (TILES == 8) {
        asm volatile(WGMMA("%34", "m64n64k16", "bf16", D32_TEXT, OPERANDS_64) : D32 : INPUTS);
    } else if constexpr (IS_HALF<Element>) {
        asm volatile(WGMMA("%66", "m64n128k16", "f16", D64_TEXT, OPERANDS_128) : D64 : INPUTS);
    } else {
        asm volatile(WGMMA("%66", "m64n128k16", "bf16", D64_TEXT, OPERANDS_128) : D64 : INPUTS);
    }
    #undef INPUTS
    #undef OPERANDS_64
    #undef OPERANDS_128
}

// A from registers, as pairs of elements.
template <typename Element, bool MN_MAJOR, int TILES>
__device__ __forceinline__ void wgmma(
    float (&c)[TILES][4], const unsigned (&a)[4], unsigned long long b, bool add
) {
    static_assert(TILES == 8 || TILES == 16, "D has 64 or 128 columns.");
    #define INPUTS \
        "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add), "n"((int)MN_MAJOR)
    #define OPERANDS_64 "{%32, %33, %34, %35}, %36, add, 1, 1, %38"
    #define OPERANDS_128 "{%64, %65, %66, %67}, %68, add, 1, 1, %70"
    if constexpr (TILES == 8 && IS_HALF<Element>) {
        asm volatile(WGMMA("%37", "m64n64k16", "f16", D32_TEXT, OPERANDS_64) : D32 : INPUTS);
    } else if constexpr (TILES == 8) {
        asm volatile(WGMMA("%37", "m64n64k16", "bf16", D32_TEXT, OPERANDS_64) : D32 : INPUTS);
    } else if constexpr (IS_HALF<Element>) {
        asm volatile(WGMMA("%69", "m64n128k16", "f16", D64_TEXT, OPERANDS_128) : D64 : INPUTS);
    } else {
        asm volatile(WGMMA("%69", "m64n128k16", "bf16", D64_TEXT, OPERANDS_128) : D64 : INPUTS);
    }
    #undef INPUTS
    #undef OPERANDS_64
    #undef OPERANDS_128
}
