// Eisenstat's form of PCG: one warp per slice, in color order. A row waits for the values that it needs, see
// sweeps/syncfree.cuh. See eisenstat.py for what each kernel computes.

#include "cuda/occupancy.cuh"
#include "iteration.cuh"
#include "storage/layouts/slices.cuh"
#include "sweeps/syncfree.cuh"

struct __align__((sizeof(VectorEntry) > sizeof(VALUE) ? 1 : 2) * sizeof(VALUE)) Pair {
    VectorEntry t, s;
};

// A vector of pairs of which t is known and s has a sentinel.
struct PairVector : AwaitedVector<PairVector, Pair> {
    __device__ __forceinline__ uint32 not_ready(const Pair& pair) const { return is_sentinel(pair.s); }
    __device__ __forceinline__ Pair poll(int j) const { return {values[j].t, load_volatile(&values[j].s)}; }
};

// The recurrence where the first rows are kept apart: their share of each inner product follows from that at the start.
struct EisenstatRecurrence : Recurrence {
    __device__ void take_pAp(double pAp) {
        double step = scalars[STEP];
        Recurrence::take_pAp(pAp + step * step * scalars[FIRST_RZ]);
        if (is_running()) scalars[LEFT] -= scalars[ALPHA] * step;
    }

    __device__ void take_rr_and_rz(double rr, double rz) {
        double left = scalars[LEFT];
        end_iteration(rr + left * left * scalars[FIRST_RR]);
        take_rz(rz + left * left * scalars[FIRST_RZ]);
        scalars[STEP] = left + scalars[BETA] * scalars[STEP];
    }

    // Where the direction is kept, beta changes as r'z has changed, and so does the share of that direction in q.
    __device__ void begin(bool keeps, double first_rr, double first_rz, double rz) {
        double beta = 0, of_first = 0;
        if (keeps && scalars[RZ] > 0) {
            double left = scalars[LEFT], change = rz / scalars[RZ];
            beta = scalars[BETA] * change;
            if (first_rz > 0) of_first = (scalars[STEP] - left) * left * scalars[FIRST_RZ] / first_rz * change;
        }
        scalars[FIRST_RR] = first_rr;
        scalars[FIRST_RZ] = first_rz;
        scalars[LEFT] = first_rz > 0;
        scalars[STEP] = scalars[LEFT] + of_first;
        take_first_rz(rz);
        scalars[BETA] = beta;
    }
};

// To invert a number takes less time than to load its inverse.
#ifdef BLOCK_SIZE
#define INVERTED(T_i, i) Tinv[i]
#else
#define INVERTED(T_i, i) ((VALUE)1 / (T_i))
#endif

extern "C" __global__ void __launch_bounds__(BLOCK, SWEEP_BLOCKS)
    solve_lower(long long n_slices, const int* slices, void* sums, const OFFSET* indptr, const int* columns,
                const MatrixEntry* values, const DiagonalEntry* Tinv, const VectorEntry* r, VectorEntry* rho) {
    for_slices(0, n_slices, false, slices, sums, columns, [&](const Slice& slice) {
        int i = slice.index();
        bool is_leader = slice.is_row_leader();
        DiagonalEntry d = is_leader ? Tinv[i] : DiagonalEntry();
        VectorEntry b = is_leader ? r[i] : VectorEntry(), total = VectorEntry();
        slice.entries(indptr, columns, values, by_sentinel(rho),
                      [&](MatrixEntry a, int, VectorEntry rho_j) { total += a * rho_j; });
        if (slice.sum_row(total)) publish(&rho[i], d * (b - total));
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK, SWEEP_BLOCKS)
    sweep_back(long long n_slices, const int* slices, void* sums, const OFFSET* indptr, const int* columns,
               const MatrixEntry* values, long long first_rows, const DiagonalEntry* dinv, double omega,
               const VectorEntry* rho, VectorEntry* q, VectorEntry* t, Pair* ts, const long long* control,
               const double* scalars) {
    if (control[STATE] != RUNNING) return;
    REAL beta = (REAL)scalars[BETA], step = (REAL)scalars[STEP];
    for_slices(0, n_slices, true, slices, sums, columns, [&](const Slice& slice) {
        int i = slice.index();
        bool is_leader = slice.is_row_leader(), is_first = slice.first < first_rows;
        DiagonalEntry d = is_leader ? dinv[i] : DiagonalEntry();
        VectorEntry rho_i = is_leader ? rho[i] : VectorEntry(), q_i = is_leader && !is_first ? q[i] : VectorEntry();
        VectorEntry total = VectorEntry();
        slice.entries(indptr, columns, values, by_sentinel(t),
                      [&](MatrixEntry a, int, VectorEntry t_j) { total += a * t_j; });
        if (!slice.sum_row(total)) return;
        total = rounded_product((REAL)omega, divided(total, d));
        if (is_first) {
            ts[i].t = step * rho_i - total;
            publish(&ts[i].s, total);
        } else {
            VectorEntry own = rho_i + beta * q_i, value = own - total;
            publish(&t[i], value);
            q[i] = own;
            ts[i].t = value;
            store_sentinel(&ts[i].s);
        }
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK, TWO_SUMS_BLOCKS)
    sweep_forward(long long n_slices, const int* slices, void* sums, const OFFSET* indptr, const int* columns,
                  const MatrixEntry* values, long long first, const DiagonalEntry* T, const DiagonalEntry* Tinv,
                  const DiagonalEntry* diagonal, const VectorEntry* q, Pair* ts, VectorEntry* At, double* products,
                  EisenstatRecurrence recurrence) {
    if (!recurrence.is_running()) return;
    double product = 0;
    for_slices(first, n_slices, false, slices, sums, columns, [&](const Slice& slice) {
        int i = slice.index();
        bool is_leader = slice.is_row_leader();
        VectorEntry L_t = VectorEntry(), L_s = VectorEntry(), t_i = VectorEntry(), q_i = VectorEntry();
        DiagonalEntry T_i = DiagonalEntry(), D_i = DiagonalEntry();
        if (is_leader) t_i = ts[i].t, q_i = q[i], T_i = T[i], D_i = diagonal[i];
        slice.entries(indptr, columns, values, PairVector{{ts}}, [&](MatrixEntry a, int, Pair both) {
            L_t += a * both.t;
            L_s += a * both.s;
        });
        bool has_result = slice.sum_row(L_t, L_s);
        double own = 0;
        if (has_result) {
            // These products wait for loads: they come after the loop, which issues its own first.
            VectorEntry T_q = T_i * q_i, T_t = T_i * t_i, D_t = D_i * t_i;
            VectorEntry s_i = INVERTED(T_i, i) * (T_q - ((REAL)2 * T_t - D_t) - L_s);
            publish(&ts[i].s, s_i);
            At[i] = T_q + L_t + (D_t - T_t);
            own = inner(T_q, t_i + s_i);
        }
#ifdef PRODUCTS_APART
        own = lane_sum<WARP>(own);
        if (__any_sync(FULL_WARP, has_result) && lane_id() == 0) products[slice.first] = own;
#else
        product += own;
#endif
    });
#ifndef PRODUCTS_APART
    recurrence.finish<1>({product}, [&](const double* totals) { recurrence.take_pAp(totals[0]); });
#endif
}

extern "C" __global__ void find_alpha(long long n_slices, const int* slices, const double* products,
                                      EisenstatRecurrence recurrence) {
    if (!recurrence.is_running()) return;
    double product = 0;
    for (long long k = thread_id(); k < n_slices; k += thread_count()) {
        Slice slice(slices, k);
#ifdef CUT_ROWS
        if (slice.piece > 0) continue;
#endif
        product += products[slice.first];
    }
    recurrence.finish<1>({product}, [&](const double* totals) { recurrence.take_pAp(totals[0]); });
}

extern "C" __global__ void begin_all(long long n, long long first_rows, long long keeps, const DiagonalEntry* T,
                                     const VectorEntry* r, const VectorEntry* rho, VectorEntry* q,
                                     EisenstatRecurrence recurrence) {
    if (!recurrence.is_running()) return;
    double first_rr = 0, first_rz = 0, rz = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        VectorEntry rho_i = rho[i];
        if (i < first_rows) {
            VectorEntry r_i = r[i];
            first_rr += inner(r_i, r_i);
            first_rz += inner(r_i, rho_i);
        }
        rz += inner(T[i] * rho_i, rho_i);
        if (!keeps) q[i] = VectorEntry();
    }
    recurrence.finish<3>({first_rr, first_rz, rz},
                         [&](const double* totals) { recurrence.begin(keeps, totals[0], totals[1], totals[2]); });
}

extern "C" __global__ void advance_all(long long n, long long first_rows, const Pair* ts, const VectorEntry* At,
                                       const DiagonalEntry* T, VectorEntry* x, VectorEntry* r, VectorEntry* rho,
                                       VectorEntry* t, EisenstatRecurrence recurrence) {
    if (!recurrence.is_running()) return;
    REAL alpha = (REAL)recurrence.scalars[ALPHA];
    double rr = 0, rz = 0;
    long long i = first_rows / WARP * WARP + thread_id();  // whole warps begin at whole lines of memory
    if (i < first_rows) i += thread_count();
    for (; i < first_rows + n; i += thread_count()) {
        Pair both = ts[i];
        x[i] += alpha * both.t;
        VectorEntry rest = r[i] - alpha * At[i], rho_i = rho[i] - alpha * (both.t + both.s);
        r[i] = rest;
        rho[i] = rho_i;
        store_sentinel(&t[i]);
        rr += inner(rest, rest);
        rz += inner(T[i] * rho_i, rho_i);
    }
    recurrence.finish<2>({rr, rz}, [&](const double* totals) { recurrence.take_rr_and_rz(totals[0], totals[1]); });
}

extern "C" __global__ void __launch_bounds__(BLOCK, SWEEP_BLOCKS)
    solve_first(long long n_slices, const int* slices, void* sums, const OFFSET* indptr, const int* columns,
                const MatrixEntry* values, const DiagonalEntry* dinv, double omega, const VectorEntry* b,
                const VectorEntry* r, VectorEntry* x, const long long* control, const double* scalars) {
    if (control[ITERATION] == 0 || scalars[LEFT] == 1) return;
    REAL left = (REAL)scalars[LEFT];
    for_slices(0, n_slices, false, slices, sums, columns, [&](const Slice& slice) {
        VectorEntry total = VectorEntry();
        auto add = [&](MatrixEntry a, int, VectorEntry x_j) { total += a * x_j; };
        slice.entries(indptr, columns, values, known((const VectorEntry*)x), add);
        if (!slice.sum_row(total)) return;
        int i = slice.index();
        DiagonalEntry d = dinv[i];
        x[i] = (REAL)omega * (d * (b[i] - left * r[i]) - divided(total, d));
    });
}
