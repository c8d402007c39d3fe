// Reductions over the threads of a team, a warp or a block. Whole warps (or the whole block) call these functions.
#pragma once

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"

// Shuffles of values that consist of several numbers.
template <typename T>
__device__ __forceinline__ T shuffle(T value, int lane, int width) {
    each_part(value, [&](Real<T>& part) { part = __shfl_sync(FULL_WARP, part, lane, width); });
    return value;
}
template <typename T>
__device__ __forceinline__ T shuffle_xor(T value, int step) {
    each_part(value, [&](Real<T>& part) { part = __shfl_xor_sync(FULL_WARP, part, step); });
    return value;
}

// The sum over each TEAM neighboring threads, in a fixed order; all of them get it.
template <int TEAM, typename T>
__device__ __forceinline__ T lane_sum(T value) {
#pragma unroll
    for (int step = TEAM / 2; step > 0; step /= 2) value += shuffle_xor(value, step);
    return value;
}

// The bits that are set on any thread of a team: TEAM neighboring threads of a warp, or the block.
template <int TEAM>
__device__ uint64 team_or(uint64 bits) {
    for (int step = (TEAM < WARP ? TEAM : WARP) / 2; step > 0; step /= 2)
        bits |= __shfl_xor_sync(FULL_WARP, bits, step);
    if constexpr (TEAM > WARP) {
        __shared__ uint64 parts[TEAM / WARP];
        if (lane_id() == 0) parts[threadIdx.x / WARP] = bits;
        __syncthreads();
        for (uint64 part : parts) bits |= part;
        __syncthreads();
    }
    return bits;
}

// Add the values of all threads of a block to `sums`, by one atomic a sum. The block calls it once.
template <int COUNT>
__device__ __forceinline__ void add_block_sums(uint64* sums, const uint64 (&values)[COUNT]) {
    __shared__ uint64 of_warps[BLOCK / WARP][COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        uint64 value = values[k];
#pragma unroll
        for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(FULL_WARP, value, step);
        if (lane_id() == 0) of_warps[threadIdx.x / WARP][k] = value;
    }
    __syncthreads();
    if (threadIdx.x >= COUNT) return;
    uint64 of_block = 0;
    for (int w = 0; w < BLOCK / WARP; ++w) of_block += of_warps[w][threadIdx.x];
    if (of_block) atomicAdd(&sums[threadIdx.x], of_block);
}

// The sum over the block in a fixed order; only thread 0 gets it.
__device__ double block_sum(double value) {
    __shared__ double parts[WARP];
    value = lane_sum<WARP>(value);
    __syncthreads();
    if (lane_id() == 0) parts[threadIdx.x / WARP] = value;
    __syncthreads();
    double sum = 0;
    if (threadIdx.x == 0)
        for (int w = 0; w < blockDim.x / WARP; ++w) sum += parts[w];
    return sum;
}
