// Jones-Plassmann by fronts, in one resident kernel: color_fronts in jp.py.
// Eight threads share a vertex. `waiting` counts the uncolored neighbors that precede a vertex; whoever colors the last
// of them puts the vertex into the next front. A front is an independent set, so nothing races.

#define SHARERS 8
#define PALETTE 64

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int length[2];  // of the fronts, by parity of the round
};

extern "C" __global__ void __launch_bounds__(256) color_fronts(
        long long n, const OFFSET* indptr, const int* indices, const int* rank, int* colors,
        int* waiting, int* fronts, void* scratch, int2* log) {
    Control* control = (Control*)scratch;
    long long team = thread_id() / SHARERS, teams = thread_count() / SHARERS;
    int member = threadIdx.x % SHARERS;
    // The same for all members of a team, so a team may leave a loop while others of its warp stay.
    uint32 mates = ((1u << SHARERS) - 1) << (lane_id() & ~(SHARERS - 1));

    for (long long v = team; v < n; v += teams) {
        int before = 0;
        for (OFFSET k = indptr[v] + member; k < indptr[v + 1]; k += SHARERS) before += rank[indices[k]] < rank[v];
        for (int step = SHARERS / 2; step > 0; step /= 2) before += __shfl_xor_sync(mates, before, step);
        if (member == 0) {
            colors[v] = -1;
            waiting[v] = before;
            if (before == 0) fronts[atomicAdd(&control->length[0], 1)] = (int)v;
        }
    }
    grid_barrier(&control->arrivals);

    for (int round = 0;; ++round) {
        const int* front = fronts + (round & 1) * n;
        int* next = fronts + (~round & 1) * n;
        int* next_length = &control->length[~round & 1];
        int length = fresh(&control->length[round & 1]);
        if (length == 0) return;
        if (thread_id() == 0) log_round(log, n, round + 1, length, 0);
        for (long long i = team; i < length; i += teams) {
            int v = fresh(&front[i]), rank_v = rank[v], color = -1;
            OFFSET begin = indptr[v], end = indptr[v + 1];
            for (int offset = 0; color < 0; offset += PALETTE) {
                uint64 taken = 0;
                for (OFFSET k = begin + member; k < end; k += SHARERS) {
                    int c = fresh(&colors[indices[k]]) - offset;  // uncolored ones lie below every palette
                    if (c >= 0 && c < PALETTE) taken |= 1ull << c;
                }
                for (int step = SHARERS / 2; step > 0; step /= 2) taken |= __shfl_xor_sync(mates, taken, step);
                if (~taken) color = offset + __ffsll(~taken) - 1;
            }
            if (member == 0) colors[v] = color;
            __threadfence();
            for (OFFSET k = begin + member; k < end; k += SHARERS) {
                int u = indices[k];
                if (rank[u] > rank_v && atomicSub(&waiting[u], 1) == 1) next[atomicAdd(next_length, 1)] = u;
            }
        }
        grid_barrier(&control->arrivals);
        if (thread_id() == 0) control->length[round & 1] = 0;
        grid_barrier(&control->arrivals);
    }
}
