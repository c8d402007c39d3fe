// The numeric phase of the Galerkin product: a team of LANES threads per row. See galerkin.py.
//
// For each entry in a row of the one factor a team adds up a row of the other, each thread some numbers of it. So every
// sum is in the order of the entries.

#include "multigrid/row_sum.cuh"

// Where row r of node v begins in a matrix of blocks.
__device__ __forceinline__ long long begin_of(long long v, long long r, long long rows, long long columns,
                                              const long long* indptr) {
    return (indptr[v] * rows + r * (indptr[v + 1] - indptr[v])) * columns;
}

// Each thread of a team adds up one number of the row at a time; the team reads the entries of A together.
extern "C" __global__ void smooth_rows(long long n, long long b, long long k, long long count, const OFFSET* indptr,
                                       const int* indices, const VALUE* values, double factor, const VALUE* dinv,
                                       const int* labels, const VALUE* Q, const long long* touched_indptr,
                                       const int* touched, VALUE* P) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    long long v = i / b, list = touched_indptr[v];
    int width = (int)k, numbers = (int)(touched_indptr[v + 1] - list) * width;
    VALUE *own = P + begin_of(v, i - v * b, b, k, touched_indptr), scale = (REAL)factor * dinv[i];
    for (int first = 0; first < numbers; first += LANES) {
        int q = first + team_lane(), label = q < numbers ? touched[list + q / width] : -1, c = q % width;
        VALUE sum = VALUE();
        for (OFFSET before = indptr[i]; before < indptr[i + 1]; before += LANES) {
            OFFSET e = before + team_lane();
            int j = e < indptr[i + 1] ? indices[e] : -1, theirs = j < 0 ? -1 : labels[j / b];
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

extern "C" __global__ void multiply_rows(long long n, long long b, long long k, long long count, const OFFSET* indptr,
                                         const int* indices, const VALUE* values, const long long* touched_indptr,
                                         const int* touched, const VALUE* P, const long long* between_indptr,
                                         const int* between, VALUE* AP) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    long long v = i / b, list = between_indptr[v], length = between_indptr[v + 1] - list;
    RowSum own(between + list, (int)length, (int)k, AP + begin_of(v, i - v * b, b, k, between_indptr));
    OFFSET first = indptr[i];
    own.add(indptr[i + 1] - first, touched_indptr, touched, P, [&](long long e) {
        long long j = indices[first + e];
        return Addend{values[first + e], j / b, j % b, b};
    });
    own.write();
}

extern "C" __global__ void restrict_rows(long long n, long long b, long long k, long long count,
                                         const long long* member_indptr, const int* members, const VALUE* R,
                                         const long long* between_indptr, const int* between, const VALUE* AP,
                                         const long long* coupled_indptr, const int* coupled, VALUE* coarse) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    long long a = i / k, c = i - a * k, list = coupled_indptr[a], length = coupled_indptr[a + 1] - list;
    RowSum own(coupled + list, (int)length, (int)k, coarse + begin_of(a, c, k, k, coupled_indptr));
    const VALUE* factors = R + begin_of(a, c, k, b, member_indptr);
    long long first = member_indptr[a], rows = (member_indptr[a + 1] - first) * b;
    own.add(rows, between_indptr, between, AP,
            [&](long long e) { return Addend{factors[e], members[first + e / b], e % b, b}; });
    own.write();
}
