// Extended+i interpolation: a team of LANES threads per row; see extended.py.

#include "cuda/scan.cuh"
#include "cuda/search.cuh"
#include "multigrid/team_sum.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK)
    number_coarse(long long threads, long long n, const int* states, long long* before, int* numbers,
                  Control* control) {
    write_offsets(n, [=](long long i) { return (long long)(states[i] == COARSE); }, before, control);
    for (long long i = thread_id(); i < n; i += thread_count())
        numbers[i] = states[i] == COARSE ? (int)ptx::load_l2(&before[i]) : -1;
}

// Write the points from which point i interpolates to `points`, from indptr[i] on, and their number to counts[i + 1].
// Likewise write the numbers of the coarse points among them to `coarse`, and where these begin and end.
extern "C" __global__ void find_points(long long n, const OFFSET* indptr, const int* indices,
                                       const unsigned char* flags, const int* numbers, OFFSET* counts, OFFSET* begins,
                                       OFFSET* ends, int* points, int* coarse) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    OFFSET begin = indptr[i], end = indptr[i + 1], place = begin, coarse_place = begin;
    if (numbers[i] >= 0) {
        if (team_lane() == 0) points[begin] = (int)i, coarse[begin] = numbers[i];
        place = coarse_place = begin + 1;
    } else {
        for (OFFSET first = begin; first < end; first += LANES) {
            OFFSET k = first + team_lane();
            bool passes = k < end && flags[k] & INTERPOLATES;
            int number = passes ? numbers[indices[k]] : -1;
            uint32 all = __ballot_sync(team_mask(), passes) & team_mask(), before = (1u << lane_id()) - 1;
            uint32 all_coarse = __ballot_sync(team_mask(), number >= 0) & team_mask();
            if (passes) points[place + __popc(all & before)] = indices[k];
            if (number >= 0) coarse[coarse_place + __popc(all_coarse & before)] = number;
            place += __popc(all), coarse_place += __popc(all_coarse);
        }
    }
    if (team_lane() > 0) return;
    if (i == 0) counts[0] = 0;
    counts[i + 1] = place - begin, begins[i] = begin, ends[i] = coarse_place;
}

// The place of a coarse unknown in a row of the reach; its length if it is not there.
__device__ __forceinline__ int place_in(const int* columns, int length, int number) {
    if (number < 0) return length;
    int place = lower_bound(columns, 0, length, number);
    return place < length && columns[place] == number ? place : length;
}

extern "C" __global__ void extend_rows(long long n, long long count, const OFFSET* indptr, const int* indices,
                                       const VALUE* values, const unsigned char* flags, const int* numbers,
                                       const long long* reach_indptr, const int* reach_columns, VALUE* weights) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    const int* columns = reach_columns + reach_indptr[i];
    int length = (int)(reach_indptr[i + 1] - reach_indptr[i]);
    VALUE* own = weights + reach_indptr[i];
    bool is_coarse = numbers[i] >= 0;
    for (int q = team_lane(); q < length; q += LANES) own[q] = is_coarse ? VALUE(1) : VALUE(0);
    if (is_coarse || length == 0) return;
    team_sync();
    VALUE diagonal = VALUE(0), rest = VALUE(0);  // of `rest` each thread has a part
    for (OFFSET k = indptr[i]; k < indptr[i + 1]; ++k) {
        int j = indices[k];
        VALUE a = values[k];
        if (j == i) {
            diagonal = a;
            continue;
        }
        int place = place_in(columns, length, numbers[j]);
        bool passes = place == length && flags[k] & INTERPOLATES && numbers[j] < 0;
        if (!passes && team_lane() == 0) {
            if (place < length)
                own[place] += a;
            else
                rest += a;
        }
        if (passes) {
            VALUE total = VALUE(0);
            for (OFFSET e = indptr[j] + team_lane(); e < indptr[j + 1]; e += LANES) {
                int m = indices[e];
                if (real_part(values[e]) < 0 && (m == i || place_in(columns, length, numbers[m]) < length))
                    total += values[e];
            }
            total = team_sum(total);
            if (fabs(total) == 0) {
                if (team_lane() == 0) rest += a;
            } else {
                VALUE factor = a / total;
                for (OFFSET e = indptr[j] + team_lane(); e < indptr[j + 1]; e += LANES) {
                    int m = indices[e];
                    if (!(real_part(values[e]) < 0)) continue;
                    if (m == i) {
                        rest += factor * values[e];
                    } else {
                        int theirs = place_in(columns, length, numbers[m]);
                        if (theirs < length) own[theirs] += factor * values[e];
                    }
                }
            }
        }
        team_sync();
    }
    VALUE divisor = diagonal + team_sum(rest);
    if (real_part(divisor) * real_part(diagonal) <= 0) divisor = diagonal;
    for (int q = team_lane(); q < length; q += LANES) own[q] = VALUE(0) - own[q] / divisor;
}

// The magnitude of a weight with 13 digits, in the order of integers.
__device__ __forceinline__ int size_of(VALUE weight) { return __float_as_int((float)fabs(weight)) + (1 << 9) >> 10; }

extern "C" __global__ void __launch_bounds__(BLOCK)
    limit_lengths(long long threads, long long n, long long most, const long long* reach_indptr, long long* indptr,
                  Control* control) {
    write_offsets(n, [=](long long i) { return min(reach_indptr[i + 1] - reach_indptr[i], most); }, indptr, control);
}

extern "C" __global__ void choose_largest(long long n, const long long* reach_indptr, const int* reach_columns,
                                          const VALUE* weights, const long long* indptr, long long* places,
                                          int* columns) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    long long begin = reach_indptr[i];
    int length = (int)(reach_indptr[i + 1] - begin), room = (int)(indptr[i + 1] - indptr[i]), taken = 0;
    // In the order of keys a weight comes after smaller ones, and after equal ones that are behind it.
    auto key_of = [&](int place) { return (uint64)size_of(weights[begin + place]) << 32 | 0xffffffffu - place; };
    uint64 least = length > room ? ~0ull : 0;  // the key of the last weight that is kept
    for (int count = 0; count < room && length > room; ++count) {
        uint64 next = 0;
        for (int place = team_lane(); place < length; place += LANES)
            if (key_of(place) < least) next = max(next, key_of(place));
        least = team_max(next);
    }
    for (int first = 0; first < length; first += LANES) {
        int place = first + team_lane();
        bool is_kept = place < length && key_of(place) >= least;
        uint32 kept = __ballot_sync(team_mask(), is_kept) & team_mask();
        long long own = indptr[i] + taken + __popc(kept & (1u << lane_id()) - 1);
        if (is_kept) places[own] = begin + place, columns[own] = reach_columns[begin + place];
        taken += __popc(kept);
    }
}

extern "C" __global__ void truncate_rows(long long n, const long long* reach_indptr, const VALUE* weights,
                                         const long long* indptr, const long long* places, VALUE* P) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    VALUE total = VALUE(0), kept = VALUE(0);
    for (long long place = reach_indptr[i] + team_lane(); place < reach_indptr[i + 1]; place += LANES)
        total += weights[place];
    for (long long k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) kept += weights[places[k]];
    total = team_sum(total), kept = team_sum(kept);
    REAL ratio = fabs(kept) > 0 ? real_part(total / kept) : 0;
    REAL factor = 0 < ratio && ratio < MOST_SCALING ? ratio : 1;
    for (long long k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) P[k] = factor * weights[places[k]];
}
