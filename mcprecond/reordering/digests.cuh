// The fingerprint of a matrix, found in one pass over it: see Digests in color_blocks.py.
#pragma once

#include "cuda/numbers.cuh"

enum { PATTERN, ALL, NOT_FINITE, NO_PIVOTS, LARGEST, SMALLEST };

#define INFINITE_BITS 0x7ff0000000000000ull
// The largest and the smallest normal float32, as the bits of doubles.
#define LARGEST_FLOAT 0x47efffffe0000000ull
#define SMALLEST_FLOAT 0x3810000000000000ull

// Whether values may be stored: their pattern is the one expected, they are finite, and where they are stored in fewer
// bytes they are within that range.
__device__ __forceinline__ bool to_be_taken(const uint64* expected, const uint64* digests) {
    if (digests[PATTERN] != expected[PATTERN] || digests[NOT_FINITE]) return false;
    return sizeof(STORED) == sizeof(VALUE) ||
           (digests[LARGEST] <= LARGEST_FLOAT && INFINITE_BITS - digests[SMALLEST] >= SMALLEST_FLOAT);
}
