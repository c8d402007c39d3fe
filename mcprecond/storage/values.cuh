// Whether a matrix's values are taken. See values.py.

#include "fingerprint.cuh"

// Whether values are taken: they are finite, in the places that the blocks expect, and where storage narrows them within
// its range.
__device__ __forceinline__ bool are_taken(const uint64* expected, const uint64* found) {
    if (found[PATTERN] != expected[PATTERN] || found[NOT_FINITE]) return false;
    return sizeof(STORED) == sizeof(VALUE) ||
           (found[LARGEST] <= LARGEST_FLOAT && INFINITE_BITS - found[SMALLEST] >= SMALLEST_FLOAT);
}
