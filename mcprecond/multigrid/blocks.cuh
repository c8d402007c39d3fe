// Matrices of dense blocks, UNKNOWNS x CANDIDATES each.
#pragma once

// Sizes of blocks as the compiler knows them: to divide by others takes many instructions.
#define KNOWN_SIZES b = UNKNOWNS, k = CANDIDATES

// Where row r of node v begins in a matrix of blocks.
__device__ __forceinline__ long long begin_of(long long v, long long r, long long rows, long long columns,
                                              const long long* indptr) {
    return (indptr[v] * rows + r * (indptr[v + 1] - indptr[v])) * columns;
}
