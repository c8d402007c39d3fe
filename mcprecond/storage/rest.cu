// The rest of the rows, which relax by l1-Jacobi: a warp per row. See rest.py.

#include "cuda/reduce.cuh"
#include "values.cuh"

extern "C" __global__ void fetch_rest(long long n_rows, const int* rows, const OFFSET* indptr, const int* columns,
                                      const OFFSET* places, const OFFSET* transposed_indptr,
                                      const OFFSET* transposed_places, const VALUE* values, STORED* rest,
                                      VALUE* diagonal, VALUE* dinv, const uint64* expected, uint64* found) {
    long long i = thread_id() / WARP;
    if (i >= n_rows || !are_taken(expected, found)) return;
    REAL total = 0;
    OFFSET own = -1;  // where the diagonal is, on the lane that has it
    for (OFFSET e = indptr[i] + lane_id(); e < indptr[i + 1]; e += WARP) {
        VALUE value = values[places[e]];
        rest[e] = (STORED)value;
        if (columns[e] == rows[i])
            own = e;
        else
            total += fabs(value);
    }
    for (OFFSET e = transposed_indptr[i] + lane_id(); e < transposed_indptr[i + 1]; e += WARP)
        total += fabs(values[transposed_places[e]]);
    total = lane_sum<WARP>(total);
    if (own < 0) return;
    VALUE pivot = diagonal[i];
    REAL size = fabs(pivot);
    if (size == 0) return;
    VALUE more = (total - size) / 2 / size * pivot;  // the transpose has the diagonal, too
    rest[own] = (STORED)((REAL)-1 * more);
    diagonal[i] = pivot + more;
    dinv[i] = VALUE(1) / diagonal[i];
    if (!isfinite(diagonal[i]) || !isfinite(dinv[i])) atomicAdd(&found[NO_PIVOTS], 1ull);
}

extern "C" __global__ void subtract_rest(long long n_rows, const int* rows, const OFFSET* indptr, const int* columns,
                                         const STORED* values, long long n_columns, long long pitch, const VALUE* x,
                                         VALUE* b) {
    long long i = thread_id() / WARP;
    if (i >= n_rows) return;
    for (int c = 0; c < n_columns; ++c) {
        VALUE total = VALUE();
        for (OFFSET e = indptr[i] + lane_id(); e < indptr[i + 1]; e += WARP)
            total += (VALUE)values[e] * x[columns[e] * pitch + c];
        total = lane_sum<WARP>(total);
        if (lane_id() == 0) b[rows[i] * pitch + c] -= total;
    }
}
