// Points without a strong connection, a team of LANES threads per row; see lonely.py.

#include "multigrid/team_sum.cuh"

extern "C" __global__ void find_lonely(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                       const int* labels, int* is_lonely, int* any_lonely) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    double total = 0, diagonal = 0;
    for (OFFSET k = indptr[i] + team_lane(); labels[i] < 0 && k < indptr[i + 1]; k += LANES) {
        double a = real_part(values[k]);
        total += a;
        if (indices[k] == i) diagonal = a;
    }
    total = team_sum(total), diagonal = team_sum(diagonal);
    if (team_lane() > 0) return;
    is_lonely[i] = labels[i] < 0 && indptr[i + 1] - indptr[i] > 1 && total < SMALL_SUM * diagonal;
    if (is_lonely[i]) *any_lonely = 1;
}

extern "C" __global__ void join_largest(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                        const int* is_lonely, const int* labels, int* joined) {
    long long i = thread_id() / LANES;
    if (i >= n || team_lane() > 0) return;
    joined[i] = labels[i];
    if (!is_lonely[i] || labels[i] >= 0) return;
    double most = 0;
    for (OFFSET k = indptr[i]; k < indptr[i + 1]; ++k) {
        double size = fabs(values[k]);
        if (indices[k] != i && labels[indices[k]] >= 0 && size > most) most = size, joined[i] = labels[indices[k]];
    }
}

// Visit the columns that smooth row i of P: `visit(place, column)`. Returns how many they are.
template <typename Visit>
__device__ __forceinline__ int visit_kept(long long i, const OFFSET* indptr, const int* indices, const VALUE* values,
                                          const OFFSET* strong_indptr, const int* strong_indices, bool is_lonely,
                                          double theta, Visit visit) {
    if (!is_lonely) {
        OFFSET begin = strong_indptr[i], end = strong_indptr[i + 1];
        for (OFFSET k = begin + team_lane(); k < end; k += LANES) visit((int)(k - begin), strong_indices[k]);
        return (int)(end - begin);
    }
    double most = 0;
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES)
        if (indices[k] != i) most = max(most, -(double)real_part(values[k]));
    most = team_max(most);
    int count = 0;
    for (OFFSET first = indptr[i]; first < indptr[i + 1]; first += LANES) {
        OFFSET k = first + team_lane();
        double a = k < indptr[i + 1] ? (double)real_part(values[k]) : 0;
        bool keep = k < indptr[i + 1] && (indices[k] == i || (a < 0 && -a >= theta * most));
        uint32 all = __ballot_sync(team_mask(), keep) & team_mask();
        if (keep) visit(count + __popc(all & (1u << lane_id()) - 1), indices[k]);
        count += __popc(all);
    }
    return count;
}

extern "C" __global__ void count_kept(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                      const OFFSET* strong_indptr, const int* strong_indices, const int* is_lonely,
                                      double theta, OFFSET* counts) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    int count = visit_kept(i, indptr, indices, values, strong_indptr, strong_indices, is_lonely[i], theta,
                           [](int, int) {});
    if (team_lane() == 0) counts[i] = count;
}

extern "C" __global__ void list_kept(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                     const OFFSET* strong_indptr, const int* strong_indices, const int* is_lonely,
                                     double theta, const OFFSET* kept_indptr, int* kept) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    int* own = kept + kept_indptr[i];
    visit_kept(i, indptr, indices, values, strong_indptr, strong_indices, is_lonely[i], theta,
               [&](int place, int column) { own[place] = column; });
}
