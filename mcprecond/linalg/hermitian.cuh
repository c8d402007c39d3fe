// The difference of an entry and the one across the diagonal. See hermitian.py.
#pragma once

#include "cuda/numbers.cuh"
#include "linalg/entry.cuh"

// Entry k, in row i, minus the conjugate of the entry across, or of zero if that is not stored.
__device__ __forceinline__ VALUE difference_across(OFFSET k, long long i, const OFFSET* indptr, const int* indices,
                                                   const VALUE* values) {
    int j = indices[k];
    OFFSET across = indptr[j + 1] - 1 - (k - indptr[i]);  // its place if row j mirrors row i, as on a grid
    bool is_there = across >= indptr[j] && indices[across] == i;
    return values[k] - conjugate(is_there ? values[across] : entry(j, (int)i, indptr, indices, values));
}
