// What a pass over a matrix tells of it: see Digests in color_blocks.py.

enum { PATTERN, ALL, NOT_FINITE, NO_PIVOTS };

// Whether values are taken: they are finite, and in the places that the blocks expect.
__device__ __forceinline__ bool to_be_taken(const uint64* expected, const uint64* digests) {
    return digests[PATTERN] == expected[PATTERN] && digests[NOT_FINITE] == 0;
}
