// The loop of a coloring in rounds over a worklist.
#pragma once

#include "coloring/graph.cuh"
#include "coloring/history.cuh"
#include "cuda/compact.cuh"

// Color in rounds with a worklist of the uncolored vertices, a thread each. `visit(v, round)` returns the color of v or
// UNCOLORED. `worklists` holds twice n vertices; the host zeroes `scratch` and `log`.
template <typename Visit>
__device__ void color_in_rounds(long long n, int* colors, int* worklists, void* scratch, int2* log, Visit visit) {
    struct Control {
        uint32 arrivals;
        int length[2];  // of the worklists, by parity of the round
    }* control = (Control*)scratch;
    for (long long v = thread_id(); v < n; v += thread_count()) {
        colors[v] = UNCOLORED;
        worklists[v] = (int)v;
    }
    grid_barrier(&control->arrivals);
    int length = (int)n;
    for (int round = 0;; ++round) {
        const int* left = worklists + (round & 1) * n;
        int* next = worklists + (~round & 1) * n;
        int* next_length = &control->length[round & 1];
        for (long long i0 = thread_id() - lane_id(); i0 < length; i0 += thread_count()) {
            long long i = i0 + lane_id();
            int v = i < length ? ptx::load_l2(&left[i]) : 0;
            CHECK(v, v >= 0 && v < n);
            int color = i < length ? visit(v, round) : UNCOLORED;
            if (color != UNCOLORED) colors[v] = color;
            bool keep = i < length && color == UNCOLORED;
            int position = warp_append(keep, next_length);
            CHECK(position, !keep || position < length);
            if (keep) next[position] = v;
        }
        grid_barrier(&control->arrivals);
        int before = length;
        length = ptx::load_l2(next_length);
        if (thread_id() == 0) log_round(log, n, round + 1, before - length, 0);
        if (length == 0) return;
        // The next round counts in the other slot; everyone has read it, since that was before the last barrier.
        if (thread_id() == 0) control->length[~round & 1] = 0;
        grid_barrier(&control->arrivals);
    }
}
