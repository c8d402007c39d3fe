// Jones-Plassmann in a given order: one team of LANES threads per chain. See jp.py.
//
// The race is meant: a vertex loads the states of its neighbors while they are written. A state is one word, which is
// written once. Until then it is a sentinel, with all bits set, and whoever needs it polls.

#include "coloring/graph.cuh"
#include "coloring/history.cuh"
#include "cuda/search.cuh"

#define LOADS 4  // neighbors whose states a thread loads at once
#define SHARED_FRONTS 1024

typedef long long State;  // the color in the lower half, the front above it; negative until it is ready

// Whether a chain begins at this place of the order: its vertex is no neighbor of the one before it.
__device__ __forceinline__ bool begins_chain(long long p, const OFFSET* indptr, const int* indices,
                                             const int* sequence) {
    if (p == 0) return true;
    int v = sequence[p], before = sequence[p - 1];
    OFFSET end = indptr[v + 1], place = lower_bound(indices, indptr[v], end, before);
    return place == end || indices[place] != before;
}

// List the places where chains begin, in order; returns how many there are. Blocks take stretches of the order, and
// warps stretches of these. Afterwards all states are sentinels; in the meantime they hold what was found.
__device__ long long list_chains(long long n, const OFFSET* indptr, const int* indices, const int* sequence,
                                 uint32* arrivals, int* lengths, int* chains, State* states) {
    __shared__ int own[BLOCK / WARP], before, all;
    int warp = threadIdx.x / WARP, length = 0;
    long long warps = thread_count() / WARP, stretch = (n + warps - 1) / warps;
    long long begin = min((blockIdx.x * (BLOCK / WARP) + warp) * stretch, n), end = min(begin + stretch, n);
    for (long long p0 = begin; p0 < end; p0 += WARP) {
        long long p = p0 + lane_id();
        uint32 those = __ballot_sync(FULL_WARP, p < end && begins_chain(p, indptr, indices, sequence));
        if (p == p0) states[p] = those;
        length += __popc(those);
    }
    if (lane_id() == 0) own[warp] = length;
    if (threadIdx.x == 0) before = all = 0;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int length_of_one : own) lengths[blockIdx.x] += length_of_one;
    grid_barrier(arrivals);
    for (int b = threadIdx.x; b < gridDim.x; b += BLOCK) {
        int length_of_block = ptx::load_l2(&lengths[b]);
        atomicAdd(&all, length_of_block);
        if (b < blockIdx.x) atomicAdd(&before, length_of_block);
    }
    __syncthreads();
    int place = before;
    for (int w = 0; w < warp; ++w) place += own[w];
    for (long long p0 = begin; p0 < end; p0 += WARP) {
        long long p = p0 + lane_id();
        uint32 those = (uint32)ptx::load_l2(&states[p0]);
        __syncwarp();
        if (p < end) states[p] = -1;
        if (those >> lane_id() & 1) chains[place + __popc(those & ((1u << lane_id()) - 1))] = (int)p;
        place += __popc(those);
    }
    grid_barrier(arrivals);
    return all;
}

// A team's way through the vertices: chain by chain, in each from the first to the last. At the end, place == end.
struct Walk {
    long long chain, place, end;

    __device__ __forceinline__ void enter(long long n, long long n_chains, const int* chains) {
        place = end = 0;
        if (chain >= n_chains) return;
        place = chains[chain];
        end = chain + 1 < n_chains ? chains[chain + 1] : n;
    }
    __device__ __forceinline__ void step(long long n, long long n_chains, const int* chains) {
        if (place == end || ++place < end) return;
        chain += thread_count() / LANES;
        enter(n, n_chains, chains);
    }
};

// A vertex, and the neighbors whose states this thread loads next.
struct Visit {
    bool exists;
    int v;
    OFFSET k, end;        // what is left of the row, its own or at distance 2 then that of a neighbor
    int neighbor[LOADS];  // -1 where there is none

    __device__ __forceinline__ void find_row(const Walk& walk, const OFFSET* indptr, const int* sequence) {
        exists = walk.place < walk.end;
        if (!exists) return;
        v = NATURAL ? (int)walk.place : sequence[walk.place];
        turn_to(v, indptr);
    }
    __device__ __forceinline__ void turn_to(int row, const OFFSET* indptr) {
        k = indptr[row];
        end = indptr[row + 1];
    }
    __device__ __forceinline__ void find_neighbors(const int* indices) {
#pragma unroll
        for (int e = 0; e < LOADS; ++e) {
            OFFSET place = k + e * LANES + threadIdx.x % LANES;
            neighbor[e] = exists && place < end ? indices[place] : -1;
        }
    }
    // Only those who come earlier matter.
    __device__ __forceinline__ void drop_later(const int* rank) {
#pragma unroll
        for (int e = 0; e < LOADS; ++e)
            if (neighbor[e] >= 0 && (NATURAL ? neighbor[e] >= v : rank[neighbor[e]] >= rank[v])) neighbor[e] = -1;
    }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    color_fronts(long long n, long long distance, const OFFSET* indptr, const int* indices, const int* sequence,
                 const int* rank, int* chains, int* scratch, State* states) {
    // The host zeroes `scratch`.
    long long n_chains = list_chains(n, indptr, indices, sequence, (uint32*)scratch, scratch + 1, chains, states);
    uint32 mates = (LANES == WARP ? FULL_WARP : (1u << (LANES % WARP)) - 1) << (lane_id() & ~(LANES - 1));
    // Where all chains are in hand at once, as few as possible share a warp, so that nobody waits for what others do.
    bool all_in_hand = n_chains <= thread_count() / LANES;
    long long spread = (lane_id() / LANES * (BLOCK / WARP) + threadIdx.x / WARP) * (long long)gridDim.x + blockIdx.x;
    Walk walk = {all_in_hand ? spread : thread_id() / LANES, 0, 0};
    // Two vertices are prefetched: what is loaded for one of them is not used before the team has gone on by one
    // vertex.
    Visit now, after, later;
    walk.enter(n, n_chains, chains);
    now.find_row(walk, indptr, sequence);
    walk.step(n, n_chains, chains);
    after.find_row(walk, indptr, sequence);
    walk.step(n, n_chains, chains);
    later.find_row(walk, indptr, sequence);
    now.find_neighbors(indices);
    now.drop_later(rank);
    after.find_neighbors(indices);
    int offset = 0, front = 0, last = -1, patience = 0, rows = 0;  // of neighbors that it has turned to
    State last_state = 0;
    uint64 taken = 0;
    // The teams of a warp go on together: one that waits polls while the others proceed, so that no team waits for ever
    // for a team of its own warp.
    while (__any_sync(FULL_WARP, now.exists)) {
        State seen[LOADS];
        bool waits = false;
#pragma unroll
        for (int e = 0; e < LOADS; ++e)
            if (now.neighbor[e] >= 0) {
                CHECK(now.neighbor[e], now.neighbor[e] < n && now.neighbor[e] != now.v);
                seen[e] = last_state;
                if (now.neighbor[e] != last) seen[e] = ptx::load_volatile(&states[now.neighbor[e]]);
            }
#pragma unroll
        for (int e = 0; e < LOADS; ++e)
            if (now.neighbor[e] >= 0) {
                if (seen[e] < 0) {
                    waits = true;
                    continue;
                }
                int color = (int)seen[e] - offset;
                if (color >= 0 && color < PALETTE) taken |= 1ull << color;
                front = max(front, (int)(seen[e] >> 32));
                now.neighbor[e] = -1;
            }
        uint32 waiting = __ballot_sync(FULL_WARP, waits);
        bool complete = now.exists && (waiting & mates) == 0;
        bool whole_row = complete && now.k + LOADS * LANES >= now.end;
        bool more_rows = whole_row && distance == 2 && rows < indptr[now.v + 1] - indptr[now.v];
        bool all_seen = whole_row && !more_rows;
        uint64 all_taken = taken;
        int latest = front;
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2) {
            all_taken |= __shfl_xor_sync(FULL_WARP, all_taken, step);
            latest = max(latest, __shfl_xor_sync(FULL_WARP, latest, step));
        }
        if (all_seen && ~all_taken) {
            last = now.v;
            last_state = (State)(latest + 1) << 32 | (offset + __ffsll(~all_taken) - 1);
            if (threadIdx.x % LANES == 0) ptx::store_volatile(&states[last], last_state);
            now = after;
            now.drop_later(rank);
            after = later;
            after.find_neighbors(indices);
            walk.step(n, n_chains, chains);
            later.find_row(walk, indptr, sequence);
            taken = 0;
            front = offset = rows = 0;
        } else if (complete) {
            if (all_seen) {  // all are colored, with this palette and more
                offset += PALETTE;
                taken = rows = 0;
                now.turn_to(now.v, indptr);
            } else if (more_rows) {
                now.turn_to(indices[indptr[now.v] + rows++], indptr);
            } else {
                now.k += LOADS * LANES;
            }
            now.find_neighbors(indices);
            now.drop_later(rank);
        }
        // A warp that waits for many vertices, or has waited for long, polls less often: polls slow down the others.
        patience = __any_sync(FULL_WARP, complete) ? 0 : min(patience + 1, 32);
        int polls = __popc(waiting), nap = all_in_hand ? 2 * polls : patience;
        if (patience > 0 && nap > (all_in_hand ? 8 : 4)) __nanosleep(16 * nap);
    }
}

extern "C" __global__ void read_states(long long n, const State* states, int* colors, int2* log) {
    __shared__ int fronts[SHARED_FRONTS], most;
    for (int f = threadIdx.x; f < SHARED_FRONTS; f += blockDim.x) fronts[f] = 0;
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    int last = 0;
    for (long long v = thread_id(); v < n; v += thread_count()) {
        State state = states[v];
        colors[v] = (int)state;
        int front = (int)min((long long)(state >> 32), n + SPARE_ROUNDS);
        if (front < SHARED_FRONTS)
            atomicAdd(&fronts[front], 1);
        else
            atomicAdd(&log[front].x, 1);
        last = max(last, front);
    }
    atomicMax(&most, last);
    __syncthreads();
    for (int f = threadIdx.x; f < SHARED_FRONTS; f += blockDim.x)
        if (fronts[f]) atomicAdd(&log[f].x, fronts[f]);
    if (threadIdx.x == 0) atomicMax(&log[0].x, most);
}
