// Aggregates around a distance-2 maximal independent set; see aggregation.py.
//
// `search_roots` goes in rounds of two phases. In the first one each free vertex chooses the smallest number among
// the undecided vertices within distance 1 of it, if it has not done so or if its choice is out. A vertex that all free
// ones within distance 1 have chosen is the smallest within distance 2, and comes into the set. In the second phase
// those that have chosen it set all others within distance 1 of them to `OUT`, and leave the worklist. So a row is read
// only when something new is to be found in it. No row is read while a number changes that the reader looks for: a
// vertex comes into the set when all that have it in their rows have made their choice.

#include "cuda/compact.cuh"
#include "cuda/memory.cuh"
#include "cuda/reduce.cuh"
#include "cuda/scan.cuh"
#include "multigrid/team_sum.cuh"

#define NOBODY -1  // the choice of a vertex that has made none

// The number of a vertex in a random order, from 1. A bijective hash of `bits` bits gives the place.
__device__ __forceinline__ uint32 number_of(uint32 v, int bits) {
    uint32 mask = (uint32)((1ull << bits) - 1);
    int half = (bits + 1) / 2;
    v ^= v >> half;
    v = v * FIRST_SPREAD & mask;
    v ^= v >> half;
    v = v * SECOND_SPREAD & mask;
    return (v ^ v >> half) + 1;
}
// The vertex with that number: the inverse, as `vertex_at` in aggregation.py.
__device__ __forceinline__ int vertex_of(uint32 number, int bits) {
    uint32 mask = (uint32)((1ull << bits) - 1), v = number - 1;
    int half = (bits + 1) / 2;
    v ^= v >> half;
    v = v * SECOND_GATHER & mask;
    v ^= v >> half;
    v = v * FIRST_GATHER & mask;
    return (int)(v ^ v >> half);
}

struct Counters {  // lie in `scratch`, which the host zeroes
    uint32 arrivals;
    int left[2], kept[2];  // lengths of worklists, by parity of the round
};

// Tell v that further vertices within distance 1 have chosen it, or are not free; missing[v] counts those that have not.
__device__ __forceinline__ void vote(int v, int votes, int* missing, uint32* own) {
    if (atomicSub(&missing[v], votes) == votes) own[v] = IN;
}

// Return the k for which every 2^k-th thread takes a vertex of the list. If the list is short, k is above 0, so that its
// vertices are spread over more teams.
__device__ __forceinline__ int spacing_of(long long length) {
    int spacing = 0;
    while (1 << spacing < LANES && length << spacing + 1 <= thread_count()) ++spacing;
    return spacing;
}

// The threads of a warp share the neighbors of each of their vertices that are in the set.
__device__ __forceinline__ void join_roots(long long n, const OFFSET* indptr, const int* indices, const uint32* own,
                                           int least_size, int* roots, int* sizes) {
    for (long long first = thread_id() - lane_id(); first < n; first += thread_count()) {
        bool is_in = first + lane_id() < n && ptx::load_l2(&own[first + lane_id()]) == IN;
        for (uint32 in = __ballot_sync(FULL_WARP, is_in); in; in &= in - 1) {
            int v = (int)first + __ffs(in) - 1, joined = 0, neighbors = 0;
            for (OFFSET k = indptr[v] + lane_id(); k < indptr[v + 1]; k += WARP) {
                neighbors += indices[k] != v;
                joined += indices[k] != v && roots[indices[k]] < 0;
            }
            int size = 1 + lane_sum<WARP>(joined);
            if (size < min(least_size, 1 + (lane_sum<WARP>(neighbors) + 1) / 2)) continue;
            // Two of the set have no neighbor in common, so nobody else writes, or counts, these.
            for (OFFSET k = indptr[v] + lane_id(); k < indptr[v + 1]; k += WARP)
                if (roots[indices[k]] < 0) roots[indices[k]] = v;
            if (lane_id() == 0) roots[v] = v, sizes[v] = size;
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    search_roots(long long n, long long bits, const OFFSET* indptr, const int* indices, const int* degrees,
                 long long least_size, int* roots, int* sizes, uint32* own, int* choices, int* missing, int* worklists,
                 void* scratch) {
    Counters* counters = (Counters*)scratch;
    int *left = worklists, *kept = worklists + n;
    for (long long v0 = thread_id() - threadIdx.x; v0 < n; v0 += thread_count()) {
        long long v = v0 + threadIdx.x;
        bool stays = v < n && roots[v] < 0 && degrees[v] > 0;
        if (v < n) own[v] = stays ? number_of((uint32)v, (int)bits) : OUT, choices[v] = NOBODY;
        if (v < n) missing[v] = degrees[v] + 1;
        int place = block_append(stays, &counters->left[0]);
        if (stays) left[place] = (int)v;
    }
    grid_barrier(&counters->arrivals);
    long long length = ptx::load_l2(&counters->left[0]), before = n + 1;
    // Each round decides the smallest number that is left, but perhaps not where rounding makes a graph unsymmetric.
    for (int parity = 0; length && length < before; parity = 1 - parity) {
        bool is_first = before > n;
        if (thread_id() == 0) counters->left[1 - parity] = 0;
        int spacing = spacing_of(length);
        for (long long t0 = thread_id() - threadIdx.x; t0 < length << spacing; t0 += thread_count()) {
            long long t = t0 + threadIdx.x;
            bool stays = t < length << spacing && (t & (1 << spacing) - 1) == 0;
            int u = stays ? ptx::load_l2(&left[t >> spacing]) : 0;
            CHECK(u, u >= 0 && u < n);
            int choice = stays ? ptx::load_l2(&choices[u]) : 0;
            bool chooses = stays && (choice == NOBODY || ptx::load_l2(&own[choice]) == OUT);
            OFFSET begin = chooses ? indptr[u] : 0, end = chooses ? indptr[u + 1] : 0;
            uint32 those = __ballot_sync(FULL_WARP, chooses) & team_mask();
            for (; those; those &= those - 1) {  // the team shares their rows
                int lane = __ffs(those) - 1, absent = 0;
                OFFSET stop = __shfl_sync(team_mask(), end, lane);
                uint32 found = OUT;
                for (OFFSET k = __shfl_sync(team_mask(), begin, lane) + team_lane(); k < stop; k += LANES) {
                    uint32 number = own[indices[k]];
                    found = min(found, number), absent += number == OUT;
                }
                for (int step = LANES / 2; step > 0; step /= 2)
                    found = min(found, __shfl_xor_sync(team_mask(), found, step));
                if (is_first) absent = team_sum(absent);
                if (lane_id() != lane) continue;
                found = min(found, own[u]), stays = found != OUT && found != IN;
                if (stays) choices[u] = vertex_of(found, (int)bits), vote(choices[u], 1, missing, own);
                if (is_first && absent) vote(u, absent, missing, own);
            }
            int place = block_append(stays, &counters->kept[parity]);
            if (stays) kept[place] = u;
        }
        grid_barrier(&counters->arrivals);

        before = length, length = ptx::load_l2(&counters->kept[parity]);
        if (thread_id() == 0) counters->kept[1 - parity] = 0;
        spacing = spacing_of(length);
        for (long long t0 = thread_id() - threadIdx.x; t0 < length << spacing; t0 += thread_count()) {
            long long t = t0 + threadIdx.x;
            bool stays = t < length << spacing && (t & (1 << spacing) - 1) == 0;
            int u = stays ? ptx::load_l2(&kept[t >> spacing]) : 0, choice = stays ? ptx::load_l2(&choices[u]) : 0;
            CHECK(u, u >= 0 && u < n && choice >= 0 && choice < n);
            bool is_settled = stays && ptx::load_l2(&own[choice]) == IN;
            OFFSET begin = is_settled ? indptr[u] : 0, end = is_settled ? indptr[u + 1] : 0;
            uint32 those = __ballot_sync(FULL_WARP, is_settled) & team_mask();
            for (; those; those &= those - 1) {
                int lane = __ffs(those) - 1, chosen = __shfl_sync(team_mask(), choice, lane);
                OFFSET stop = __shfl_sync(team_mask(), end, lane);
                for (OFFSET k = __shfl_sync(team_mask(), begin, lane) + team_lane(); k < stop; k += LANES)
                    if (indices[k] != chosen) own[indices[k]] = OUT;
            }
            if (is_settled && u != choice) own[u] = OUT;
            stays &= !is_settled;
            int place = block_append(stays, &counters->left[1 - parity]);
            if (stays) left[place] = u;
        }
        grid_barrier(&counters->arrivals);
        length = ptx::load_l2(&counters->left[1 - parity]);
    }
    join_roots(n, indptr, indices, own, (int)least_size, roots, sizes);
}

// The aggregate that a vertex without a root joins.
__device__ __forceinline__ int best_root(int v, const OFFSET* indptr, const int* indices, const int* roots,
                                         const int* sizes) {
    int best = roots[v], most = 0;
    if (best >= 0) return best;
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int root = roots[indices[k]], count = 0;
        if (root < 0 || root == best) continue;
        OFFSET end = min(indptr[v + 1], k + COUNTED);
        for (OFFSET other = k; other < end; ++other) count += roots[indices[other]] == root;
        bool smaller = best >= 0 && (sizes[root] < sizes[best] || (sizes[root] == sizes[best] && root < best));
        if (count > most || (count == most && smaller)) most = count, best = root;
    }
    return best;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    number(long long n, const OFFSET* indptr, const int* indices, const int* roots, const int* sizes, int* joined,
           long long* numbers, int* labels, int* report, Control* control) {
    for (long long v = thread_id(); v < n; v += thread_count())
        joined[v] = best_root((int)v, indptr, indices, roots, sizes);
    grid_barrier(&control->arrivals);
    write_offsets(n, [=](long long v) { return (long long)(ptx::load_l2(&joined[v]) == v); }, numbers, control);
    for (long long v = thread_id(); v < n; v += thread_count()) {
        int root = ptx::load_l2(&joined[v]);
        labels[v] = root >= 0 ? (int)ptx::load_l2(&numbers[root]) : -1;
        if (root < 0) report[1] = 1;
    }
    if (thread_id() == 0) report[0] = (int)ptx::load_l2(&numbers[n]);
}
