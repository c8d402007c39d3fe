// What factorizations share: see pivots.py.
#pragma once

#include "cuda/search.cuh"
#include "storage/layouts/slices.cuh"
#include "sweeps/syncfree.cuh"

// The place of a column in the sorted indices[begin..end - 1], or -1.
__device__ __forceinline__ OFFSET find(const int* indices, OFFSET begin, OFFSET end, int column) {
    OFFSET place = lower_bound(indices, begin, end, column);
    return place < end && indices[place] == column ? place : -1;
}

__device__ __forceinline__ VALUE safe_pivot(VALUE d, REAL largest, REAL tiny) {
    if (tiny * largest < fabs(d) && isfinite(d) && isfinite(1 / (REAL)fabs(d))) return d;
    REAL shifted = isfinite(1 / largest) ? largest : 1;
    return real_part(d) < 0 ? -shifted : shifted;
}

__device__ __forceinline__ bool is_low(VALUE d, VALUE diagonal, REAL least) {
    return real_part(diagonal) > 0 && !(real_part(d) > least * real_part(diagonal));
}

// By one thread of a row: note what was added to its pivot, and whether that is low.
__device__ __forceinline__ void note_pivot(VALUE added, bool low, VALUE* shift, int* found) {
    *shift = added;
    each_part(added, [&](REAL part) {
        if (part != 0) found[SHIFTED] = 1;
    });
    if (low) found[LOW] = 1;
}

// The largest value of the threads that share a row. Whole warps call it.
__device__ __forceinline__ REAL most(const Slice& slice, REAL value) {
    return slice.fold(value, [](REAL a, REAL b) { return max(a, b); });
}
