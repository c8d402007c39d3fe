// Balancing: one thread per member of a class. See balance.py.
// Meant races: sizes are read while others move; the atomics that take and give up places decide.

__device__ int best_class(int v, long long distance, const OFFSET* indptr, const int* indices, long long target,
                          long long n_colors, const int* colors, const long long* sizes) {
    int best = -1;
    long long best_size = target;
    for (int offset = 0; offset < n_colors; offset += 64) {
        uint64 taken = 0;
        any_near<1>(v, distance, indptr, indices, [&](OFFSET k) {
            int color = colors[indices[k]] - offset;  // others near v are in other classes, which do not move now
            if (color >= 0 && color < 64) taken |= 1ull << color;
            return false;
        });
        for (int color = 0; color < min(64LL, n_colors - offset); ++color) {
            long long size = fresh(&sizes[offset + color]);
            if (!(taken >> color & 1) && size < best_size) {
                best = offset + color;
                best_size = size;
            }
        }
    }
    return best;
}

extern "C" __global__ void leave_class(long long items, const int* members, long long distance, const OFFSET* indptr,
                                       const int* indices, long long c, long long target, long long n_colors,
                                       int* colors, long long* sizes) {
    long long i = thread_id();
    if (i >= items || fresh(&sizes[c]) <= target) return;
    int v = members[i], goal = best_class(v, distance, indptr, indices, target, n_colors, colors, sizes);
    if (goal < 0) return;
    const uint64 one = 1, minus_one = ~0ull;
    uint64 *place = (uint64*)&sizes[goal], *own = (uint64*)&sizes[c];
    if ((long long)atomicAdd(place, one) >= target) {
        atomicAdd(place, minus_one);
    } else if ((long long)atomicAdd(own, minus_one) <= target) {
        atomicAdd(own, one);
        atomicAdd(place, minus_one);
    } else {
        colors[v] = goal;
    }
}
