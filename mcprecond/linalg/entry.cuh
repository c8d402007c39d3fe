// An entry of a sparse matrix by its row and column.
#pragma once

#include "cuda/search.cuh"

// a_ij, or 0 if it is not stored.
template <typename T>
__device__ __forceinline__ T entry(long long i, int j, const OFFSET* indptr, const int* indices, const T* values) {
    OFFSET end = indptr[i + 1], place = lower_bound(indices, indptr[i], end, j);
    return place < end && indices[place] == j ? values[place] : T();
}
