// ILU(0): the pieces in the order of the levels, each the rows that a warp works on at once. See ilu.py.
//
// A row is written by the threads that share it, and read by others after its pivot is there: the inverse of the pivot is
// released behind the row, and those who have waited for it pass a fence before they read. Their reads bypass L1, which may
// hold an older state of a line that two rows share.

#include "pivots.cuh"

#define WARPS_PER_BLOCK 8  // of 256 threads
#define SHARE 9            // entries of a row at hand per thread: not a power of two, for the banks of shared memory
#define MOST_ENTRIES 256   // of a row whose matches are listed, at most; 32 SHARE has to be more
#define MOST_MATCHES 32    // per entry of such a row, at most
#define UNLISTED 0xffff
enum { TRIANGLES, UNLISTED_ROWS, SHIFTED };  // what may be found; all that write there write 1
#define LONGER 8           // times as many: entries that are searched, not gone through
#define AHEAD (sizeof(VALUE) > 8 ? 1 : 2)  // values per thread that are fetched before they are needed

struct Triangles {
    const OFFSET* lower_indptr;
    const int* lower_indices;
    VALUE* lower;
    const OFFSET* upper_indptr;
    const int* upper_indices;
    VALUE* upper;
};

// Where a row and another one's upper part have a column in common: counted from the beginnings of both.
struct __align__(2 * sizeof(PLACE)) Match {
    PLACE own, other;
};

// Where a thread's row is: its entries are the lower ones, the diagonal one, the upper ones.
struct Row {
    int i, n_lower, length;
    OFFSET begin_lower, begin_upper;

    __device__ __forceinline__ Row(const Slice& slice, const OFFSET* lower_indptr, const OFFSET* upper_indptr) {
        bool there = slice.row < slice.rows;
        i = (int)slice.index();
        begin_lower = there ? lower_indptr[i] : 0;
        begin_upper = there ? upper_indptr[i] : 0;
        n_lower = there ? (int)(lower_indptr[i + 1] - begin_lower) : 0;
        length = there ? n_lower + 1 + (int)(upper_indptr[i + 1] - begin_upper) : 0;
    }
};

// Whether the matches of a row are listed.
__device__ __forceinline__ bool is_listed(const Row& row, const unsigned short* starts) {
    return row.n_lower == 0 || starts[row.begin_lower] != UNLISTED;
}

// A warp per piece. The matches of a row lie in the order of its lower entries, then by rising column.
extern "C" __global__ void find_matches(long long n_pieces, const int* pieces, const OFFSET* lower_indptr,
                                        const int* lower_indices, const OFFSET* upper_indptr,
                                        const int* upper_indices, long long list, long long* firsts,
                                        unsigned short* starts, Match* matches, int* found) {
    long long k = thread_id() / WARP;
    if (k >= n_pieces) return;
    Slice slice(pieces, k);
    Row row(slice, lower_indptr, upper_indptr);
    int lanes = 1 << slice.log_lanes, lane = slice.lane, count = 0;
    uint32 team = (lanes == WARP ? FULL_WARP : (1u << lanes) - 1) << (lane_id() & ~(lanes - 1));
    long long first = row.length && list ? firsts[row.i] : 0;
    int n_lower = list && !is_listed(row, starts) ? 0 : row.n_lower;
    bool fits = row.length <= MOST_ENTRIES, triangles = false;
    auto place_of = [&](int column) -> OFFSET {  // in this row, or -1
        if (column == row.i) return row.n_lower;
        bool lower = column < row.i;
        OFFSET begin = lower ? row.begin_lower : row.begin_upper, before = lower ? 0 : row.n_lower + 1;
        OFFSET end = begin + (lower ? row.n_lower : row.length - row.n_lower - 1);
        OFFSET place = find(lower ? lower_indices : upper_indices, begin, end, column);
        return place < 0 ? -1 : before + place - begin;
    };
    for (int e = 0; __any_sync(FULL_WARP, e < n_lower); ++e) {
        bool active = e < n_lower;
        int j = active ? lower_indices[row.begin_lower + e] : 0, left = active ? row.length - e - 1 : 0;
        OFFSET other = active ? upper_indptr[j] : 0, n_other = active ? upper_indptr[j + 1] - other : 0;
        fits &= n_other <= (OFFSET)1 << 8 * sizeof(PLACE);
        if (active && lane == 0 && !list) starts[row.begin_lower + e] = (unsigned short)count;
        bool search_other = n_other / LONGER > left;
        OFFSET steps = search_other ? left : n_other;
        for (OFFSET m = lane; __any_sync(FULL_WARP, m < steps); m += lanes) {
            OFFSET own = -1, theirs = -1;
            if (m < steps && search_other) {
                own = e + 1 + m;
                int column = own < row.n_lower ? lower_indices[row.begin_lower + own]
                             : own == row.n_lower ? row.i : upper_indices[row.begin_upper + own - row.n_lower - 1];
                theirs = find(upper_indices, other, other + n_other, column);
                if (theirs >= 0) theirs -= other;
            } else if (m < steps) {
                theirs = m;
                own = place_of(upper_indices[other + m]);
            }
            bool match = own >= 0 && theirs >= 0;
            uint32 matching = __ballot_sync(FULL_WARP, match) & team;
            int rank = count + __popc(matching & ((1u << lane_id()) - 1));
            if (match && list) matches[first + rank] = {(PLACE)own, (PLACE)theirs};
            count += __popc(matching);
            triangles |= match && own != row.n_lower;
        }
    }
    if (list) return;
    fits &= count <= MOST_MATCHES * row.length;
    if (slice.leads()) {
        firsts[row.i + 1] = fits ? count : 0;
        if (!fits && row.n_lower) {
            starts[row.begin_lower] = UNLISTED;
            found[UNLISTED_ROWS] = 1;
        }
    }
    if (triangles) found[TRIANGLES] = 1;
}

// Eliminate the lower parts of rows whose matches are listed, each held in `values`. Whole warps call it.
__device__ __forceinline__ void eliminate_listed(const Slice& slice, const Row& row, const Triangles& t,
                                                 const VALUE* dinv, const long long* firsts,
                                                 const unsigned short* starts, const Match* matches, VALUE* values) {
    int lanes = 1 << slice.log_lanes, lane = slice.lane;
    long long first = row.n_lower ? firsts[row.i] : 0;
    int count = row.n_lower ? (int)(firsts[row.i + 1] - first) : 0;
    matches += first;
    // Each thread of a row looks at one of its lower entries, and waits for its pivot; then they take one after the other.
    for (int base = 0; __any_sync(FULL_WARP, base < row.n_lower); base += lanes) {
        int e = base + lane, begin = 0, end = 0;
        OFFSET other = 0;
        VALUE inverse = 0;
        if (e < row.n_lower) {
            int j = t.lower_indices[row.begin_lower + e];
            other = t.upper_indptr[j];
            begin = starts[row.begin_lower + e];
            end = e + 1 < row.n_lower ? starts[row.begin_lower + e + 1] : count;
            inverse = arrived(&dinv[j], dinv[j]);
        }
        __threadfence();
        __syncwarp();
        // Where this thread's matches of the next entry are, and the first values there, fetched before they are needed.
        OFFSET next_row;
        int next_place, next_end, next_own[AHEAD];
        VALUE next_value[AHEAD];
        auto fetch = [&](int step) {
            next_row = __shfl_sync(FULL_WARP, other, step, lanes);
            next_place = __shfl_sync(FULL_WARP, begin, step, lanes) + lane;
            next_end = __shfl_sync(FULL_WARP, end, step, lanes);
#pragma unroll
            for (int a = 0; a < AHEAD; ++a) {
                int place = next_place + a * lanes;
                if (place >= next_end) continue;
                Match match = matches[place];
                next_own[a] = match.own;
                next_value[a] = fresh(&t.upper[next_row + match.other]);
            }
        };
        fetch(0);
        for (int step = 0; step < lanes && __any_sync(FULL_WARP, base + step < row.n_lower); ++step) {
            OFFSET row_of_other = next_row;
            int place = next_place, place_end = next_end, own[AHEAD];
            VALUE value[AHEAD], factor = shuffle(inverse, step, lanes);
#pragma unroll
            for (int a = 0; a < AHEAD; ++a) own[a] = next_own[a], value[a] = next_value[a];
            if (step + 1 < lanes) fetch(step + 1);
            if (place < place_end) {
                factor = values[base + step] * factor;
#pragma unroll
                for (int a = 0; a < AHEAD; ++a, place += lanes)
                    if (place < place_end) values[own[a]] -= factor * value[a];
                for (; place < place_end; place += lanes) {
                    Match match = matches[place];
                    values[match.own] -= factor * fresh(&t.upper[row_of_other + match.other]);
                }
            }
            __syncwarp();  // what the others have subtracted from this row
        }
    }
}

// The same for a row whose matches are not listed, by a whole warp, where it is stored; what its diagonal entry loses.
__device__ __forceinline__ VALUE eliminate_in_place(const Row& row, const Triangles& t, const VALUE* dinv,
                                                    bool& changes) {
    int i = row.i;
    OFFSET end_lower = row.begin_lower + row.n_lower, end_upper = row.begin_upper + row.length - row.n_lower - 1;
    VALUE subtracted = 0;
    for (OFFSET e = row.begin_lower; e < end_lower; ++e) {
        int j = t.lower_indices[e];
        OFFSET begin = t.upper_indptr[j], end = t.upper_indptr[j + 1];
        VALUE inverse = arrived(&dinv[j], dinv[j]);
        __threadfence();
        __syncwarp();  // what the others have subtracted from this row
        VALUE factor = t.lower[e] * inverse;
        OFFSET left_lower = end_lower - e - 1, left = left_lower + 1 + (end_upper - row.begin_upper);
        if (end - begin <= left) {  // look for the other row's columns in this one
            for (OFFSET m = begin + lane_id(); m < end; m += WARP) {
                int column = t.upper_indices[m];
                VALUE product = factor * fresh(&t.upper[m]);
                if (column == i) {
                    subtracted += product;
                } else if (column < i) {
                    OFFSET place = find(t.lower_indices, e + 1, end_lower, column);
                    if (place >= 0) t.lower[place] -= product;
                    changes |= place >= 0;
                } else {
                    OFFSET place = find(t.upper_indices, row.begin_upper, end_upper, column);
                    if (place >= 0) t.upper[place] -= product;
                    changes |= place >= 0;
                }
            }
        } else {  // look for the columns of this row in the other one
            for (OFFSET m = lane_id(); m < left; m += WARP) {
                OFFSET in_upper = row.begin_upper + m - left_lower - 1;
                int column = m < left_lower ? t.lower_indices[e + 1 + m]
                             : m == left_lower ? i : t.upper_indices[in_upper];
                OFFSET place = find(t.upper_indices, begin, end, column);
                if (place < 0) continue;
                VALUE product = factor * fresh(&t.upper[place]);
                if (m == left_lower) {
                    subtracted += product;
                } else {
                    (m < left_lower ? t.lower[e + 1 + m] : t.upper[in_upper]) -= product;
                    changes = true;
                }
            }
        }
    }
    return subtracted;
}

extern "C" __global__ void __launch_bounds__(256, 4) factorize(
        long long n_pieces, const int* pieces, const OFFSET* lower_indptr, const int* lower_indices, VALUE* lower,
        const OFFSET* upper_indptr, const int* upper_indices, VALUE* upper, const long long* firsts,
        const unsigned short* starts, const Match* matches, const VALUE* diagonal, double tiny, VALUE* pivots,
        VALUE* dinv, VALUE* shifts, int* found) {
    __shared__ VALUE at_hand[WARPS_PER_BLOCK][SHARE * WARP];
    Triangles triangles{lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper};
    // Whether all rows of a slice are listed, and have room in shared memory.
    auto fits = [&](const Slice& slice, const Row& row) {
        return __all_sync(FULL_WARP, is_listed(row, starts) && row.length <= SHARE << slice.log_lanes);
    };
    auto work_on = [&](const Slice& slice, const Row& row, bool listed) {
        int i = row.i, lanes = 1 << slice.log_lanes, lane = slice.lane, n_upper = row.length - row.n_lower - 1;
        VALUE* values = at_hand[threadIdx.x / WARP] + SHARE * (slice.row << slice.log_lanes);
        VALUE d = row.length ? diagonal[i] : VALUE(0);
        REAL largest = fabs(d);
        auto load = [&](int first, const VALUE* entries, int count) {
            for (int m = lane; m < count; m += lanes) {
                VALUE value = entries[m];
                largest = max(largest, fabs(value));
                if (listed) values[first + m] = value;
            }
        };
        load(0, lower + row.begin_lower, row.n_lower);
        load(row.n_lower + 1, upper + row.begin_upper, n_upper);
        largest = most(slice, largest);
        if (listed) {
            if (slice.leads()) values[row.n_lower] = d;
            __syncwarp();
            eliminate_listed(slice, row, triangles, dinv, firsts, starts, matches, values);
            for (int m = lane; m < row.n_lower; m += lanes) lower[row.begin_lower + m] = values[m];
            for (int m = lane; m < n_upper; m += lanes) upper[row.begin_upper + m] = values[row.n_lower + 1 + m];
            if (slice.leads()) d = values[row.n_lower];
        } else {
            bool changes = false;
            d -= lane_sum<WARP>(eliminate_in_place(row, triangles, dinv, changes));
            if (changes) found[TRIANGLES] = 1;
        }
        __syncwarp();  // before the pivot tells that the row is done
        if (!slice.leads()) return;
        VALUE pivot = safe_pivot(d, largest, (REAL)tiny), shift = pivot - d;
        pivots[i] = pivot;
        shifts[i] = shift;
        each_part(shift, [&](REAL part) {
            if (part != 0) found[SHIFTED] = 1;
        });
        publish<true>(&dinv[i], VALUE(1) / pivot);
    };
    for_slices(n_pieces, false, pieces, lower_indices, [&](const Slice& piece) {
        int end = (int)piece.first + piece.rows;
        for (int first = (int)piece.first, rows; first < end; first += rows) {
            for (rows = end - first;; rows = (rows + 1) / 2) {  // fewer at once where some are long
                Slice slice(first, first + rows);
                Row row(slice, lower_indptr, upper_indptr);
                bool listed = fits(slice, row);
                if (!listed && rows > 1) continue;
                work_on(slice, row, listed);
                break;
            }
        }
    });
}
