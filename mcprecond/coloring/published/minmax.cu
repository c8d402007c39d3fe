// Min-max independent sets in one resident kernel; see minmax.py.
//
// The race that is meant: a vertex may see a neighbor's color of this very round or not yet. It treats both alike, so
// that race does not change the result.

#include "worklist.cuh"
#include "cuda/hash.cuh"

__device__ int color_of(int v, int base, const OFFSET* indptr, const int* indices, uint32 seed, const int* colors) {
    uint32 own = mix(v, seed);
    bool colormax = true, colormin = true;
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k];
        if (u == v) continue;
        int color = ptx::load_l2(&colors[u]);
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

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_two_sets(long long n, const OFFSET* indptr, const int* indices, long long seed, int* colors,
                      int* worklists, void* scratch, int2* log) {
    color_in_rounds<1>(n, colors, worklists, scratch, log, [&](int v, int iteration, bool active) {
        return active ? color_of(v, 2 * iteration, indptr, indices, (uint32)seed, colors) : UNCOLORED;
    });
}
