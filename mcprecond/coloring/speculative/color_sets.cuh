// What EB keeps and how; each function here is the part of color_sets.py with the same name. And the sums that lists of
// edges are made with.
#pragma once

#include "cuda/compact.cuh"

__device__ __forceinline__ int first_available(int forbidden) {
    return ~forbidden & (int)((uint32)forbidden + 1u) & ALL_FORBIDDEN;
}

__device__ bool forbid_color(int2 edge, const int* C, const int* CS, int* VF) {
    int cu = C[edge.x], cv = C[edge.y];
    if (cu != 0 && cv != 0) return false;
    if (cu == 0 && cv == 0) return true;
    int colored = cu ? edge.x : edge.y, other = cu ? edge.y : edge.x;
    int set = CS[colored], other_set = CS[other];
    if (set == other_set) atomicOr(&VF[other], cu | cv);
    return set > other_set;
}

__device__ void detect_conflict(int2 edge, int* C, const int* CS) {
    int color = C[edge.x];
    if (color != 0 && color == C[edge.y] && CS[edge.x] == CS[edge.y]) C[edge.x] = 0;
}

// CS(v) * 31 + log2 C(v).
__device__ __forceinline__ int to_number(int bit, int color_set) { return color_set * SET_SIZE + __ffs(bit) - 1; }

// From bits to numbers.
__device__ void from_bits(long long n, int* C, const int* CS) {
    for (long long v = thread_id(); v < n; v += thread_count()) C[v] = to_number(ptx::load_l2(&C[v]), ptx::load_l2(&CS[v]));
}

// The sum of a value over the block; every thread gets it.
__device__ int block_sum(int value) {
    __shared__ int partial[WARP];
    for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(FULL_WARP, value, step);
    __syncthreads();
    if (lane_id() == 0) partial[threadIdx.x / WARP] = value;
    __syncthreads();
    int sum = 0;
    for (int w = 0; w < blockDim.x / WARP; ++w) sum += partial[w];
    return sum;
}

// The sum of the values of all threads of the block before this one; `total` is the sum over all of them.
__device__ int block_scan(int value, int& total) {
    __shared__ int partial[WARP];
    int inclusive = value;
    for (int step = 1; step < WARP; step *= 2) {
        int before = __shfl_up_sync(FULL_WARP, inclusive, step);
        if (lane_id() >= step) inclusive += before;
    }
    __syncthreads();
    if (lane_id() == WARP - 1) partial[threadIdx.x / WARP] = inclusive;
    __syncthreads();
    int offset = 0;
    total = 0;
    for (int w = 0; w < blockDim.x / WARP; ++w) {
        if (w < threadIdx.x / WARP) offset += partial[w];
        total += partial[w];
    }
    return offset + inclusive - value;
}

// Where this block's stretch of a list begins, given what every block counted; `total` is the length of the list.
__device__ int stretch_offset(const int* counts, int& total) {
    int before = 0, all = 0;
    for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
        int count = ptx::load_l2(&counts[b]);
        all += count;
        if (b < blockIdx.x) before += count;
    }
    total = block_sum(all);
    return block_sum(before);
}
