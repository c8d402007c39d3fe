// Points that are eliminated, a thread per point; see elimination.py.

#include "cuda/grid.cuh"
#include "cuda/hash.cuh"

extern "C" __global__ void find_chains(long long n, const OFFSET* indptr, const int* indices, const int* degrees,
                                       int* states) {
    long long i = thread_id();
    if (i >= n) return;
    bool goes = degrees[i] <= MOST_NEIGHBORS;
    uint32 mine = mix((uint32)i, 0);
    for (OFFSET k = goes ? indptr[i] : indptr[i + 1]; k < indptr[i + 1]; ++k) {
        int j = indices[k];
        if (j == i || degrees[j] > MOST_NEIGHBORS) continue;
        goes &= degrees[i] < degrees[j] || (degrees[i] == degrees[j] && mine < mix((uint32)j, 0));
    }
    states[i] = goes ? FINE : COARSE;
}
