// Color blocks: LANES threads per row of the color order, which take its entries LANES at a time. See color_blocks.py.

#include "cuda/hash.cuh"

#include "digests.cuh"
#include "slices.cuh"

// Stretches of LANES entries, until the longest row of the warp is done; k may lie behind the end of this row.
#define FOR_STRETCHES(k, begin, end) \
    for (OFFSET k = (begin) + threadIdx.x % LANES; __any_sync(FULL_WARP, k < (end)); k += LANES)

extern "C" __global__ void count_entries(long long n, const OFFSET* indptr, const int* indices, const int* inverse,
                                         OFFSET* lower_counts, OFFSET* upper_counts) {
    long long v = thread_id() / LANES;
    int i = v < n ? inverse[v] : 0, lower = 0, upper = 0;
    if (v < n)
        for (OFFSET k = indptr[v] + threadIdx.x % LANES, end = indptr[v + 1]; k < end; k += LANES) {
            int j = inverse[indices[k]];
            lower += j < i;
            upper += j > i;
        }
    lower = lane_sum<LANES>(lower);
    upper = lane_sum<LANES>(upper);
    if (v < n && threadIdx.x % LANES == 0) {
        lower_counts[i] = lower;
        upper_counts[i] = upper;
    }
}

// Where the entries of row i of the color order are stored: `store(k, j, place, triangle)` for each entry k of A, with
// its column j in color order; triangle is -1, 0 (the diagonal, without a place) or 1. Whole warps call it.
#define SHARE 8  // entries of a sorted row per thread, at most

template <typename Store>
__device__ __forceinline__ void place_row(long long i, bool active, const OFFSET* indptr, const int* indices,
                                          const int* perm, const int* inverse, long long sorted_length,
                                          const OFFSET* lower_indptr, const OFFSET* upper_indptr, Store store) {
    int lane = threadIdx.x % LANES;
    OFFSET begin = active ? indptr[perm[i]] : 0, end = active ? indptr[perm[i] + 1] : 0;
    OFFSET lower = active ? lower_indptr[i] : 0, upper = active ? upper_indptr[i] : 0;
    bool sorts = end - begin <= sorted_length;
    int length = sorts ? (int)(end - begin) : 0;

    // A short row is sorted in registers. An entry's rank is the number of entries before it.
    int column[SHARE], rank[SHARE], longest = length;
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) longest = max(longest, __shfl_xor_sync(FULL_WARP, longest, step));
#pragma unroll
    for (int e = 0; e < SHARE; ++e) {
        column[e] = lane + e * LANES < length ? inverse[indices[begin + lane + e * LANES]] : 0x7fffffff;
        rank[e] = 0;
    }
#pragma unroll
    for (int o = 0; o < SHARE; ++o) {
        if (o * LANES >= longest) break;
        for (int l = 0; l < LANES; ++l) {
            int other = __shfl_sync(FULL_WARP, column[o], l, LANES);
#pragma unroll
            for (int e = 0; e < SHARE; ++e) {
                if (e * LANES >= longest) break;
                rank[e] += other < column[e];  // no column comes twice
            }
        }
    }
    if (length) {
        // Before the upper triangle come the lower one and the diagonal.
        int before = length - (int)(upper_indptr[i + 1] - upper);
#pragma unroll
        for (int e = 0; e < SHARE; ++e)
            if (lane + e * LANES < length) {
                int j = column[e], triangle = (j > i) - (j < i);
                store(begin + lane + e * LANES, j, triangle < 0 ? lower + rank[e] : upper + rank[e] - before, triangle);
            }
    }

    // A long row keeps its order.
    if (sorts) begin = end;
    FOR_STRETCHES(k, begin, end) {
        int j = k < end ? inverse[indices[k]] : (int)i, triangle = (j > i) - (j < i);
        OFFSET lower_place = place_in_row<LANES>(k < end && triangle < 0, lower);
        OFFSET upper_place = place_in_row<LANES>(k < end && triangle > 0, upper);
        if (k < end) store(k, j, triangle < 0 ? lower_place : upper_place, triangle);
    }
}

extern "C" __global__ void fill_columns(long long n, const OFFSET* indptr, const int* indices, const int* perm,
                                        const int* inverse, long long sorted_length, const OFFSET* lower_indptr,
                                        int* lower_columns, SOURCE* lower_source, const OFFSET* upper_indptr,
                                        int* upper_columns, SOURCE* upper_source, SOURCE* diagonal_source) {
    long long i = thread_id() / LANES;
    place_row(i, i < n, indptr, indices, perm, inverse, sorted_length, lower_indptr, upper_indptr,
              [&](OFFSET k, int j, OFFSET place, int triangle) {
                  SOURCE number = (SOURCE)(k - indptr[perm[i]]);
                  if (triangle == 0) {
                      diagonal_source[i] = number;
                  } else {
                      (triangle < 0 ? lower_columns : upper_columns)[place] = j;
                      (triangle < 0 ? lower_source : upper_source)[place] = number;
                  }
              });
}

// ---- New values.

#define FETCHES 8  // values that a thread loads at once
// In sliced DIA a load of a warp touches a line of A for each of up to 32 rows. With fewer warps more of their lines
// stay in L1.
#ifdef SLICED_DIA
#define FETCHING_BLOCKS 3
#else
#define FETCHING_BLOCKS 4
#endif

extern "C" __global__ void __launch_bounds__(BLOCK, FETCHING_BLOCKS) fetch_values(
                                        long long n_slices, const int* slices, const int* perm, const OFFSET* indptr,
                                        const VALUE* values, const OFFSET* lower_indptr, const int* lower_columns,
                                        const SOURCE* lower_source, STORED* lower, const OFFSET* upper_indptr,
                                        const int* upper_columns, const SOURCE* upper_source, STORED* upper,
                                        const SOURCE* diagonal_source, VALUE* diagonal, VALUE* dinv, long long divides,
                                        const uint64* expected, uint64* digests) {
    if (!to_be_taken(expected, digests)) return;
    for_slices(0, n_slices, false, slices, lower_columns, [&](const Slice& slice) {
        // As few loads as possible wait for each other: those that need no other one come first.
        auto lower_cursor = slice.cursor(lower_indptr), upper_cursor = slice.cursor(upper_indptr);
        int i = slice.index();
        bool is_there = slice.row < slice.rows;
        int row = is_there ? perm[i] : 0;
        long long number = is_there ? diagonal_source[i] : 0;
        OFFSET begin = is_there ? indptr[row] : 0, end = is_there ? indptr[row + 1] : 0;
        // The upper triangle is divided by the pivot, so its load overlaps with the first ones of the lower triangle.
        VALUE pivot = VALUE();
        bool has_pivot = false, divisible = true;
        auto fetch_pivot = [&] {
            if (!has_pivot && begin + number < end) pivot = values[begin + number];
            has_pivot = true;
        };
        auto fetch = [&](auto cursor, const int* columns, const SOURCE* source, STORED* result, auto overlap, auto scaled) {
            slice.batches<FETCHES>(cursor, columns, [&](const OFFSET* places) {
                SOURCE number[FETCHES];
                VALUE value[FETCHES];
#pragma unroll
                for (int e = 0; e < FETCHES; ++e) number[e] = places[e] >= 0 ? ptx::load_streaming(&source[places[e]]) : 0;
#pragma unroll
                for (int e = 0; e < FETCHES; ++e) value[e] = places[e] >= 0 ? values[begin + number[e]] : VALUE();
                overlap();
#pragma unroll
                for (int e = 0; e < FETCHES; ++e)
                    if (places[e] >= 0) {
                        STORED stored = (STORED)scaled(value[e]);
                        divisible &= isfinite(stored);
                        store_streaming(&result[places[e]], stored);
                    }
            });
        };
        fetch(lower_cursor, lower_columns, lower_source, lower, fetch_pivot, [](VALUE value) { return value; });
        fetch_pivot();
        VALUE inverse = VALUE(1) / pivot, factor = divides ? inverse : VALUE(1);
        fetch(upper_cursor, upper_columns, upper_source, upper, Nothing(), [&](VALUE value) { return factor * value; });
        if (slice.is_row_leader()) {
            diagonal[i] = pivot;
            dinv[i] = inverse;
            divisible &= isfinite(inverse);
        }
        if (!divisible) atomicAdd(&digests[NO_PIVOTS], 1ull);
    });
}

extern "C" __global__ void divide_rows(long long n_slices, const int* slices, const OFFSET* indptr, const int* columns,
                                       STORED* values, const VALUE* dinv) {
    for_slices(0, n_slices, false, slices, columns, [&](const Slice& slice) {
        VALUE inverse = slice.row < slice.rows ? dinv[slice.index()] : VALUE();
        slice.batches<FETCHES>(slice.cursor(indptr), columns, [&](const OFFSET* places) {
            STORED value[FETCHES];
#pragma unroll
            for (int e = 0; e < FETCHES; ++e)
                if (places[e] >= 0) value[e] = values[places[e]];
#pragma unroll
            for (int e = 0; e < FETCHES; ++e)
                if (places[e] >= 0) store_streaming(&values[places[e]], (STORED)(inverse * (VALUE)value[e]));
        });
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK, 4) digest(
        long long entries, long long n, const OFFSET* indptr, const int* indices, const VALUE* values, uint64* digests) {
    uint64 pattern = 0, both = 0, not_finite = 0;
    for (long long i = thread_id(); i <= n; i += thread_count())
        pattern += mix64(mix64((uint64)i) ^ (uint64)(long long)indptr[i]);
    auto add = [&](long long k, int column, VALUE value) {
        uint64 entry = mix64((uint64)k << 32 ^ (uint64)(long long)column);
        pattern += entry;
        each_part(value, [&](REAL part) { entry = mix64(entry ^ (uint64)__double_as_longlong(widened(part))); });
        both += entry;
        not_finite += !isfinite(value);
    };
    constexpr int BATCH = 8;  // entries that a thread loads at once
    long long stride = thread_count(), k = thread_id();
    for (; k + (BATCH - 1) * stride < entries; k += BATCH * stride) {
        int column[BATCH];
        VALUE value[BATCH];
#pragma unroll
        for (int e = 0; e < BATCH; ++e) column[e] = indices[k + e * stride], value[e] = values[k + e * stride];
#pragma unroll
        for (int e = 0; e < BATCH; ++e) add(k + e * stride, column[e], value[e]);
    }
    for (; k < entries; k += stride) add(k, indices[k], values[k]);
    add_block_sums<3>(digests, {pattern, pattern + both, not_finite});
}

extern "C" __global__ void find_range(long long entries, const VALUE* values, uint64* digests) {
    uint64 largest = 0, smallest = 0;
    for (long long k = thread_id(); k < entries; k += thread_count()) {
        VALUE value = values[k];
        each_part(value, [&](REAL part) {
            uint64 magnitude = (uint64)__double_as_longlong(fabs(widened(part)));
            if (magnitude == 0 || magnitude >= INFINITE_BITS) return;
            largest = max(largest, magnitude);
            smallest = max(smallest, INFINITE_BITS - magnitude);
        });
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        largest = max(largest, __shfl_xor_sync(FULL_WARP, largest, step));
        smallest = max(smallest, __shfl_xor_sync(FULL_WARP, smallest, step));
    }
    if (lane_id() != 0) return;
    if (largest > ptx::load_l2(&digests[LARGEST])) atomicMax(&digests[LARGEST], largest);
    if (smallest > ptx::load_l2(&digests[SMALLEST])) atomicMax(&digests[SMALLEST], smallest);
}

extern "C" __global__ void join(long long n, const OFFSET* lower_indptr, const int* lower_columns, const STORED* lower,
                                const OFFSET* upper_indptr, const int* upper_columns, const STORED* upper,
                                const VALUE* diagonal, const OFFSET* indptr, int* indices, VALUE* values) {
    long long i = thread_id() / LANES;
    if (i >= n || threadIdx.x % LANES) return;  // a single thread: nothing waits for this
    OFFSET place = indptr[i];
    for (OFFSET k = lower_indptr[i]; k < lower_indptr[i + 1]; ++k, ++place) {
        indices[place] = lower_columns[k];
        values[place] = (VALUE)lower[k];
    }
    indices[place] = (int)i;
    values[place++] = diagonal[i];
    for (OFFSET k = upper_indptr[i]; k < upper_indptr[i + 1]; ++k, ++place) {
        indices[place] = upper_columns[k];
        values[place] = (VALUE)upper[k];
    }
}
