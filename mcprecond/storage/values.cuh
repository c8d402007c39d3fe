// Whether the values of a matrix are taken. See values.py.
#pragma once

#include "cuda/numbers.cuh"
#include "fingerprint.cuh"

// Whether values may be stored: their pattern is the one expected, they are finite, and where they are stored in fewer
// bytes they are within that range.
__device__ __forceinline__ bool are_taken(const uint64* expected, const uint64* found) {
    if (found[PATTERN] != expected[PATTERN] || found[NOT_FINITE]) return false;
    return sizeof(STORED) == sizeof(VALUE) ||
           (found[LARGEST] <= LARGEST_FLOAT && INFINITY_BITS - found[SMALLEST] >= SMALLEST_FLOAT);
}
