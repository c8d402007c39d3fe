// Slices whose columns are listed as diagonals: see dia.py. Neighboring threads have neighboring rows.
//
// A warp puts up to 32 diagonals into shared memory, with the places of their values. Then a thread needs few instructions
// for each entry, and no column before it looks at the neighbor's value.

#define LOG_MOST_LANES 2

// A diagonal: column shift + row, for those of the slice's rows whose bit is set; `first` is where its values begin, counted
// from those of the slice's first diagonal that is held.
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

// Where a slice begins in a list: its first row, diagonal and value. The next one's says where it ends.
struct __align__(16) Head {
    int row, diagonal;
    long long value;
};

__device__ __forceinline__ Head load_now(const Head* p) {
    Head head;
    asm volatile("ld.global.nc.v2.u64 {%0, %1}, [%2];"
                 : "=l"(*(long long*)&head), "=l"(head.value) : "l"(__cvta_generic_to_global(p)));
    return head;
}
__device__ __forceinline__ int2 load_now(const int2* p) {
    int2 diagonal;
    asm volatile("ld.global.nc.v2.s32 {%0, %1}, [%2];"
                 : "=r"(diagonal.x), "=r"(diagonal.y) : "l"(__cvta_generic_to_global(p)));
    return diagonal;
}

// A slice's part of a list: where it begins and ends, and this thread's one of its first 32 diagonals.
struct Part {
    const int* columns;  // the list
    int first_row, end_row, first_diagonal, end_diagonal;
    OFFSET first_value;
    int2 own;

    __device__ __forceinline__ Part(const int* columns, long long k) : columns(columns) {
        Head begin = load_now((const Head*)columns + k), end = load_now((const Head*)columns + k + 1);
        first_row = begin.row, first_diagonal = begin.diagonal, first_value = (OFFSET)begin.value;
        end_row = end.row, end_diagonal = end.diagonal;
    }
    __device__ __forceinline__ int2 diagonal(int d) const {
        return d < end_diagonal ? load_now((const int2*)columns + d) : make_int2(0, 0);
    }
    __device__ __forceinline__ void fetch() { own = diagonal(first_diagonal + lane_id()); }
};

// What a warp takes next, fetched while it works: the part, and once that is there its diagonals.
struct Ahead {
    Part part;
    bool is_fetched = false;

    __device__ __forceinline__ Ahead(const int* columns, long long k) : part(columns, k) {}
    __device__ __forceinline__ void fetch() {
        if (!is_fetched) part.fetch();
        is_fetched = true;
    }
};

// Room for the diagonals that a warp works with: the same for all loops over slices in a kernel.
__device__ __forceinline__ Diagonal* held_by_warp() {
    __shared__ Diagonal of_warps[BLOCK / WARP][WARP];
    return of_warps[threadIdx.x / WARP];
}

struct Slice : SliceRows {
    long long number;
    const Part* part = nullptr;  // of one triangle, where for_slices has fetched it, and what it fetches ahead
    Ahead* ahead = nullptr;

    __device__ __forceinline__ Slice(const int* slices, long long k) : Slice(k, slices[k], slices[k + 1]) {}
    __device__ __forceinline__ Slice(long long k, const Part& part, Ahead& ahead)
        : Slice(k, part.first_row, part.end_row) {
        this->part = &part;
        this->ahead = &ahead;
    }
    __device__ __forceinline__ Slice(long long k, int first, int end) : SliceRows(first, end), number(k) {
        log_lanes = min(log_lanes, LOG_MOST_LANES);
        apart = WARP >> log_lanes;
        row = lane_id() & (apart - 1);
        lane = lane_id() >> (5 - log_lanes);
    }

    // `visit(diagonals, n, first)` for every 32 diagonals, of which only the first n have rows; `first` is where their values
    // begin. They lie in shared memory, those of each lane one after another: number d is at slot(d). Whole warps call it.
    template <typename Visit>
    __device__ __forceinline__ void diagonals(const int* columns, Visit visit) const {
        Diagonal* held = held_by_warp();
        bool is_fetched = part && part->columns == columns;
        Part part = is_fetched ? *this->part : Part(columns, number);
        if (!is_fetched) part.fetch();
        OFFSET first = part.first_value;
        for (int begin = part.first_diagonal, end = part.end_diagonal; begin < end; begin += WARP) {
            int2 own = begin == part.first_diagonal ? part.own : part.diagonal(begin + lane_id());
            int count = __popc(own.y), up_to = count;
            for (int step = 1; step < min(WARP, end - begin); step *= 2) {
                int before = __shfl_up_sync(FULL_WARP, up_to, step);
                if (lane_id() >= step) up_to += before;
            }
            held[slot(lane_id())] = Diagonal{own.x, (uint32)own.y, up_to - count};
            __syncwarp();
            visit((const Diagonal*)held, min(WARP, end - begin), first);
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
        diagonals(columns, [&](const Diagonal* held, int n, OFFSET first) {
            visit(held + (lane << (5 - log_lanes)), (n + (1 << log_lanes) - 1) >> log_lanes, first);
        });
    }

    template <typename Visit>
    __device__ __forceinline__ void steps(const OFFSET* indptr, const int* columns, Visit visit) const {
        OFFSET e = row < rows ? indptr[index()] : 0;
        diagonals(columns, [&](const Diagonal* held, int n, OFFSET first) {
            for (int d = 0; d < n && lane == 0; ++d) {
                const Diagonal& diagonal = held[slot(d)];
                if (diagonal.has(row)) visit(Step{first + diagonal.first, __popc(diagonal.rows), diagonal.rank(row)}, e++);
            }
        });
    }

    __device__ __forceinline__ Nothing way(const OFFSET*) const { return {}; }
    template <int BATCH, typename Visit>
    __device__ __forceinline__ void batches(Nothing, const int* columns, Visit visit) const {
        static_assert(BATCH << LOG_MOST_LANES <= WARP, "a batch does not reach beyond the diagonals that are held");
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

    template <typename Stored, typename Source, typename Add, typename Meanwhile = Nothing>
    __device__ __forceinline__ void entries(const OFFSET*, const int* columns, const Stored* values, Source source,
                                            Add add, Meanwhile meanwhile = {}) const {
        typedef decltype(source.look(0)) Seen;
        // As registers allow: where values are short, for more of them than looks at once, and for one more address.
        constexpr bool SHORT = sizeof(Stored) <= 4;
        constexpr int LOOKS = sizeof(Seen) > 32 ? 2 : 4, BATCH = SHORT ? 8 : LOOKS;
        static_assert(BATCH << LOG_MOST_LANES <= WARP, "a batch does not reach beyond the diagonals that are held");
        uint32 bit = 1u << row, before = bit - 1;
        asm("mov.u32 %0, %0;" : "+r"(before));  // kept, not computed again for each entry
        bool has_begun = false;
        source.values = SHORT ? kept(source.values + row) : source.values + row;
        own_diagonals(columns, [&](const Diagonal* own, int n, OFFSET first) {
            const Stored* begin = kept(values + first);
            for (int d = 0; d < n; d += BATCH) {
                Stored value[BATCH];
                Seen seen[LOOKS];
                int column[LOOKS];
                bool mine[LOOKS];
                auto note = [&](int e, const Diagonal& diagonal) {
                    mine[e] = diagonal.rows & bit;
                    column[e] = diagonal.shift;
                };
#pragma unroll
                for (int e = 0; e < BATCH; ++e) {
                    Diagonal diagonal = whole(own + d + e);
                    if (e < LOOKS) note(e, diagonal);
                    value[e] = Stored();
                    if (diagonal.rows & bit) value[e] = streamed(&begin[diagonal.first + __popc(diagonal.rows & before)]);
                }
                __syncwarp();  // values are asked for before the first look: the other way round is slower
#pragma unroll
                for (int next = 0; next < BATCH; next += LOOKS) {
                    if (d + next >= n) break;
                    const Diagonal* looked = own + d + next;
#pragma unroll
                    for (int e = 0; e < LOOKS; ++e) {
                        if (next) note(e, whole(looked + e));
                        seen[e] = mine[e] ? source.look(column[e]) : source.none();
                    }
                    if (ahead) ahead->fetch();
                    if (!has_begun) meanwhile();
                    has_begun = true;
                    catch_up(source, seen, [&](int e) { return looked[e].shift; });
#pragma unroll
                    for (int e = 0; e < LOOKS; ++e)
                        add(value[next + e], looked[e].has(row) ? looked[e].shift + row : -1, seen[e]);
                }
            }
        });
        if (!has_begun) meanwhile();
    }
};

template <typename Work>
__device__ __forceinline__ void for_slices(long long first, long long n_slices, bool backwards, const int*,
                                           const int* columns, Work work) {
    int w = (int)(thread_id() / WARP), stride = (int)(thread_count() / WARP);
    auto number = [&](int w) { return (int)(first + (backwards ? n_slices - 1 - w : w)); };
    if (w >= n_slices) return;
    Ahead now(columns, number(w));
    now.fetch();
    while (true) {
        bool is_last = w + stride >= n_slices;
        Ahead ahead(columns, number(is_last ? w : w + stride));
        work(Slice(number(w), now.part, ahead));
        if (is_last) return;
        ahead.fetch();
        now = ahead;
        w += stride;
    }
}
