// The filtered matrix and sums of magnitudes: a team of LANES threads per row. See filtered.py.

#include "cuda/search.cuh"
#include "multigrid/team_sum.cuh"

__device__ __forceinline__ VALUE inverse_of(double sum) { return VALUE((REAL)(sum > 0 ? 1 / sum : 0)); }

extern "C" __global__ void filter_rows(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                       const VALUE* B, const OFFSET* strong_indptr, const int* strong_indices,
                                       VALUE* strong, VALUE* sums) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    OFFSET begin = strong_indptr[i], stop = strong_indptr[i + 1];
    VALUE lump = VALUE(), diagonal = VALUE();
    double size = 0;
    bool is_whole = stop - begin == indptr[i + 1] - indptr[i];
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) {
        int j = indices[k];
        OFFSET place = is_whole ? begin + (k - indptr[i]) : lower_bound(strong_indices, begin, stop, j);
        bool is_strong = place < stop && strong_indices[place] == j;
        if (is_strong && j != i) strong[place] = values[k], size += fabs(values[k]);
        if (j == i) diagonal = values[k];
        if (!is_strong && fabs(B[i]) > 0) lump += values[k] * (B[j] / B[i]);
    }
    VALUE total = team_sum(diagonal + lump);
    size = team_sum(size) + fabs(total);
    if (team_lane() > 0) return;
    strong[lower_bound(strong_indices, begin, stop, (int)i)] = total;
    sums[i] = inverse_of(size);
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
