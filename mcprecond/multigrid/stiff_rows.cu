// Kernels for the rows of P near flat triangles; see stiff_rows.py. In `widen` a team of LANES threads works on a point,
// in `relax` on a weight.

#include "cuda/search.cuh"
#include "multigrid/team_sum.cuh"

extern "C" __global__ void widen(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                 const VALUE* diagonal, const unsigned char* near, unsigned char* wider) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    double most = 0, found = near[i];
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES)
        if (indices[k] != i) most = max(most, (double)fabs(values[k]));
    most = team_max(most);
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES)
        if (near[indices[k]] && fabs(values[k]) >= LEAST_CONNECTION * min(most, (double)fabs(diagonal[indices[k]])))
            found = 1;
    found = team_max(found);
    if (team_lane() == 0) wider[i] = found > 0;
}

__device__ __forceinline__ VALUE weight_of(long long row, int column, const long long* indptr, const int* columns,
                                           const VALUE* values) {
    long long place = lower_bound(columns, indptr[row], indptr[row + 1], column);
    return place < indptr[row + 1] && columns[place] == column ? values[place] : VALUE(0);
}

// `relaxed` is 0 in the first step: then all rows are from P.
extern "C" __global__ void relax(long long entries, long long count, const OFFSET* indptr, const int* indices,
                                 const VALUE* values, const int* rows, const int* owners, long long relaxed,
                                 const int* numbers, const long long* P_indptr, const int* P_columns, const VALUE* P,
                                 const long long* x_indptr, const int* x_columns, const VALUE* x, VALUE* result) {
    long long e = thread_id() / LANES;
    if (e >= entries) return;
    int i = rows[owners[e]], column = x_columns[e];
    VALUE own = VALUE(0), product = VALUE(0);
    REAL size = 0;
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) {
        int j = indices[k], number = relaxed ? numbers[j] : -1;
        VALUE weight = number >= 0 ? weight_of(number, column, x_indptr, x_columns, x)
                                   : weight_of(j, column, P_indptr, P_columns, P);
        if (j == i) own = weight;
        product += values[k] * weight;
        size += fabs(values[k]);
    }
    own = team_sum(own), product = team_sum(product), size = team_sum(size);
    if (team_lane() == 0) result[e] = own - (REAL)OMEGA / size * product;
}
