// EB as published, in one resident kernel. Each __device__ function has the name of the function in edges.py that does
// the same. The intended data races are those of eb.cu.

#include "color_sets.cuh"
#include "coloring/history.cuh"
#include "cuda/compact.cuh"
#include "lists.cuh"

__device__ void tentative_color(int2 edge, int* C, const int* CS, const int* VF, int* TVF) {
    int low = edge.x, high = edge.y;
    if (CS[low] != CS[high]) return;
    int c_low = ptx::load_l2(&C[low]), c_high = ptx::load_l2(&C[high]);
    if (c_low > 0 || c_high > 0) return;
    if (c_low == 0 && c_high == 0) {
        c_high = -first_available(VF[high] | ptx::load_l2(&TVF[high]));
        C[high] = c_high;
        atomicOr(&TVF[low], -c_high);
    } else if (c_high == 0) {
        atomicOr(&TVF[high], -c_low);
    } else if (c_low == 0) {
        atomicOr(&TVF[low], -c_high);
    } else if (c_low == c_high) {
        c_low = -first_available(VF[low] | ptx::load_l2(&TVF[low]) | -c_high);
        C[low] = c_low;
        atomicOr(&TVF[high], -c_low);
    }
}

__device__ void assign_color(int v, int color, int* C, int* CS, int* VF, int* TVF) {
    int final_forbidden = ptx::load_l2(&VF[v]), forbidden = final_forbidden | ptx::load_l2(&TVF[v]);
    if (color < 0)
        C[v] = -color;
    else if (forbidden != ALL_FORBIDDEN)
        C[v] = first_available(forbidden);
    else if (final_forbidden == ALL_FORBIDDEN) {
        ++CS[v];
        VF[v] = 0;
    }
    TVF[v] = 0;
}

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int left[3];    // vertices without a final color, by number of the round; with three nobody resets what others read
    int length[3];  // of the edge list, for the atomic worklist
    int counts[1];  // edges kept by each block; as long as scratch allows
};

// `edges` begins with the list of edges, and has room for two lists of `max_edges` edges. `marks` has room for one mark
// for each edge.
extern "C" __global__ void __launch_bounds__(BLOCK)
    color_by_edges(long long n, long long n_edges, int* C, int* CS, int* VF, int* TVF, int2* edges, long long max_edges,
                   signed char* marks, void* scratch, long long pps, long long tentative, long long drop_edges,
                   int2* log) {
    Control* control = (Control*)scratch;
    int2 *E = edges, *kept = edges + max_edges;
    int before = (int)n, length = (int)n_edges;
    for (long long v = thread_id(); v < n; v += thread_count()) C[v] = CS[v] = VF[v] = TVF[v] = 0;
    grid_barrier(&control->arrivals);

    for (int round = 0;; ++round) {
        for (long long v0 = thread_id() - lane_id(); v0 < n; v0 += thread_count()) {
            long long v = v0 + lane_id();
            int color = v < n ? ptx::load_l2(&C[v]) : 1;
            int left = __popc(__ballot_sync(FULL_WARP, color <= 0));
            if (lane_id() == 0 && left) atomicAdd(&control->left[round % 3], left);
            if (color <= 0) assign_color((int)v, color, C, CS, VF, TVF);
        }
        grid_barrier(&control->arrivals);

        int left = ptx::load_l2(&control->left[round % 3]);
        if (thread_id() == 0) {
            if (round) log_round(log, n, round, before, left);
            control->left[(round + 2) % 3] = control->length[(round + 2) % 3] = 0;
        }
        if (!left) break;
        before = left;
        for (long long e = thread_id(); e < length; e += thread_count()) detect_conflict(E[e], C, CS);
        grid_barrier(&control->arrivals);

        if (drop_edges) {
            auto stays = [&](int2 edge) { return forbid_color(edge, C, CS, VF); };
            length = pps ? keep_in_order(E, length, kept, marks, control->counts, &control->arrivals, stays)
                         : keep_scattered(E, length, kept, &control->length[round % 3], &control->arrivals, stays);
            int2* E_before = E;
            E = kept;
            kept = E_before;
        } else {
            for (long long e = thread_id(); e < length; e += thread_count()) forbid_color(E[e], C, CS, VF);
            grid_barrier(&control->arrivals);
        }
        if (!tentative) continue;
        for (long long e = thread_id(); e < length; e += thread_count()) tentative_color(E[e], C, CS, VF, TVF);
        grid_barrier(&control->arrivals);
    }
    from_bits(n, C, CS);
}
