// Min-max independent sets in one resident kernel; see minmax.py.
//
// The race that is meant: a vertex may see a neighbor's color of this very round or not yet. It treats both alike, so
// that race does not change the result.

#include "coloring/graph.cuh"
#include "coloring/history.cuh"
#include "cuda/hash.cuh"
#include "cuda/reduce.cuh"

__device__ int color_of(int v, int base, bool two_sets, const OFFSET* indptr, const int* indices, uint32 seed,
                        const int* colors) {
    uint32 own = mix(v, seed);
    bool colormax = true, colormin = two_sets;
    for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
        int u = indices[k];
        if (u == v) continue;
        int color = ptx::load_l2(&colors[u]);
        if (color != UNCOLORED && color < base) continue;
        uint32 theirs = mix(u, seed);
        if (theirs > own || (theirs == own && u > v))
            colormax = false;
        else
            colormin = false;
        if (!colormax && !colormin) return UNCOLORED;
    }
    return colormin ? base + 1 : base;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_frontier(long long n, const OFFSET* indptr, const int* indices, long long seed, long long two_sets,
                   long long atomics, int* colors, void* scratch, int2* log) {
    struct Control {  // the host zeroes it
        uint32 arrivals;
        int count[2];  // of vertices, by parity of the round; they only grow, so that nobody has to reset them
    }* control = (Control*)scratch;
    for (long long v = thread_id(); v < n; v += thread_count()) colors[v] = UNCOLORED;
    grid_barrier(&control->arrivals);
    int done = 0, seen[2] = {0, 0};
    for (int round = 0; done < n; ++round) {
        int *count = &control->count[round & 1], colored = 0;
        for (long long v = thread_id(); v < n; v += thread_count()) {
            if (ptx::load_l2(&colors[v]) != UNCOLORED) continue;
            int color =
                color_of((int)v, (1 + (int)two_sets) * round, two_sets != 0, indptr, indices, (uint32)seed, colors);
            if (color == UNCOLORED) continue;
            colors[v] = color;
            ++colored;
        }
        if (atomics) {
            grid_barrier(&control->arrivals);
            for (long long v = thread_id(); v < n; v += thread_count())
                if (ptx::load_l2(&colors[v]) != UNCOLORED) atomicAdd(count, 1);
        } else {
            int of_block = (int)block_sum(colored);
            if (threadIdx.x == 0 && of_block) atomicAdd(count, of_block);
        }
        grid_barrier(&control->arrivals);
        int before = done, now = ptx::load_l2(count);
        done = now - seen[round & 1] + (atomics ? 0 : before);
        seen[round & 1] = now;
        if (thread_id() == 0) log_round(log, n, round + 1, done - before, 0);
    }
}
