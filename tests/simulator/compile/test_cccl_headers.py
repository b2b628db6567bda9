"""Headers that CuPy puts on the path of every RawKernel: cooperative groups, cuda::std, CUB."""

from __future__ import annotations

import numpy as np

from helpers import simulator


def test_tiles_of_cooperative_groups():
    code = """#include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(const int* x, int* sums, unsigned* ballots, int* ranks) {
      cg::thread_block block = cg::this_thread_block();
      auto tile = cg::tiled_partition<16>(block);
      int t = block.thread_rank();
      sums[t] = cg::reduce(tile, x[t], cg::plus<int>());
      ballots[t] = tile.ballot(x[t] & 1);
      ranks[t] = tile.thread_rank() + 100 * tile.any(x[t] == 7);
      block.sync();
    }"""
    x = np.random.default_rng(3).integers(0, 50, 64).astype(np.int32)
    x[40] = 7
    sums, ranks = np.zeros(64, np.int32), np.zeros(64, np.int32)
    ballots = np.zeros(64, np.uint32)
    simulator.launch(code, "k", (1,), (64,), (x, sums, ballots, ranks))
    tiles = x.reshape(4, 16)
    assert sums.tolist() == np.repeat(tiles.sum(1), 16).tolist()
    bits = ((tiles & 1) << np.arange(16)).sum(1)
    assert ballots.tolist() == np.repeat(bits, 16).tolist()
    seven = np.repeat((tiles == 7).any(1), 16)
    assert ranks.tolist() == (np.tile(np.arange(16), 4) + 100 * seven).tolist()


def test_labelled_groups_and_the_threads_of_a_branch():
    code = """#include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(const int* key, int* sizes, int* odd) {
      int t = threadIdx.x;
      auto warp = cg::tiled_partition<32>(cg::this_thread_block());
      auto same = cg::labeled_partition(warp, key[t]);
      sizes[t] = cg::reduce(same, t, cg::plus<int>());
      if (key[t] % 2) {
        auto here = cg::coalesced_threads();
        odd[t] = here.size() * 100 + here.thread_rank();
      }
    }"""
    key = np.random.default_rng(4).integers(0, 4, 32).astype(np.int32)
    sizes, odd = np.zeros(32, np.int32), np.zeros(32, np.int32)
    simulator.launch(code, "k", (1,), (32,), (key, sizes, odd))
    lane = np.arange(32)
    assert sizes.tolist() == [int(lane[key == one].sum()) for one in key]
    here = key % 2 == 1
    rank = np.cumsum(here) - 1
    assert odd.tolist() == np.where(here, 100 * here.sum() + rank, 0).tolist()


def test_a_reduction_of_cub():
    code = """#include <cub/block/block_reduce.cuh>
    extern "C" __global__ void k(const float* x, float* out) {
      typedef cub::BlockReduce<float, 96> Reduce;
      __shared__ typename Reduce::TempStorage place;
      float sum = Reduce(place).Sum(x[blockIdx.x * 96 + threadIdx.x]);
      if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }"""
    x = np.random.default_rng(5).random(288, np.float32)
    out = np.zeros(3, np.float32)
    simulator.launch(code, "k", (3,), (96,), (x, out))
    np.testing.assert_allclose(out, x.astype(float).reshape(3, 96).sum(1), rtol=1e-6)


def test_arrays_of_the_standard_library():
    code = """#include <cuda/std/array>
    #include <cuda/std/limits>
    #include <cuda/std/utility>
    extern "C" __global__ void k(float* out) {
      cuda::std::array<float, 3> a = {1, 2, cuda::std::numeric_limits<float>::max()};
      cuda::std::swap(a[0], a[1]);
      for (int i = 0; i < 3; i++) out[i] = a[i];
    }"""
    out = np.zeros(3, np.float32)
    simulator.launch(code, "k", (1,), (1,), (out,))
    assert out.tolist() == [2, 1, np.finfo(np.float32).max]
