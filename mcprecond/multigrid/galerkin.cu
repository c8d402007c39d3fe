// The numeric phase of the Galerkin product: a team of LANES threads per row, or one thread. See galerkin.py.
//
// For each entry in a row of the one factor a team adds up a row of the other, each thread some numbers of it. So every
// sum is in the order of the entries.

#include "cuda/numbers.cuh"
#include "cuda/search.cuh"
#include "multigrid/team.cuh"

// Where row r of node v begins in a matrix of blocks.
__device__ __forceinline__ long long begin_of(long long v, long long r, long long rows, long long columns,
                                              const long long* indptr) {
    return (indptr[v] * rows + r * (indptr[v + 1] - indptr[v])) * columns;
}

extern "C" __global__ void smooth_rows(long long n, long long b, long long k, long long count, const OFFSET* indptr,
                                       const int* indices, const VALUE* values, double factor, const VALUE* dinv,
                                       const int* labels, const VALUE* Q, const long long* touched_indptr,
                                       const int* touched, VALUE* P) {
    long long i = thread_id();
    if (i >= n) return;
    long long v = i / b, list = touched_indptr[v], end = touched_indptr[v + 1];
    VALUE *own = P + begin_of(v, i - v * b, b, k, touched_indptr), scale = (REAL)factor * dinv[i];
    for (long long q = 0; q < (end - list) * k; ++q) own[q] = VALUE();
    for (OFFSET e = indptr[i]; e < indptr[i + 1]; ++e) {
        long long j = indices[e];
        int label = labels[j / b];
        if (label < 0) continue;
        VALUE a = scale * values[e];
        long long place = (lower_bound(touched, list, end, label) - list) * k;
        for (long long c = 0; c < k; ++c) own[place + c] -= a * Q[j * k + c];
    }
    if (labels[v] >= 0) {
        long long place = (lower_bound(touched, list, end, labels[v]) - list) * k;
        for (long long c = 0; c < k; ++c) own[place + c] += Q[i * k + c];
    }
}

extern "C" __global__ void take_adjoint(long long n, long long b, long long k, const long long* member_indptr,
                                        const int* members, const OFFSET* places, const long long* touched_indptr,
                                        const int* touched, const VALUE* P, VALUE* R) {
    long long e = thread_id();
    if (e >= n) return;
    long long place = places[e], v = members[e], a = touched[place];
    for (long long c = 0; c < k; ++c)
        for (long long r = 0; r < b; ++r)
            R[begin_of(a, c, k, b, member_indptr) + (e - member_indptr[a]) * b + r] =
                conjugate(P[begin_of(v, r, b, k, touched_indptr) + (place - touched_indptr[v]) * k + c]);
}

// own += factor times a row of blocks of node u, by all threads of a team; `list` to `end` are the columns of `own`.
__device__ __forceinline__ void add_row(VALUE factor, long long u, const VALUE* row, long long k,
                                        const long long* indptr, const int* columns, const int* own_columns,
                                        long long list, long long end, VALUE* own) {
    long long first = indptr[u], numbers = (indptr[u + 1] - first) * k;
    for (long long q = team_lane(); q < numbers; q += LANES) {
        long long t = k == 1 ? q : q / k;
        long long slot = lower_bound(own_columns, list, end, columns[first + t]) - list;
        own[slot * k + q - t * k] += factor * row[q];
    }
    __syncwarp(team_mask());
}

__device__ __forceinline__ void clear_row(long long numbers, VALUE* own) {
    for (long long q = team_lane(); q < numbers; q += LANES) own[q] = VALUE();
    __syncwarp(team_mask());
}

extern "C" __global__ void multiply_rows(long long n, long long b, long long k, long long count, const OFFSET* indptr,
                                         const int* indices, const VALUE* values, const long long* touched_indptr,
                                         const int* touched, const VALUE* P, const long long* between_indptr,
                                         const int* between, VALUE* AP) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    long long v = i / b, list = between_indptr[v], end = between_indptr[v + 1];
    VALUE* own = AP + begin_of(v, i - v * b, b, k, between_indptr);
    clear_row((end - list) * k, own);
    for (OFFSET e = indptr[i]; e < indptr[i + 1]; ++e) {
        long long j = indices[e], u = j / b;
        const VALUE* row = P + begin_of(u, j - u * b, b, k, touched_indptr);
        add_row(values[e], u, row, k, touched_indptr, touched, between, list, end, own);
    }
}

extern "C" __global__ void restrict_rows(long long n, long long b, long long k, long long count,
                                         const long long* member_indptr, const int* members, const VALUE* R,
                                         const long long* between_indptr, const int* between, const VALUE* AP,
                                         const long long* coupled_indptr, const int* coupled, VALUE* coarse) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    long long a = i / k, c = i - a * k, list = coupled_indptr[a], end = coupled_indptr[a + 1];
    VALUE* own = coarse + begin_of(a, c, k, k, coupled_indptr);
    clear_row((end - list) * k, own);
    const VALUE* factors = R + begin_of(a, c, k, b, member_indptr);
    for (long long e = member_indptr[a]; e < member_indptr[a + 1]; ++e) {
        long long v = members[e];
        for (long long r = 0; r < b; ++r) {
            const VALUE* row = AP + begin_of(v, r, b, k, between_indptr);
            add_row(*factors++, v, row, k, between_indptr, between, coupled, list, end, own);
        }
    }
}
