// The values of the triangles: taken from A, divided by pivots, put back into one matrix. See values.py.

#include "layouts/slices.cuh"
#include "values.cuh"

#define FETCHES 8  // values that a thread loads at once
// In sliced DIA a load of a warp touches a line of A for each of up to 32 rows. With fewer warps more of their lines
// stay in L1.
#ifdef SLICED_DIA
#define FETCHING_BLOCKS 3
#else
#define FETCHING_BLOCKS 4
#endif

extern "C" __global__ void __launch_bounds__(BLOCK, FETCHING_BLOCKS)
    fetch_values(long long n_slices, const int* slices, const int* perm, const OFFSET* indptr, const VALUE* values,
                 const OFFSET* lower_indptr, const int* lower_columns, const SOURCE* lower_source, STORED* lower,
                 const OFFSET* upper_indptr, const int* upper_columns, const SOURCE* upper_source, STORED* upper,
                 const SOURCE* diagonal_source, VALUE* diagonal, VALUE* dinv, long long divides, const uint64* expected,
                 uint64* found) {
    if (!are_taken(expected, found)) return;
    for_slices(0, n_slices, false, slices, nullptr, lower_columns, [&](const Slice& slice) {
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
        auto fetch = [&](auto cursor, const int* columns, const SOURCE* source, STORED* result, auto overlap,
                         auto scaled) {
            slice.batches<FETCHES>(cursor, columns, [&](const OFFSET* places) {
                SOURCE number[FETCHES];
                VALUE value[FETCHES];
#pragma unroll
                for (int e = 0; e < FETCHES; ++e)
                    number[e] = places[e] >= 0 ? ptx::load_streaming(&source[places[e]]) : 0;
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
        if (!divisible) atomicAdd(&found[NO_PIVOTS], 1ull);
    });
}

extern "C" __global__ void divide_rows(long long n_slices, const int* slices, const OFFSET* indptr, const int* columns,
                                       STORED* values, const VALUE* dinv) {
    for_slices(0, n_slices, false, slices, nullptr, columns, [&](const Slice& slice) {
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

extern "C" __global__ void join(long long n, const OFFSET* lower_indptr, const int* lower_columns, const STORED* lower,
                                const OFFSET* upper_indptr, const int* upper_columns, const STORED* upper,
                                const VALUE* diagonal, const OFFSET* indptr, int* indices, VALUE* values) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    const int lane = threadIdx.x % LANES;
    OFFSET place = indptr[i];
    auto copy = [&](OFFSET begin, OFFSET end, const int* columns, const STORED* entries) {
        for (OFFSET k = begin + lane; k < end; k += LANES) {
            indices[place + (k - begin)] = columns[k];
            values[place + (k - begin)] = (VALUE)entries[k];
        }
        place += end - begin;
    };
    copy(lower_indptr[i], lower_indptr[i + 1], lower_columns, lower);
    if (lane == 0) {
        indices[place] = (int)i;
        values[place] = diagonal[i];
    }
    ++place;
    copy(upper_indptr[i], upper_indptr[i + 1], upper_columns, upper);
}
