// Rows that LANES threads share, and a first color for all vertices, for eb.cu. Whole warps call all of it.
#pragma once

#include "coloring/graph.cuh"
#include "cuda/hash.cuh"

#define AT_ONCE (LANES == WARP ? 8 : 4)  // entries of a row that a thread loads together

// Call `visit(u, load(u))` for the neighbors u that a row lists, LANES threads together. A thread issues AT_ONCE loads
// before it waits for one of them; where there is no entry, it calls visit(-1, UNCOLORED).
template <typename Load, typename Visit>
__device__ __forceinline__ void visit_row(const int* row, int entries, Load load, Visit visit) {
    for (int first = threadIdx.x % LANES; __any_sync(FULL_WARP, first < entries); first += AT_ONCE * LANES) {
        int u[AT_ONCE], found[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) u[j] = first + j * LANES < entries ? row[first + j * LANES] : -1;
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) found[j] = u[j] < 0 ? UNCOLORED : load(u[j]);
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) visit(u[j], found[j]);
    }
}

__device__ __forceinline__ int next_row(int v, int begin, int end) {
    return end - v > 2 ? v + 2 : begin + (v - begin + 1) % 2;
}

// Where team t of several begins, so that they share the rows and their entries evenly: all entries cost a team the
// same, and a row costs at least as much as the entries that the team can load together.
__device__ long long stretch_begin(long long t, long long teams, long long n, const OFFSET* indptr) {
    long long cost = AT_ONCE * LANES, low = 0, high = n;
    long long target = t * (cost * n + indptr[n]) / teams;
    while (low < high) {
        long long middle = low + (high - low) / 2;
        if (cost * middle + indptr[middle] < target)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Color every uncolored vertex once, a stretch of all vertices by each team. smallest(v, row, entries) finds the color;
// where a team has nothing to do there are no entries.
template <typename Smallest>
__device__ __forceinline__ void color_stretches(long long n, const OFFSET* indptr, const int* indices, long long chunk,
                                                int* colors, Smallest smallest) {
    long long teams = max(min(thread_count(), n / chunk) / LANES, 1ll), team = spread_id() / LANES;
    int lane = threadIdx.x % LANES;
    int begin = (int)stretch_begin(min(team + lane % 2, teams), teams, n, indptr);
    int end = __shfl_sync(FULL_WARP, begin, 1, LANES);
    begin = __shfl_sync(FULL_WARP, begin, 0, LANES);
    int v = begin < end ? begin + (int)(mix((uint32)team, 0) % (uint32)(end - begin)) : 0;
    for (int i = 0; __any_sync(FULL_WARP, i < end - begin); ++i) {
        bool left = i < end - begin, active = left && colors[v] < 0;
        OFFSET row = indptr[v];
        int color = smallest(v, indices + row, active ? (int)(indptr[v + 1] - row) : 0);
        if (active && lane == 0) colors[v] = color;
        __syncwarp();
        if (left) v = next_row(v, begin, end);
    }
}
