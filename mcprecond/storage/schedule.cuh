// A slice, as it is listed where long rows are cut into pieces (CUT_ROWS). See schedule.py.
#pragma once

#include "cuda/ptx.cuh"

// Rows first..end - 1; or with a negative end, number `piece` of the -end pieces of row `first`, the first of which is
// number `slot` of all pieces.
struct Record {
    int first, end, piece, slot;

    __device__ __forceinline__ Record(const int* slices, long long k) {
        long long rows, place;
        ptx::load_early(slices + 4 * k, rows, place);
        first = (int)rows, end = (int)(rows >> 32), piece = (int)place, slot = (int)(place >> 32);
    }
    __device__ __forceinline__ int pieces() const { return end < 0 ? -end : 1; }
    __device__ __forceinline__ int end_row() const { return end < 0 ? first + 1 : end; }
};
