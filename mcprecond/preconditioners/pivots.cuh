// What factorizations share: see pivots.py.

#include "../reordering/slices.cuh"

// The place of a column in the sorted indices[begin..end - 1], or -1.
__device__ __forceinline__ OFFSET find(const int* indices, OFFSET begin, OFFSET end, int column) {
    OFFSET place = lower_bound(indices, begin, end, column);
    return place < end && indices[place] == column ? place : -1;
}

__device__ __forceinline__ VALUE safe_pivot(VALUE d, REAL largest, REAL tiny) {
    if (tiny * largest < fabs(d) && isfinite(d)) return d;
    REAL shifted = largest > 0 ? largest : 1;
    return real_part(d) < 0 ? -shifted : shifted;
}

// The largest value of the threads that share a row; whole warps call it.
__device__ __forceinline__ REAL most(const Slice& slice, REAL value) {
    return slice.fold(value, [](REAL a, REAL b) { return max(a, b); });
}
