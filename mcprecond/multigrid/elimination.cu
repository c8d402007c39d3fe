// Points that are eliminated, a team of LANES threads per row; see elimination.py.

#include "cuda/hash.cuh"
#include "cuda/numbers.cuh"
#include "cuda/reduce.cuh"
#include "multigrid/team.cuh"

extern "C" __global__ void find_chains(long long n, const OFFSET* indptr, const int* indices, const int* degrees,
                                       int* states, uint64* report) {
    uint64 gone = 0, entries = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        bool goes = degrees[i] <= MOST_NEIGHBORS;
        uint32 mine = mix((uint32)i, 0);
        for (OFFSET k = goes ? indptr[i] : indptr[i + 1]; k < indptr[i + 1]; ++k) {
            int j = indices[k];
            if (j == i || degrees[j] > MOST_NEIGHBORS) continue;
            goes &= degrees[i] < degrees[j] || (degrees[i] == degrees[j] && mine < mix((uint32)j, 0));
        }
        states[i] = goes ? -1 : 0;
        if (goes) ++gone, entries += indptr[i + 1] - indptr[i];
    }
    add_block_sums<2>(report, {gone, entries});
}

// Visit the entries of row i of A from which a row of R or P is computed: point i's row of R if the point stays, or its
// row of P if the point is eliminated. For each such entry a_k, the function calls `visit(place, k)`, where `place` is
// the position in the row of R or P. The function returns the number of entries.
template <typename Visit>
__device__ __forceinline__ int visit_transfer(long long i, const OFFSET* indptr, const int* indices, const int* numbers,
                                              Visit visit) {
    bool is_left = numbers[i] >= 0;
    int count = 0;
    for (OFFSET first = indptr[i]; first < indptr[i + 1]; first += LANES) {
        OFFSET k = first + team_lane();
        bool is_in = k < indptr[i + 1] && (is_left ? indices[k] == i || numbers[indices[k]] < 0 : indices[k] != i);
        uint32 all = __ballot_sync(team_mask(), is_in) & team_mask();
        if (is_in) visit(count + __popc(all & (1u << lane_id()) - 1), k);
        count += __popc(all);
    }
    return count;
}

extern "C" __global__ void count_rows(long long n, long long left, const OFFSET* indptr, const int* indices,
                                      int* numbers, const int* gone, int* points, long long* counts) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    int count = visit_transfer(i, indptr, indices, numbers, [](int, OFFSET) {});
    if (team_lane() > 0) return;
    if (i == 0) counts[0] = 0;
    bool is_left = numbers[i] >= 0;
    counts[i + 1] = is_left ? 1 : count;
    if (!is_left) return;
    int number = (int)i + gone[i];
    numbers[i] = number, points[number] = (int)i;
    counts[n + 1 + number] = count, counts[n + left + 1 + number] = indptr[i + 1] - indptr[i];
}

extern "C" __global__ void list_rows(long long n, long long left, const OFFSET* indptr, const int* indices,
                                     const int* numbers, const long long* offsets, OFFSET* P_indptr, int* P_columns,
                                     OFFSET* R_indptr, int* R_columns, OFFSET* left_indptr, int* left_columns) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    int number = numbers[i];
    const long long *of_R = offsets + n + number, *of_left = of_R + left;
    long long before_R = offsets[n], before_left = offsets[n + left];
    if (team_lane() == 0) {
        if (i == 0) P_indptr[0] = R_indptr[0] = left_indptr[0] = 0;
        P_indptr[i + 1] = offsets[i + 1];
        if (number >= 0) R_indptr[number + 1] = of_R[1] - before_R, left_indptr[number + 1] = of_left[1] - before_left;
    }
    int* row = number < 0 ? P_columns + offsets[i] : R_columns + (of_R[0] - before_R);
    visit_transfer(i, indptr, indices, numbers,
                   [&](int place, OFFSET k) { row[place] = number < 0 ? numbers[indices[k]] : indices[k]; });
    if (number < 0) return;
    if (team_lane() == 0) P_columns[offsets[i]] = number;
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES)
        left_columns[of_left[0] - before_left + (k - indptr[i])] = indices[k];
}

extern "C" __global__ void fill_rows(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                     const VALUE* diagonal, const int* numbers, const OFFSET* P_indptr, VALUE* P,
                                     const OFFSET* R_indptr, VALUE* R, const OFFSET* left_indptr, VALUE* left,
                                     VALUE* dinv) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    int number = numbers[i];
    if (team_lane() == 0) dinv[i] = number < 0 ? VALUE(1) / diagonal[i] : VALUE();
    VALUE* row = number < 0 ? P + P_indptr[i] : R + R_indptr[number];
    visit_transfer(i, indptr, indices, numbers, [&](int place, OFFSET k) {
        int j = indices[k];
        row[place] = j == i ? VALUE(1) : VALUE(0) - values[k] / diagonal[number < 0 ? (int)i : j];
    });
    if (number < 0) return;
    if (team_lane() == 0) P[P_indptr[i]] = VALUE(1);
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES)
        left[left_indptr[number] + (k - indptr[i])] = values[k];
}
