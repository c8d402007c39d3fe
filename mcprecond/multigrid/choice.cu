// Features of a matrix, a team of LANES threads per row; see choice.py.

#include "multigrid/team_sum.cuh"

extern "C" __global__ void count_features(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                          const VALUE* diagonal, const double* sizes, double share, double theta,
                                          uint64* counts) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    double most = 0, total = 0, positive = 0, pivot = real_part(diagonal[i]);
    bool connects = false;
    int one_sided = 0;
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) {
        double a = real_part(values[k]), size = fabs(values[k]);
        total += a;
        if (indices[k] == i) continue;
        most = max(most, -a), positive += max(a, 0.0);
        connects |= a < 0 && size >= share * (sizes[i] * sizes[indices[k]]);
    }
    most = team_max(most), total = team_sum(total), positive = team_sum(positive);
    connects = __ballot_sync(team_mask(), connects) & team_mask();
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) {
        double a = real_part(values[k]), size = fabs(values[k]);
        if (indices[k] != i && -a > 0 && -a >= theta * most && size < share * (sizes[i] * sizes[indices[k]])) ++one_sided;
    }
    one_sided = team_sum(one_sided);
    if (team_lane() > 0) return;
    bool has_neighbors = indptr[i + 1] - indptr[i] > 1, is_dominated = total >= SMALL_SUM * pivot;
    if (one_sided > 0 && !is_dominated) atomicAdd(&counts[ONE_SIDED], (uint64)one_sided);
    if (has_neighbors && !connects && !is_dominated) atomicAdd(&counts[LONELY], (uint64)1);
    if (positive > STIFF * pivot) atomicAdd(&counts[STIFF_POINTS], (uint64)1);
}
