// EB: the rounds of Algorithm 5 of Deveci et al. in one resident kernel. Each __device__ function here is the part of
// eb.py with the same name.
//
// Races that are meant: tentative colors are read and written without order (Algorithm 8 is speculation, and a lost
// update is caught by detect_conflict, which runs behind a grid barrier); in detect_conflict two edges may uncolor the
// same vertex, or see a vertex that another edge uncolors at that moment, and either outcome is a valid one.
//
// Only the tentative phase needs the latest words, past L1 (`fresh`). What a phase only reads it reads through L1, which
// every barrier empties: neighbors are mostly neighbors of the next vertex, too. In detect_conflict an older color will do.

#define SET_SIZE 31
#define ALL_FORBIDDEN 0x7fffffff

__device__ __forceinline__ int first_available(int forbidden) {
    return ~forbidden & (int)((uint32)forbidden + 1u) & ALL_FORBIDDEN;
}

__device__ __forceinline__ int beyond(int degree, int color_set) {
    long long needed = degree + 1LL - (long long)color_set * SET_SIZE;
    return needed <= 0 ? ALL_FORBIDDEN : needed >= SET_SIZE ? 0 : ALL_FORBIDDEN & ~((1 << needed) - 1);
}

__device__ bool forbid_color(int2 edge, const int* C, const int* CS, int* VF) {
    int cu = C[edge.x], cv = C[edge.y];
    if (cu != 0 && cv != 0) return false;
    if (cu == 0 && cv == 0) return true;
    int colored = cu ? edge.x : edge.y, other = cu ? edge.y : edge.x;
    int set = CS[colored], other_set = CS[other];
    if (set == other_set) atomicOr(&VF[other], cu | cv);
    return set > other_set;
}

__device__ void tentative_color(int2 edge, int* C, const int* CS, const int* VF, int* TVF) {
    int low = edge.x, high = edge.y;
    int c_low = fresh(&C[low]), c_high = fresh(&C[high]);
    if (c_low > 0 || c_high > 0 || CS[low] != CS[high]) return;
    if (c_low == 0 && c_high == 0) {
        c_high = -first_available(VF[high] | fresh(&TVF[high]));
        C[high] = c_high;
    } else if (c_low == c_high) {
        c_low = -first_available(VF[low] | fresh(&TVF[low]) | -c_high);
        C[low] = c_low;
    }
    if (c_high < 0 && !(fresh(&TVF[low]) & -c_high)) atomicOr(&TVF[low], -c_high);
    if (c_low < 0 && !(fresh(&TVF[high]) & -c_low)) atomicOr(&TVF[high], -c_low);
}

__device__ void assign_color(int v, const int* degrees, int* C, int* CS, int* VF, int* TVF) {
    int color = fresh(&C[v]);
    int final_forbidden = fresh(&VF[v]), forbidden = final_forbidden | fresh(&TVF[v]);
    if (color < 0)
        color = -color;
    else if (forbidden != ALL_FORBIDDEN)
        color = first_available(forbidden);
    else if (final_forbidden == ALL_FORBIDDEN) {
        int set = fresh(&CS[v]) + 1;
        CS[v] = set;
        VF[v] = beyond(degrees[v], set);
    }
    C[v] = color;
    TVF[v] = 0;
}

__device__ void detect_conflict(int2 edge, int* C, const int* CS) {
    int color = C[edge.x];
    if (color != 0 && color == C[edge.y] && CS[edge.x] == CS[edge.y]) C[edge.x] = 0;
}

__device__ __forceinline__ void start_vertex(long long v, int degree, int* C, int* CS, int* VF, int* TVF) {
    C[v] = 0;
    CS[v] = 0;
    TVF[v] = 0;
    VF[v] = beyond(degree, 0);
}

// From bits to numbers: CS(v) * 31 + log2 C(v).
__device__ void from_bits(long long n, int* C, const int* CS) {
    for (long long v = thread_id(); v < n; v += thread_count()) C[v] = fresh(&CS[v]) * SET_SIZE + __ffs(fresh(&C[v])) - 1;
}

// The sum of a value over the block; every thread gets it.
__device__ int block_sum(int value) {
    __shared__ int partial[WARP];
    for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(FULL_WARP, value, step);
    __syncthreads();
    if (lane_id() == 0) partial[threadIdx.x / WARP] = value;
    __syncthreads();
    int sum = 0;
    for (int w = 0; w < blockDim.x / WARP; ++w) sum += partial[w];
    return sum;
}

// The sum of the values of all threads of the block before this one; `total` is the sum over all of them.
__device__ int block_scan(int value, int& total) {
    __shared__ int partial[WARP];
    int inclusive = value;
    for (int step = 1; step < WARP; step *= 2) {
        int before = __shfl_up_sync(FULL_WARP, inclusive, step);
        if (lane_id() >= step) inclusive += before;
    }
    __syncthreads();
    if (lane_id() == WARP - 1) partial[threadIdx.x / WARP] = inclusive;
    __syncthreads();
    int offset = 0;
    total = 0;
    for (int w = 0; w < blockDim.x / WARP; ++w) {
        if (w < threadIdx.x / WARP) offset += partial[w];
        total += partial[w];
    }
    return offset + inclusive - value;
}

// Where this block's stretch of a list begins, given what every block counted; `total` is the length of the list.
__device__ int stretch_offset(const int* counts, int& total) {
    int before = 0, all = 0;
    for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
        int count = fresh(&counts[b]);
        all += count;
        if (b < blockIdx.x) before += count;
    }
    total = block_sum(all);
    return block_sum(before);
}

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int uncolored[2];  // length of the list of uncolored vertices, by parity of the round
    int length[2];     // of the edge list, for the atomic worklist
    int counts[1];     // edges kept by each block; as long as scratch allows
};

extern "C" __global__ void __launch_bounds__(256) color_edges(
        long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long by_degree, int* C, int* CS,
        int* VF, int* TVF, int* uncolored, int2* edges, long long max_edges, void* scratch, long long pps,
        long long chunk, int2* log) {
    Control* control = (Control*)scratch;
    int* counts = control->counts;
    int2 *E = edges, *spare = edges + max_edges;
    int *U = uncolored, *spare_U = uncolored + n;

    // The edge list in row order, the end first that gives way: count what rows list above the diagonal, scan over
    // blocks, write. Rows are sorted, so counting is a search; LANES threads share a row when it is written.
    long long rows = (n + gridDim.x - 1) / gridDim.x;
    long long first_row = blockIdx.x * rows, last_row = min(first_row + rows, n);
    int teams = blockDim.x / LANES, team = threadIdx.x / LANES, lane = threadIdx.x % LANES, count = 0;
    int* above = spare_U;
    for (long long v = first_row + threadIdx.x; v < last_row; v += blockDim.x) {
        OFFSET end = indptr[v + 1];
        above[v] = (int)(end - lower_bound(indices, indptr[v], end, v + 1));
        count += above[v];
    }
    for (long long v = thread_id(); v < n; v += thread_count()) {
        start_vertex(v, degrees[v], C, CS, VF, TVF);
        U[v] = (int)v;
    }
    count = block_sum(count);
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
    grid_barrier(&control->arrivals);
    int length, offset = stretch_offset(counts, length), vertices = (int)n;
    for (long long v0 = first_row; v0 < last_row; v0 += teams) {
        long long v = v0 + team;
        int own = v < last_row ? above[v] : 0, tile;
        int position = offset + __shfl_sync(FULL_WARP, block_scan(lane == 0 ? own : 0, tile), 0, LANES);
        for (int e = lane; e < own; e += LANES) {
            int u = indices[indptr[v + 1] - own + e];
            E[position + e] = gives_way((int)v, u, by_degree, degrees) ? make_int2((int)v, u) : make_int2(u, (int)v);
        }
        offset += tile;
    }
    grid_barrier(&control->arrivals);

    for (int round = 1;; ++round) {
        for (long long first = thread_id() * chunk; first < length; first += thread_count() * chunk)
            for (int e = first; e < min(first + chunk, (long long)length); ++e) tentative_color(E[e], C, CS, VF, TVF);
        grid_barrier(&control->arrivals);

        for (long long i = thread_id(); i < vertices; i += thread_count())
            assign_color(U[i], degrees, C, CS, VF, TVF);
        grid_barrier(&control->arrivals);

        for (long long e = thread_id(); e < length; e += thread_count()) detect_conflict(E[e], C, CS);
        if (thread_id() == 0) {
            control->uncolored[round & 1] = 0;
            control->length[round & 1] = 0;
        }
        grid_barrier(&control->arrivals);

        for (long long i0 = thread_id() - lane_id(); i0 < vertices; i0 += thread_count()) {
            long long i = i0 + lane_id();
            int v = i < vertices ? U[i] : 0;
            bool left = i < vertices && fresh(&C[v]) == 0;
            int position = warp_append(left, &control->uncolored[round & 1]);
            if (left) spare_U[position] = v;
        }
        // Each warp has a stretch of the edges. It packs what it keeps of it in place, and behind a barrier moves that
        // behind what the warps before it keep.
        long long warp = thread_id() / WARP, stretch = (length + thread_count() / WARP - 1) / (thread_count() / WARP);
        int first = (int)min(warp * stretch, (long long)length), last = (int)min(first + stretch, (long long)length);
        int packed = first;
        for (int e0 = first; e0 < last; e0 += WARP) {
            int e = e0 + lane_id();
            int2 edge = e < last ? E[e] : make_int2(0, 0);
            bool keep = e < last && forbid_color(edge, C, CS, VF);
            int place = pps ? place_in_row<WARP>(keep, packed) : warp_append(keep, &control->length[round & 1]);
            if (keep) (pps ? E : spare)[place] = edge;
        }
        if (pps) {
            int kept = packed - first, of_block;
            offset = block_scan(lane_id() == 0 ? kept : 0, of_block);
            if (threadIdx.x == 0) counts[blockIdx.x] = of_block;
            grid_barrier(&control->arrivals);
            offset = __shfl_sync(FULL_WARP, offset, 0) + stretch_offset(counts, length);
            for (int i = lane_id(); i < kept; i += WARP) spare[offset + i] = E[first + i];
        }
        grid_barrier(&control->arrivals);
        if (!pps) length = fresh(&control->length[round & 1]);
        int before = vertices;
        vertices = fresh(&control->uncolored[round & 1]);
        if (thread_id() == 0) log_round(log, n, round, before, vertices);
        if (vertices == 0) break;
        int2* E_before = E;
        E = spare;
        spare = E_before;
        int* U_before = U;
        U = spare_U;
        spare_U = U_before;
    }
    from_bits(n, C, CS);
}

// At distance two: no edges are listed, but the pairs of uncolored vertices looked for, LANES threads for each vertex.
extern "C" __global__ void __launch_bounds__(256) color_pairs(
        long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long by_degree, int* reach,
        int* C, int* CS, int* VF, int* TVF, int* uncolored, void* scratch, int2* log) {
    Control* control = (Control*)scratch;
    int *U = uncolored, *spare_U = uncolored + n;
    long long first_team = thread_id() / LANES, teams = thread_count() / LANES;
    for (long long v = thread_id(); v < n; v += thread_count()) {
        int most = degrees[v];
        for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) most = max(most, degrees[indices[k]]);
        reach[v] = most;
        start_vertex(v, most, C, CS, VF, TVF);
        U[v] = (int)v;
    }
    grid_barrier(&control->arrivals);
    int vertices = (int)n;
    auto visit_pairs = [&](auto visit) {
        for (long long i = first_team; i < vertices; i += teams) {
            int v = U[i];
            any_near<LANES>(v, 2, indptr, indices, [&](OFFSET k) {
                int u = indices[k];
                if (u > v) visit(gives_way(v, u, by_degree, reach) ? make_int2(v, u) : make_int2(u, v));
                return false;
            });
        }
    };

    for (int round = 1;; ++round) {
        visit_pairs([&](int2 edge) { tentative_color(edge, C, CS, VF, TVF); });
        grid_barrier(&control->arrivals);

        for (long long i = thread_id(); i < vertices; i += thread_count()) assign_color(U[i], reach, C, CS, VF, TVF);
        grid_barrier(&control->arrivals);

        visit_pairs([&](int2 edge) { detect_conflict(edge, C, CS); });
        if (thread_id() == 0) control->uncolored[round & 1] = 0;
        grid_barrier(&control->arrivals);

        for (long long i0 = (thread_id() - lane_id()) / LANES; i0 < vertices; i0 += teams) {
            long long i = i0 + lane_id() / LANES;
            int v = i < vertices ? U[i] : 0, finals = 0;
            bool left = i < vertices && C[v] == 0;
            if (left)
                any_near<LANES>(v, 2, indptr, indices, [&](OFFSET k) {
                    int u = indices[k];
                    if (CS[u] == CS[v]) finals |= C[u];
                    return false;
                });
            finals = (int)united<LANES>((uint32)finals);
            bool leads = left && lane_id() % LANES == 0;
            if (leads) VF[v] = finals | beyond(max(__popc(finals), reach[v] - CS[v] * SET_SIZE), 0);
            int position = warp_append(leads, &control->uncolored[round & 1]);
            if (leads) spare_U[position] = v;
        }
        grid_barrier(&control->arrivals);
        int before = vertices;
        vertices = fresh(&control->uncolored[round & 1]);
        if (thread_id() == 0) log_round(log, n, round, before, vertices);
        if (vertices == 0) break;
        int* U_before = U;
        U = spare_U;
        spare_U = U_before;
    }
    from_bits(n, C, CS);
}
