// The coloring of Gebremedhin and Manne in one resident kernel: color_and_repair in gm.py.
//
// Races that are meant: in the first step a vertex may see a neighbor's color or not yet; what it misses is caught in
// the second one, behind a grid barrier. There, a vertex may see another one that is uncolored at that moment: then the
// other one gives way, so it may keep its color; or it saw the color and both give way. The third step is one block's.

#include "coloring/graph.cuh"
#include "coloring/history.cuh"

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int conflicts;
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_and_repair(long long n, const OFFSET* indptr, const int* indices, const int* degrees, int* C, int* conflicts,
                     void* scratch, int2* log) {
    Control* control = (Control*)scratch;
    long long processor = thread_id() / WARP, processors = thread_count() / WARP;
    for (long long v = thread_id(); v < n; v += thread_count()) C[v] = UNCOLORED;
    grid_barrier(&control->arrivals);

    long long share = (n + processors - 1) / processors;
    for (long long v = processor * share; v < min((processor + 1) * share, n); ++v) {
        int color = smallest_free_color<WARP>((int)v, indptr, indices, C);
        if (lane_id() == 0) C[v] = color;
        __syncwarp();  // the next vertex may be a neighbor
    }
    grid_barrier(&control->arrivals);

    for (long long v = processor; v < n; v += processors) {
        int color = ptx::load_l2(&C[v]);
        bool lost = false;
        for (OFFSET k = indptr[v] + lane_id(); k < indptr[v + 1]; k += WARP) {
            int u = indices[k];
            lost |= u > v && ptx::load_l2(&C[u]) == color;
        }
        lost = __any_sync(FULL_WARP, lost);
        if (lost && lane_id() == 0) {
            C[v] = UNCOLORED;
            conflicts[atomicAdd(&control->conflicts, 1)] = (int)v;
        }
    }
    grid_barrier(&control->arrivals);

    if (blockIdx.x != 0) return;
    int length = ptx::load_l2(&control->conflicts);
    for (int i = 0; i < length; ++i) {
        int v = ptx::load_l2(&conflicts[i]);
        int color = smallest_free_color<BLOCK>(v, indptr, indices, C);
        if (threadIdx.x == 0) C[v] = color;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        log_round(log, n, 1, (int)n, length);
        if (length) log_round(log, n, 2, length, 0);
    }
}
