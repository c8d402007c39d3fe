// Strength of connection: a team of LANES threads per row. See strength.py.

#include "cuda/reduce.cuh"
#include "linalg/entry.cuh"
#include "multigrid/team_sum.cuh"

// The strength of the entry at place k of row i, before positive entries are spread.
__device__ __forceinline__ double strength_of(long long i, OFFSET k, const int* indices, const VALUE* values,
                                              bool is_signed) {
    bool is_weak = indices[k] == i || (is_signed && real_part(values[k]) > 0);
    return is_weak ? NEVER : (double)fabs(values[k]);
}

// Whether the entry at place k of row i is positive, and large enough to be spread.
__device__ __forceinline__ bool is_spread(long long i, OFFSET k, const int* indices, const VALUE* values,
                                          const double* sizes, double theta) {
    double a = real_part(values[k]);
    return indices[k] != i && a > 0 && a >= LEAST_POSITIVE * (theta * (sizes[i] * sizes[indices[k]]));
}

// Spread the positive entry at place e of row i over the common neighbors of i and of the entry's column. The threads of
// a team share the neighbors of i.
__device__ __forceinline__ void spread_positive(long long i, OFFSET e, const OFFSET* indptr, const int* indices,
                                                const VALUE* values, REAL* strengths) {
    int k = indices[e];
    double total = 0;
    for (OFFSET own = indptr[i] + team_lane(); own < indptr[i + 1]; own += LANES)
        if (strengths[own] != NEVER) total += max(-real_part(entry(k, indices[own], indptr, indices, values)), REAL(0));
    total = team_sum(total);
    if (total == 0) return;
    for (OFFSET own = indptr[i] + team_lane(); own < indptr[i + 1]; own += LANES) {
        if (strengths[own] == NEVER) continue;
        REAL theirs = real_part(entry(k, indices[own], indptr, indices, values));
        if (theirs < 0)
            strengths[own] = max((REAL)(strengths[own] + real_part(values[e]) * (theirs / total)), REAL(0));
    }
}

extern "C" __global__ void find_strengths(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                          const double* sizes, double theta, long long is_signed, REAL* strengths) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES)
        strengths[k] = (REAL)strength_of(i, k, indices, values, is_signed);
    for (OFFSET first = indptr[i]; first < indptr[i + 1]; first += LANES) {
        OFFSET k = first + team_lane();
        bool spreads = k < indptr[i + 1] && is_spread(i, k, indices, values, sizes, theta);
        uint32 left = __ballot_sync(team_mask(), spreads) & team_mask();
        for (; left; left &= left - 1)
            spread_positive(i, first + (__ffs(left) - 1) % LANES, indptr, indices, values, strengths);
    }
}

// Write the columns of the strong entries of row i to `found`, from indptr[i] on. Return the number of these entries.
__device__ __forceinline__ OFFSET list_strong(long long i, const OFFSET* indptr, const int* indices,
                                              const VALUE* values, const double* sizes, double theta, bool is_signed,
                                              bool spreads, bool is_known, const REAL* strengths, int* found,
                                              long long* any_spread) {
    OFFSET begin = indptr[i], end = indptr[i + 1], place = begin;
    // The whole team returns, or none of it. An outdated 0 from L1 costs some work.
    if (__ballot_sync(team_mask(), spreads && *any_spread) & team_mask()) return 0;
    for (OFFSET first = begin; first < end; first += LANES) {
        OFFSET k = first + team_lane();
        bool is_strong = false;
        int j = k < end ? indices[k] : 0;
        if (k < end) {
            double size = is_known ? (double)strengths[k] : strength_of(i, k, indices, values, is_signed);
            double limit = theta * (sizes[i] * sizes[j]);
            if (0 <= size && size < limit && limit <= (1 + NEAR_LIMIT) * fabs(values[k])) {
                OFFSET last = indptr[j + 1], across = lower_bound(indices, indptr[j], last, (int)i);
                if (across < last && indices[across] == i)
                    size = max(size, is_known ? (double)strengths[across]
                                              : strength_of(j, across, indices, values, is_signed));
            }
            is_strong = i == j || (size > 0 && size >= limit);
            if (spreads && is_spread(i, k, indices, values, sizes, theta)) *any_spread = 1;
        }
        uint32 all = __ballot_sync(team_mask(), is_strong) & team_mask();
        if (is_strong) found[place + __popc(all & (1u << lane_id()) - 1)] = j;
        place += __popc(all);
    }
    return place - begin;
}

// Find the strong entries, and add their number to report[0]. If positive entries are to be spread and A has any, set
// report[1] to 1.
extern "C" __global__ void __launch_bounds__(BLOCK)
    find_strong(long long n, const OFFSET* indptr, const int* indices, const VALUE* values, const double* sizes,
                double theta, long long is_signed, long long spreads, long long is_known, const REAL* strengths,
                OFFSET* counts, int* degrees, int* found, long long* report) {
    long long i = thread_id() / LANES;
    OFFSET count = 0;
    if (i < n)
        count = list_strong(i, indptr, indices, values, sizes, theta, is_signed, spreads, is_known, strengths, found,
                            &report[1]);
    bool leads = i < n && team_lane() == 0;
    if (leads && i == 0) counts[0] = 0;
    if (leads) counts[i + 1] = count, degrees[i] = (int)count - 1;
    add_block_sums<1>((uint64*)report, {leads ? (uint64)count : 0});
}

extern "C" __global__ void find_norms(long long n_nodes, long long b, const OFFSET* indptr, const int* indices,
                                      const VALUE* values, const OFFSET* node_indptr, const int* node_indices,
                                      double* norms) {
    long long v = thread_id() / LANES;
    if (v >= n_nodes) return;
    for (OFFSET e = node_indptr[v] + team_lane(); e < node_indptr[v + 1]; e += LANES) {
        long long first = node_indices[e] * b;
        double square = 0;
        for (long long row = v * b; row < (v + 1) * b; ++row) {
            OFFSET k = lower_bound(indices, indptr[row], indptr[row + 1], first);
            for (; k < indptr[row + 1] && indices[k] < first + b; ++k) square += inner(values[k], values[k]);
        }
        norms[e] = sqrt(square);
    }
}
