// The kernels that choose coarse and fine points. A team of LANES threads shares a row. See splitting.py.

#include "cuda/compact.cuh"
#include "cuda/hash.cuh"
#include "multigrid/team_sum.cuh"

extern "C" __global__ void find_dependences(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                            const VALUE* diagonal, double theta, unsigned char* flags,
                                            int* influences, unsigned char* is_stiff) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    double most = 0, size = 0, positive = 0;
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES)
        if (indices[k] != i) {
            double a = real_part(values[k]);
            most = max(most, -a), size = max(size, (double)fabs(values[k])), positive += max(a, 0.0);
        }
    most = team_max(most), size = team_max(size), positive = team_sum(positive);
    for (OFFSET k = indptr[i] + team_lane(); k < indptr[i + 1]; k += LANES) {
        double a = real_part(values[k]);
        bool depends = indices[k] != i && -a > 0 && -a >= theta * most;
        bool passes = depends || (indices[k] != i && a > 0 && a >= theta * size);
        flags[k] = DEPENDS * depends + INTERPOLATES * passes;
        if (depends) atomicAdd(&influences[indices[k]], 1);
    }
    if (team_lane() == 0) {
        is_stiff[i] = positive > STIFF * fabs(diagonal[i]);
        if (is_stiff[i]) atomicAdd(&influences[i], FIRST);
    }
}

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int undecided[2];  // lengths of worklists, by parity of the round
};

// In rounds, by the points of larger weight that a point depends on: if one is coarse the point is fine, and if all are
// fine it is coarse. A point that reads an outdated state waits for the next round.
extern "C" __global__ void __launch_bounds__(BLOCK)
    split_points(long long n, const OFFSET* indptr, const int* indices, const unsigned char* flags,
                 const int* influences, uint64* weights, int* states, int* worklists, void* scratch) {
    Control* control = (Control*)scratch;
    for (long long v0 = thread_id() - threadIdx.x; v0 < n; v0 += thread_count()) {
        long long v = v0 + threadIdx.x;
        bool stays = v < n && states[v] == UNDECIDED;
        if (v < n) weights[v] = (uint64)influences[v] << 32 | mix((uint32)v, 0);
        if (stays && influences[v] == 0) states[v] = FINE, stays = false;
        int place = block_append(stays, &control->undecided[0]);
        if (stays) worklists[place] = (int)v;
    }
    grid_barrier(&control->arrivals);
    int length = ptx::load_l2(&control->undecided[0]);
    for (int parity = 0; length; parity = 1 - parity) {
        const int* left = worklists + parity * n;
        int* next = worklists + (1 - parity) * n;
        for (long long i0 = (thread_id() - threadIdx.x) / LANES; i0 < length; i0 += thread_count() / LANES) {
            long long i = i0 + threadIdx.x / LANES;
            int v = i < length ? ptx::load_l2(&left[i]) : 0;
            CHECK(v, v >= 0 && v < n);
            bool is_fine = false, waits = false;
            uint64 mine = i < length ? weights[v] : 0;
            for (OFFSET k = indptr[v] + team_lane(); i < length && k < indptr[v + 1] && !is_fine; k += LANES) {
                if (!(flags[k] & DEPENDS) || weights[indices[k]] <= mine) continue;
                int state = ptx::load_l2(&states[indices[k]]);
                is_fine = state == COARSE;
                waits |= state == UNDECIDED;
            }
            uint32 fine = __ballot_sync(FULL_WARP, is_fine) & team_mask();
            uint32 waiting = __ballot_sync(FULL_WARP, waits) & team_mask();
            bool leads = i < length && team_lane() == 0, stays = leads && !fine && waiting;
            if (leads && !stays) states[v] = fine ? FINE : COARSE;
            int place = block_append(stays, &control->undecided[1 - parity]);
            if (stays) next[place] = v;
        }
        grid_barrier(&control->arrivals);
        length = ptx::load_l2(&control->undecided[1 - parity]);
        if (thread_id() == 0) control->undecided[parity] = 0;
        grid_barrier(&control->arrivals);
    }
}
