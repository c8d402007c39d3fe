// The filtered matrix and sums of magnitudes: a team of LANES threads per row. See filtered.py.

#include "cuda/numbers.cuh"
#include "cuda/search.cuh"
#include "multigrid/team.cuh"

extern "C" __global__ void filter_rows(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                       const VALUE* B, const OFFSET* strong_indptr, const int* strong_indices,
                                       VALUE* strong) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    OFFSET begin = strong_indptr[i], stop = strong_indptr[i + 1];
    VALUE lump = VALUE(), diagonal = VALUE();
    bool is_whole = stop - begin == indptr[i + 1] - indptr[i];
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) {
        int j = indices[k];
        OFFSET place = is_whole ? begin + (k - indptr[i]) : lower_bound(strong_indices, begin, stop, j);
        bool is_strong = place < stop && strong_indices[place] == j;
        if (is_strong && j != i) strong[place] = values[k];
        if (j == i) diagonal = values[k];
        if (!is_strong && fabs(B[i]) > 0) lump += values[k] * (B[j] / B[i]);
    }
    VALUE total = diagonal + lump;
    for (int step = LANES / 2; step > 0; step /= 2)
        each_part(total, [&](REAL& part) { part += __shfl_xor_sync(team_mask(), part, step); });
    if (team_lane() == 0) strong[lower_bound(strong_indices, begin, stop, (int)i)] = total;
}

extern "C" __global__ void invert_row_sums(long long n, const OFFSET* indptr, const VALUE* values, VALUE* sums) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    double total = 0;
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) total += fabs(values[k]);
    for (int step = LANES / 2; step > 0; step /= 2) total += __shfl_xor_sync(team_mask(), total, step);
    if (team_lane() == 0) sums[i] = VALUE((REAL)(total > 0 ? 1 / total : 0));
}
