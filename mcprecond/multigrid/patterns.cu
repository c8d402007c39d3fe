// Patterns of products: a team of LANES threads per row, a warp where columns are MARKED. See patterns.py.

#include "cuda/search.cuh"
#include "multigrid/team.cuh"

#ifdef MARKED
// Visit the columns of row v of a product: a warp marks them in shared memory and then goes over the marks in order, so
// that each of its threads visits some.
template <typename Visit>
__device__ __forceinline__ long long visit_union(long long v, long long width, const OFFSET* indptr, const int* members,
                                                 const long long* list_indptr, const int* lists, Visit visit) {
    __shared__ uint32 of_warps[BLOCK / WARP][MOST_MARKED / 32];
    uint32* marks = of_warps[threadIdx.x / WARP];
    int words = (int)(width + 31) / 32;
    for (int w = lane_id(); w < words; w += WARP) marks[w] = 0;
    __syncwarp();
    for (OFFSET e = indptr[v]; e < indptr[v + 1]; ++e)
        for (long long p = list_indptr[members[e]] + lane_id(); p < list_indptr[members[e] + 1]; p += WARP)
            if (lists[p] < width) atomicOr(&marks[lists[p] / 32], 1u << lists[p] % 32);
    __syncwarp();
    long long count = 0;
    for (int first = 0; first < words; first += WARP) {
        int w = first + lane_id(), through = 0;
        uint32 bits = w < words ? marks[w] : 0;
        through = __popc(bits);
        for (int step = 1; step < WARP; step *= 2) {
            int before = __shfl_up_sync(FULL_WARP, through, step);
            if (lane_id() >= step) through += before;
        }
        long long place = count + through - __popc(bits);
        for (; bits; bits &= bits - 1) visit(place++, w * 32 + __ffs(bits) - 1);
        count += __shfl_sync(FULL_WARP, through, WARP - 1);
    }
    return count;
}
#else
#define HELD 4  // lists whose smallest column that is left a thread holds

// Visit the columns of row v of a product in order. Each round finds the smallest column that is left: the threads of
// the team share the lists, all of which are sorted. In those that a thread does not hold, it searches.
template <typename Visit>
__device__ __forceinline__ long long visit_union(long long v, long long width, const OFFSET* indptr, const int* members,
                                                 const long long* list_indptr, const int* lists, Visit visit) {
    OFFSET own = indptr[v] + team_lane(), row_end = indptr[v + 1];
    long long next[HELD], end[HELD];
    int column[HELD];
#pragma unroll
    for (int h = 0; h < HELD; ++h) {
        OFFSET e = own + h * LANES;
        next[h] = e < row_end ? list_indptr[members[e]] : 0;
        end[h] = e < row_end ? list_indptr[members[e] + 1] : 0;
        column[h] = next[h] < end[h] ? lists[next[h]] : (int)width;
    }
    long long count = 0;
    for (int last = -1;; ++count) {
        int least = (int)width;
#pragma unroll
        for (int h = 0; h < HELD; ++h) least = min(least, column[h]);
        for (OFFSET e = own + HELD * LANES; e < row_end; e += LANES) {
            long long list_end = list_indptr[members[e] + 1];
            long long place = lower_bound(lists, list_indptr[members[e]], list_end, last + 1LL);
            if (place < list_end) least = min(least, lists[place]);
        }
        for (int step = LANES / 2; step > 0; step /= 2) least = min(least, __shfl_xor_sync(team_mask(), least, step));
        if (least == width) return count;
        if (team_lane() == 0) visit(count, least);
#pragma unroll
        for (int h = 0; h < HELD; ++h)
            while (column[h] == least) column[h] = ++next[h] < end[h] ? lists[next[h]] : (int)width;
        last = least;
    }
}
#endif

extern "C" __global__ void count_union(long long n, long long width, const OFFSET* indptr, const int* members,
                                       const long long* list_indptr, const int* lists, long long* counts) {
    long long v = thread_id() / LANES;
    if (v >= n) return;
    long long count = TOO_LONG;
#ifndef MARKED
    if (indptr[v + 1] - indptr[v] <= LONGEST)
#endif
        count = visit_union(v, width, indptr, members, list_indptr, lists, [](long long, int) {});
    if (team_lane() == 0) counts[v] = count;
}

extern "C" __global__ void list_union(long long n, long long width, const OFFSET* indptr, const int* members,
                                      const long long* list_indptr, const int* lists, const long long* result_indptr,
                                      int* result) {
    long long v = thread_id() / LANES;
    if (v >= n) return;
    int* own = result + result_indptr[v];
    visit_union(v, width, indptr, members, list_indptr, lists,
                [&](long long place, int column) { own[place] = column; });
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

extern "C" __global__ void find_longest(long long n, const OFFSET* indptr, long long* longest) {
    long long v = thread_id(), length = v < n ? (long long)(indptr[v + 1] - indptr[v]) : 0;
    for (int step = WARP / 2; step > 0; step /= 2) length = max(length, __shfl_xor_sync(FULL_WARP, length, step));
    if (lane_id() == 0 && length > ptx::load_l2(longest)) atomicMax(longest, length);
}
