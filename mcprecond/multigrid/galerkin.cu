// The adjoint of P, block by block. See galerkin.py.

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"
#include "multigrid/blocks.cuh"

extern "C" __global__ void take_adjoint(long long n, long long b, long long k, const OFFSET* R_indptr,
                                        const int* R_columns, const OFFSET* places, const OFFSET* P_indptr,
                                        const int* P_columns, const VALUE* P, VALUE* R) {
    long long e = thread_id();
    if (e >= n) return;
    KNOWN_SIZES;
    long long place = places[e], v = R_columns[e], a = P_columns[place];
    // Which block the two are in the rows of their nodes.
    long long of_R = e - R_indptr[a * k] / (b * k), of_P = place - P_indptr[v * b] / (b * k);
    for (long long c = 0; c < k; ++c)
        for (long long r = 0; r < b; ++r)
            R[R_indptr[a * k + c] + of_R * b + r] = conjugate(P[P_indptr[v * b + r] + of_P * k + c]);
}
