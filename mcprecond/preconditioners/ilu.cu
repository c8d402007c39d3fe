// ILU(0): the slices in the order of the levels, some rows of a slice at a time by each warp. See ilu.py.
//
// A row is written by the threads that share it, and read by others after its pivot is there: the pivot is published
// behind a fence. Their reads bypass L1, which may hold an older state of a line that two rows share.

#include "pivots.cuh"

#define WARPS_PER_BLOCK 8  // of 256 threads
#define SLOTS (sizeof(VALUE) > 8 ? 256 : 512)  // of a warp's tables: what four blocks per processor have room for
#define LOG_SLOTS_PER_LANE (sizeof(VALUE) > 8 ? 3 : 4)
#define ENTRIES_PER_LANE 6  // of a row that a thread should have at most, as long as there are threads
#define MOST_ROWS_AT_ONCE 8
#define LONGER 8  // times as long as this one: rows in which columns of this one are looked for, not the reverse

struct Triangles {
    const OFFSET* lower_indptr;
    const int* lower_indices;
    VALUE* lower;
    const OFFSET* upper_indptr;
    const int* upper_indices;
    VALUE* upper;
};

// A row in shared memory, found by column: open addressing, at most half full.
struct Table {
    int* columns;
    VALUE* values;
    int log_slots;

    __device__ __forceinline__ int first(int column) const { return ((uint32)column * 0x9e3779b1u) >> (32 - log_slots); }
    __device__ __forceinline__ int next(int slot) const { return (slot + 1) & ((1 << log_slots) - 1); }

    __device__ __forceinline__ void insert(int column, VALUE value) const {
        int slot = first(column);
        while (atomicCAS(&columns[slot], -1, column) != -1) slot = next(slot);
        values[slot] = value;
    }

    // Where a column is, or -1.
    __device__ __forceinline__ int find(int column) const {
        int slot = first(column);
        while (columns[slot] != column && columns[slot] >= 0) slot = next(slot);
        return columns[slot] == column ? slot : -1;
    }
};

// Eliminate the lower parts of rows that fit into tables; the diagonal entry that is left. Whole warps call it.
__device__ __forceinline__ VALUE eliminate_in_table(const Slice& slice, const Triangles& t, VALUE d, const VALUE* pivots,
                                                    const Table& table, bool& changes) {
    int i = (int)slice.index(), lanes = 1 << slice.log_lanes, lane = slice.lane;
    bool active = slice.row < slice.rows;
    OFFSET begin_lower = active ? t.lower_indptr[i] : 0, begin_upper = active ? t.upper_indptr[i] : 0;
    int n_lower = active ? (int)(t.lower_indptr[i + 1] - begin_lower) : 0;
    int n_upper = active ? (int)(t.upper_indptr[i + 1] - begin_upper) : 0, length = active ? n_lower + 1 + n_upper : 0;
    auto column_of = [&](int m) {  // of entry m of the whole row
        return m < n_lower ? t.lower_indices[begin_lower + m]
                           : m == n_lower ? i : t.upper_indices[begin_upper + m - n_lower - 1];
    };
    auto value_of = [&](int m) -> VALUE& {
        return m < n_lower ? t.lower[begin_lower + m] : m == n_lower ? d : t.upper[begin_upper + m - n_lower - 1];
    };
    for (int slot = lane; slot < 1 << table.log_slots; slot += lanes) table.columns[slot] = -1;
    __syncwarp();
    for (int m = lane; m < length; m += lanes) table.insert(column_of(m), value_of(m));

    // Each thread of a row looks up one of its lower entries, and waits for its pivot; then they take one after the other.
    for (int base = 0; __any_sync(FULL_WARP, base < n_lower); base += lanes) {
        int j = 0;
        OFFSET begin = 0, end = 0;
        VALUE pivot = 1;
        if (base + lane < n_lower) {
            j = t.lower_indices[begin_lower + base + lane];
            begin = t.upper_indptr[j];
            end = t.upper_indptr[j + 1];
            pivot = arrived(&pivots[j], pivots[j]);
        }
        __threadfence();
        __syncwarp();
        int next_column = -1;
        VALUE next_value = 0;
        auto fetch = [&](int step) {  // this thread's first entry of the other row, before it is needed
            OFFSET place = __shfl_sync(FULL_WARP, begin, step, lanes) + lane;
            bool there = place < __shfl_sync(FULL_WARP, end, step, lanes);
            next_column = there ? t.upper_indices[place] : -1;
            next_value = there ? fresh(&t.upper[place]) : VALUE(0);
        };
        fetch(0);
        for (int step = 0; step < lanes && __any_sync(FULL_WARP, base + step < n_lower); ++step) {
            int column = next_column, other = __shfl_sync(FULL_WARP, j, step, lanes);
            VALUE value = next_value, other_pivot = shuffle(pivot, step, lanes);
            OFFSET other_begin = __shfl_sync(FULL_WARP, begin, step, lanes);
            OFFSET other_end = __shfl_sync(FULL_WARP, end, step, lanes);
            fetch(step + 1 < lanes ? step + 1 : step);
            if (base + step < n_lower) {
                VALUE factor = table.values[table.find(other)] / other_pivot;
                auto subtract = [&](int column, VALUE value) {
                    int slot = table.find(column);
                    if (slot < 0) return;
                    table.values[slot] -= factor * value;
                    changes |= column != i;
                };
                if (other_end - other_begin <= LONGER * length) {
                    for (OFFSET place = other_begin + lane; place < other_end;) {
                        subtract(column, value);
                        place += lanes;
                        if (place >= other_end) break;
                        column = t.upper_indices[place];
                        value = fresh(&t.upper[place]);
                    }
                } else {
                    for (int m = lane; m < length; m += lanes) {
                        OFFSET place = find(t.upper_indices, other_begin, other_end, column_of(m));
                        if (place >= 0) subtract(column_of(m), fresh(&t.upper[place]));
                    }
                }
            }
            __syncwarp();  // what the others have subtracted from this row
        }
    }
    __syncwarp();
    for (int m = lane; m < length; m += lanes)
        if (m != n_lower) value_of(m) = table.values[table.find(column_of(m))];
    return active ? table.values[table.find(i)] : VALUE(0);
}

// The same for longer rows, where they are stored; every thread of a row gets a part of what its diagonal entry loses.
__device__ __forceinline__ VALUE eliminate_in_place(const Slice& slice, const Triangles& t, const VALUE* pivots,
                                                    bool& changes) {
    if (slice.row >= slice.rows) return 0;
    long long i = slice.index();
    int lanes = 1 << slice.log_lanes, lane = slice.lane;
    uint32 team = (lanes == WARP ? FULL_WARP : (1u << lanes) - 1) << (slice.row * lanes);
    OFFSET begin_lower = t.lower_indptr[i], end_lower = t.lower_indptr[i + 1];
    OFFSET begin_upper = t.upper_indptr[i], end_upper = t.upper_indptr[i + 1];
    VALUE subtracted = 0;
    for (OFFSET e = begin_lower; e < end_lower; ++e) {
        int j = t.lower_indices[e];
        OFFSET begin = t.upper_indptr[j], end = t.upper_indptr[j + 1];
        VALUE pivot = arrived(&pivots[j], pivots[j]);
        __threadfence();
        __syncwarp(team);  // what the others have subtracted from this row
        VALUE factor = t.lower[e] / pivot;
        OFFSET left_lower = end_lower - e - 1, left = left_lower + 1 + (end_upper - begin_upper);
        if (end - begin <= left) {  // look for the other row's columns in this one
            for (OFFSET m = begin + lane; m < end; m += lanes) {
                int column = t.upper_indices[m];
                VALUE product = factor * fresh(&t.upper[m]);
                if (column == i) {
                    subtracted += product;
                } else if (column < i) {
                    OFFSET place = find(t.lower_indices, e + 1, end_lower, column);
                    if (place >= 0) t.lower[place] -= product;
                    changes |= place >= 0;
                } else {
                    OFFSET place = find(t.upper_indices, begin_upper, end_upper, column);
                    if (place >= 0) t.upper[place] -= product;
                    changes |= place >= 0;
                }
            }
        } else {  // look for the columns of this row in the other one
            for (OFFSET m = lane; m < left; m += lanes) {
                OFFSET in_upper = begin_upper + m - left_lower - 1;
                int column = m < left_lower ? t.lower_indices[e + 1 + m]
                             : m == left_lower ? (int)i : t.upper_indices[in_upper];
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
        long long n_slices, const int* slices, const OFFSET* lower_indptr, const int* lower_indices, VALUE* lower,
        const OFFSET* upper_indptr, const int* upper_indices, VALUE* upper, const VALUE* diagonal, double tiny,
        VALUE* pivots, VALUE* shifts, int* cliques) {
    __shared__ int columns[WARPS_PER_BLOCK][SLOTS];
    __shared__ VALUE values[WARPS_PER_BLOCK][SLOTS];
    Triangles triangles{lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper};
    for_slices(n_slices, false, slices, lower_indices, [&](const Slice& whole) {
        int end_of_slice = (int)whole.first + whole.rows, rows_at_once = MOST_ROWS_AT_ONCE;
        long long entries = upper_indptr[end_of_slice] - upper_indptr[whole.first] + lower_indptr[end_of_slice] -
                            lower_indptr[whole.first];
        while (rows_at_once > 1 && entries * rows_at_once > (long long)ENTRIES_PER_LANE * WARP * whole.rows)
            rows_at_once /= 2;
        for (int first = (int)whole.first; first < end_of_slice; first += rows_at_once) {
            int bounds[2] = {first, min(first + rows_at_once, end_of_slice)};
            Slice slice(bounds, 0);
            long long i = slice.index();
            int lanes = 1 << slice.log_lanes;
            bool active = slice.row < slice.rows, changes = false;
            REAL largest = active ? fabs(diagonal[i]) : REAL(0);
            VALUE d = active ? diagonal[i] : VALUE(0);
            OFFSET length = 1;
            if (active) {
                OFFSET begin = lower_indptr[i], end = lower_indptr[i + 1];
                length += end - begin;
                for (OFFSET e = begin + slice.lane; e < end; e += lanes) largest = max(largest, fabs(lower[e]));
                begin = upper_indptr[i], end = upper_indptr[i + 1];
                length += end - begin;
                for (OFFSET e = begin + slice.lane; e < end; e += lanes) largest = max(largest, fabs(upper[e]));
            }
            int log_slots = slice.log_lanes + LOG_SLOTS_PER_LANE, place = slice.row << log_slots;
            Table table{columns[threadIdx.x / WARP] + place, values[threadIdx.x / WARP] + place, log_slots};
            if (__all_sync(FULL_WARP, 2 * length <= 1 << log_slots))
                d = eliminate_in_table(slice, triangles, d, pivots, table, changes);
            else
                d -= slice.sum(eliminate_in_place(slice, triangles, pivots, changes));
            __threadfence();  // before the pivot tells that the row is done
            __syncwarp();
            largest = most(slice, largest);
            if (changes && !*cliques) *cliques = 1;
            if (slice.leads()) {
                VALUE pivot = safe_pivot(d, largest, (REAL)tiny);
                shifts[i] = pivot - d;
                publish(&pivots[i], pivot);
            }
        }
    });
}
