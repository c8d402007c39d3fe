// Advance and neighbor-reduce in one resident kernel; see reduce.py. A team of LANES threads reduces a segment.
//
// The race that is meant: a vertex may see a neighbor's color of this very round or not yet. It treats both alike, so
// that race does not change the result, and coloring needs no barrier after the reduction.

#define UNCOLORED (-1)
#define NOBODY (-1ll)

__device__ __forceinline__ long long number_of(int v, uint32 seed) { return (long long)mix(v, seed) << 31 | v; }

// One thread's share of a segment.
__device__ long long neighbor_maximum(int v, int iteration, const OFFSET* indptr, const int* indices, uint32 seed,
                                      const int* colors) {
    long long largest = NOBODY;
    for (OFFSET k = indptr[v] + lane_id() % LANES; k < indptr[v + 1]; k += LANES) {
        int u = indices[k];
        if (u == v) continue;
        int color = fresh(&colors[u]);
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

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int rounds;
    int length[2];  // of the frontiers, by parity of the round
};

extern "C" __global__ void __launch_bounds__(256) color_by_reduction(
        long long n, const OFFSET* indptr, const int* indices, long long seed, int* colors, int* worklists,
        void* scratch) {
    Control* control = (Control*)scratch;
    for (long long v = thread_id(); v < n; v += thread_count()) {
        colors[v] = UNCOLORED;
        worklists[v] = (int)v;
    }
    grid_barrier(&control->arrivals);
    int length = (int)n;
    bool leads = lane_id() % LANES == 0;
    for (int iteration = 0;; ++iteration) {
        const int* F = worklists + (iteration & 1) * n;
        int* next = worklists + (~iteration & 1) * n;
        int* next_length = &control->length[iteration & 1];
        for (long long i0 = (thread_id() - lane_id()) / LANES; i0 < length; i0 += thread_count() / LANES) {
            long long i = i0 + lane_id() / LANES, largest = NOBODY;
            int v = i < length ? fresh(&F[i]) : 0;
            if (i < length) largest = neighbor_maximum(v, iteration, indptr, indices, (uint32)seed, colors);
            bool removed = number_of(v, (uint32)seed) > team_maximum(largest);
            bool mine = i < length && leads;
            if (mine && removed) colors[v] = iteration;
            bool keep = mine && !removed;
            int position = warp_append(keep, next_length);
            if (keep) next[position] = v;
        }
        grid_barrier(&control->arrivals);
        length = fresh(next_length);
        if (length == 0) {
            if (thread_id() == 0) control->rounds = iteration + 1;
            return;
        }
        // The next round counts in the other slot; everyone has read it, since that was before the last barrier.
        if (thread_id() == 0) control->length[~iteration & 1] = 0;
        grid_barrier(&control->arrivals);
    }
}
