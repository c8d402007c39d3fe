// The types of the elements of vectors and matrices that sweeps work on.
//
// VALUE is the type of a number, STORED the one in which triangles are stored. With RHS right-hand sides an element of
// a vector is a row of RHS numbers. With BLOCK_SIZE unknowns to a node it is a vector of such rows, and an element of a
// matrix is a small matrix.
#pragma once

#include "cuda/memory.cuh"
#include "cuda/numbers.cuh"

#ifndef STORED
#define STORED VALUE
#endif

#ifndef RHS
#define RHS 1
#endif
#if RHS > 1
typedef Vec<VALUE, RHS> Number;
#else
typedef VALUE Number;
#endif

#ifdef BLOCK_SIZE
typedef Vec<Number, BLOCK_SIZE> VectorEntry;
typedef Mat<STORED, BLOCK_SIZE> MatrixEntry;
typedef Mat<VALUE, BLOCK_SIZE> DiagonalEntry;
#else
typedef Number VectorEntry;
typedef STORED MatrixEntry;
typedef VALUE DiagonalEntry;
#endif

// An element of a vector that sweeps keep for themselves. Where the triangles are stored in half the bytes, so is this.
#ifdef TRUNCATED_VECTORS
typedef TruncatedOf<VectorEntry>::Type WorkEntry;
#else
typedef VectorEntry WorkEntry;
#endif

// Element i of a vector in the order of the matrix. If the vector has more columns than a pass takes (PITCHED), its rows
// are `pitch` numbers apart, v points to the first column of the pass, and the element consists of RHS columns.
#ifdef PITCHED
#define ROWS_OF_ENTRY (int)(sizeof(VectorEntry) / sizeof(VALUE) / RHS)
__device__ __forceinline__ VectorEntry load_row(const VectorEntry* v, long long i, long long pitch) {
    VectorEntry entry;
    const VALUE* numbers = (const VALUE*)v + i * ROWS_OF_ENTRY * pitch;
#pragma unroll
    for (int e = 0; e < ROWS_OF_ENTRY * RHS; ++e) ((VALUE*)&entry)[e] = numbers[e / RHS * pitch + e % RHS];
    return entry;
}
__device__ __forceinline__ VectorEntry load_row_once(const VectorEntry* v, long long i, long long pitch) {
    return load_row(v, i, pitch);
}
__device__ __forceinline__ void store_row(VectorEntry* v, long long i, long long pitch, const VectorEntry& entry) {
    VALUE* numbers = (VALUE*)v + i * ROWS_OF_ENTRY * pitch;
#pragma unroll
    for (int e = 0; e < ROWS_OF_ENTRY * RHS; ++e) numbers[e / RHS * pitch + e % RHS] = ((const VALUE*)&entry)[e];
}
#else
__device__ __forceinline__ VectorEntry load_row(const VectorEntry* v, long long i, long long) { return v[i]; }
__device__ __forceinline__ VectorEntry load_row_once(const VectorEntry* v, long long i, long long) {
    return load_once(v + i);
}
__device__ __forceinline__ void store_row(VectorEntry* v, long long i, long long, const VectorEntry& entry) {
    v[i] = entry;
}
#endif
