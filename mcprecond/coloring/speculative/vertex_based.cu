// IPGC, VB and VB BIT, each in one resident kernel; every __device__ function is the part of vertex_based.py with the
// same name.
//
// Races that are meant: in the first phase of a round a vertex may see a neighbor's color of this round or not yet, and
// what it misses is caught by `loses` behind a grid barrier. There, a vertex may see another one that is uncolored at
// that moment: then the other one gives way, so it may keep its color; or it saw the color and both give way.
// Either way a neighbor shows at most one color per round, whence the bound of degree + 1 colors.

#define MAXFORBID 64

struct Control {  // lies in `scratch`, which the host zeroes
    uint32 arrivals;
    int length[2];  // of the worklists, by parity of the round
};

__device__ bool loses(int v, long long distance, const OFFSET* indptr, const int* adjacency, const int* degrees,
                      bool by_degree, const int* C) {
    int color = fresh(&C[v]);
    return any_near<1>(v, distance, indptr, adjacency, [&](OFFSET k) {
        int u = adjacency[k];
        return fresh(&C[u]) == color && gives_way(v, u, by_degree, degrees);
    });
}

// FORBIDDEN of IPGC: a time stamp per color and, last, the time.
struct Stamps {
    int *forbidden, *time;

    __device__ int first_fit(int v, const OFFSET* indptr, const int* indices, const int* C) {
        int now = *time + 1;
        *time = now;
        for (OFFSET k = indptr[v]; k < indptr[v + 1]; ++k) {
            int color = fresh(&C[indices[k]]);
            if (color != UNCOLORED) forbidden[color] = now;
        }
        int color = 0;
        while (forbidden[color] == now) ++color;
        return color;
    }
};

// FORBIDDEN of VB: flags of one color range, in local memory.
struct Flags {
    unsigned char forbidden[MAXFORBID];

    __device__ void clear() {
        for (int i = 0; i < MAXFORBID; ++i) forbidden[i] = 0;
    }
    __device__ void forbid_color(int color) { forbidden[color] = 1; }
    __device__ int set_color() {
        int color = 0;
        while (color < MAXFORBID && forbidden[color]) ++color;
        return color;
    }
};

// FORBIDDEN of VB BIT: bits of one color range, in registers.
struct Bits {
    uint64 forbidden;

    __device__ void clear() { forbidden = 0; }
    __device__ void forbid_color(int color) { forbidden |= 1ull << color; }
    __device__ int set_color() { return ~forbidden ? __ffsll((long long)~forbidden) - 1 : MAXFORBID; }
};

// Algorithm 4. A row is permuted by the one thread that colors its vertex in this phase; the next one to read it does
// so behind a grid barrier.
template <typename Forbidden>
__device__ int first_fit_by_ranges(int v, long long distance, const OFFSET* indptr, int* adjacency, bool filtering,
                                   const int* C) {
    Forbidden forbidden;
    OFFSET seen = 0;  // entries of its row that filtering has put in front
    for (int offset = 0;; offset += MAXFORBID) {
        forbidden.clear();
        any_near<1>(v, distance, indptr, adjacency, [&](OFFSET k) {
            if (filtering && k < indptr[v] + seen) return false;
            int u = adjacency[k];
            int color = fresh(&C[u]) - offset;
            if (color < 0 || color >= MAXFORBID) return false;
            forbidden.forbid_color(color);
            if (filtering) {
                adjacency[k] = adjacency[indptr[v] + seen];
                adjacency[indptr[v] + seen++] = u;
            }
            return false;
        });
        int color = forbidden.set_color();
        if (color < MAXFORBID) return offset + color;
    }
}

// Algorithm 1. `worker` numbers the threads that color, which are `workers` many; the others only detect.
template <typename FirstFit>
__device__ void color_iteratively(long long n, long long distance, const OFFSET* indptr, const int* adjacency,
                                  const int* degrees, long long chunk, bool by_degree, int* C, int* worklists,
                                  void* scratch, int2* log, long long worker, long long workers, FirstFit first_fit) {
    Control* control = (Control*)scratch;
    for (long long v = thread_id(); v < n; v += thread_count()) {
        C[v] = UNCOLORED;
        worklists[v] = (int)v;
    }
    grid_barrier(&control->arrivals);
    int length = (int)n;
    for (int round = 0; length; ++round) {
        const int* conf = worklists + (round & 1) * n;
        int* new_conf = worklists + (~round & 1) * n;
        int* new_length = &control->length[round & 1];

        // ASSIGNCOLORS
        if (worker < workers)
            for (long long first = worker * chunk; first < length; first += workers * chunk)
                for (long long i = first; i < min(first + chunk, (long long)length); ++i)
                    C[conf[i]] = first_fit(conf[i]);
        // All have read this slot two rounds ago, before the last barrier.
        if (thread_id() == 0) *new_length = 0;
        grid_barrier(&control->arrivals);

        // DETECTCONFLICTS
        for (long long i0 = thread_id() - lane_id(); i0 < length; i0 += thread_count()) {
            long long i = i0 + lane_id();
            int v = i < length ? conf[i] : 0;
            bool lost = i < length && loses(v, distance, indptr, adjacency, degrees, by_degree, C);
            if (lost) C[v] = UNCOLORED;
            int position = warp_append(lost, new_length);
            if (lost) new_conf[position] = v;
        }
        grid_barrier(&control->arrivals);
        int before = length;
        length = fresh(new_length);
        if (thread_id() == 0) log_round(log, n, round + 1, before, length);
    }
}

extern "C" __global__ void __launch_bounds__(256) color_ipgc(
        long long n, const OFFSET* indptr, const int* indices, const int* degrees, long long chunk, long long by_degree,
        int* C, int* worklists, void* scratch, int2* log, int* forbidden, long long row, long long threads) {
    long long worker = spread_id();  // the memory of FORBIDDEN may allow for a few threads only
    long long workers = min(threads, thread_count());
    Stamps own = {forbidden + worker * row, forbidden + worker * row + row - 1};
    color_iteratively(n, 1, indptr, indices, degrees, chunk, by_degree, C, worklists, scratch, log, worker, workers,
                      [&](int v) { return own.first_fit(v, indptr, indices, C); });
}

extern "C" __global__ void __launch_bounds__(256) color_vb(
        long long n, long long distance, const OFFSET* indptr, int* adjacency, const int* degrees, long long chunk,
        long long by_degree, int* C, int* worklists, void* scratch, int2* log, long long filtering) {
    color_iteratively(n, distance, indptr, adjacency, degrees, chunk, by_degree, C, worklists, scratch, log,
                      thread_id(), thread_count(),
                      [&](int v) { return first_fit_by_ranges<Flags>(v, distance, indptr, adjacency, filtering, C); });
}

extern "C" __global__ void __launch_bounds__(256) color_vb_bit(
        long long n, long long distance, const OFFSET* indptr, int* adjacency, const int* degrees, long long chunk,
        long long by_degree, int* C, int* worklists, void* scratch, int2* log, long long filtering) {
    color_iteratively(n, distance, indptr, adjacency, degrees, chunk, by_degree, C, worklists, scratch, log,
                      thread_id(), thread_count(),
                      [&](int v) { return first_fit_by_ranges<Bits>(v, distance, indptr, adjacency, filtering, C); });
}
