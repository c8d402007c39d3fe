// Sums and maxima over a team of up to a warp, in a fixed order; all of its threads get them.
#pragma once

#include "cuda/numbers.cuh"
#include "multigrid/team.cuh"

template <typename T>
__device__ __forceinline__ T team_sum(T value) {
    for (int step = LANES / 2; step > 0; step /= 2) {
        T other = value;
        each_part(other, [&](Real<T>& part) { part = __shfl_xor_sync(team_mask(), part, step); });
        value += other;
    }
    return value;
}

__device__ __forceinline__ double team_max(double value) {
    for (int step = LANES / 2; step > 0; step /= 2) value = max(value, __shfl_xor_sync(team_mask(), value, step));
    return value;
}
