// JPL in one resident kernel; see jpl.py. A vertex may see a neighbor's color of this very round or not yet: it treats
// both alike, so that race does not change the result.

#define UNCOLORED (-1)

__device__ bool is_local_maximum(int v, int c, const OFFSET* indptr, const int* indices, uint32 seed, const int* colors) {
    uint32 own = mix(v, seed);
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k];
        if (u == v) continue;
        uint32 theirs = mix(u, seed);
        if (theirs < own || (theirs == own && u < v)) continue;
        int color = fresh(&colors[u]);
        if (color == UNCOLORED || color == c) return false;
    }
    return true;
}

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int rounds;
    int length[2];  // of the worklists, by parity of the round
};

extern "C" __global__ void __launch_bounds__(256) color_by_sets(
        long long n, const OFFSET* indptr, const int* indices, long long seed, int* colors, int* worklists,
        void* scratch) {
    Control* control = (Control*)scratch;
    for (long long v = thread_id(); v < n; v += thread_count()) {
        colors[v] = UNCOLORED;
        worklists[v] = (int)v;
    }
    grid_barrier(&control->arrivals);
    int length = (int)n;
    for (int c = 0;; ++c) {
        const int* left = worklists + (c & 1) * n;
        int* next = worklists + (~c & 1) * n;
        int* next_length = &control->length[c & 1];
        for (long long i0 = thread_id() - lane_id(); i0 < length; i0 += thread_count()) {
            long long i = i0 + lane_id();
            int v = i < length ? fresh(&left[i]) : 0;
            bool taken = i < length && is_local_maximum(v, c, indptr, indices, seed, colors);
            if (taken) colors[v] = c;
            bool keep = i < length && !taken;
            int position = warp_append(keep, next_length);
            if (keep) next[position] = v;
        }
        grid_barrier(&control->arrivals);
        length = fresh(next_length);
        if (length == 0) {
            if (thread_id() == 0) control->rounds = c + 1;
            return;
        }
        // Round c + 1 counts in the other slot; everyone has read it, since that was before the last barrier.
        if (thread_id() == 0) control->length[~c & 1] = 0;
        grid_barrier(&control->arrivals);
    }
}
