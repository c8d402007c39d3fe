// Slices: runs of rows of one color, each the work of one warp, and the loops over their entries. See schedule.py.
//
// A layout is how the columns of a triangle are stored, and the order of its entries. Kernels know these of it:
//
//     for_slices(first, n, backwards, slices, sums, columns, work)   calls work(slice) by a warp for each of n slices
//     Slice : SliceRows                   which has row, lane and lane_stride of this thread, and
//       Slice(slices, k)                  slice number k
//       steps(indptr, columns, visit)     calls visit(step, e) for each entry e of this thread, counted as in CSR
//       cursor(indptr), batches<N>(...)   calls visit(places) with the places of N entries, -1 for none
//       entries(indptr, columns, values, vector, add, overlap)   calls add(value, column, x) once x is ready
//
// There are two. Plain columns have one for each entry. Sliced DIA (SLICED_DIA) is in dia.cuh.
//
// With plain columns a slice may be a piece of one long row (CUT_ROWS). Then `slices` is a list of records, and `sums`
// holds the sums of the pieces of a row; it is zero before the first sweep.
#pragma once

#include "cuda/compact.cuh"
#include "cuda/memory.cuh"
#include "cuda/numbers.cuh"
#include "cuda/reduce.cuh"
#include "storage/schedule.cuh"

// ---- What all slices have.

// A step: `count` threads take one entry each, of those stored from `first` on. This thread takes the one at `rank`.
struct Step {
    OFFSET first;
    int count, rank;
    __device__ __forceinline__ OFFSET place() const { return first + rank; }
};

struct SliceRows {
    int first;  // row of the slice
    int rows;
    int log_lanes;    // logarithm of the number of threads per row
    int row, lane;    // this thread's row in the slice, and its number among the threads of that row
    int lane_stride;  // how many threads of the warp it is from one thread of a row to the next
#ifdef CUT_ROWS
    int piece = 0, pieces = 1, slot = 0;
    char* sums = nullptr;
#endif

    __device__ __forceinline__ SliceRows(int first, int end) : first(first), rows(end - first) {
        log_lanes = rows > 1 ? __clz(rows - 1) - 27 : 5;
    }
    __device__ __forceinline__ int index() const { return first + row; }
    // Whether this thread is the first one of a row, or of a piece of it.
    __device__ __forceinline__ bool is_row_leader() const { return row < rows && lane == 0; }
    __device__ __forceinline__ int length(const OFFSET* indptr) const {
        return row < rows ? (int)(indptr[index() + 1] - indptr[index()]) : 0;
    }
    // Whether a row is of another slice: who waits for a row of its own slice may wait for ever.
    __device__ __forceinline__ bool is_elsewhere(int row) const {
        return row >= 0 && (row < first || row >= first + rows);
    }
    // Cut the entries from `first` on to those of the piece.
    __device__ __forceinline__ void cut(OFFSET& first, int& length) const {
#ifdef CUT_ROWS
        if (pieces == 1) return;
        int before = min(piece * SWEPT_PIECE, length);
        first += before;
        length = min(length - before, SWEPT_PIECE);
#endif
    }

    // Reduce the values of the threads of a row by `both(a, b)`; each of them gets the result. Whole warps call it.
    template <typename Value, typename Both>
    __device__ __forceinline__ Value fold(Value value, Both both) const {
        for (int step = lane_stride << log_lanes >> 1; step >= lane_stride; step /= 2)
            value = both(value, shuffle_xor(value, step));
        return value;
    }
    template <typename Value>
    __device__ __forceinline__ Value sum(Value value) const {
        return fold(value, [](Value a, Value b) { return a + b; });
    }
    // Add up what the threads of a row have found, one value or two, and of a long row what its pieces have. Each row has
    // one thread for which this is true and that has the result. Whole warps call it.
    template <typename Value>
    __device__ __forceinline__ bool sum_row(Value& a) const {
        a = sum(a);
        return fold_pieces<2 * sizeof(Value)>(a, [](const Value& a, const Value& b) { return a + b; });
    }
    template <typename Value>
    __device__ __forceinline__ bool sum_row(Value& a, Value& b) const {
        a = sum(a);
        b = sum(b);
        Vec<Value, 2> both = {a, b};
        auto add = [](const Vec<Value, 2>& a, const Vec<Value, 2>& b) { return a + b; };
        bool has_result = fold_pieces<sizeof(both)>(both, add);
        a = both.at[0], b = both.at[1];
        return has_result;
    }
    // Fold what the pieces of a long row have found, by any `both(a, b)` that zero does not change. There are ROOM bytes
    // for each piece, as many in all kernels that share `sums`.
    template <int ROOM, typename Value, typename Both>
    __device__ __forceinline__ bool fold_pieces(Value& value, Both both) const {
#ifdef CUT_ROWS
        static_assert(sizeof(Value) <= ROOM, "a value does not fit");
        if (pieces > 1) {
            struct __align__(16) Found {
                uint32 done;  // for the first piece: how many of the row are
                __align__(16) char value[ROOM];
            };
            Found* found = (Found*)sums + slot;
            bool is_last = false;
            if (lane_id() == 0) {
                *(Value*)found[piece].value = value;
                __threadfence();
                is_last = atomicAdd(&found[0].done, 1u) == (uint32)(pieces - 1);
            }
            if (!__any_sync(FULL_WARP, is_last)) return false;
            __threadfence();
            value = Value();
            for (int k = lane_id(); k < pieces; k += WARP) value = both(value, load_l2((const Value*)found[k].value));
            value = fold(value, both);
            if (lane_id() == 0) found[0].done = 0;
        }
#endif
        return is_row_leader();
    }
};

// Return the product of a row of inv(D) U and a vector, given the product of the stored row. Scalar rows are stored
// divided by the diagonal, so that sweeps do not read it. Blocks of nodes are stored undivided; see node_blocks.py.
#ifdef BLOCK_SIZE
template <typename Sum, typename Pivot>
__device__ __forceinline__ Sum divided(const Sum& sum, const Pivot& inverse) {
    return inverse * sum;
}
#else
template <typename Sum, typename Pivot>
__device__ __forceinline__ Sum divided(const Sum& sum, const Pivot&) {
    return sum;
}
#endif

// A function that does nothing; and the cursor of a layout that needs none.
struct Nothing {
    __device__ __forceinline__ void operator()() const {}
};

#include "dia.cuh"

#ifndef SLICED_DIA
// ---- A column for each entry. Neighboring threads have the same row.

// The element that this thread takes in a step. Elements that are matrices are interleaved: in a step, number p of all
// of them comes before number p + 1, so that neighboring threads read neighboring numbers.
template <typename T>
__device__ __forceinline__ T take(const T* elements, const Step& step) {
    return load_streaming(&elements[step.place()]);
}
template <typename T, int B>
__device__ __forceinline__ Mat<T, B> take(const Mat<T, B>* elements, const Step& step) {
    const T* numbers = elements[step.first].at + step.rank;
    Mat<T, B> element;
#pragma unroll
    for (int p = 0; p < B * B; ++p) element.at[p] = load_streaming(&numbers[p * step.count]);
    return element;
}

struct Slice : SliceRows {
#ifdef CUT_ROWS
    __device__ __forceinline__ Slice(const int* slices, long long k) : Slice(Record(slices, k), nullptr) {}
    __device__ __forceinline__ Slice(const Record& record, void* sums) : Slice(record.first, record.end_row()) {
        piece = record.piece, pieces = record.pieces(), slot = record.slot;
        this->sums = (char*)sums;
    }
#else
    __device__ __forceinline__ Slice(const int* slices, long long k) : Slice(slices[k], slices[k + 1]) {}
#endif
    __device__ __forceinline__ Slice(int first, int end) : SliceRows(first, end) {
        row = lane_id() >> log_lanes;
        lane = lane_id() & ((1 << log_lanes) - 1);
        lane_stride = 1;
    }

    // The steps in which the warp takes the entries of a triangle.
    struct Steps {
        OFFSET first;
        int left;  // entries of this thread

        __device__ __forceinline__ Steps(const Slice& slice, OFFSET first, int length) : first(first) {
            left = (length - slice.lane + (1 << slice.log_lanes) - 1) >> slice.log_lanes;
        }
        __device__ __forceinline__ Steps(const Slice& slice, const OFFSET* indptr)
            : first(indptr[slice.first]), left(slice.length(indptr)) {
            slice.cut(first, left);
            *this = Steps(slice, first, left);
        }
        __device__ __forceinline__ bool more() const { return __any_sync(FULL_WARP, left > 0); }

        // The next step, and whether this thread takes part.
        __device__ __forceinline__ bool next(Step& step) {
            uint32 takers = __ballot_sync(FULL_WARP, left > 0);
            step = Step{first, __popc(takers), __popc(takers & ((1u << lane_id()) - 1))};
            first += step.count;
            return left-- > 0;
        }
    };

    // Loops over the entries of a triangle; whole warps call them.

    // Call `visit(step, e)` for each entry on one thread; e is its place in CSR.
    template <typename Visit>
    __device__ __forceinline__ void steps(const OFFSET* indptr, const int*, Visit visit) const {
        OFFSET e = row < rows ? indptr[index()] + lane : 0;
        int length = this->length(indptr);
        cut(e, length);
        for (Steps steps(*this, indptr); steps.more(); e += 1 << log_lanes) {
            Step step;
            if (steps.next(step)) visit(step, e);
        }
    }

    // Call `visit(places)` on all threads with the places of BATCH entries, -1 where a thread has none. The cursor may
    // be made ahead, so that its loads overlap with others.
    __device__ __forceinline__ Steps cursor(const OFFSET* indptr) const { return Steps(*this, indptr); }
    template <int BATCH, typename Visit>
    __device__ __forceinline__ void batches(Steps steps, const int*, Visit visit) const {
        while (steps.more()) {
            OFFSET places[BATCH];
#pragma unroll
            for (int e = 0; e < BATCH; ++e) {
                Step step;
                places[e] = steps.next(step) ? step.place() : -1;
            }
            visit(places);
        }
    }

    // Call `add(value, j, x_j)` for each entry of this thread, j its column and x_j that element of the vector, once it
    // is ready; sweeps/syncfree.cuh has the vectors. Where a thread has no entry, it may add 0 * 0 with j = -1. The loads
    // of a batch are issued before the thread waits for any of them, those of the next batch before it waits for this
    // one, and once those that `overlap()` issues.
    template <typename Stored, typename Vector, typename Add, typename Overlap = Nothing>
    __device__ __forceinline__ void entries(const OFFSET* indptr, const int* columns, const Stored* values,
                                            Vector vector, Add add, Overlap overlap = {}) const {
        typedef decltype(vector.load(0)) Value;
        constexpr int BATCH = sizeof(Stored) > 16 ? 1 : sizeof(Value) > 32 ? 2 : 4;  // as registers allow
        OFFSET begin = indptr[first];
        int own_length = length(indptr);
        cut(begin, own_length);
        columns = ptx::keep_in_register(columns + begin);
        values = ptx::keep_in_register(values + begin);
        Steps steps(*this, 0, own_length);
        Stored value[BATCH], next_value[BATCH];
        int column[BATCH], next_column[BATCH];
        auto fetch = [&](Stored* value, int* column) {
            Step step[BATCH];
            bool mine[BATCH];
#pragma unroll
            for (int e = 0; e < BATCH; ++e) {
                mine[e] = steps.next(step[e]);
                column[e] = mine[e] ? load_streaming(&columns[step[e].place()]) : -1;
                CHECK(column[e], !mine[e] || is_elsewhere(column[e]));
            }
            __syncwarp();  // loads of columns are issued before those of values: loads of the vector wait for columns
#pragma unroll
            for (int e = 0; e < BATCH; ++e) value[e] = mine[e] ? take(values, step[e]) : Stored();
        };
        fetch(value, column);
        overlap();
        while (true) {
            bool more = steps.more();
            if (more) fetch(next_value, next_column);
            Value prefetched[BATCH];
#pragma unroll
            for (int e = 0; e < BATCH; ++e) prefetched[e] = column[e] >= 0 ? vector.load(column[e]) : vector.none();
            vector.wait(prefetched, [&](int e) { return column[e]; }, index());
#pragma unroll
            for (int e = 0; e < BATCH; ++e) add(value[e], column[e], prefetched[e]);
            if (!more) return;
#pragma unroll
            for (int e = 0; e < BATCH; ++e) {
                value[e] = next_value[e];
                column[e] = next_column[e];
            }
        }
    }
};

// Call `work(slice)` for `n_slices` slices from number `first` on, in order or backwards, on a resident grid, one warp
// each. So what a slice waits for is done or in the hands of another warp. `slices` are the first rows, from that of
// slice `first` on, or records. Those of the next slice are prefetched while a warp works. `columns` are those of the
// triangle that `work` begins with. `sums` is for long rows.
template <typename Work>
__device__ __forceinline__ void for_slices(long long first, long long n_slices, bool backwards, const int* slices,
                                           void* sums, const int*, Work work) {
    int w = (int)(thread_id() / WARP), stride = (int)(thread_count() / WARP);
    auto number = [&](int w) { return (int)(backwards ? n_slices - 1 - w : w); };
    if (w >= n_slices) return;
#ifdef CUT_ROWS
    Record record(slices, number(w));
    while (true) {
        bool is_last = w + stride >= n_slices;
        Record next(slices, number(is_last ? w : w + stride));
        work(Slice(record, sums));
        if (is_last) return;
        record = next;
        w += stride;
    }
#else
    int begin = ptx::load_early(slices + number(w)), end = ptx::load_early(slices + number(w) + 1);
    while (true) {
        bool is_last = w + stride >= n_slices;
        const int* next = slices + number(is_last ? w : w + stride);
        int next_begin = ptx::load_early(next), next_end = ptx::load_early(next + 1);
        work(Slice(begin, end));
        if (is_last) return;
        begin = next_begin, end = next_end;
        w += stride;
    }
#endif
}

#endif
