// The filtered matrix and sums of magnitudes: a team of LANES threads per row. See filtered.py.

#include "multigrid/team_sum.cuh"

constexpr int NO_COLUMN = 0x7fffffff;  // larger than all columns

__device__ __forceinline__ VALUE inverse_of(double sum) { return VALUE((REAL)(sum > 0 ? 1 / sum : 0)); }

extern "C" __global__ void filter_rows(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                       const VALUE* B, const OFFSET* strong_indptr, const int* strong_indices,
                                       VALUE* strong, VALUE* sums) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    OFFSET begin = strong_indptr[i], stop = strong_indptr[i + 1], end = indptr[i + 1], own = stop;
    VALUE lump = VALUE(), diagonal = VALUE();
    double size = 0;
    for (OFFSET first = indptr[i]; first < end; first += LANES) {
        OFFSET k = first + team_lane();
        int j = k < end ? indices[k] : NO_COLUMN;
        // In each step the team loads LANES entries of the row and LANES entries of the list of strong entries. Both
        // are sorted by columns, so each strong entry of the row is among the entries of the list in the same step.
        int listed = begin + team_lane() < stop ? strong_indices[begin + team_lane()] : NO_COLUMN, place = 0;
        for (int step = LANES / 2; step > 0; step /= 2)
            place += __shfl_sync(team_mask(), listed, place + step - 1, LANES) < j ? step : 0;
        bool is_strong = __shfl_sync(team_mask(), listed, place, LANES) == j && k < end;
        if (is_strong && j != i) strong[begin + place] = values[k], size += fabs(values[k]);
        if (j == i) diagonal = values[k], own = begin + place;
        if (k < end && !is_strong && fabs(B[i]) > 0) lump += values[k] * (B[j] / B[i]);
        begin += __popc(__ballot_sync(team_mask(), is_strong) & team_mask());
    }
    VALUE total = team_sum(diagonal + lump);
    size = team_sum(size) + fabs(total);
    if (own < stop) strong[own] = total;
    if (team_lane() == 0) sums[i] = inverse_of(size);
}

extern "C" __global__ void invert_row_sums(long long n, const OFFSET* indptr, const VALUE* values, VALUE* sums) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    double total = 0;
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) total += fabs(values[k]);
    total = team_sum(total);
    if (team_lane() == 0) sums[i] = inverse_of(total);
}

extern "C" __global__ void bound_inverse_diagonal(long long n, const OFFSET* indptr, const VALUE* values,
                                                  const VALUE* diagonal, VALUE* weights) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    double total = 0;
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) total += fabs(values[k]);
    total = team_sum(total);
    if (team_lane() > 0) return;
    VALUE most = inverse_of(total / 2), own = VALUE((REAL)1) / diagonal[i];
    weights[i] = fabs(own) <= real_part(most) ? own : most;
}
