// Where a matrix is not Hermitian, a thread per entry, however long the rows are. See hermitian.py.

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"
#include "linalg/entry.cuh"

// Return a_ij - conj(a_ji), where entry k is a_ij; a_ji is zero if it is not stored.
__device__ __forceinline__ VALUE difference_across(OFFSET k, long long i, const OFFSET* indptr, const int* indices,
                                                   const VALUE* values) {
    int j = indices[k];
    OFFSET across = indptr[j + 1] - 1 - (k - indptr[i]);  // its place if row j mirrors row i, as on a grid
    bool is_there = across >= indptr[j] && indices[across] == i;
    return values[k] - conjugate(is_there ? values[across] : entry(j, (int)i, indptr, indices, values));
}

extern "C" __global__ void compare_entries(long long entries, long long n, const OFFSET* indptr, const int* indices,
                                           const VALUE* values, const double* scales, double tolerance,
                                           long long* behind) {
    long long k = thread_id();
    if (k >= entries) return;
    long long i = row_of(indptr, n, k);
    double size = (double)fabs(difference_across((OFFSET)k, i, indptr, indices, values));
    if (!(size / scales[i] / scales[indices[k]] <= tolerance)) atomicMax(behind, entries - k);
}
