// One kernel runs the V cycle on all small levels, from the finest of them to the coarsest and back. See
// small_levels.py.

#include "cuda/reduce.cuh"
#include "polynomial.cuh"

#define FLIP 0x80000000u

// A matrix, of which `lanes` threads share a row.
struct Rows {
    const OFFSET* indptr;
    const int* indices;
    const STORED* values;
    long long n, lanes;
};

// A level, on which the first `blocks` blocks of the grid work. On the coarsest level P and R are empty.
struct SmallLevel {
    Rows A, P, R;
    const VALUE* dinv;
    const double* coefficients;  // alpha and beta of each step of a sweep
    long long degree;
    VALUE *b, *x, *r, *d, *other;
    uint32* arrivals;
    long long blocks;
};
struct SmallLevels {
    SmallLevel at[MOST_LEVELS];
};
__device__ __forceinline__ uint32 blocks_of(const SmallLevel& level) {
    return (uint32)min(level.blocks, (long long)gridDim.x);
}

// A barrier for the blocks that work on a level. All blocks of the grid have to be resident. Between `arrive` and `wait`
// a thread may load data that no other thread writes. Each block adds 1 to the counter, except for the first block, which
// adds FLIP - (blocks - 1). Together they add FLIP, which flips the highest bit and leaves all others unchanged. So the
// counter never has to be reset.
struct LevelBarrier {
    uint32 *arrivals, blocks, before;

    __device__ __forceinline__ LevelBarrier() : arrivals(nullptr) {}
    __device__ __forceinline__ LevelBarrier(const SmallLevel& level)
        : arrivals(level.arrivals), blocks(blocks_of(level)) {}

    __device__ __forceinline__ void arrive() {
        if (!arrivals) return;
        __syncthreads();
        if (threadIdx.x > 0) return;
        __threadfence();
        before = atomicAdd(arrivals, blockIdx.x == 0 ? FLIP - (blocks - 1) : 1u);
    }
    __device__ __forceinline__ void wait() const {
        if (!arrivals) return;
        if (threadIdx.x == 0) {
            while (((ptx::load_volatile(arrivals) ^ before) & FLIP) == 0) {
            }
            ptx::load_acquire(arrivals);
        }
        __syncthreads();
    }
};

// The product a x, rounded before it is added to a sum. Products in linalg/csr.cuh are rounded when they are stored in
// shared memory, and results should have the same bits.
template <typename T>
__device__ __forceinline__ T term(T a, T x) {
    if constexpr (sizeof(T) == sizeof(Real<T>))
        return rounded_product(a, x);
    else
        return a * x;
}

// The entries of a row that a thread multiplies, of which it loads PER_LANE at a time.
struct Entries {
    OFFSET next, end;
    int columns[PER_LANE];
    STORED values[PER_LANE];

    __device__ __forceinline__ void begin(const Rows& A, long long i, int lane) {
        next = i < A.n ? A.indptr[i] + lane : 0, end = i < A.n ? A.indptr[i + 1] : 0;
        load(A);
    }
    __device__ __forceinline__ void load(const Rows& A) {
#pragma unroll
        for (int e = 0; e < PER_LANE; ++e) {
            OFFSET k = next + e * (OFFSET)A.lanes;
            columns[e] = k < end ? A.indices[k] : -1;
            values[e] = k < end ? A.values[k] : STORED();
        }
    }
    template <typename SUM, typename Vector>
    __device__ __forceinline__ SUM sum(const Rows& A, Vector x) {
        SUM total = SUM(), of_x[PER_LANE];
        while (true) {
#pragma unroll
            for (int e = 0; e < PER_LANE; ++e) of_x[e] = columns[e] >= 0 ? (SUM)x[columns[e]] : SUM();
#pragma unroll
            for (int e = 0; e < PER_LANE; ++e)
                if (columns[e] >= 0) total += term((SUM)values[e], of_x[e]);
            next += PER_LANE * (OFFSET)A.lanes;
            if (next >= end) return total;
            load(A);
        }
    }
};

// Wait at a barrier, and then multiply all rows of A with x on the first `blocks` blocks. For each row,
// `row_done(i, own, total)` gets the sum, which has the same bits as that of linalg/csr.cuh if no row is cut there, and
// the numbers that `load_own(i)` has returned.
template <typename SUM, typename Vector, typename LoadOwn, typename RowDone>
__device__ __forceinline__ void each_row(LevelBarrier barrier, uint32 blocks, const Rows& A, Vector x,
                                         LoadOwn load_own, RowDone row_done) {
    int lanes = (int)A.lanes, lane = threadIdx.x % lanes, rows = BLOCK / lanes;
    long long first = blockIdx.x * (long long)rows, i = first + threadIdx.x / lanes;
    Entries entries;
    barrier.arrive();
    entries.begin(A, i, lane);
    barrier.wait();
    for (; first < A.n; first += blocks * (long long)rows) {
        auto own = load_own(min(i, A.n - 1));
        SUM total = entries.template sum<SUM>(A, x);
        for (int step = lanes / 2; step > 0; step /= 2) total += shuffle_xor(total, step);
        if (i < A.n && lane == 0) row_done(i, own, total);
        i += blocks * (long long)rows;
        entries.begin(A, i, lane);
    }
}

// A step of the smoother, as `step` and `first_steps` of polynomial.cu; `last` is how far the one before went.
template <typename Vector, typename Last>
__device__ __forceinline__ void step(LevelBarrier barrier, const SmallLevel& level, long long number, const VALUE* b,
                                     Vector x, Last last, VALUE* y) {
    struct Own {
        VALUE x, last, dinv, b;
    };
    const double* chosen = level.coefficients + 2 * (number % level.degree);
    double alpha = chosen[0], beta = chosen[1];
    VALUE* d = level.d;
    each_row<VALUE>(
        barrier, blocks_of(level), level.A, x,
        [&](long long i) {
            return Own{x[i], last[i], level.dinv[i], b[i]};
        },
        [&](long long i, Own own, VALUE product) {
            VALUE move = next_move(alpha, own.last, beta, own.dinv, own.b - product);
            d[i] = move, y[i] = own.x + move;
        });
}

// Take all steps of the smoother from zero. There have to be at least two. The last one writes to `last`.
__device__ __forceinline__ void smooth_from_zero(LevelBarrier barrier, const SmallLevel& level, long long steps,
                                                 const VALUE* b, VALUE* last, VALUE* spare) {
    VALUE *to = steps % 2 ? spare : last, *from = steps % 2 ? last : spare;
    FirstStep first{level.dinv, b, level.coefficients[1]};
    step(barrier, level, 1, b, first, first, to);
    for (long long k = 2; k < steps; ++k) {
        VALUE* next = from;
        from = to, to = next;
        step(LevelBarrier(level), level, k, b, from, level.d, to);
    }
}

// Steps alternate between two vectors. Return the one to begin with so that the last of `steps` steps writes x.
__device__ __forceinline__ VALUE* start_of(const SmallLevel& level, long long steps, VALUE* x) {
    return steps % 2 ? level.other : x;
}

// Take all steps of the smoother after the correction.
__device__ __forceinline__ void smooth(const SmallLevel& level, long long steps, const VALUE* b, VALUE* x) {
    VALUE *from = start_of(level, steps, x), *to = start_of(level, steps + 1, x);
    for (long long k = 0; k < steps; ++k) {
        step(LevelBarrier(level), level, k, b, from, level.d, to);
        VALUE* next = from;
        from = to, to = next;
    }
}

// y = C x with a dense matrix, a warp to a row, as in linalg/dense.cu.
__device__ __forceinline__ void multiply_dense(LevelBarrier barrier, uint32 blocks, long long n, const COARSE* matrix,
                                               const COARSE* x, COARSE* y) {
    barrier.arrive();
    barrier.wait();
    for (long long i = thread_id() / WARP; i < n; i += blocks * (BLOCK / WARP)) {
        COARSE total = COARSE();
        for (long long j = lane_id(); j < n; j += WARP) total += matrix[i * n + j] * x[j];
        total = lane_sum<WARP>(total);
        if (lane_id() == 0) y[i] = total;
    }
}

// `before` and `after` are the numbers of sweeps. `inverse` is the inverse of the matrix on the coarsest level, or null
// if that level is smoothed as well. A block that does not work on a level waits for the others at the next barrier of
// the level above.
extern "C" __global__ void __launch_bounds__(BLOCK)
    cycle(long long threads, const __grid_constant__ SmallLevels levels, long long count, const COARSE* inverse,
          COARSE* coarse_b, COARSE* coarse_x, long long before, long long after, const VALUE* first_b,
          VALUE* first_x) {
    auto nothing = [](long long) { return 0; };
    auto b_of = [&](long long l) { return l ? levels.at[l].b : first_b; };
    auto x_of = [&](long long l) { return l ? levels.at[l].x : first_x; };
    LevelBarrier barrier;  // that of the level above
    long long l = 0;
    for (; l < count; ++l) {
        const SmallLevel& level = levels.at[l];
        if (blockIdx.x >= level.blocks) {
            barrier.arrive();
            barrier.wait();
            break;
        }
        const VALUE* b = b_of(l);
        VALUE* x = x_of(l);
        bool is_last = l == count - 1;
        if (is_last && !inverse) {
            long long steps = level.degree;
            smooth_from_zero(barrier, level, steps, b, start_of(level, steps, x), start_of(level, steps + 1, x));
            smooth(level, steps, b, x);
            break;
        }
        smooth_from_zero(barrier, level, before * level.degree, b, x, level.other);
        barrier = LevelBarrier(level);
        uint32 blocks = blocks_of(level);
        VALUE* r = level.r;
        each_row<VALUE>(
            barrier, blocks, level.A, x, [&](long long i) { return b[i]; },
            [&](long long i, VALUE own, VALUE product) { r[i] = own - product; });
        if (is_last) {
            each_row<VALUE>(barrier, blocks, level.R, r, nothing,
                            [&](long long i, int, VALUE sum) { coarse_b[i] = (COARSE)sum; });
            multiply_dense(barrier, blocks, level.R.n, inverse, coarse_b, coarse_x);
            ++l;
            break;
        }
        VALUE* below = levels.at[l + 1].b;
        each_row<VALUE>(barrier, blocks, level.R, r, nothing, [&](long long i, int, VALUE sum) { below[i] = sum; });
    }
    while (l-- > 0) {
        const SmallLevel& level = levels.at[l];
        long long steps = after * level.degree;
        VALUE *x = x_of(l), *start = start_of(level, steps, x);
        auto own = [&](long long i) { return x[i]; };
        if (inverse && l == count - 1)
            each_row<COARSE>(LevelBarrier(level), blocks_of(level), level.P, coarse_x, own,
                             [&](long long i, VALUE x_i, COARSE sum) { start[i] = x_i + (VALUE)sum; });
        else
            each_row<VALUE>(LevelBarrier(level), blocks_of(level), level.P, levels.at[l + 1].x, own,
                            [&](long long i, VALUE x_i, VALUE sum) { start[i] = x_i + sum; });
        smooth(level, steps, b_of(l), x);
    }
}
