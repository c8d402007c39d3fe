// Lists that keep their order from round to round: sums over a block, and over the blocks before.
#pragma once

#include "cuda/grid.cuh"

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

// CREATENEWEDGELIST, or the next worklist, by a parallel prefix sum (Section IV-A of Deveci et al.): keep those of a list
// of `length` for which `stays` is true. Every item is marked in a first sweep, and the marks summed up by block; in a second
// sweep those marked are written behind each other, in their order. All threads of the grid call it; returns how many
// are kept.
template <typename Item, typename Stays>
__device__ int keep_in_order(const Item* list, int length, Item* kept, signed char* marks, int* counts,
                             uint32* arrivals, Stays stays) {
    int share = (length + (int)gridDim.x - 1) / (int)gridDim.x, count = 0;
    int first = (int)min(blockIdx.x * (long long)share, (long long)length), last = min(first + share, length);
    for (int i = first + (int)threadIdx.x; i < last; i += BLOCK) {
        marks[i] = stays(list[i]);
        count += marks[i];
    }
    count = block_sum(count);
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
    grid_barrier(arrivals);
    int place = stretch_offset(counts, length);
    for (int i0 = first; i0 < last; i0 += BLOCK) {
        int i = i0 + (int)threadIdx.x, of_block;
        bool marked = i < last && marks[i];
        int own = block_scan(marked, of_block);
        if (marked) kept[place + own] = list[i];
        place += of_block;
    }
    grid_barrier(arrivals);
    return length;
}

// The same by an atomic counter for each item that stays, which scatters them. `counter` is zero.
template <typename Item, typename Stays>
__device__ int keep_scattered(const Item* list, int length, Item* kept, int* counter, uint32* arrivals, Stays stays) {
    for (long long i = thread_id(); i < length; i += thread_count())
        if (stays(list[i])) kept[atomicAdd(counter, 1)] = list[i];
    grid_barrier(arrivals);
    return ptx::load_l2(counter);
}
