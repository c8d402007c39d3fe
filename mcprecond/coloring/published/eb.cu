// EB: the rounds of Algorithm 5 of Deveci et al. in one resident kernel. Each __device__ function here is the part of
// eb.py with the same name.
//
// Races that are meant: tentative colors are read and written without order (Algorithm 8 is speculation, and a lost
// update is caught by the search for conflicts, which runs behind a grid barrier); there two edges may uncolor the same
// vertex, or see a vertex that another edge uncolors at that moment, and either outcome is a valid one.
//
// Only the tentative phases need the latest words, past L1 (`fresh`). What a phase only reads it reads through L1,
// which every barrier empties: neighbors are mostly neighbors of the next vertex, too. Where conflicts are searched
// for, an older color will do.

#include "color_sets.cuh"
#include "coloring/history.cuh"
#include "cuda/compact.cuh"
#include "lists.cuh"
#include "rows.cuh"

__device__ __forceinline__ int beyond(int degree, int color_set) {
    long long needed = degree + 1LL - (long long)color_set * SET_SIZE;
    return needed <= 0 ? ALL_FORBIDDEN : needed >= SET_SIZE ? 0 : ALL_FORBIDDEN & ~((1 << needed) - 1);
}

__device__ void tentative_color(int2 edge, int* C, const int* CS, const int* VF, int* TVF) {
    int low = edge.x, high = edge.y;
    int c_low = ptx::load_l2(&C[low]), c_high = ptx::load_l2(&C[high]);
    if (c_low > 0 || c_high > 0 || CS[low] != CS[high]) return;
    if (c_low == 0 && c_high == 0) {
        c_high = -first_available(VF[high] | ptx::load_l2(&TVF[high]));
        C[high] = c_high;
    } else if (c_low == c_high) {
        c_low = -first_available(VF[low] | ptx::load_l2(&TVF[low]) | -c_high);
        C[low] = c_low;
    }
    if (c_high < 0 && !(ptx::load_l2(&TVF[low]) & -c_high)) atomicOr(&TVF[low], -c_high);
    if (c_low < 0 && !(ptx::load_l2(&TVF[high]) & -c_low)) atomicOr(&TVF[high], -c_low);
}

__device__ void assign_color(int v, const int* degrees, int* C, int* CS, int* VF, int* TVF) {
    int color = ptx::load_l2(&C[v]);
    int final_forbidden = ptx::load_l2(&VF[v]), forbidden = final_forbidden | ptx::load_l2(&TVF[v]);
    if (color < 0)
        color = -color;
    else if (forbidden != ALL_FORBIDDEN)
        color = first_available(forbidden);
    else if (final_forbidden == ALL_FORBIDDEN) {
        int set = ptx::load_l2(&CS[v]) + 1;
        CS[v] = set;
        VF[v] = beyond(degrees[v], set);
    }
    C[v] = color;
    TVF[v] = 0;
}

__device__ __forceinline__ void start_vertex(long long v, int degree, int* C, int* CS, int* VF, int* TVF) {
    C[v] = 0;
    CS[v] = 0;
    TVF[v] = 0;
    VF[v] = beyond(degree, 0);
}

// ---- The first round, from the rows: LANES threads share a row, and whole warps call what follows.

// The smallest number that no neighbor has.
__device__ int first_number(const int* row, int entries, const int* number) {
    int smallest = UNCOLORED;
    for (int offset = 0; __any_sync(FULL_WARP, smallest < 0); offset += PALETTE) {
        uint64 taken = 0;
        visit_row(
            row, smallest < 0 ? entries : 0, [&](int u) { return ptx::load_l2(&number[u]); },
            [&](int, int color) {
                if (color >= offset && color < offset + PALETTE) taken |= 1ull << (color - offset);
            });
        taken = team_or<LANES>(taken);
        if (smallest < 0 && ~taken) smallest = offset + __ffsll((long long)~taken) - 1;
    }
    return smallest;
}

__device__ __forceinline__ bool to_list(int v, int u, int color, int set) {
    return color == UNCOLORED ? u > v : color >= (set + 1) * SET_SIZE;
}

__device__ void first_numbers(long long n, const OFFSET* indptr, const int* indices, long long chunk, int* number) {
    color_stretches(n, indptr, indices, chunk, number,
                    [&](int, const int* row, int entries) { return first_number(row, entries, number); });
}

__device__ void first_conflicts(long long n, const OFFSET* indptr, const int* indices, const int* degrees,
                                bool by_degree, int* number) {
    for (long long v0 = (thread_id() - lane_id()) / LANES; v0 < n; v0 += thread_count() / LANES) {
        int v = (int)min(v0 + lane_id() / LANES, n - 1), own = number[v];
        OFFSET row = indptr[v];
        visit_row(
            indices + row, own < 0 ? 0 : (int)(indptr[v + 1] - row),
            [&](int u) { return u > v ? number[u] : UNCOLORED; },
            [&](int u, int color) {
                if (color >= 0 && color == own) number[gives_way(v, u, by_degree, degrees) ? v : u] = UNCOLORED;
            });
    }
}

// The turn of a class of hubs has come: the list of them.
__device__ void take_up(long long n, const int* degrees, int shift, int* number, int* C, int* U, int* vertices) {
    for (long long v0 = thread_id() - lane_id(); v0 < n; v0 += thread_count()) {
        long long v = v0 + lane_id();
        bool hub = v < n && degrees[v] >> shift == 1;
        int position = warp_append(hub, vertices);
        if (hub) {
            U[position] = (int)v;
            number[v] = UNCOLORED;
            C[v] = 0;
        }
    }
}

// And the list of uncolored vertices.
__device__ void to_bits(long long n, const int* number, int* C, int* CS, int* U, int* vertices) {
    for (long long v0 = thread_id() - lane_id(); v0 < n; v0 += thread_count()) {
        long long v = v0 + lane_id();
        int color = v < n ? number[v] : 0;
        int position = warp_append(color < 0, vertices);
        if (color < 0) U[position] = (int)v;
        if (v < n) {
            C[v] = color < 0 ? 0 : 1 << color % SET_SIZE;
            CS[v] = max(color, 0) / SET_SIZE;
        }
    }
}

// On this block's stretch of the list of uncolored vertices, as is list_edges; returns how many edges this thread
// counted.
__device__ int forbid_finals(const int* U, int first, int last, const OFFSET* indptr, const int* indices,
                             const int* degrees, const int* number, int* CS, int* VF, int* TVF, int* counts) {
    int counted = 0;
    for (int i0 = first; i0 < last; i0 += blockDim.x / LANES) {
        int i = i0 + threadIdx.x / LANES, v = i < last ? U[i] : 0;
        OFFSET row = indptr[v];
        int entries = i < last ? (int)(indptr[v + 1] - row) : 0, forbidden = 0, count = 0;
        int set = first_number(indices + row, entries, number) / SET_SIZE;
        visit_row(
            indices + row, entries, [&](int u) { return number[u]; },
            [&](int u, int color) {
                if (to_list(v, u, color, set))
                    ++count;
                else if (color >= set * SET_SIZE)
                    forbidden |= 1 << (color - set * SET_SIZE);
            });
        forbidden = (int)team_or<LANES>((uint32)forbidden);
        count = lane_sum<LANES>(count);
        if (i < last && threadIdx.x % LANES == 0) {
            CS[v] = set;
            VF[v] = forbidden | beyond(degrees[v], set);
            TVF[v] = 0;
            counts[i] = count;
            counted += count;
        }
    }
    return counted;
}

// From `offset` on, the end of each edge first that gives way.
__device__ void list_edges(const int* U, int first, int last, const OFFSET* indptr, const int* indices,
                           const int* degrees, bool by_degree, const int* number, const int* CS, const int* counts,
                           int offset, int2* E) {
    for (int i0 = first; i0 < last; i0 += blockDim.x / LANES) {
        int i = i0 + threadIdx.x / LANES, v = i < last ? U[i] : 0, count = i < last ? counts[i] : 0, of_block;
        int before = block_scan(threadIdx.x % LANES == 0 ? count : 0, of_block), set = CS[v];
        int next = offset + __shfl_sync(FULL_WARP, before, 0, LANES);
        OFFSET row = indptr[v];
        visit_row(
            indices + row, count ? (int)(indptr[v + 1] - row) : 0, [&](int u) { return number[u]; },
            [&](int u, int color) {
                bool keep = to_list(v, u, color, set);
                int place = place_in_row<LANES>(keep, next);
                if (keep) E[place] = gives_way(v, u, by_degree, degrees) ? make_int2(v, u) : make_int2(u, v);
            });
        offset += of_block;
    }
}

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int waves[32];     // uncolored vertices that each wave begins its list with
    int uncolored[2];  // length of the list of uncolored vertices, by parity of the round
    int length[2];     // of the edge list, for the atomic worklist
    int counts[1];     // edges kept by each block; as long as scratch allows
};

// Five blocks to a processor: with the registers that the compiler would take otherwise there would be four.
extern "C" __global__ void __launch_bounds__(BLOCK, 5)
    color_edges(long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long by_degree,
                long long highest, long long lowest, int* number, int* C, int* CS, int* VF, int* TVF, int* uncolored,
                int2* edges, long long max_edges, void* scratch, long long pps, long long chunk, int2* log) {
    Control* control = (Control*)scratch;
    int* counts = control->counts;
    int2 *E = edges, *spare = edges + max_edges;
    int *U = uncolored, *spare_U = uncolored + n;
    int round = 0, waiting = (int)n;
    for (long long v = thread_id(); v < n; v += thread_count()) number[v] = WAITING;
    grid_barrier(&control->arrivals);

    for (int shift = (int)highest; shift >= lowest - 1; --shift) {
        bool hubs = shift >= lowest;
        int* begun = &control->waves[highest - shift];
        if (hubs) {
            take_up(n, degrees, shift, number, C, U, begun);
        } else {
            first_numbers(n, indptr, indices, chunk, number);
            grid_barrier(&control->arrivals);

            first_conflicts(n, indptr, indices, degrees, by_degree, number);
            grid_barrier(&control->arrivals);

            to_bits(n, number, C, CS, U, begun);
        }
        grid_barrier(&control->arrivals);

        int length, offset, vertices = ptx::load_l2(begun);
        if (hubs) {
            waiting -= vertices;
        } else {
            ++round;
            if (thread_id() == 0) log_round(log, n, round, waiting, vertices);
        }
        if (!vertices) continue;
        int share = (vertices + gridDim.x - 1) / gridDim.x;
        int first_i = (int)min(blockIdx.x * (long long)share, (long long)vertices);
        int last_i = min(first_i + share, vertices);
        int* listed = (int*)spare;  // how many edges by vertex of U; each of these has an edge, so that there is room
        int count = block_sum(forbid_finals(U, first_i, last_i, indptr, indices, degrees, number, CS, VF, TVF, listed));
        if (threadIdx.x == 0) counts[blockIdx.x] = count;
        grid_barrier(&control->arrivals);

        offset = stretch_offset(counts, length);
        list_edges(U, first_i, last_i, indptr, indices, degrees, by_degree, number, CS, listed, offset, E);
        grid_barrier(&control->arrivals);

        while (vertices) {
            ++round;
            for (long long first = thread_id() * chunk; first < length; first += thread_count() * chunk)
                for (int e = first; e < min(first + chunk, (long long)length); ++e)
                    tentative_color(E[e], C, CS, VF, TVF);
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
                int v = i < vertices ? U[i] : 0, color = ptx::load_l2(&C[v]);
                bool left = i < vertices && !color;
                if (i < vertices && color) number[v] = to_number(color, CS[v]);
                int position = warp_append(left, &control->uncolored[round & 1]);
                if (left) spare_U[position] = v;
            }
            // Each warp has a stretch of the edges. It packs what it keeps of it in place, and behind a barrier moves
            // that behind what the warps before it keep.
            long long warp = thread_id() / WARP,
                      stretch = (length + thread_count() / WARP - 1) / (thread_count() / WARP);
            int first = (int)min(warp * stretch, (long long)length),
                last = (int)min(first + stretch, (long long)length);
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
            if (!pps) length = ptx::load_l2(&control->length[round & 1]);
            int before = vertices;
            vertices = ptx::load_l2(&control->uncolored[round & 1]);
            if (thread_id() == 0) log_round(log, n, round, before, vertices);
            int2* E_before = E;
            E = spare;
            spare = E_before;
            int* U_before = U;
            U = spare_U;
            spare_U = U_before;
        }
    }
}

// At distance two: no edges are listed, but the pairs of uncolored vertices looked for, LANES threads for each vertex.
// If `some_colored`, C holds the colors of some vertices, and the log already has one round.
extern "C" __global__ void __launch_bounds__(BLOCK)
    color_pairs(long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long by_degree,
                long long some_colored, int* reach, int* C, int* CS, int* VF, int* TVF, int* uncolored, void* scratch,
                int2* log) {
    Control* control = (Control*)scratch;
    int *U = uncolored, *spare_U = uncolored + n;
    long long first_team = thread_id() / LANES, teams = thread_count() / LANES;
    for (long long v = thread_id(); v < n; v += thread_count()) {
        int most = degrees[v];
        for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) most = max(most, degrees[indices[k]]);
        reach[v] = most;
        int color = some_colored ? C[v] : UNCOLORED;
        start_vertex(v, most, C, CS, VF, TVF);
        if (color != UNCOLORED) {
            C[v] = 1 << color % SET_SIZE;
            CS[v] = color / SET_SIZE;
        }
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

    // FORBIDCOLORS for those without a color, which are listed anew.
    auto forbid_near = [&](int round) {
        for (long long i0 = (thread_id() - lane_id()) / LANES; i0 < vertices; i0 += teams) {
            long long i = i0 + lane_id() / LANES;
            int v = i < vertices ? U[i] : 0, finals = 0, others = 0;
            bool left = i < vertices && C[v] == 0;
            if (left)
                any_near<LANES>(v, 2, indptr, indices, [&](OFFSET k) {
                    int u = indices[k];
                    if (C[u] == 0 && u != v)
                        others |= 1 << mix((uint32)u, 0) % SET_SIZE;
                    else if (CS[u] == CS[v])
                        finals |= C[u];
                    return false;
                });
            finals = (int)team_or<LANES>((uint32)finals);
            int known = __popc(finals) + __popc(team_or<LANES>((uint32)others));
            bool is_leader = left && lane_id() % LANES == 0;
            if (is_leader) VF[v] = finals | beyond(max(known, reach[v] - CS[v] * SET_SIZE), 0);
            int position = warp_append(is_leader, &control->uncolored[round & 1]);
            if (is_leader) spare_U[position] = v;
        }
        grid_barrier(&control->arrivals);
        vertices = ptx::load_l2(&control->uncolored[round & 1]);
        int* U_before = U;
        U = spare_U;
        spare_U = U_before;
    };

    if (some_colored) forbid_near(0);
    for (int round = 1; vertices; ++round) {
        visit_pairs([&](int2 edge) { tentative_color(edge, C, CS, VF, TVF); });
        grid_barrier(&control->arrivals);

        for (long long i = thread_id(); i < vertices; i += thread_count()) assign_color(U[i], reach, C, CS, VF, TVF);
        grid_barrier(&control->arrivals);

        visit_pairs([&](int2 edge) { detect_conflict(edge, C, CS); });
        if (thread_id() == 0) control->uncolored[round & 1] = 0;
        grid_barrier(&control->arrivals);

        int before = vertices;
        forbid_near(round);
        if (thread_id() == 0) log_round(log, n, round + some_colored, before, vertices);
    }
    from_bits(n, C, CS);
}
