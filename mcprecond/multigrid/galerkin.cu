// The numeric phase of the Galerkin product: a team of LANES threads per row. See galerkin.py.
//
// For each entry in a row of the one factor a team adds up a row of the other, each thread some numbers of it. So every
// sum is in the order of the entries.

#include "multigrid/row_sum.cuh"

// Sizes of blocks as the compiler knows them: to divide by others takes many instructions.
#define KNOWN_SIZES b = UNKNOWNS, k = CANDIDATES

// Where row r of node v begins in a matrix of blocks.
__device__ __forceinline__ long long begin_of(long long v, long long r, long long rows, long long columns,
                                              const long long* indptr) {
    return (indptr[v] * rows + r * (indptr[v + 1] - indptr[v])) * columns;
}

// Each thread of a team adds up one number of the row at a time; the team reads the entries of A together.
extern "C" __global__ void smooth_rows(long long n, long long b, long long k, long long count, const OFFSET* indptr,
                                       const int* indices, const VALUE* values, double factor, const VALUE* dinv,
                                       const int* labels, const VALUE* Q, const long long* P_indptr,
                                       const int* P_columns, VALUE* P) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    KNOWN_SIZES;
    long long v = i / b, list = P_indptr[v];
    int width = (int)k, numbers = (int)(P_indptr[v + 1] - list) * width;
    VALUE *own = P + begin_of(v, i - v * b, b, k, P_indptr), scale = (REAL)factor * dinv[i];
    for (int first = 0; first < numbers; first += LANES) {
        int q = first + team_lane(), label = q < numbers ? P_columns[list + q / width] : -1, c = q % width;
        VALUE sum = VALUE();
        for (OFFSET before = indptr[i]; before < indptr[i + 1]; before += LANES) {
            OFFSET e = before + team_lane();
            int j = e < indptr[i + 1] ? indices[e] : -1, theirs = j < 0 ? -1 : labels[j / UNKNOWNS];
            VALUE a = j < 0 ? VALUE() : scale * values[e];
            for (int s = 0; s < LANES; ++s) {
                int lane = lane_id() / LANES * LANES + s, column = __shfl_sync(team_mask(), j, lane);
                bool same = __shfl_sync(team_mask(), theirs, lane) == label;
                VALUE shown = a;
                each_part(shown, [&](REAL& part) { part = __shfl_sync(team_mask(), part, lane); });
                if (column >= 0 && label >= 0 && same) sum -= shown * Q[column * k + c];
            }
        }
        if (label >= 0) own[q] = label == labels[v] ? sum + Q[i * k + c] : sum;
    }
}

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
