// Eisenstat's form: one warp per slice, in color order; values are waited for. See eisenstat.py.

#include "../storage/layouts/slices.cuh"
#include "books.cuh"

struct __align__((sizeof(UNKNOWN) > sizeof(VALUE) ? 1 : 2) * sizeof(VALUE)) Pair {
    UNKNOWN t, s;
};

// t is known, s is waited for.
struct Pairs : Known<Pair> {
    __device__ __forceinline__ uint32 late(const Pair& seen) const { return is_empty(seen.s); }
    __device__ __forceinline__ Pair again(int j) const { return {values[j].t, look_again(&values[j].s)}; }
};

// A number is inverted faster than its inverse is read.
#ifdef BLOCK_SIZE
#define INVERTED(T_i, i) Tinv[i]
#else
#define INVERTED(T_i, i) ((VALUE)1 / (T_i))
#endif

extern "C" __global__ void __launch_bounds__(256, WARPS_LIMIT / 8) solve_lower(
        long long n_slices, const int* slices, const OFFSET* indptr, const int* columns, const COUPLING* values,
        const PIVOT* Tinv, const UNKNOWN* r, UNKNOWN* rho) {
    for_slices(0, n_slices, false, slices, columns, [&](const Slice& slice) {
        int i = slice.index();
        bool leads = slice.leads();
        PIVOT d = leads ? Tinv[i] : PIVOT();
        UNKNOWN b = leads ? r[i] : UNKNOWN(), total = UNKNOWN();
        slice.entries(indptr, columns, values, awaited(rho), [&](COUPLING a, int, UNKNOWN rho_j) { total += a * rho_j; });
        total = slice.sum(total);
        if (leads) publish(&rho[i], d * (b - total));
    });
}

extern "C" __global__ void __launch_bounds__(256, WARPS_LIMIT / 8) sweep_back(
        long long n_slices, const int* slices, const OFFSET* indptr, const int* columns, const COUPLING* values,
        long long first_rows, const PIVOT* dinv, double omega, const UNKNOWN* rho, UNKNOWN* q, UNKNOWN* t, Pair* ts,
        const long long* control, const double* scalars) {
    if (control[STATE] != RUNNING) return;
    REAL beta = (REAL)scalars[BETA], step = (REAL)scalars[STEP];
    for_slices(0, n_slices, true, slices, columns, [&](const Slice& slice) {
        int i = slice.index();
        bool leads = slice.leads(), is_first = slice.first < first_rows;
        PIVOT d = leads ? dinv[i] : PIVOT();
        UNKNOWN rho_i = leads ? rho[i] : UNKNOWN(), q_i = leads && !is_first ? q[i] : UNKNOWN(), total = UNKNOWN();
        slice.entries(indptr, columns, values, awaited(t), [&](COUPLING a, int, UNKNOWN t_j) { total += a * t_j; });
        total = rounded_product((REAL)omega, divided(slice.sum(total), d));
        if (!leads) return;
        if (is_first) {
            ts[i].t = step * rho_i - total;
            publish(&ts[i].s, total);
        } else {
            UNKNOWN own = rho_i + beta * q_i, value = own - total;
            publish(&t[i], value);
            q[i] = own;
            ts[i].t = value;
            make_empty(&ts[i].s);
        }
    });
}

extern "C" __global__ void __launch_bounds__(256, WARPS_LIMIT / 8 - WARPS_LIMIT / 32) sweep_forward(
        long long n_slices, const int* slices, const OFFSET* indptr, const int* columns, const COUPLING* values,
        long long first, const PIVOT* T, const PIVOT* Tinv, const PIVOT* diagonal, const UNKNOWN* q, Pair* ts,
        UNKNOWN* At, long long* control, double* scalars, double* history, double* partials) {
    if (control[STATE] != RUNNING) return;
    double product = 0;
    for_slices(first, n_slices, false, slices, columns, [&](const Slice& slice) {
        int i = slice.index();
        bool leads = slice.leads();
        UNKNOWN L_t = UNKNOWN(), L_s = UNKNOWN(), t_i = UNKNOWN(), q_i = UNKNOWN();
        PIVOT T_i = PIVOT(), D_i = PIVOT();
        if (leads) t_i = ts[i].t, q_i = q[i], T_i = T[i], D_i = diagonal[i];
        slice.entries(indptr, columns, values, Pairs{{ts}}, [&](COUPLING a, int, Pair both) {
            L_t += a * both.t;
            L_s += a * both.s;
        });
        L_t = slice.sum(L_t);
        L_s = slice.sum(L_s);
        if (leads) {
            // Products wait for what they multiply, so none comes before the entries have been asked for.
            UNKNOWN T_q = T_i * q_i, T_t = T_i * t_i, D_t = D_i * t_i;
            UNKNOWN s_i = INVERTED(T_i, i) * (T_q - ((REAL)2 * T_t - D_t) - L_s);
            publish(&ts[i].s, s_i);
            At[i] = T_q + L_t + (D_t - T_t);
            product += inner(T_q, t_i + s_i);
        }
    });
    finish(PAP, product, control, scalars, history, partials);
}

extern "C" __global__ void begin_all(long long n, long long first_rows, const PIVOT* T, const UNKNOWN* r, const UNKNOWN* rho,
                                     UNKNOWN* q, long long* control, double* scalars, double* history,
                                     double* partials) {
    if (control[STATE] != RUNNING) return;
    double first_rr = 0, first_rz = 0, rz = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        UNKNOWN rho_i = rho[i];
        if (i < first_rows) {
            UNKNOWN r_i = r[i];
            first_rr += inner(r_i, r_i);
            first_rz += inner(r_i, rho_i);
        }
        rz += inner(T[i] * rho_i, rho_i);
        q[i] = UNKNOWN();
    }
    finish<3>({OF_FIRST_RR, OF_FIRST_RZ, FRESH_RZ}, {first_rr, first_rz, rz}, control, scalars, history, partials);
}

extern "C" __global__ void advance_all(long long n, long long first_rows, const Pair* ts, const UNKNOWN* At, const PIVOT* T,
                                       UNKNOWN* x, UNKNOWN* r, UNKNOWN* rho, UNKNOWN* t, long long* control,
                                       double* scalars, double* history, double* partials) {
    if (control[STATE] != RUNNING) return;
    REAL alpha = (REAL)scalars[ALPHA];
    double rr = 0, rz = 0;
    long long i = first_rows / WARP * WARP + thread_id();  // whole warps begin at whole lines of memory
    if (i < first_rows) i += thread_count();
    for (; i < first_rows + n; i += thread_count()) {
        Pair both = ts[i];
        x[i] += alpha * both.t;
        UNKNOWN rest = r[i] - alpha * At[i], rho_i = rho[i] - alpha * (both.t + both.s);
        r[i] = rest;
        rho[i] = rho_i;
        make_empty(&t[i]);
        rr += inner(rest, rest);
        rz += inner(T[i] * rho_i, rho_i);
    }
    finish<2>({RESIDUAL, BETA_OF_RZ}, {rr, rz}, control, scalars, history, partials);
}

extern "C" __global__ void __launch_bounds__(256, WARPS_LIMIT / 8) solve_first(
        long long n_slices, const int* slices, const OFFSET* indptr, const int* columns, const COUPLING* values,
        const PIVOT* dinv, double omega, const UNKNOWN* b, const UNKNOWN* r, UNKNOWN* x, const long long* control,
        const double* scalars) {
    if (control[ITERATION] == 0 || scalars[LEFT] == 1) return;
    REAL left = (REAL)scalars[LEFT];
    for_slices(0, n_slices, false, slices, columns, [&](const Slice& slice) {
        UNKNOWN total = UNKNOWN();
        auto add = [&](COUPLING a, int, UNKNOWN x_j) { total += a * x_j; };
        slice.entries(indptr, columns, values, known((const UNKNOWN*)x), add);
        total = slice.sum(total);
        int i = slice.index();
        if (!slice.leads()) return;
        PIVOT d = dinv[i];
        x[i] = (REAL)omega * (d * (b[i] - left * r[i]) - divided(total, d));
    });
}
