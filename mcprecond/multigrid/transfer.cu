// Tentative prolongators, a thread per aggregate. See transfer.py.

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"

// Loops over the unknowns of an aggregate: `i` is the row in Q.
#define FOR_ROWS(i) \
    for (long long m_ = first; m_ < end; ++m_) \
        for (long long i = members[m_] * b; i < (members[m_] + 1) * b; ++i)

extern "C" __global__ void fit_candidates(long long n_aggregates, const long long* offsets, const int* members,
                                          long long b, long long k, double tiny, const VALUE* B, VALUE* Q, VALUE* R,
                                          int* any_vanished) {
    long long a = thread_id();
    if (a >= n_aggregates) return;
    long long first = offsets[a], end = offsets[a + 1];
    R += a * k * k;
    for (long long c = 0; c < k; ++c) {
        double before = 0, after = 0;
        FOR_ROWS(i) {
            Q[i * k + c] = B[i * k + c];
            before += inner(Q[i * k + c], Q[i * k + c]);
        }
        for (int pass = 0; pass < 2; ++pass)
            for (long long d = 0; d < c; ++d) {
                VALUE product = VALUE();
                FOR_ROWS(i) product += conjugate(Q[i * k + d]) * Q[i * k + c];
                FOR_ROWS(i) Q[i * k + c] -= product * Q[i * k + d];
                R[d * k + c] += product;
            }
        FOR_ROWS(i) after += inner(Q[i * k + c], Q[i * k + c]);
        double norm = sqrt(after);
        bool vanished = !(norm > tiny * sqrt(before));
        R[c * k + c] = VALUE((REAL)(vanished ? 0 : norm));
        if (vanished) *any_vanished = 1;
        REAL factor = (REAL)(vanished ? 0 : 1 / norm);
        FOR_ROWS(i) Q[i * k + c] = factor * Q[i * k + c];
    }
}
