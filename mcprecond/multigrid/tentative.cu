// Tentative prolongators: the LANES threads of a team share the rows of an aggregate. See tentative.py.

#include "multigrid/team_sum.cuh"

extern "C" __global__ void list_labels(long long n, const int* labels, OFFSET* begins, OFFSET* ends) {
    long long v = thread_id();
    if (v < n) begins[v] = (OFFSET)v, ends[v] = (OFFSET)v + (labels[v] >= 0);
}

// Loops over this thread's rows of the aggregate: `i` is the row in Q.
#define FOR_ROWS(i) \
    for (long long t_ = team_lane(), i; t_ < rows && (i = members[first + t_ / b] * b + t_ % b, true); t_ += LANES)

extern "C" __global__ void fit_candidates(long long n_aggregates, const OFFSET* offsets, const int* members,
                                          long long b, long long k, double tiny, const VALUE* B, VALUE* Q, VALUE* R,
                                          int* any_vanished) {
    long long a = thread_id() / LANES;
    if (a >= n_aggregates) return;
    long long first = offsets[a], rows = (offsets[a + 1] - first) * b;
    R += a * k * k;
    for (long long place = 0; place < k * k && team_lane() == 0; ++place) R[place] = VALUE();
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
                product = team_sum(product);
                FOR_ROWS(i) Q[i * k + c] -= product * Q[i * k + d];
                if (team_lane() == 0) R[d * k + c] += product;
            }
        FOR_ROWS(i) after += inner(Q[i * k + c], Q[i * k + c]);
        double norm = sqrt(team_sum(after));
        bool vanished = !(norm > tiny * sqrt(team_sum(before)));
        REAL factor = (REAL)(vanished ? 0 : 1 / norm);
        FOR_ROWS(i) Q[i * k + c] = factor * Q[i * k + c];
        if (team_lane() > 0) continue;
        R[c * k + c] = VALUE((REAL)(vanished ? 0 : norm));
        if (vanished) *any_vanished = 1;
    }
}
