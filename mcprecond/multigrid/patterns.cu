// Patterns of products: a team of LANES threads per row, or a block for a row that is WIDE. See patterns.py.

#include "cuda/search.cuh"
#include "multigrid/marks.cuh"
#include "multigrid/team_sum.cuh"

// Visit the columns that the members of row v list. The threads of the team share the members.
template <typename Visit>
__device__ __forceinline__ void visit_lists(long long v, long long width, const OFFSET* indptr, const int* members,
                                            const long long* list_indptr, const int* lists, Visit visit) {
    for (OFFSET e = indptr[v] + team_lane(); e < indptr[v + 1]; e += LANES) {
        const int* list = lists + list_indptr[members[e]];
        int length = (int)(list_indptr[members[e] + 1] - list_indptr[members[e]]);
        for (int p = 0; p < length; ++p) {
            int column = list[p];
            if (column < width && !visit(column)) return;
        }
    }
}

#ifdef WIDE
// The union marks its columns in memory.
struct Union {
    Marks marks;

    __device__ Union(long long width, uint32* all_marks) : marks(width, all_marks) {}
    static __device__ __forceinline__ bool takes(long long count, long long done) { return count > done; }

    __device__ void unite(long long v, long long width, const OFFSET* indptr, const int* members,
                          const long long* list_indptr, const int* lists) {
        visit_lists(v, width, indptr, members, list_indptr, lists, [&](int column) {
            marks.set(column);
            return true;
        });
        __syncthreads();
    }

    // Call `visit(place, column)` for each column of the union, in order, and empty the union.
    // Returns the number of its columns.
    template <typename Visit>
    __device__ long long visit(Visit visit) {
        long long count = marks.visit(visit);
        marks.clear();
        return count;
    }
};
#else
#define TABLE (LANES * TABLE_PER_THREAD)
#define MOST (TABLE / 4 * 3)
#define EMPTY -1

// In shared memory: a hash table with the columns, and a list of them in no order.
struct Union {
    int *table, *found, *length;

    __device__ Union(long long, uint32*) {
        __shared__ int tables[BLOCK * TABLE_PER_THREAD], lists[BLOCK / LANES * MOST], lengths[BLOCK / LANES];
        int team = threadIdx.x / LANES;
        table = tables + team * TABLE, found = lists + team * MOST, length = lengths + team;
    }
    static __device__ __forceinline__ bool takes(long long count, long long) { return count <= MOST; }

    // `length` is above MOST afterwards if the columns do not fit.
    __device__ void unite(long long v, long long width, const OFFSET* indptr, const int* members,
                          const long long* list_indptr, const int* lists) {
        for (int h = team_lane(); h < TABLE; h += LANES) table[h] = EMPTY;
        if (team_lane() == 0) *length = 0;
        team_sync();
        visit_lists(v, width, indptr, members, list_indptr, lists, [&](int column) {
            int h = (int)((uint32)column * 0x9e3779b9u >> 16) % TABLE;
            for (;; h = (h + 1) % TABLE) {
                int there = ptx::load_volatile(&table[h]);
                if (there == EMPTY) there = atomicCAS(&table[h], EMPTY, column);
                if (there == column) return true;
                if (there != EMPTY) continue;
                int place = atomicAdd(length, 1);
                if (place < MOST) found[place] = column;
                return place < MOST;  // all threads of the team stop before the table is full
            }
        });
        team_sync();
    }

    // Call `visit(place, column)` for each column of the union, where `place` is the number of smaller columns.
    template <typename Visit>
    __device__ void visit(Visit visit) {
        int count = *length;
        for (int t = team_lane(); t < count; t += LANES) {
            int place = 0;
            for (int other = 0; other < count; ++other) place += found[other] < found[t];
            visit(place, found[t]);
        }
        team_sync();  // before the next row
    }
};
#endif

// Count, and put into the pool what is found already, as long as there is room. Where rows are WIDE, only those whose
// count is UNKNOWN.
extern "C" __global__ void count_union(long long n, long long width, const OFFSET* indptr, const int* members,
                                       const long long* list_indptr, const int* lists, long long* counts,
                                       long long room, int* pool, uint64* used, long long* starts, long long most_teams,
                                       uint32* marks) {
    long long team = thread_id() / LANES, teams = min(thread_count() / LANES, most_teams);
    if (thread_id() == 0) *counts = 0;
    if (team >= teams) return;
    Union own(width, marks);
    ++counts;
    long long next = 0, end = 0;  // the part of the pool that this team has reserved
    for (long long v = team; v < n; v += teams) {
#ifdef WIDE
        if (counts[v] != UNKNOWN) continue;
        __syncthreads();  // all have seen it
        own.unite(v, width, indptr, members, list_indptr, lists);
        long long count = own.visit([](long long, int) {});
#else
        own.unite(v, width, indptr, members, list_indptr, lists);
        long long count = *own.length;
        if (count > MOST) count = UNKNOWN;
        if (count < UNKNOWN && next + count > end && end <= room) {
            if (team_lane() == 0) next = (long long)atomicAdd(used, (uint64)RESERVED);
            next = __shfl_sync(team_mask(), next, lane_id() / LANES * LANES);
            end = next + RESERVED;
        }
        bool is_kept = count < UNKNOWN && end <= room;
        if (team_lane() == 0) starts[v] = is_kept ? next : -1;
        if (is_kept) {
            own.visit([&](long long place, int column) { pool[next + place] = column; });
            next += count;
        }
        team_sync();  // before the next row
#endif
        if (team_lane() == 0) counts[v] = count;
    }
}

// Rows of at most `done` columns are listed already.
extern "C" __global__ void list_union(long long n, long long width, const OFFSET* indptr, const int* members,
                                      const long long* list_indptr, const int* lists, long long done, const int* pool,
                                      const long long* starts, const long long* result_indptr, int* result,
                                      long long most_teams, uint32* marks) {
    long long team = thread_id() / LANES, teams = min(thread_count() / LANES, most_teams);
    if (team >= teams) return;
    Union own(width, marks);
    for (long long v = team; v < n; v += teams) {
        long long first = result_indptr[v], count = result_indptr[v + 1] - first;
        if (!Union::takes(count, done)) continue;
        if (starts[v] >= 0) {
            for (long long t = team_lane(); t < count; t += LANES) result[first + t] = pool[starts[v] + t];
            continue;
        }
        own.unite(v, width, indptr, members, list_indptr, lists);
        own.visit([&](long long place, int column) { result[first + place] = column; });
    }
}

// The entries are sorted by column, `order` tells how; each finds the row that it is in.
extern "C" __global__ void transpose(long long entries, long long n, long long width, const OFFSET* indptr,
                                     const int* columns, const long long* order, long long* result_indptr, int* rows,
                                     long long* places) {
    for (long long p = thread_id(); p < entries; p += thread_count()) {
        long long e = order[p];
        int column = columns[e], before = p ? columns[order[p - 1]] : -1;
        for (int c = before + 1; c <= column; ++c) result_indptr[c] = p;
        if (p == entries - 1)
            for (int c = column + 1; c <= width; ++c) result_indptr[c] = entries;
        places[p] = e;
        rows[p] = (int)row_of(indptr, n, e);
    }
}

extern "C" __global__ void list_blocks(long long n, long long rows, long long columns, const long long* indptr,
                                       const int* blocks, OFFSET* result_indptr, int* result) {
    long long i = thread_id();
    if (i >= n) return;
    long long v = i / rows, first = indptr[v], length = indptr[v + 1] - first;
    long long begin = (first * rows + (i - v * rows) * length) * columns;
    result_indptr[i + 1] = (OFFSET)(begin + length * columns);
    for (long long t = 0; t < length; ++t)
        for (long long c = 0; c < columns; ++c)
            result[begin + t * columns + c] = (int)(blocks[first + t] * columns + c);
}

extern "C" __global__ void gather(long long n, const OFFSET* begins, const int* found, const OFFSET* indptr,
                                  int* columns) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    OFFSET begin = begins[i], own = indptr[i], count = indptr[i + 1] - own;
    for (OFFSET t = team_lane(); t < count; t += LANES) columns[own + t] = found[begin + t];
}

extern "C" __global__ void find_longest(long long n, const OFFSET* indptr, long long* longest) {
    long long v = thread_id(), length = v < n ? (long long)(indptr[v + 1] - indptr[v]) : 0;
    for (int step = WARP / 2; step > 0; step /= 2) length = max(length, __shfl_xor_sync(FULL_WARP, length, step));
    if (lane_id() == 0 && length > ptx::load_l2(longest)) atomicMax(longest, length);
}

extern "C" __global__ void find_longest_lists(long long n, const OFFSET* indptr, const int* members,
                                              const long long* list_indptr, long long* lengths) {
    long long v = thread_id() / LANES, longest = 0;
    if (v >= n) return;
    for (OFFSET e = indptr[v] + team_lane(); e < indptr[v + 1]; e += LANES)
        longest = max(longest, list_indptr[members[e] + 1] - list_indptr[members[e]]);
    longest = team_max(longest);
    if (team_lane() == 0) lengths[v] = longest;
}
