// Advance and neighbor-reduce in one resident kernel; see reduce.py. A team of LANES threads reduces a segment.
//
// The race that is meant: a vertex may see a neighbor's color of this very round or not yet. It treats both alike, so
// that race does not change the result, and coloring needs no barrier after the reduction.

#include "worklist.cuh"
#include "cuda/hash.cuh"

__device__ __forceinline__ long long number_of(int v, uint32 seed) { return (long long)mix(v, seed) << 31 | v; }

// One thread's share of a segment.
__device__ long long neighbor_maximum(int v, int iteration, const OFFSET* indptr, const int* indices, uint32 seed,
                                      const int* colors) {
    long long largest = NOBODY;
    for (OFFSET k = indptr[v] + lane_id() % LANES; k < indptr[v + 1]; k += LANES) {
        int u = indices[k];
        if (u == v) continue;
        int color = ptx::load_l2(&colors[u]);
        if (color == UNCOLORED || color == iteration) largest = max(largest, number_of(u, seed));
    }
    return largest;
}

// Every thread of the team gets the maximum over it. Whole warps call it.
__device__ __forceinline__ long long team_maximum(long long value) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) value = max(value, __shfl_xor_sync(FULL_WARP, value, step, LANES));
    return value;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_reduction(long long n, const OFFSET* indptr, const int* indices, long long seed, int* colors,
                       int* worklists, void* scratch, int2* log) {
    color_in_rounds<LANES>(n, colors, worklists, scratch, log, [&](int v, int iteration, bool active) {
        long long largest = NOBODY;
        if (active) largest = neighbor_maximum(v, iteration, indptr, indices, (uint32)seed, colors);
        return number_of(v, (uint32)seed) > team_maximum(largest) ? iteration : UNCOLORED;
    });
}
