// Patterns of products: a team of LANES threads per row, or a block for a row that is WIDE. See patterns.py.

#include "cuda/scan.cuh"
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

// Put the rows of the entries of column c into a list, in order: a block goes over the columns of all entries.
__device__ void list_rows(long long c, long long entries, long long n, const long long* indptr, const int* columns,
                          int* rows, OFFSET* places) {
    for (long long first = 0, found = 0, total; first < entries; first += BLOCK * ENTRIES_OF_THREAD, found += total) {
        long long begin = first + threadIdx.x * ENTRIES_OF_THREAD, end = min(entries, begin + ENTRIES_OF_THREAD);
        int count = 0;
        for (long long e = begin; e < end; ++e) count += columns[e] == c;
        long long place = found + block_scan(count, total);
        for (long long e = begin; e < end && count; ++e)
            if (columns[e] == c) rows[place] = (int)row_of(indptr, n, e), places[place++] = (OFFSET)e;
    }
}

// First entries are placed in the order in which threads count them. Then the rows of each column are sorted: the place
// of a row is the number of smaller ones. If a list is so long that this takes longer than a block takes to go over all
// entries, the block does so.
extern "C" __global__ void __launch_bounds__(BLOCK)
    transpose(long long threads, long long entries, long long n, long long width, const long long* indptr,
              const int* columns, long long* offsets, int* rows, OFFSET* places, int* numbers, int* found,
              Control* control) {
    for (long long c = thread_id(); c < width; c += thread_count()) offsets[c] = 0;
    grid_barrier(&control->arrivals);
    for (long long e = thread_id(); e < entries; e += thread_count())
        if (columns[e] >= 0) numbers[e] = (int)atomicAdd((uint64*)&offsets[columns[e]], (uint64)1);
    grid_barrier(&control->arrivals);
    write_offsets(width, [=](long long c) { return ptx::load_l2(&offsets[c]); }, offsets, control);
    for (long long e = thread_id(); e < entries; e += thread_count())
        if (columns[e] >= 0) found[ptx::load_l2(&offsets[columns[e]]) + numbers[e]] = (int)row_of(indptr, n, e);
    grid_barrier(&control->arrivals);
    const int teams = BLOCK / LANES;
    for (long long first = blockIdx.x * (long long)teams; first < width; first += gridDim.x * (long long)teams) {
        auto begin_of = [&](long long c) { return ptx::load_l2(&offsets[min(c, width)]); };
        auto is_long = [&](long long c) {
            long long length = begin_of(c + 1) - begin_of(c);
            return length > LANES && length * length / LANES > entries / ENTRIES_OF_THREAD;
        };
        long long c = first + threadIdx.x / LANES, begin = begin_of(c), length = begin_of(c + 1) - begin;
        bool is_left = is_long(c);
        for (long long before = 0; before < length && !is_left; before += LANES) {
            long long t = before + team_lane();
            int v = t < length ? ptx::load_l2(&found[begin + t]) : 0, place = 0;
            for (long long from = 0; from < length; from += LANES) {
                int other = from + team_lane() < length ? ptx::load_l2(&found[begin + from + team_lane()]) : n;
                for (int s = 0; s < LANES; ++s)
                    place += __shfl_sync(team_mask(), other, lane_id() / LANES * LANES + s) < v;
            }
            if (t >= length) continue;
            rows[begin + place] = v;
            places[begin + place] = (OFFSET)lower_bound(columns, indptr[v], indptr[v + 1], c);
        }
        if (__syncthreads_or(is_left))
            for (long long own = first; own < min(width, first + teams); ++own)
                if (is_long(own)) list_rows(own, entries, n, indptr, columns, rows + begin_of(own), places + begin_of(own));
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

extern "C" __global__ void find_longest_lists(long long n, const OFFSET* indptr, const int* members,
                                              const long long* list_indptr, long long* lengths) {
    long long v = thread_id() / LANES, longest = 0;
    if (v >= n) return;
    for (OFFSET e = indptr[v] + team_lane(); e < indptr[v + 1]; e += LANES)
        longest = max(longest, list_indptr[members[e] + 1] - list_indptr[members[e]]);
    longest = team_max(longest);
    if (team_lane() == 0) lengths[v] = longest;
}
