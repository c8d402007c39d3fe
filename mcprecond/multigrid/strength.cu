// Strength of connection: a team of LANES threads per row. See strength.py.

#include "cuda/search.cuh"
#include "multigrid/team_sum.cuh"

// a_ij, or 0 if it is not stored.
template <typename T>
__device__ __forceinline__ T entry(long long i, int j, const OFFSET* indptr, const int* indices, const T* values) {
    OFFSET end = indptr[i + 1], place = lower_bound(indices, indptr[i], end, j);
    return place < end && indices[place] == j ? values[place] : T();
}

__device__ __forceinline__ bool is_strong(long long i, int j, OFFSET k, const OFFSET* indptr, const int* indices,
                                          const VALUE* values, const REAL* strengths, const double* sizes,
                                          double theta) {
    if (i == j) return true;
    double size = strengths[k], limit = theta * (sizes[i] * sizes[j]);
    if (0 <= size && size < limit && limit <= (1 + NEAR_LIMIT) * fabs(values[k]))
        size = max(size, (double)entry(j, (int)i, indptr, indices, strengths));
    return size > 0 && size >= limit;
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
                                          const double* sizes, double theta, long long is_signed, long long spreads,
                                          REAL* strengths) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) {
        bool is_never = indices[k] == i || (is_signed && real_part(values[k]) > 0);
        strengths[k] = is_never ? REAL(NEVER) : (REAL)fabs(values[k]);
    }
    for (OFFSET first = indptr[i]; spreads && first < indptr[i + 1]; first += LANES) {
        OFFSET k = first + team_lane();
        double a = k < indptr[i + 1] && indices[k] != i ? (double)real_part(values[k]) : 0;
        bool is_spread = a > 0 && a >= LEAST_POSITIVE * (theta * (sizes[i] * sizes[indices[k]]));
        uint32 left = __ballot_sync(team_mask(), is_spread) & team_mask();
        for (; left; left &= left - 1)
            spread_positive(i, first + (__ffs(left) - 1) % LANES, indptr, indices, values, strengths);
    }
}

// Write the columns of the strong entries of row i to `found`, from indptr[i] on, and their number to counts[i + 1].
extern "C" __global__ void find_strong(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                       const REAL* strengths, const double* sizes, double theta, OFFSET* counts,
                                       int* found) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    OFFSET begin = indptr[i], end = indptr[i + 1], place = begin;
    for (OFFSET first = begin; first < end; first += LANES) {
        OFFSET k = first + team_lane();
        bool strong = k < end && is_strong(i, indices[k], k, indptr, indices, values, strengths, sizes, theta);
        uint32 all = __ballot_sync(team_mask(), strong) & team_mask();
        if (strong) found[place + __popc(all & (1u << lane_id()) - 1)] = indices[k];
        place += __popc(all);
    }
    if (team_lane() > 0) return;
    if (i == 0) counts[0] = 0;
    counts[i + 1] = place - begin;
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

extern "C" __global__ void find_unsymmetric(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                            const double* sizes, double tolerance, long long is_symmetric,
                                            long long* first) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) {
        int j = indices[k];
        if (is_symmetric && j < i) continue;  // (j, i) is compared with (i, j)
        OFFSET across = indptr[j + 1] - 1 - (k - indptr[i]);  // its place if row j mirrors row i, as on a grid
        bool is_there = across >= indptr[j] && indices[across] == i;
        VALUE other = is_there ? values[across] : entry(j, (int)i, indptr, indices, values);
        if (fabs(values[k] - conjugate(other)) > tolerance * sizes[i] * sizes[j]) {
            atomicMin(first, (long long)k);
            return;
        }
    }
}
