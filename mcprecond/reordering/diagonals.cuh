// Slices whose columns are listed as diagonals: see diagonals.py. Neighboring threads have neighboring rows.
//
// A warp puts up to 32 diagonals into shared memory, with the places of their values. Then a thread needs few instructions
// for each entry, and no column before it looks at the neighbor's value.

#define LOG_MOST_LANES 2

// A diagonal: column shift + row, for those of the slice's rows whose bit is set; `first` is where its values begin.
struct Diagonal {
    int shift;
    uint32 rows;
    OFFSET first;
    __device__ __forceinline__ bool has(int row) const { return rows >> row & 1; }
    __device__ __forceinline__ int rank(int row) const { return __popc(rows & ((1u << row) - 1)); }
};

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
    Head begin, end;
    int2 own;

    __device__ __forceinline__ Part(const int* columns, long long k) : columns(columns) {
        begin = load_now((const Head*)columns + k);
        end = load_now((const Head*)columns + k + 1);
    }
    __device__ __forceinline__ int2 diagonal(int d) const {
        return d < end.diagonal ? load_now((const int2*)columns + d) : make_int2(0, 0);
    }
    __device__ __forceinline__ void fetch() { own = diagonal(begin.diagonal + lane_id()); }
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

struct Slice : SliceRows {
    long long number;
    const Part* part = nullptr;  // of one triangle, where for_slices has fetched it, and what it fetches ahead
    Ahead* ahead = nullptr;

    __device__ __forceinline__ Slice(const int* slices, long long k) : Slice(k, slices[k], slices[k + 1]) {}
    __device__ __forceinline__ Slice(long long k, const Part& part, Ahead& ahead)
        : Slice(k, part.begin.row, part.end.row) {
        this->part = &part;
        this->ahead = &ahead;
    }
    __device__ __forceinline__ Slice(long long k, int first, int end) : SliceRows(first, end), number(k) {
        log_lanes = min(log_lanes, LOG_MOST_LANES);
        apart = WARP >> log_lanes;
        row = lane_id() & (apart - 1);
        lane = lane_id() >> (5 - log_lanes);
    }

    // `visit(diagonals, n)` for every 32 diagonals, of which only the first n have rows. They lie in shared memory, those of
    // each lane one after another: number d is at slot(d). Whole warps call it.
    template <typename Visit>
    __device__ __forceinline__ void diagonals(const int* columns, Visit visit) const {
        __shared__ Diagonal of_warps[BLOCK / WARP][WARP];
        Diagonal* held = of_warps[threadIdx.x / WARP];
        bool is_fetched = part && part->columns == columns;
        Part part = is_fetched ? *this->part : Part(columns, number);
        if (!is_fetched) part.fetch();
        OFFSET first = (OFFSET)part.begin.value;
        for (int begin = part.begin.diagonal, end = part.end.diagonal; begin < end; begin += WARP) {
            int2 own = begin == part.begin.diagonal ? part.own : part.diagonal(begin + lane_id());
            int count = __popc(own.y), up_to = count;
#pragma unroll
            for (int step = 1; step < WARP; step *= 2) {
                int before = __shfl_up_sync(FULL_WARP, up_to, step);
                if (lane_id() >= step) up_to += before;
            }
            held[slot(lane_id())] = Diagonal{own.x, (uint32)own.y, first + up_to - count};
            first += __shfl_sync(FULL_WARP, up_to, WARP - 1);
            __syncwarp();
            visit((const Diagonal*)held, min(WARP, end - begin));
            __syncwarp();
        }
    }
    __device__ __forceinline__ int slot(int d) const {
        return (d & ((1 << log_lanes) - 1)) << (5 - log_lanes) | d >> log_lanes;
    }
    // The same for the diagonals of this thread's lane.
    template <typename Visit>
    __device__ __forceinline__ void own_diagonals(const int* columns, Visit visit) const {
        diagonals(columns, [&](const Diagonal* held, int n) {
            visit(held + (lane << (5 - log_lanes)), (n + (1 << log_lanes) - 1) >> log_lanes);
        });
    }

    template <typename Visit>
    __device__ __forceinline__ void steps(const OFFSET* indptr, const int* columns, Visit visit) const {
        OFFSET e = row < rows ? indptr[index()] : 0;
        diagonals(columns, [&](const Diagonal* held, int n) {
            for (int d = 0; d < n && lane == 0; ++d) {
                const Diagonal& diagonal = held[slot(d)];
                if (diagonal.has(row)) visit(Step{diagonal.first, __popc(diagonal.rows), diagonal.rank(row)}, e++);
            }
        });
    }

    template <int BATCH, typename Visit>
    __device__ __forceinline__ void batches(const OFFSET*, const int* columns, Visit visit) const {
        static_assert(BATCH << LOG_MOST_LANES <= WARP, "a batch does not reach beyond the diagonals that are held");
        own_diagonals(columns, [&](const Diagonal* own, int n) {
            for (int d = 0; d < n; d += BATCH) {
                OFFSET places[BATCH];
#pragma unroll
                for (int e = 0; e < BATCH; ++e) {
                    Diagonal diagonal = own[d + e];
                    places[e] = diagonal.has(row) ? diagonal.first + diagonal.rank(row) : -1;
                }
                visit(places);
            }
        });
    }

    template <typename Stored, typename Source, typename Add>
    __device__ __forceinline__ void entries(const OFFSET*, const int* columns, const Stored* values, Source source,
                                            Add add) const {
        typedef decltype(source.look(0)) Seen;
        constexpr int BATCH = sizeof(Seen) > 32 ? 2 : 4;  // as registers allow
        static_assert(BATCH << LOG_MOST_LANES <= WARP, "a batch does not reach beyond the diagonals that are held");
        own_diagonals(columns, [&](const Diagonal* own, int n) {
            for (int d = 0; d < n; d += BATCH) {
                Stored value[BATCH];
                Seen seen[BATCH];
                bool early = false;
#pragma unroll
                for (int e = 0; e < BATCH; ++e) {
                    Diagonal diagonal = own[d + e];
                    bool mine = diagonal.has(row);
                    value[e] = mine ? streamed(&values[diagonal.first + diagonal.rank(row)]) : Stored();
                    seen[e] = mine ? source.look(diagonal.shift + row) : Seen();
                }
                if (ahead) ahead->fetch();
#pragma unroll
                for (int e = 0; e < BATCH; ++e) early |= source.early(seen[e]);
                if (early) {
#pragma unroll
                    for (int e = 0; e < BATCH; ++e)
                        if (source.early(seen[e])) seen[e] = source.get(own[d + e].shift + row, seen[e]);
                }
#pragma unroll
                for (int e = 0; e < BATCH; ++e)
                    add(value[e], own[d + e].has(row) ? own[d + e].shift + row : -1, seen[e]);
            }
        });
    }
};

template <typename Work>
__device__ __forceinline__ void for_slices(long long first, long long n_slices, bool backwards, const int*,
                                           const int* columns, Work work) {
    long long w = thread_id() / WARP, stride = thread_count() / WARP;
    auto number = [&](long long w) { return first + (backwards ? n_slices - 1 - w : w); };
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
