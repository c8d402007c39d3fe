// Patterns of sparse matrices: a team of LANES threads per row or column. See patterns.py.

#include "cuda/scan.cuh"
#include "multigrid/team_sum.cuh"

// Write the rows and the places of the entries of column c, in order. The threads of a block share the search through
// the columns of all entries.
template <typename RowOf>
__device__ void list_entries(long long c, long long entries, const int* columns, RowOf row_of, int* rows,
                             OFFSET* places) {
    for (long long first = 0, found = 0, total; first < entries; first += BLOCK * ENTRIES_OF_THREAD, found += total) {
        long long begin = first + threadIdx.x * ENTRIES_OF_THREAD, end = min(entries, begin + ENTRIES_OF_THREAD);
        int count = 0;
        for (long long e = begin; e < end; ++e) count += columns[e] == c;
        long long place = found + block_scan(count, total);
        for (long long e = begin; e < end && count; ++e)
            if (columns[e] == c) rows[place] = row_of(e), places[place++] = (OFFSET)e;
    }
}

__device__ __forceinline__ int add_to(int* count, int number) { return atomicAdd(count, number); }
__device__ __forceinline__ int add_to(long long* count, int number) {
    return (int)atomicAdd((uint64*)count, (uint64)number);
}

// Increment the number of entries of a column, and return its old value. The whole warp calls this function. Threads
// with the same column share one atomic operation, since neighboring rows often have entries in the same columns. A
// thread without an entry passes column -1.
__device__ __forceinline__ int count_entry(int column, OFFSET* counts) {
    uint32 same = __match_any_sync(FULL_WARP, column);
    int first = __ffs(same) - 1, before = 0;
    if (lane_id() == first && column >= 0) before = add_to(&counts[column], __popc(same));
    return __shfl_sync(FULL_WARP, before, first) + __popc(same & (1u << lane_id()) - 1);
}

// At first the entries of a column are stored in the order in which threads happen to count them. Then they are sorted:
// the position of an entry is the number of entries before it in the column. If a column is so long that sorting would
// take longer than reading all entries, `list_entries` lists them.
extern "C" __global__ void __launch_bounds__(BLOCK)
    transpose(long long threads, long long entries, long long n, long long width, const OFFSET* indptr,
              const int* columns, OFFSET* offsets, int* rows, OFFSET* places, int* numbers, int* rows_of_entries,
              OFFSET* found, Control* control) {
    for (long long c = thread_id(); c < width; c += thread_count()) offsets[c] = 0;
    for (long long v = thread_id() / OF_ROW; v < n; v += thread_count() / OF_ROW)
        for (long long e = indptr[v] + threadIdx.x % OF_ROW; e < indptr[v + 1]; e += OF_ROW) rows_of_entries[e] = (int)v;
    grid_barrier(&control->arrivals);
    for (long long first = thread_id() - lane_id(); first < entries; first += thread_count()) {  // by whole warps
        long long e = first + lane_id();
        int number = count_entry(e < entries ? columns[e] : -1, offsets);
        if (e < entries) numbers[e] = number;
    }
    grid_barrier(&control->arrivals);
    write_offsets(width, [=](long long c) { return ptx::load_l2(&offsets[c]); }, offsets, control);
    for (long long e = thread_id(); e < entries; e += thread_count())
        if (columns[e] >= 0) found[ptx::load_l2(&offsets[columns[e]]) + numbers[e]] = (OFFSET)e;
    grid_barrier(&control->arrivals);
    auto row_of = [=](long long e) { return n ? ptx::load_l2(&rows_of_entries[e]) : (int)e; };
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
            OFFSET own = t < length ? ptx::load_l2(&found[begin + t]) : 0;
            int position = 0;
            for (long long from = team_lane(); from - team_lane() < length; from += LANES)
                position += count_below(own, from < length ? ptx::load_l2(&found[begin + from]) : (OFFSET)entries);
            if (t < length) rows[begin + position] = row_of(own), places[begin + position] = own;
        }
        if (__syncthreads_or(is_left))
            for (long long own = first; own < min(width, first + teams); ++own)
                if (is_long(own)) list_entries(own, entries, columns, row_of, rows + begin_of(own), places + begin_of(own));
    }
}

extern "C" __global__ void list_blocks(long long offsets, long long rows, long long columns, const OFFSET* indptr,
                                       const int* blocks, OFFSET* result_indptr, int* result) {
    long long i = thread_id();
    if (i >= offsets) return;
    long long v = i / rows, first = indptr[v], length = i + 1 < offsets ? indptr[v + 1] - first : 0;
    long long begin = (first * rows + (i - v * rows) * length) * columns;
    result_indptr[i] = (OFFSET)begin;
    for (long long t = 0; t < length; ++t)
        for (long long c = 0; c < columns; ++c)
            result[begin + t * columns + c] = (int)(blocks[first + t] * columns + c);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    gather(long long threads, long long n, const OFFSET* begins, const OFFSET* counts, const int* found, OFFSET* indptr, int* columns,
           Control* control) {
    write_offsets(n, [=](long long i) { return (long long)counts[i + 1]; }, indptr, control);
    for (long long i = thread_id() / LANES; i < n; i += thread_count() / LANES) {
        OFFSET begin = begins[i], count = counts[i + 1], own = ptx::load_l2(&indptr[i]);
        for (OFFSET t = team_lane(); t < count; t += LANES) columns[own + t] = found[begin + t];
    }
}

extern "C" __global__ void find_longest_lists(long long n, const OFFSET* indptr, const int* members,
                                              const OFFSET* list_indptr, long long* lengths) {
    long long v = thread_id() / LANES, longest = 0;
    if (v >= n) return;
    for (OFFSET e = indptr[v] + team_lane(); e < indptr[v + 1]; e += LANES)
        longest = max(longest, (long long)(list_indptr[members[e] + 1] - list_indptr[members[e]]));
    longest = team_max(longest);
    if (team_lane() == 0) lengths[v] = longest;
}
