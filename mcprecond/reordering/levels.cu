// Levels front by front: LANES threads per vertex. See levels.py.
//
// `waiting` counts the earlier neighbors of a vertex whose level is not known yet; whoever settles the last of them puts
// the vertex into the next front. A front is an independent set, so nothing races.

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int length[3];  // of the present front, the next, and the one after that
};

extern "C" __global__ void __launch_bounds__(256) find_levels(
        long long n, const OFFSET* indptr, const int* indices, const int* sequence, const int* rank, int* levels,
        int* waiting, int* fronts, void* scratch) {
    Control* control = (Control*)scratch;
    long long team = thread_id() / LANES, teams = thread_count() / LANES;
    int member = threadIdx.x % LANES;

    for (long long first = team - lane_id() / LANES; first < n; first += teams) {  // whole warps, for lane_sum
        long long v = first + lane_id() / LANES;
        int before = 0;
        if (v < n)
            for (OFFSET k = indptr[v] + member; k < indptr[v + 1]; k += LANES) before += rank[indices[k]] < rank[v];
        before = lane_sum<LANES>(before);
        if (v < n && member == 0) {
            waiting[v] = before;
            if (before == 0) fronts[atomicAdd(&control->length[0], 1)] = (int)v;
        }
    }
    grid_barrier(&control->arrivals);

    for (int level = 0;; ++level) {
        const int* front = fronts + (level & 1) * n;
        int* next = fronts + (~level & 1) * n;
        int length = fresh(&control->length[level % 3]);
        if (length == 0) return;
        // The counter after the next was read last in the front before this one, and all have left that.
        if (thread_id() == 0) control->length[(level + 2) % 3] = 0;
        for (long long i = team; i < length; i += teams) {
            int v = fresh(&front[i]), rank_v = rank[v];
            if (member == 0) levels[v] = level;
            for (OFFSET k = indptr[v] + member; k < indptr[v + 1]; k += LANES) {
                int u = indices[k];
                if (rank[u] > rank_v && atomicSub(&waiting[u], 1) == 1)
                    next[atomicAdd(&control->length[(level + 1) % 3], 1)] = u;
            }
        }
        grid_barrier(&control->arrivals);
    }
}
