// ILU(0) in the order of the levels, by pieces: the rows that a warp works on at once. See elimination.py.
//
// The threads that share a row write it, then store the inverse of its pivot with release. Others poll that inverse and
// load it with acquire, which also invalidates stale lines of the row in L1.

#include "pivots.cuh"

// SHARE is how many entries of a row a thread may have.

#define NONE ((PLACE) - 1)
#define BLOCKS_LIMIT (sizeof(VALUE) > 8 ? 2 : 4)  // per processor, as registers allow

// A triangle: its values as they are stored, the sorted columns of each row, the place where the entry of each column is
// stored, and the values of the entries during elimination.
struct Triangle {
    const OFFSET* indptr;
    const int* indices;
    const OFFSET* places;
    STORED* stored;
    VALUE* values;
};

// Where a thread's row is. Its entries are the lower ones, the diagonal one, the upper ones; it has none if there is no
// row.
struct Row {
    int i, n_lower, length;
    OFFSET begin_lower, begin_upper;

    __device__ __forceinline__ Row(const Slice& slice, const OFFSET* lower_indptr, const OFFSET* upper_indptr) {
        bool there = slice.row < slice.rows;
        i = slice.index();
        begin_lower = there ? lower_indptr[i] : 0;
        begin_upper = there ? upper_indptr[i] : 0;
        n_lower = there ? (int)(lower_indptr[i + 1] - begin_lower) : 0;
        length = there ? n_lower + 1 + (int)(upper_indptr[i + 1] - begin_upper) : 0;
    }
    // Whether its matches are listed.
    __device__ __forceinline__ bool is_listed(const long long* firsts) const {
        return n_lower == 0 || firsts[i + 1] > firsts[i];
    }
    // Where entry m, not the diagonal one, is in the arrays of its triangle.
    __device__ __forceinline__ OFFSET place(int m) const {
        return m < n_lower ? begin_lower + m : begin_upper + (m - n_lower - 1);
    }
    // Where the matches of lower entry e would begin in the row's list if they included one for entry 0 of the row.
    __device__ __forceinline__ int list(int e) const { return e * length - e * (e + 1) / 2 - e - 1; }
};

// A warp per piece. See elimination.py.
extern "C" __global__ void count_matches(long long n_pieces, const int* pieces, const OFFSET* lower_indptr,
                                         const OFFSET* upper_indptr, int item_size, long long* counts) {
    long long k = thread_id() / WARP;
    if (k >= n_pieces) return;
    Slice slice(pieces, k);
    Row row(slice, lower_indptr, upper_indptr);
    if (!row.length || slice.lane) return;
    long long count = (long long)row.n_lower * (2ll * row.length - row.n_lower - 1) / 2;
    bool is_listed = row.length <= MOST_ENTRIES && count * item_size <= MOST_BYTES * row.length;
    counts[row.i] = is_listed ? count : 0;
}

// A warp per piece. See elimination.py.
extern "C" __global__ void find_matches(long long n_pieces, const int* pieces, const OFFSET* lower_indptr,
                                        const int* lower_indices, const OFFSET* upper_indptr, const int* upper_indices,
                                        const long long* firsts, PLACE* matches, int* found) {
    long long k = thread_id() / WARP;
    if (k >= n_pieces) return;
    Slice slice(pieces, k);
    Row row(slice, lower_indptr, upper_indptr);
    if (!row.length || !row.is_listed(firsts)) return;
    bool triangles = false;
    for (int e = 0; e < row.n_lower; ++e) {
        int j = lower_indices[row.begin_lower + e];
        OFFSET other = upper_indptr[j], end = upper_indptr[j + 1];
        PLACE* list = matches + firsts[row.i] + row.list(e);
        for (int m = e + 1 + slice.lane; m < row.length; m += 1 << slice.log_lanes) {
            int column = m == row.n_lower ? row.i : (m < row.n_lower ? lower_indices : upper_indices)[row.place(m)];
            OFFSET place = find(upper_indices, other, end, column);
            list[m] = place < 0 ? NONE : (PLACE)(place - other);
            triangles |= place >= 0 && m != row.n_lower;
        }
    }
    if (triangles) found[TRIANGLES] = 1;
}

// Eliminate the lower part of a row whose matches are listed; what that adds to its diagonal entry, on all of its
// threads. `largest` becomes that of the entries that this thread has. Whole warps call it.
template <int LOG_LANES = 0>
__device__ __forceinline__ VALUE eliminate_listed(const Slice& slice, const Row& row, const Triangle& lower,
                                                  const Triangle& upper, const VALUE* dinv, const long long* firsts,
                                                  const PLACE* matches, REAL theta, REAL& largest) {
    if constexpr (LOG_LANES < 5)
        if (slice.log_lanes > LOG_LANES)
            return eliminate_listed<LOG_LANES + 1>(slice, row, lower, upper, dinv, firsts, matches, theta, largest);
    constexpr int lanes = 1 << LOG_LANES;
    int lane = slice.lane;
    // Where this thread's first entry is in the list of the next lower entry.
    const PLACE* list = matches + (row.n_lower ? firsts[row.i] : 0) + row.list(0) + lane;
    // Every `lanes` entries are a stretch, and each thread has one of each: of those from `base` on.
    int base = 0;
    VALUE values[SHARE], added = 0;
    OFFSET place[SHARE];
#pragma unroll
    for (int k = 0; k < SHARE; ++k) {
        int m = lane + k * lanes;
        bool stored = m < row.length && m != row.n_lower;
        place[k] = stored ? (m < row.n_lower ? lower.places : upper.places)[row.place(m)] : -1;
    }
#pragma unroll
    for (int k = 0; k < SHARE; ++k) {
        int m = lane + k * lanes;
        values[k] = VALUE(0);
        if (place[k] >= 0) values[k] = (VALUE)(m < row.n_lower ? lower.stored : upper.stored)[place[k]];
        largest = max(largest, fabs(values[k]));
    }
    // Nothing changes the entries of a stretch once it is gone through.
    auto store = [&](int m, VALUE value) {
        if (m >= row.length) return;
        if (m == row.n_lower) {
            added = value;
            return;
        }
        OFFSET sorted = row.place(m);
        if (m < row.n_lower) {
            lower.stored[lower.places[sorted]] = (STORED)value;
        } else {
            upper.values[sorted] = value;
        }
    };
    for (; __any_sync(FULL_WARP, base < row.n_lower); base += lanes) {
        // Each thread has one lower entry: it waits for the pivot of that row, and knows where the row begins.
        int e = base + lane;
        OFFSET other = 0;
        VALUE inverse = 0;
        uint32 next[SHARE];
        auto prefetch = [&](int step) {
            int left = base + step < row.n_lower ? row.length - e : 0;
#pragma unroll
            for (int k = 0; k < SHARE; ++k) {
                bool behind = left > k * lanes && (k > 0 || lane > step);
                next[k] = behind ? (uint32)ptx::load_streaming(&list[k * lanes]) : (uint32)NONE;
            }
            list += row.length - (base + step) - 2;
        };
        int j = e < row.n_lower ? lower.indices[row.begin_lower + e] : 0;
        CHECK(j, e >= row.n_lower || (j >= 0 && j < row.i));
        if (e < row.n_lower) other = upper.indptr[j];
        prefetch(0);
        if (e < row.n_lower) inverse = load_acquire(&dinv[j]);
        for (int step = 0; step < lanes && __any_sync(FULL_WARP, base + step < row.n_lower); ++step) {
            if (lane == step && e < row.n_lower) inverse = spin_acquire(&dinv[j], inverse);
            __syncwarp();
            // In a register, so that each address takes one addition, not two.
            const VALUE* theirs =
                ptx::keep_generic_in_register(upper.values + __shfl_sync(FULL_WARP, other, step, lanes));
            VALUE factor = shuffle(theta * (values[0] * inverse), step, lanes), value[SHARE];
#pragma unroll
            for (int k = 0; k < SHARE; ++k) value[k] = next[k] == NONE ? VALUE(0) : theirs[next[k]];
            if (step + 1 < lanes) prefetch(step + 1);
#pragma unroll
            for (int k = 0; k < SHARE; ++k) values[k] -= factor * value[k];
        }
        store(e, values[0]);
#pragma unroll
        for (int k = 0; k + 1 < SHARE; ++k) values[k] = values[k + 1];
        values[SHARE - 1] = 0;
        list += lanes;
    }
#pragma unroll
    for (int k = 0; k < SHARE; ++k) store(base + lane + k * lanes, values[k]);
    return shuffle(added, row.n_lower & (lanes - 1), lanes);
}

// The same for a row whose matches are not listed, by a whole warp, in memory; `changes` if an entry off the diagonal
// does.
__device__ __forceinline__ VALUE eliminate_in_place(const Row& row, const Triangle& lower, const Triangle& upper,
                                                    const VALUE* dinv, REAL theta, REAL& largest, bool& changes) {
    int i = row.i;
    OFFSET end_lower = row.begin_lower + row.n_lower, end_upper = row.begin_upper + row.length - row.n_lower - 1;
    // `visit(triangle, place)` for each entry off the diagonal, on one thread.
    auto each = [&](auto visit) {
        for (OFFSET m = row.begin_lower + lane_id(); m < end_lower; m += WARP) visit(lower, m);
        for (OFFSET m = row.begin_upper + lane_id(); m < end_upper; m += WARP) visit(upper, m);
    };
    each([&](const Triangle& t, OFFSET m) {
        t.values[m] = (VALUE)t.stored[t.places[m]];
        largest = max(largest, fabs(t.values[m]));
    });
    VALUE subtracted = 0;
    for (OFFSET e = row.begin_lower; e < end_lower; ++e) {
        int j = lower.indices[e];
        CHECK(j, j >= 0 && j < i);
        OFFSET begin = upper.indptr[j], end = upper.indptr[j + 1];
        VALUE inverse = spin_acquire(&dinv[j], load_acquire(&dinv[j]));
        __syncwarp();  // now this thread sees what the others have subtracted from this row
        VALUE factor = theta * (lower.values[e] * inverse);
        OFFSET left_lower = end_lower - e - 1, left = left_lower + 1 + (end_upper - row.begin_upper);
        if (end - begin <= left) {  // search for the other row's columns in this one
            for (OFFSET m = begin + lane_id(); m < end; m += WARP) {
                int column = upper.indices[m];
                VALUE product = factor * upper.values[m];
                if (column == i) {
                    subtracted += product;
                } else if (column < i) {
                    OFFSET place = find(lower.indices, e + 1, end_lower, column);
                    if (place >= 0) lower.values[place] -= product;
                    changes |= place >= 0;
                } else {
                    OFFSET place = find(upper.indices, row.begin_upper, end_upper, column);
                    if (place >= 0) upper.values[place] -= product;
                    changes |= place >= 0;
                }
            }
        } else {  // search for the columns of this row in the other one
            for (OFFSET m = lane_id(); m < left; m += WARP) {
                OFFSET in_upper = row.begin_upper + m - left_lower - 1;
                int column = m < left_lower ? lower.indices[e + 1 + m] : m == left_lower ? i : upper.indices[in_upper];
                OFFSET place = find(upper.indices, begin, end, column);
                if (place < 0) continue;
                VALUE product = factor * upper.values[place];
                if (m == left_lower) {
                    subtracted += product;
                } else {
                    (m < left_lower ? lower.values[e + 1 + m] : upper.values[in_upper]) -= product;
                    changes = true;
                }
            }
        }
    }
    __syncwarp();
    for (OFFSET m = row.begin_lower + lane_id(); m < end_lower; m += WARP)
        lower.stored[lower.places[m]] = (STORED)lower.values[m];
    return VALUE(0) - lane_sum<WARP>(subtracted);
}

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS_LIMIT)
    factorize(long long n_pieces, const int* pieces, Triangle lower, Triangle upper, const long long* firsts,
              const PLACE* matches, const VALUE* diagonal, double tiny, double least, double theta, VALUE* pivots,
              VALUE* dinv, VALUE* shifts, int* found) {
    auto work_on = [&](const Slice& slice, const Row& row, bool listed) {
        int i = row.i;
        VALUE d = row.length ? diagonal[i] : VALUE(0), added;
        REAL largest = fabs(d);
        if (listed) {
            added = eliminate_listed(slice, row, lower, upper, dinv, firsts, matches, (REAL)theta, largest);
        } else {
            bool changes = false;
            added = eliminate_in_place(row, lower, upper, dinv, (REAL)theta, largest, changes);
            if (changes) found[TRIANGLES] = 1;
        }
        VALUE relaxed = d + added, pivot = safe_pivot(relaxed, most(slice, largest), (REAL)tiny);
        VALUE inverse = VALUE(1) / pivot;
        __syncwarp();  // the row is written, before the pivot is released
        if (slice.is_row_leader()) {
            publish<true>(&dinv[i], inverse);
            pivots[i] = pivot;
            note_pivot(pivot - relaxed + (REAL)(1 - 1 / theta) * added, is_low(relaxed, d, (REAL)least), &shifts[i],
                       found);
        }
        // Sweeps read the upper part divided by the pivot; the elimination of other rows reads it undivided.
        for (int m = row.n_lower + 1 + slice.lane; m < row.length; m += 1 << slice.log_lanes) {
            OFFSET sorted = row.place(m);
            upper.stored[upper.places[sorted]] = (STORED)(inverse * upper.values[sorted]);
        }
    };
    for_slices(0, n_pieces, false, pieces, nullptr, lower.indices, [&](const Slice& piece) {
        int end = (int)piece.first + piece.rows;
        for (int first = (int)piece.first, rows; first < end; first += rows) {
            for (rows = end - first;; rows = (rows + 1) / 2) {  // fewer at once where some are long
                Slice slice(first, first + rows);
                Row row(slice, lower.indptr, upper.indptr);
                // Whether all rows are listed, and there are registers for them.
                bool listed = __all_sync(FULL_WARP, row.length <= SHARE << slice.log_lanes &&
                                                        (row.length == 0 || row.is_listed(firsts)));
                if (!listed && rows > 1) continue;
                work_on(slice, row, listed);
                break;
            }
        }
    });
}
