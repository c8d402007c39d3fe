// The log of a coloring's rounds. See history.py.
#pragma once

#include "cuda/grid.cuh"

// Log a round; the first one is number 1. Always the same thread calls it.
__device__ void log_round(int2* log, long long n, int round, int colored, int conflicts) {
    long long last = n + SPARE_ROUNDS, row = min((long long)round, last);
    if (round > last) {
        colored += log[row].x;
        conflicts += log[row].y;
    }
    log[row] = make_int2(colored, conflicts);
    log[0].x = (int)row;
}

// ---- The log of a kernel whose threads do not synchronize between rounds.

// Round r counts the vertices that had their color after r visits; most rounds are added up per block first.
#define SHARED_ROUNDS 64

struct VisitLog {
    int2* log;
    long long last;
    int* counts;  // of this block, SHARED_ROUNDS of them

    __device__ void add(int visits, int count) {
        int row = (int)min((long long)visits, last);
        atomicAdd(&log[row].x, count);
        if (row > ptx::load_l2(&log[0].x)) atomicMax(&log[0].x, row);
    }
    __device__ void colored_after(int visits) {
        if (visits < SHARED_ROUNDS)
            atomicAdd(&counts[visits], 1);
        else
            add(visits, 1);
    }
    // A whole warp at once.
    __device__ __forceinline__ void colored_in(int round, int count) {
        if (lane_id() || count == 0) return;
        if (round < SHARED_ROUNDS)
            atomicAdd(&counts[round], count);
        else
            add(round, count);
    }
    __device__ void open() {
        for (int r = threadIdx.x; r < SHARED_ROUNDS; r += blockDim.x) counts[r] = 0;
        __syncthreads();
    }
    __device__ void close() {
        __syncthreads();
        for (int r = threadIdx.x; r < SHARED_ROUNDS; r += blockDim.x)
            if (counts[r]) add(r, counts[r]);
    }
};
