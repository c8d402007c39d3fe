// Min-max independent sets in one resident kernel; see minmax.py.
//
// The race that is meant: a vertex may see a neighbor's color of this very round or not yet. It treats both alike, so
// that race does not change the result.

#define UNCOLORED (-1)

__device__ int color_of(int v, int base, const OFFSET* indptr, const int* indices, uint32 seed, const int* colors) {
    uint32 own = mix(v, seed);
    bool colormax = true, colormin = true;
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k];
        if (u == v) continue;
        int color = fresh(&colors[u]);
        if (color != UNCOLORED && color < base) continue;
        uint32 theirs = mix(u, seed);
        if (theirs > own || (theirs == own && u > v))
            colormax = false;
        else
            colormin = false;
        if (!colormax && !colormin) return UNCOLORED;
    }
    return colormin ? base + 1 : base;
}

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int rounds;
    int length[2];  // of the worklists, by parity of the round
};

extern "C" __global__ void __launch_bounds__(256) color_by_two_sets(
        long long n, const OFFSET* indptr, const int* indices, long long seed, int* colors, int* worklists,
        void* scratch) {
    Control* control = (Control*)scratch;
    for (long long v = thread_id(); v < n; v += thread_count()) {
        colors[v] = UNCOLORED;
        worklists[v] = (int)v;
    }
    grid_barrier(&control->arrivals);
    int length = (int)n;
    for (int iteration = 0;; ++iteration) {
        const int* left = worklists + (iteration & 1) * n;
        int* next = worklists + (~iteration & 1) * n;
        int* next_length = &control->length[iteration & 1];
        for (long long i0 = thread_id() - lane_id(); i0 < length; i0 += thread_count()) {
            long long i = i0 + lane_id();
            int v = i < length ? fresh(&left[i]) : 0;
            int color = i < length ? color_of(v, 2 * iteration, indptr, indices, (uint32)seed, colors) : UNCOLORED;
            if (color != UNCOLORED) colors[v] = color;
            bool keep = i < length && color == UNCOLORED;
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
