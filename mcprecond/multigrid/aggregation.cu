// Aggregates around a distance-2 maximal independent set; see aggregation.py.
//
// `independent_set` goes in rounds. `least` of a vertex is the smallest number within distance 1 of it, `OUT` if one of
// these is in the set. A vertex that is the smallest within distance 2 comes into the set; one that has a neighbor with
// `OUT` as its `least` stays out. Both leave the worklists for the next round. No phase reads what another thread
// writes in it.

#include "cuda/compact.cuh"
#include "cuda/memory.cuh"
#include "cuda/reduce.cuh"
#include "multigrid/team.cuh"

// The number of a vertex in a random order, from 1. A bijective hash of `bits` bits gives the place; its inverse is
// `vertex_at` in aggregation.py.
__device__ __forceinline__ uint32 number_of(uint32 v, int bits) {
    uint32 mask = (uint32)((1ull << bits) - 1);
    int half = (bits + 1) / 2;
    v ^= v >> half;
    v = v * FIRST_SPREAD & mask;
    v ^= v >> half;
    v = v * SECOND_SPREAD & mask;
    return (v ^ v >> half) + 1;
}
#define NOT_THERE (OUT - 1)  // the `least` of vertices that take no part: it decides nothing for their neighbors

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int undecided[2], columns[2];  // lengths of worklists, by parity of the round
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    independent_set(long long n, long long bits, const OFFSET* indptr, const int* indices, const int* degrees,
                    const int* roots, uint32* own, uint32* least, int* worklists, void* scratch) {
    Control* control = (Control*)scratch;
    for (long long i0 = thread_id() - threadIdx.x; i0 < n; i0 += thread_count()) {
        long long v = i0 + threadIdx.x;
        bool stays = v < n && roots[v] < 0 && degrees[v] > 0;
        if (v < n) own[v] = stays ? number_of((uint32)v, (int)bits) : OUT, least[v] = NOT_THERE;
        int place = block_append(stays, &control->undecided[0]);
        if (stays) worklists[place] = worklists[2 * n + place] = (int)v;
    }
    grid_barrier(&control->arrivals);
    int length = ptx::load_l2(&control->undecided[0]), width = length;
    for (int parity = 0; length; parity = 1 - parity) {
        const int *left = worklists + parity * n, *columns = worklists + (2 + parity) * n;
        int *next_left = worklists + (1 - parity) * n, *next_columns = worklists + (3 - parity) * n;
        if (thread_id() == 0) control->undecided[1 - parity] = 0;
        for (long long i0 = (thread_id() - threadIdx.x) / LANES; i0 < width; i0 += thread_count() / LANES) {
            long long i = i0 + threadIdx.x / LANES;
            int u = i < width ? ptx::load_l2(&columns[i]) : 0;
            CHECK(u, u >= 0 && u < n);
            uint32 found = i < width ? ptx::load_l2(&own[u]) : OUT;
            for (OFFSET k = i < width ? indptr[u] + team_lane() : 0; i < width && k < indptr[u + 1]; k += LANES)
                found = min(found, ptx::load_l2(&own[indices[k]]));
            for (int step = LANES / 2; step > 0; step /= 2) found = min(found, __shfl_xor_sync(FULL_WARP, found, step));
            if (found == IN) found = OUT;
            bool leads = i < width && team_lane() == 0, stays = leads && found != OUT;
            if (leads) least[u] = found;
            int place = block_append(stays, &control->columns[1 - parity]);
            if (stays) next_columns[place] = u;
        }
        grid_barrier(&control->arrivals);

        if (thread_id() == 0) control->columns[parity] = 0;
        for (long long i0 = (thread_id() - threadIdx.x) / LANES; i0 < length; i0 += thread_count() / LANES) {
            long long i = i0 + threadIdx.x / LANES;
            int v = i < length ? ptx::load_l2(&left[i]) : 0;
            CHECK(v, v >= 0 && v < n);
            uint32 mine = 0, seen;
            bool is_out = false, is_least = true;
            if (i < length) {
                mine = ptx::load_l2(&own[v]), seen = ptx::load_l2(&least[v]);
                is_out = seen == OUT, is_least = seen == mine;
                for (OFFSET k = indptr[v] + team_lane(); k < indptr[v + 1] && !is_out; k += LANES) {
                    seen = ptx::load_l2(&least[indices[k]]);
                    is_out = seen == OUT;
                    is_least &= seen >= mine;
                }
            }
            uint32 out = __ballot_sync(FULL_WARP, is_out) & team_mask();
            uint32 larger = __ballot_sync(FULL_WARP, !is_least) & team_mask();
            bool leads = i < length && team_lane() == 0, stays = leads && !out && larger;
            if (leads && !stays) own[v] = out ? OUT : IN;
            int place = block_append(stays, &control->undecided[1 - parity]);
            if (stays) next_left[place] = v;
        }
        grid_barrier(&control->arrivals);
        length = ptx::load_l2(&control->undecided[1 - parity]), width = ptx::load_l2(&control->columns[1 - parity]);
    }
}

// The threads of a warp share the neighbors of each of their vertices that are in the set.
extern "C" __global__ void join_roots(long long n, const OFFSET* indptr, const int* indices, const uint32* own,
                                      long long least_size, int* roots, int* sizes) {
    long long first = thread_id() - lane_id();
    bool is_in = thread_id() < n && own[thread_id()] == IN;
    for (uint32 in = __ballot_sync(FULL_WARP, is_in); in; in &= in - 1) {
        int v = (int)first + __ffs(in) - 1, joined = 0, neighbors = 0;
        for (OFFSET k = indptr[v] + lane_id(); k < indptr[v + 1]; k += WARP) {
            neighbors += indices[k] != v;
            joined += indices[k] != v && roots[indices[k]] < 0;
        }
        int size = 1 + lane_sum<WARP>(joined);
        if (size < min((int)least_size, 1 + (lane_sum<WARP>(neighbors) + 1) / 2)) continue;
        // Two of the set have no neighbor in common, so nobody else writes, or counts, these.
        for (OFFSET k = indptr[v] + lane_id(); k < indptr[v + 1]; k += WARP)
            if (roots[indices[k]] < 0) roots[indices[k]] = v;
        if (lane_id() == 0) roots[v] = v, sizes[v] = size;
    }
}

extern "C" __global__ void join_neighbors(long long n, const OFFSET* indptr, const int* indices, const int* roots,
                                          const int* sizes, int* joined, int* is_root) {
    int v = (int)thread_id();
    if (v >= n) return;
    int best = roots[v], most = 0;
    if (best < 0)
        for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
            int root = roots[indices[k]], count = 0;
            if (root < 0 || root == best) continue;
            OFFSET end = min(indptr[v + 1], k + COUNTED);
            for (OFFSET other = k; other < end; ++other) count += roots[indices[other]] == root;
            bool smaller = best >= 0 && (sizes[root] < sizes[best] || (sizes[root] == sizes[best] && root < best));
            if (count > most || (count == most && smaller)) most = count, best = root;
        }
    joined[v] = best, is_root[v] = best == v;
}

extern "C" __global__ void number(long long n, const int* joined, const int* numbers, int* labels, int* report) {
    long long v = thread_id();
    if (v >= n) return;
    labels[v] = joined[v] >= 0 ? numbers[joined[v]] - 1 : -1;
    if (v == 0) report[0] = numbers[n - 1];
    if (joined[v] < 0) report[1] = 1;
}
