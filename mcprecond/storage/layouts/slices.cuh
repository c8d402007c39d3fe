// Slices: runs of rows of one color, each the work of one warp, and the ways through their entries. See schedule.py.
//
// There are three ways of storing columns. Those with one for each entry, plain or with SHORT_COLUMNS, have a struct Columns with the
// same interface; with DIAGONALS the struct Slice and the function for_slices are those of dia.cuh.

// ---- Loads. With LARGE_MATRIX the matrix passes through L2 with nothing left of it. Then what neighbors look at is to stay, in L1
// before what vectors have for one row only, and in L2 before the matrix.

// A load of what is needed later, which the compiler must not put off until then.
__device__ __forceinline__ int load_now(const int* p) {
    int value;
    asm volatile("ld.global.nc.s32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(p)));
    return value;
}
// What no other row needs.
template <typename T>
__device__ __forceinline__ T unshared(const T* p) {
#ifdef LARGE_MATRIX
    return past_l1(p);
#else
    return *p;
#endif
}
__device__ __forceinline__ int unshared_now(const int* p) {
#ifdef LARGE_MATRIX
    int value;
    asm volatile("ld.global.nc.L1::no_allocate.s32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(p)));
    return value;
#else
    return load_now(p);
#endif
}
// What many rows need.
template <typename T>
__device__ __forceinline__ T shared(const T* p) {
#ifdef LARGE_MATRIX
    return kept_in_l2(p);
#else
    return *p;
#endif
}

// ---- Where a sweep finds what it needs of neighbors: `look(j)` for number j as it is; whether that was too early, in the last
// bit of `late(seen)`; and another look `again(j)`. Who needs nothing has `none()`, which is never too early.

template <typename Value>
struct Known {
    const Value* values;
    __device__ __forceinline__ Value none() const { return Value(); }
    __device__ __forceinline__ Value look(int j) const { return shared(values + j); }
    __device__ __forceinline__ uint32 late(const Value&) const { return 0; }
    __device__ __forceinline__ Value again(int j) const { return look(j); }
};
// Values that start out empty.
template <typename Value>
struct Awaited : Known<Value> {
    __device__ __forceinline__ uint32 late(const Value& seen) const { return is_empty(seen); }
    __device__ __forceinline__ Value again(int j) const { return look_again(&this->values[j]); }
};
// Values that are waited for until they are of this turn.
template <typename Value>
struct InTurn : Known<Value> {
    uint32 turn;
    __device__ __forceinline__ Value none() const { return of_turn(Value(), turn); }
    __device__ __forceinline__ uint32 late(const Value& seen) const { return off_turn(seen, turn); }
    __device__ __forceinline__ Value again(int j) const { return look_again(&this->values[j]); }
};
template <typename Value>
__device__ __forceinline__ Known<Value> known(const Value* values) { return {values}; }
template <typename Value>
__device__ __forceinline__ Awaited<Value> awaited(const Value* values) { return {{values}}; }
template <typename Value>
__device__ __forceinline__ InTurn<Value> in_turn(const Value* values, uint32 turn) { return {{values}, turn}; }

// Look again, at all of those at once that came too early, until none did; `column(e)` is that of number e.
template <typename Source, typename Seen, int BATCH, typename Column>
__device__ __forceinline__ void catch_up(const Source& source, Seen (&seen)[BATCH], Column column) {
    while (true) {
        uint32 late = 0;
#pragma unroll
        for (int e = 0; e < BATCH; ++e) late |= source.late(seen[e]);
        if (!(late & 1)) return;
#pragma unroll
        for (int e = 0; e < BATCH; ++e)
            if (source.late(seen[e]) & 1) seen[e] = source.again(column(e));
    }
}

// ---- What all slices have.

// Some threads take an entry each of those stored from `first` on: `count` of them, this one the one at `rank`.
struct Step {
    OFFSET first;
    int count, rank;
    __device__ __forceinline__ OFFSET place() const { return first + rank; }
};

struct SliceRows {
    int first;  // row of the slice
    int rows;
    int log_lanes;  // of the number of threads per row
    int row, lane;  // this thread's row in the slice, and its place among the threads of that row
    int apart;      // how far from each other these threads are

    __device__ __forceinline__ SliceRows(int first, int end) : first(first), rows(end - first) {
        log_lanes = rows > 1 ? __clz(rows - 1) - 27 : 5;
    }
    __device__ __forceinline__ int index() const { return first + row; }
    __device__ __forceinline__ bool leads() const { return row < rows && lane == 0; }
    __device__ __forceinline__ int length(const OFFSET* indptr) const {
        return row < rows ? (int)(indptr[index() + 1] - indptr[index()]) : 0;
    }

    // The values of the threads of a row, put together by `both(a, b)`; every one of them gets it. Whole warps call it.
    template <typename Value, typename Both>
    __device__ __forceinline__ Value fold(Value value, Both both) const {
        for (int step = apart << log_lanes >> 1; step >= apart; step /= 2)
            value = both(value, shuffle_xor(value, step));
        return value;
    }
    template <typename Value>
    __device__ __forceinline__ Value sum(Value value) const {
        return fold(value, [](Value a, Value b) { return a + b; });
    }
};

// A sum over a row of the upper triangle, divided by the row's pivot. Rows are stored divided, so that nothing has to be read of the
// diagonal; but not those of blocks, see node_blocks.py.
#ifdef BLOCK_SIZE
template <typename Sum, typename Pivot>
__device__ __forceinline__ Sum divided(const Sum& sum, const Pivot& inverse) { return inverse * sum; }
#else
template <typename Sum, typename Pivot>
__device__ __forceinline__ Sum divided(const Sum& sum, const Pivot&) { return sum; }
#endif

// Where nothing is to be done, or known.
struct Nothing {
    __device__ __forceinline__ void operator()() const {}
};

// An address in global memory that is kept in registers, not computed again from constants for each load.
template <typename T>
__device__ __forceinline__ const T* kept(const T* x) {
    size_t address = __cvta_generic_to_global(x);
    asm volatile("" : "+l"(address));
    return (const T*)__cvta_global_to_generic(address);
}

#ifdef DIAGONALS
#include "dia.cuh"
#else

// ---- Slices with a column for each entry: neighboring threads have the same row.

// The element that this thread takes. The numbers of matrices that are taken at once lie number by number, so that
// neighboring threads read neighboring numbers.
template <typename T>
__device__ __forceinline__ T take(const T* elements, const Step& step) {
    return streamed(&elements[step.place()]);
}
template <typename T, int B>
__device__ __forceinline__ Mat<T, B> take(const Mat<T, B>* elements, const Step& step) {
    const T* numbers = elements[step.first].at + step.rank;
    Mat<T, B> element;
#pragma unroll
    for (int p = 0; p < B * B; ++p) element.at[p] = streamed(&numbers[p * step.count]);
    return element;
}

#ifdef SHORT_COLUMNS
#include "delta.cuh"
#else
// The columns of a slice, and how many this thread's row has: what is stored for another one behind the first entry, to be asked
// for ahead; and the column that this tells, once the warp holds what it needs for that.
struct Columns {
    OFFSET first;
    int length;
    const int* stored;

    __device__ __forceinline__ Columns(const OFFSET* indptr, const int* stored, const SliceRows& slice, int) {
        first = indptr[slice.first];
        length = slice.length(indptr);
        this->stored = kept(stored + first);
    }
    __device__ __forceinline__ int ask(OFFSET place) const { return streamed(&stored[place]); }
    __device__ __forceinline__ void hold() const {}
    __device__ __forceinline__ int column(int told) const { return told; }
};
#endif

struct Slice : SliceRows {
    int number;

    __device__ __forceinline__ Slice(const int* slices, long long k) : Slice(slices[k], slices[k + 1], (int)k) {}
    __device__ __forceinline__ Slice(int first, int end, int number = -1) : SliceRows(first, end), number(number) {
        row = lane_id() >> log_lanes;
        lane = lane_id() & ((1 << log_lanes) - 1);
        apart = 1;
    }

    // The steps in which the warp takes the entries of a triangle.
    struct Steps {
        OFFSET first;
        int left;  // entries of this thread

        __device__ __forceinline__ Steps(const Slice& slice, OFFSET first, int length) : first(first) {
            left = (length - slice.lane + (1 << slice.log_lanes) - 1) >> slice.log_lanes;
        }
        __device__ __forceinline__ Steps(const Slice& slice, const OFFSET* indptr)
            : Steps(slice, indptr[slice.first], slice.length(indptr)) {}
        __device__ __forceinline__ bool more() const { return __any_sync(FULL_WARP, left > 0); }

        // The next step, and whether this thread takes part.
        __device__ __forceinline__ bool next(Step& step) {
            uint32 takers = __ballot_sync(FULL_WARP, left > 0);
            step = Step{first, __popc(takers), __popc(takers & ((1u << lane_id()) - 1))};
            first += step.count;
            return left-- > 0;
        }
    };

    // Each of the following goes through the entries of a triangle; whole warps call it.

    // `visit(step, e)` for each entry, with its place e in CSR, on one thread.
    template <typename Visit>
    __device__ __forceinline__ void steps(const OFFSET* indptr, const int*, Visit visit) const {
        OFFSET e = row < rows ? indptr[index()] + lane : 0;
        for (Steps steps(*this, indptr); steps.more(); e += 1 << log_lanes) {
            Step step;
            if (steps.next(step)) visit(step, e);
        }
    }

    // `visit(places)` on all threads with the places of several entries, -1 where a thread has none; `way(indptr)` may be asked
    // for ahead.
    __device__ __forceinline__ Steps way(const OFFSET* indptr) const { return Steps(*this, indptr); }
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

    // `add(value, j, what the source has for j)` for the column j of each entry of this thread, which looks at some of them
    // at once, before it waits for any. Where a thread has no entry, it may add 0 * 0 with j = -1.
    // The next entries are fetched before the first looks are waited for; and once, all that `meanwhile()` asks for.
    template <typename Stored, typename Source, typename Add, typename Meanwhile = Nothing>
    __device__ __forceinline__ void entries(const OFFSET* indptr, const int* all_columns, const Stored* values, Source source,
                                            Add add, Meanwhile meanwhile = {}) const {
        typedef decltype(source.look(0)) Seen;
        constexpr int BATCH = sizeof(Stored) > 16 ? 1 : sizeof(Seen) > 32 ? 2 : 4;  // as registers allow
        Columns columns(indptr, all_columns, *this, number);
        Steps steps(*this, 0, columns.length);
        values = kept(values + columns.first);
        Stored value[BATCH], next_value[BATCH];
        int column[BATCH], next_column[BATCH];
        auto fetch = [&](Stored* value, int* column) {
            Step step[BATCH];
            bool mine[BATCH];
#pragma unroll
            for (int e = 0; e < BATCH; ++e) {
                mine[e] = steps.next(step[e]);
                column[e] = mine[e] ? columns.ask(step[e].place()) : -1;
            }
            __syncwarp();  // columns, on which the looks wait, are asked for before values
#pragma unroll
            for (int e = 0; e < BATCH; ++e) value[e] = mine[e] ? take(values, step[e]) : Stored();
        };
        fetch(value, column);
        columns.hold();
        meanwhile();
        while (true) {
            bool more = steps.more();
            if (more) fetch(next_value, next_column);
            Seen seen[BATCH];
#pragma unroll
            for (int e = 0; e < BATCH; ++e) {
                if (column[e] >= 0) column[e] = columns.column(column[e]);
                seen[e] = column[e] >= 0 ? source.look(column[e]) : source.none();
            }
            catch_up(source, seen, [&](int e) { return column[e]; });
#pragma unroll
            for (int e = 0; e < BATCH; ++e) add(value[e], column[e], seen[e]);
            if (!more) return;
#pragma unroll
            for (int e = 0; e < BATCH; ++e) {
                value[e] = next_value[e];
                column[e] = next_column[e];
            }
        }
    }
};

// So many slices from number `first` on, each by one warp of a resident grid, in order or backwards: what a slice waits for is
// done or in the hands of another warp. `slices` tells where number `first` begins. Where the next one is gets known while a
// warp works on one. `columns` are those of the triangle that `work` begins with.
template <typename Work>
__device__ __forceinline__ void for_slices(long long first, long long n_slices, bool backwards, const int* slices,
                                           const int*, Work work) {
    int w = (int)(thread_id() / WARP), stride = (int)(thread_count() / WARP);
    auto number = [&](int w) { return (int)(backwards ? n_slices - 1 - w : w); };
    if (w >= n_slices) return;
    int begin = load_now(slices + number(w)), end = load_now(slices + number(w) + 1);
    while (true) {
        bool is_last = w + stride >= n_slices;
        const int* next = slices + number(is_last ? w : w + stride);
        int next_begin = load_now(next), next_end = load_now(next + 1);
        work(Slice(begin, end, (int)first + number(w)));
        if (is_last) return;
        begin = next_begin, end = next_end;
        w += stride;
    }
}

#endif
