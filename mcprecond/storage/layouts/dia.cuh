// Sliced DIA: the columns of a slice are stored as diagonals. See dia.py. Neighboring threads have neighboring
// rows.
//
// A warp stages up to 32 diagonals in shared memory, with the places of their values. Then a thread needs few
// instructions for an entry, and no load of a vector waits for that of a column.
#pragma once

#ifdef SLICED_DIA

#define LOG_MOST_LANES 2

// A diagonal has an entry in column shift + row for each row of the slice whose bit is set. `first` is the place of its
// first value, counted from that of the first staged diagonal of the slice.
struct __align__(16) Diagonal {
    int shift;
    uint32 rows;
    int first;
    __device__ __forceinline__ bool has(int row) const { return rows >> row & 1; }
    __device__ __forceinline__ int rank(int row) const { return __popc(rows & ((1u << row) - 1)); }
};

// A diagonal by one load.
__device__ __forceinline__ Diagonal whole(const Diagonal* p) {
    int4 words = *(const int4*)p;
    return {words.x, (uint32)words.y, words.z};
}

// Where a slice begins in the list of a triangle: its first row, diagonal and value. It ends where the next one begins.
struct __align__(16) Head {
    int row, diagonal;
    long long value;
};
static_assert(sizeof(Head) == PAIRS_OF_HEAD * sizeof(int2), "as dia.py has it");

__device__ __forceinline__ Head head_at(const Head* p) {
    Head head;
    ptx::load_early(p, *(long long*)&head, head.value);
    return head;
}

// A slice's part of such a list: where it begins and ends, and of its first 32 diagonals the one that this thread
// stages.
struct Part {
    const int* columns;  // the list
    int first_row, end_row, first_diagonal, end_diagonal;
    OFFSET first_value;
    int2 own;

    __device__ __forceinline__ Part(const int* columns, long long k) : columns(columns) {
        Head begin = head_at((const Head*)columns + k), end = head_at((const Head*)columns + k + 1);
        first_row = begin.row, first_diagonal = begin.diagonal, first_value = (OFFSET)begin.value;
        end_row = end.row, end_diagonal = end.diagonal;
    }
    __device__ __forceinline__ int2 diagonal(int d) const {
        return d < end_diagonal ? ptx::load_early((const int2*)columns + d) : make_int2(0, 0);
    }
    __device__ __forceinline__ void prefetch() { own = diagonal(first_diagonal + lane_id()); }
};

// The part of the slice that a warp takes next, prefetched while it works: first the part, and once that is there its
// diagonals.
struct NextPart {
    Part part;
    bool has_diagonals = false;

    __device__ __forceinline__ NextPart(const int* columns, long long k) : part(columns, k) {}
    __device__ __forceinline__ void prefetch() {
        if (!has_diagonals) part.prefetch();
        has_diagonals = true;
    }
};

// The diagonals that a warp has staged, in the same shared memory for all loops of a kernel.
__device__ __forceinline__ Diagonal* staged_by_warp() {
    __shared__ Diagonal of_warps[BLOCK / WARP][WARP];
    return of_warps[threadIdx.x / WARP];
}

struct Slice : SliceRows {
    long long number;
    const Part* part = nullptr;  // of one triangle, if for_slices has prefetched it
    NextPart* next = nullptr;

    __device__ __forceinline__ Slice(const int* slices, long long k) : Slice(k, slices[k], slices[k + 1]) {}
    __device__ __forceinline__ Slice(long long k, const Part& part, NextPart& next)
        : Slice(k, part.first_row, part.end_row) {
        this->part = &part;
        this->next = &next;
    }
    __device__ __forceinline__ Slice(long long k, int first, int end) : SliceRows(first, end), number(k) {
        log_lanes = min(log_lanes, LOG_MOST_LANES);
        lane_stride = WARP >> log_lanes;
        row = lane_id() & (lane_stride - 1);
        lane = lane_id() >> (5 - log_lanes);
    }

    // Call `visit(staged, n, first)` for each 32 diagonals; n of them have rows, and `first` is the place of their
    // first value. They are staged lane by lane: diagonal d is at slot(d). Whole warps call it.
    template <typename Visit>
    __device__ __forceinline__ void diagonals(const int* columns, Visit visit) const {
        Diagonal* staged = staged_by_warp();
        bool is_prefetched = part && part->columns == columns;
        Part part = is_prefetched ? *this->part : Part(columns, number);
        if (!is_prefetched) part.prefetch();
        OFFSET first = part.first_value;
        for (int begin = part.first_diagonal, end = part.end_diagonal; begin < end; begin += WARP) {
            int2 own = begin == part.first_diagonal ? part.own : part.diagonal(begin + lane_id());
            int count = __popc(own.y), up_to = count;
            for (int step = 1; step < min(WARP, end - begin); step *= 2) {
                int before = __shfl_up_sync(FULL_WARP, up_to, step);
                if (lane_id() >= step) up_to += before;
            }
            staged[slot(lane_id())] = Diagonal{own.x, (uint32)own.y, up_to - count};
            __syncwarp();
            visit((const Diagonal*)staged, min(WARP, end - begin), first);
            if (begin + WARP < end) first += __shfl_sync(FULL_WARP, up_to, WARP - 1);
            __syncwarp();
        }
    }
    __device__ __forceinline__ int slot(int d) const {
        return (d & ((1 << log_lanes) - 1)) << (5 - log_lanes) | d >> log_lanes;
    }
    // The same for the diagonals of this thread's lane.
    template <typename Visit>
    __device__ __forceinline__ void own_diagonals(const int* columns, Visit visit) const {
        diagonals(columns, [&](const Diagonal* staged, int n, OFFSET first) {
            visit(staged + (lane << (5 - log_lanes)), (n + (1 << log_lanes) - 1) >> log_lanes, first);
        });
    }

    template <typename Visit>
    __device__ __forceinline__ void steps(const OFFSET* indptr, const int* columns, Visit visit) const {
        OFFSET e = row < rows ? indptr[index()] : 0;
        diagonals(columns, [&](const Diagonal* staged, int n, OFFSET first) {
            for (int d = 0; d < n && lane == 0; ++d) {
                const Diagonal& diagonal = staged[slot(d)];
                if (diagonal.has(row))
                    visit(Step{first + diagonal.first, __popc(diagonal.rows), diagonal.rank(row)}, e++);
            }
        });
    }

    __device__ __forceinline__ Nothing cursor(const OFFSET*) const { return {}; }
    template <int BATCH, typename Visit>
    __device__ __forceinline__ void batches(Nothing, const int* columns, Visit visit) const {
        static_assert(BATCH << LOG_MOST_LANES <= WARP, "a batch does not reach beyond the staged diagonals");
        own_diagonals(columns, [&](const Diagonal* own, int n, OFFSET first) {
            for (int d = 0; d < n; d += BATCH) {
                OFFSET places[BATCH];
#pragma unroll
                for (int e = 0; e < BATCH; ++e) {
                    Diagonal diagonal = own[d + e];
                    places[e] = diagonal.has(row) ? first + diagonal.first + diagonal.rank(row) : -1;
                }
                visit(places);
            }
        });
    }

    template <typename Stored, typename Vector, typename Add, typename Overlap = Nothing>
    __device__ __forceinline__ void entries(const OFFSET*, const int* columns, const Stored* values, Vector vector,
                                            Add add, Overlap overlap = {}) const {
        typedef decltype(vector.load(0)) Value;
        // As registers allow: where values are short, a batch of more values than loads of the vector, and one more
        // address.
        constexpr bool SHORT = sizeof(Stored) <= 4;
        constexpr int LOADS = sizeof(Value) > 32 ? 2 : 4, BATCH = SHORT ? 8 : LOADS;
        static_assert(BATCH << LOG_MOST_LANES <= WARP, "a batch does not reach beyond the staged diagonals");
        uint32 bit = 1u << row, before = ptx::keep_where_used(bit - 1);
        bool has_begun = false;
        vector.values = SHORT ? ptx::keep_in_register(vector.values + row) : vector.values + row;
        own_diagonals(columns, [&](const Diagonal* own, int n, OFFSET first) {
            const Stored* begin = ptx::keep_in_register(values + first);
            for (int d = 0; d < n; d += BATCH) {
                Stored value[BATCH];
                Value prefetched[LOADS];
                int column[LOADS];
                bool mine[LOADS];
                auto note = [&](int e, const Diagonal& diagonal) {
                    mine[e] = diagonal.rows & bit;
                    column[e] = diagonal.shift;
                };
#pragma unroll
                for (int e = 0; e < BATCH; ++e) {
                    Diagonal diagonal = whole(own + d + e);
                    if (e < LOADS) note(e, diagonal);
                    value[e] = Stored();
                    if (diagonal.rows & bit)
                        value[e] = load_streaming(&begin[diagonal.first + __popc(diagonal.rows & before)]);
                }
                __syncwarp();  // loads of values are issued before those of the vector: the other way round is slower
#pragma unroll
                for (int done = 0; done < BATCH; done += LOADS) {
                    if (d + done >= n) break;
                    const Diagonal* loaded = own + d + done;
#pragma unroll
                    for (int e = 0; e < LOADS; ++e) {
                        if (done) note(e, whole(loaded + e));
                        CHECK(column[e] + row, !mine[e] || is_elsewhere(column[e] + row));
                        prefetched[e] = mine[e] ? vector.load(column[e]) : vector.none();
                    }
                    if (next) next->prefetch();
                    if (!has_begun) overlap();
                    has_begun = true;
                    vector.wait(prefetched, [&](int e) { return loaded[e].shift; }, index());
#pragma unroll
                    for (int e = 0; e < LOADS; ++e)
                        add(value[done + e], loaded[e].has(row) ? loaded[e].shift + row : -1, prefetched[e]);
                }
            }
        });
        if (!has_begun) overlap();
    }
};

template <typename Work>
__device__ __forceinline__ void for_slices(long long first, long long n_slices, bool backwards, const int*, void*,
                                           const int* columns, Work work) {
    int w = (int)(thread_id() / WARP), stride = (int)(thread_count() / WARP);
    auto number = [&](int w) { return (int)(first + (backwards ? n_slices - 1 - w : w)); };
    if (w >= n_slices) return;
    NextPart now(columns, number(w));
    now.prefetch();
    while (true) {
        bool is_last = w + stride >= n_slices;
        NextPart next(columns, number(is_last ? w : w + stride));
        work(Slice(number(w), now.part, next));
        if (is_last) return;
        next.prefetch();
        now = next;
        w += stride;
    }
}

#endif
