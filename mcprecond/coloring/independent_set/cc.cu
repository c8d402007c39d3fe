// CC in one resident kernel; see cc.py.
//
// The race that is meant: a vertex may see a neighbor's color of this very round or not yet. It treats both alike, so
// that race does not change the result.

#define UNCOLORED (-1)

__device__ int color_of(int v, int base, const OFFSET* indptr, const int* indices, uint32 seed, int hashes,
                        const int* colors) {
    uint32 maximal = FULL_WARP >> (32 - hashes), minimal = maximal;  // bit h: v may still be one by hash function h
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k];
        if (u == v) continue;
        int color = fresh(&colors[u]);
        if (color != UNCOLORED && color < base) continue;
        for (uint32 open = maximal | minimal; open; open &= open - 1) {
            int h = __ffs(open) - 1;
            uint32 own = mix(v, seed + h), theirs = mix(u, seed + h);
            if (theirs > own || (theirs == own && u > v))
                maximal &= ~(1u << h);
            else
                minimal &= ~(1u << h);
        }
        if ((maximal | minimal) == 0) return UNCOLORED;
    }
    int h = __ffs(maximal | minimal) - 1;
    return base + 2 * h + (maximal >> h & 1 ? 0 : 1);
}

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int rounds;
    int length[2];  // of the worklists, by parity of the round
};

extern "C" __global__ void __launch_bounds__(256) color_by_hashes(
        long long n, const OFFSET* indptr, const int* indices, long long seed, long long hashes, int* colors,
        int* worklists, void* scratch) {
    Control* control = (Control*)scratch;
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
        int base = 2 * (int)hashes * round;
        for (long long i0 = thread_id() - lane_id(); i0 < length; i0 += thread_count()) {
            long long i = i0 + lane_id();
            int v = i < length ? fresh(&left[i]) : 0;
            int color = UNCOLORED;
            if (i < length) color = color_of(v, base, indptr, indices, (uint32)seed, (int)hashes, colors);
            if (color != UNCOLORED) colors[v] = color;
            bool keep = i < length && color == UNCOLORED;
            int position = warp_append(keep, next_length);
            if (keep) next[position] = v;
        }
        grid_barrier(&control->arrivals);
        length = fresh(next_length);
        if (length == 0) {
            if (thread_id() == 0) control->rounds = round + 1;
            return;
        }
        // The next round counts in the other slot; everyone has read it, since that was before the last barrier.
        if (thread_id() == 0) control->length[~round & 1] = 0;
        grid_barrier(&control->arrivals);
    }
}
