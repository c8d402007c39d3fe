// JPL in one resident kernel; see jpl.py. A vertex may see a neighbor's color of this very round or not yet: it treats
// both alike, so that race does not change the result.

#include "worklist.cuh"
#include "cuda/hash.cuh"

__device__ bool is_local_maximum(int v, int c, const OFFSET* indptr, const int* indices, uint32 seed,
                                 const int* colors) {
    uint32 own = mix(v, seed);
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k];
        if (u == v) continue;
        uint32 theirs = mix(u, seed);
        if (theirs < own || (theirs == own && u < v)) continue;
        int color = ptx::load_l2(&colors[u]);
        if (color == UNCOLORED || color == c) return false;
    }
    return true;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_sets(long long n, const OFFSET* indptr, const int* indices, long long seed, int* colors, int* worklists,
                  void* scratch, int2* log) {
    color_in_rounds(n, colors, worklists, scratch, log, [&](int v, int c) {
        return is_local_maximum(v, c, indptr, indices, (uint32)seed, colors) ? c : UNCOLORED;
    });
}
