// CC in one resident kernel; see cc.py.
//
// The race that is meant: a vertex may see a neighbor's color of this very round or not yet. It treats both alike, so
// that race does not change the result.

#include "worklist.cuh"
#include "cuda/hash.cuh"

__device__ int color_of(int v, int base, const OFFSET* indptr, const int* indices, uint32 seed, int hashes,
                        const int* colors) {
    uint32 maximal = FULL_WARP >> (32 - hashes), minimal = maximal;  // bit h: v may still be one by hash function h
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k];
        if (u == v) continue;
        int color = ptx::load_l2(&colors[u]);
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

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_hashes(long long n, const OFFSET* indptr, const int* indices, long long seed, long long hashes,
                    int* colors, int* worklists, void* scratch, int2* log) {
    color_in_rounds(n, colors, worklists, scratch, log, [&](int v, int round) {
        return color_of(v, 2 * (int)hashes * round, indptr, indices, (uint32)seed, (int)hashes, colors);
    });
}
