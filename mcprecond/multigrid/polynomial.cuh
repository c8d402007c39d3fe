// The step of polynomial smoothers for one number of a vector. See `take_step` in polynomial_columns.py.
#pragma once

#include "cuda/numbers.cuh"

struct Step {
    const VALUE *dinv, *b, *x;
    long long from_zero;
    double alpha, beta;
    VALUE *d, *y;

    // For number e of row i, where A x is `product`.
    __device__ __forceinline__ void take(long long i, long long e, VALUE product) const {
        VALUE rest = b[e] - product, move = rounded_product((REAL)beta, dinv[i] * rest);
        if (alpha != 0) move += rounded_product((REAL)alpha, d[e]);
        d[e] = move;
        y[e] = from_zero ? move : x[e] + move;
    }
};
