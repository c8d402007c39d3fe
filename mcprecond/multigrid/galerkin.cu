// The numeric phase of the Galerkin product: a team of LANES threads per row. See galerkin.py.
//
// For each entry in a row of the one factor a team adds up a row of the other, each thread some numbers of it. So every
// sum is in the order of the entries.

#include "multigrid/blocks.cuh"
#include "multigrid/row_sum.cuh"

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

extern "C" __global__ void multiply_rows(long long n, long long b, long long k, long long count, const OFFSET* indptr,
                                         const int* indices, const VALUE* values, const long long* P_indptr,
                                         const int* P_columns, const VALUE* P, const long long* AP_indptr,
                                         const int* AP_columns, VALUE* AP) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    KNOWN_SIZES;
    long long v = i / b, list = AP_indptr[v], length = AP_indptr[v + 1] - list;
    RowSum own(AP_columns + list, (int)length, AP + begin_of(v, i - v * b, b, k, AP_indptr));
    OFFSET first = indptr[i];
    own.add((int)(indptr[i + 1] - first), P_indptr, P_columns, P, [&](int e) {
        int j = indices[first + e];
        return Addend{values[first + e], j / UNKNOWNS, j % UNKNOWNS};
    });
    own.write();
}

extern "C" __global__ void restrict_rows(long long n, long long b, long long k, long long count,
                                         const long long* R_indptr, const int* R_columns, const VALUE* R,
                                         const long long* AP_indptr, const int* AP_columns, const VALUE* AP,
                                         const long long* Ac_indptr, const int* Ac_columns, VALUE* Ac) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    KNOWN_SIZES;
    long long a = i / k, c = i - a * k, list = Ac_indptr[a], length = Ac_indptr[a + 1] - list;
    RowSum own(Ac_columns + list, (int)length, Ac + begin_of(a, c, k, k, Ac_indptr));
    const VALUE* factors = R + begin_of(a, c, k, b, R_indptr);
    long long first = R_indptr[a], rows = (R_indptr[a + 1] - first) * b;
    own.add((int)rows, AP_indptr, AP_columns, AP, [&](int e) {
        return Addend{factors[e], R_columns[first + e / UNKNOWNS], e % UNKNOWNS};
    });
    own.write();
}
