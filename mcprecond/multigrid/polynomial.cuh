// The step of polynomial smoothers for one number of a vector. See `take_step` in polynomial_columns.py.
#pragma once

#include "cuda/numbers.cuh"

// How far the next step goes, by its residual and by how far the last one went.
__device__ __forceinline__ VALUE next_move(double alpha, VALUE last, double beta, VALUE dinv, VALUE rest) {
    VALUE move = rounded_product((REAL)beta, dinv * rest);
    return alpha != 0 ? move + rounded_product((REAL)alpha, last) : move;
}

struct Step {
    const VALUE *dinv, *b, *x;
    long long from_zero;
    double alpha, beta;
    VALUE *d, *y;

    // For number e of row i, where A x is `product`.
    __device__ __forceinline__ void take(long long i, long long e, VALUE product) const {
        VALUE move = next_move(alpha, alpha != 0 ? d[e] : VALUE(), beta, dinv[i], b[e] - product);
        d[e] = move;
        y[e] = from_zero ? move : x[e] + move;
    }
};

// x after the first step from zero, computed where it is read.
struct FirstStep {
    const VALUE *dinv, *b;
    double beta;

    __device__ __forceinline__ VALUE operator[](long long i) const {
        return next_move(0, VALUE(), beta, dinv[i], b[i]);
    }
};
