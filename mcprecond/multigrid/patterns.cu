// Patterns of products: a team of LANES threads per row. See patterns.py.

#include "cuda/search.cuh"
#include "multigrid/team.cuh"

// Visit the columns of row v of a product in order. Each round finds the smallest column behind the last one: the
// threads of the team share the lists, all of which are sorted.
template <typename Visit>
__device__ __forceinline__ long long visit_union(long long v, long long width, const OFFSET* indptr, const int* members,
                                                 const long long* list_indptr, const int* lists, Visit visit) {
    long long count = 0;
    for (int last = -1;;) {
        int least = (int)width;
        for (OFFSET e = indptr[v] + team_lane(); e < indptr[v + 1]; e += LANES) {
            long long end = list_indptr[members[e] + 1];
            long long place = lower_bound(lists, list_indptr[members[e]], end, last + 1LL);
            if (place < end) least = min(least, lists[place]);
        }
        for (int step = LANES / 2; step > 0; step /= 2) least = min(least, __shfl_xor_sync(team_mask(), least, step));
        if (least == width) return count;
        if (team_lane() == 0) visit(count, least);
        ++count;
        last = least;
    }
}

extern "C" __global__ void count_union(long long n, long long width, const OFFSET* indptr, const int* members,
                                       const long long* list_indptr, const int* lists, long long* counts) {
    long long v = thread_id() / LANES;
    if (v >= n) return;
    long long count = visit_union(v, width, indptr, members, list_indptr, lists, [](long long, int) {});
    if (team_lane() == 0) counts[v] = count;
}

extern "C" __global__ void list_union(long long n, long long width, const OFFSET* indptr, const int* members,
                                      const long long* list_indptr, const int* lists, const long long* result_indptr,
                                      int* result) {
    long long v = thread_id() / LANES;
    if (v >= n) return;
    int* own = result + result_indptr[v];
    visit_union(v, width, indptr, members, list_indptr, lists, [&](long long place, int column) { own[place] = column; });
}

extern "C" __global__ void list_blocks(long long n, long long rows, long long columns, const long long* indptr,
                                       const int* blocks, OFFSET* result_indptr, int* result) {
    long long i = thread_id();
    if (i >= n) return;
    long long v = i / rows, first = indptr[v], length = indptr[v + 1] - first;
    long long begin = (first * rows + (i - v * rows) * length) * columns;
    result_indptr[i + 1] = (OFFSET)(begin + length * columns);
    for (long long t = 0; t < length; ++t)
        for (long long c = 0; c < columns; ++c) result[begin + t * columns + c] = (int)(blocks[first + t] * columns + c);
}
