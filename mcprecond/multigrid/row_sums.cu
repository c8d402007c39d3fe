// Sums of magnitudes: a team of LANES threads per row. See row_sums.py.

#include "multigrid/team_sum.cuh"

__device__ __forceinline__ VALUE inverse_of(double sum) { return VALUE((REAL)(sum > 0 ? 1 / sum : 0)); }

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
