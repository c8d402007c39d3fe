// Sums over a team, and maxima over one of up to a warp, in a fixed order; all of its threads get them.
#pragma once

#include "cuda/numbers.cuh"
#include "multigrid/team.cuh"

template <typename T>
__device__ __forceinline__ T team_sum(T value) {
    for (int step = min(LANES, WARP) / 2; step > 0; step /= 2) {
        T other = value;
        each_part(other, [&](Real<T>& part) { part = __shfl_xor_sync(team_mask(), part, step); });
        value += other;
    }
#if LANES > WARP
    __shared__ T of_warps[LANES / WARP];
    if (lane_id() == 0) of_warps[threadIdx.x / WARP] = value;
    __syncthreads();
    value = T();
    for (int warp = 0; warp < LANES / WARP; ++warp) value += of_warps[warp];
    __syncthreads();  // before the next sum
#endif
    return value;
}

template <typename T>
__device__ __forceinline__ T team_max(T value) {
    for (int step = LANES / 2; step > 0; step /= 2) value = max(value, __shfl_xor_sync(team_mask(), value, step));
    return value;
}
