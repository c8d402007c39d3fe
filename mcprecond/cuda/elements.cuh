// The types of the elements of vectors and matrices that sweeps work on.
//
// VALUE is the type of a number, STORED the one in which triangles are stored. With RHS right-hand sides an element of
// a vector is a row of RHS numbers. With BLOCK_SIZE unknowns to a node it is a vector of such rows, and an element of a
// matrix is a small matrix.
#pragma once

#include "cuda/numbers.cuh"

#ifndef STORED
#define STORED VALUE
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
