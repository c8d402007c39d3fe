// The adjoint of P, block by block. See galerkin.py.

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"
#include "multigrid/blocks.cuh"

extern "C" __global__ void take_adjoint(long long n, long long b, long long k, const long long* R_indptr,
                                        const int* R_columns, const OFFSET* places, const long long* P_indptr,
                                        const int* P_columns, const VALUE* P, VALUE* R) {
    long long e = thread_id();
    if (e >= n) return;
    KNOWN_SIZES;
    long long place = places[e], v = R_columns[e], a = P_columns[place];
    for (long long c = 0; c < k; ++c)
        for (long long r = 0; r < b; ++r)
            R[begin_of(a, c, k, b, R_indptr) + (e - R_indptr[a]) * b + r] =
                conjugate(P[begin_of(v, r, b, k, P_indptr) + (place - P_indptr[v]) * k + c]);
}
