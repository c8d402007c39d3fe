// What one reading of A tells, a team of LANES threads per row; see examination.py.

#include "cuda/reduce.cuh"
#include "multigrid/team_sum.cuh"

// The arrays of a matrix, and what scales its rows.
struct Examined {
    const OFFSET* indptr;
    const int* indices;
    const VALUE *values, *diagonal;
    const double *sizes, *roots;
};

struct Counts {
    uint64 one_sided, lonely, stiff, of_ones, of_roots;
};

// Count the features of row i, on the first thread of its team.
__device__ __forceinline__ void count_features(long long i, const Examined& A, double share, double theta,
                                               Counts& counts) {
    double most = 0, positive = 0, pivot = real_part(A.diagonal[i]);
    VALUE of_ones = VALUE(), of_roots = VALUE();
    bool connects = false;
    int one_sided = 0;
    OFFSET begin = A.indptr[i], end = A.indptr[i + 1];
    for (OFFSET k = begin + team_lane(); k < end; k += LANES) {
        int j = A.indices[k];
        VALUE value = A.values[k];
        double a = real_part(value);
        of_ones += value, of_roots += (REAL)A.roots[j] * value;
        if (j == i) continue;
        most = max(most, -a), positive += max(a, 0.0);
        connects |= a < 0 && fabs(value) >= share * (A.sizes[i] * A.sizes[j]);
    }
    most = team_max(most), positive = team_sum(positive), of_ones = team_sum(of_ones), of_roots = team_sum(of_roots);
    connects = __ballot_sync(team_mask(), connects) & team_mask();
    for (OFFSET k = begin + team_lane(); k < end; k += LANES) {
        double a = real_part(A.values[k]);
        if (A.indices[k] != i && -a > 0 && -a >= theta * most)
            one_sided += fabs(A.values[k]) < share * (A.sizes[i] * A.sizes[A.indices[k]]);
    }
    one_sided = team_sum(one_sided);
    if (team_lane() > 0) return;
    bool has_neighbors = end - begin > 1, is_dominated = real_part(of_ones) >= SMALL_SUM * pivot;
    counts.one_sided += is_dominated ? 0 : one_sided;
    counts.lonely += has_neighbors && !connects && !is_dominated;
    counts.stiff += positive > STIFF * pivot;
    counts.of_ones += fabs(of_ones) <= SMALL_SUM * pivot;
    counts.of_roots += fabs(of_roots) <= SMALL_SUM * pivot * A.roots[i];
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    examine_rows(long long n, const OFFSET* indptr, const int* indices, const VALUE* values, const VALUE* diagonal,
                 const double* sizes, const double* roots, double share, double theta, long long* report) {
    Examined A{indptr, indices, values, diagonal, sizes, roots};
    Counts counts{};
    for (long long i = thread_id() / LANES; i < n; i += thread_count() / LANES)
        count_features(i, A, share, theta, counts);
    add_block_sums<5>((uint64*)&report[ONE_SIDED],
                      {counts.one_sided, counts.lonely, counts.stiff, counts.of_ones, counts.of_roots});
}
