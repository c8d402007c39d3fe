// Eisenstat's form: one warp per slice, in color order; values are waited for. See eisenstat.py.

#include "books.cuh"

struct __align__(2 * sizeof(VALUE)) Pair {
    VALUE t, s;
};

extern "C" __global__ void __launch_bounds__(256, 4) solve_lower(
        long long n_slices, const int* slices, const OFFSET* indptr, const int* indices, const VALUE* values,
        const VALUE* Tinv, const VALUE* r, VALUE* rho) {
    for_slices(n_slices, false, slices, [&](const Slice& slice) {
        long long i = slice.index();
        bool leads = slice.leads();
        VALUE d = leads ? Tinv[i] : 0, b = leads ? r[i] : 0, total = 0;
        slice.entries(indptr, indices, values, [&](int j) { return rho[j]; },
                      [&](VALUE a, int j, VALUE seen) { total += a * arrived(&rho[j], seen); });
        total = slice.sum(total);
        if (leads) publish(&rho[i], (b - total) * d);
    });
}

extern "C" __global__ void __launch_bounds__(256, 4) sweep_back(
        long long n_slices, const int* slices, const OFFSET* indptr, const int* indices, const VALUE* values,
        const VALUE* T, const VALUE* Tinv, const VALUE* rho, VALUE* q, VALUE* t, Pair* ts, const long long* control,
        const double* scalars) {
    if (control[STATE] != RUNNING) return;
    VALUE beta = (VALUE)scalars[BETA];
    for_slices(n_slices, true, slices, [&](const Slice& slice) {
        long long i = slice.index();
        bool leads = slice.leads();
        VALUE d = leads ? Tinv[i] : 0, own = leads ? T[i] * rho[i] + beta * q[i] : 0, total = 0;
        slice.entries(indptr, indices, values, [&](int j) { return t[j]; },
                      [&](VALUE a, int j, VALUE seen) { total += a * arrived(&t[j], seen); });
        total = slice.sum(total);
        if (leads) {
            VALUE value = (own - total) * d;
            publish(&t[i], value);
            q[i] = own;
            ts[i].t = value;
            make_empty(&ts[i].s);
        }
    });
}

extern "C" __global__ void __launch_bounds__(256, 3) sweep_forward(
        long long n_slices, const int* slices, const OFFSET* indptr, const int* indices, const VALUE* values,
        const VALUE* T, const VALUE* Tinv, const VALUE* diagonal, const VALUE* q, Pair* ts, VALUE* At,
        long long* control, double* scalars, double* history, double* partials) {
    if (control[STATE] != RUNNING) return;
    double product = 0;
    for_slices(n_slices, false, slices, [&](const Slice& slice) {
        long long i = slice.index();
        bool leads = slice.leads();
        VALUE L_t = 0, L_s = 0, t_i = 0, q_i = 0, T_i = 0, D_i = 0, inverse = 0;
        if (leads) t_i = ts[i].t, q_i = q[i], T_i = T[i], D_i = diagonal[i], inverse = Tinv[i];
        slice.entries(indptr, indices, values, [&](int j) { return ts[j]; },
                      [&](VALUE a, int j, Pair seen) {
                          L_t += a * seen.t;
                          L_s += a * arrived(&ts[j].s, seen.s);
                      });
        L_t = slice.sum(L_t);
        L_s = slice.sum(L_s);
        if (leads) {
            VALUE s_i = (q_i - (2 * T_i - D_i) * t_i - L_s) * inverse;
            publish(&ts[i].s, s_i);
            At[i] = q_i + L_t + (D_i - T_i) * t_i;
            product += (double)q_i * (t_i + s_i);
        }
    });
    finish(PAP, product, control, scalars, history, partials);
}

extern "C" __global__ void advance_all(long long n, const Pair* ts, const VALUE* At, const VALUE* T, VALUE* x, VALUE* r,
                                       VALUE* rho, VALUE* t, long long* control, double* scalars, double* history,
                                       double* partials) {
    if (control[STATE] != RUNNING) return;
    VALUE alpha = (VALUE)scalars[ALPHA];
    double rr = 0, rz = 0;
    for (long long i = thread_id(); i < n; i += thread_count()) {
        Pair both = ts[i];
        x[i] += alpha * both.t;
        VALUE rest = r[i] - alpha * At[i], rho_i = rho[i] - alpha * (both.t + both.s);
        r[i] = rest;
        rho[i] = rho_i;
        make_empty(&t[i]);
        rr += (double)rest * rest;
        rz += (double)T[i] * rho_i * rho_i;
    }
    finish<2>({RESIDUAL, BETA_OF_RZ}, {rr, rz}, control, scalars, history, partials);
}

extern "C" __global__ void __launch_bounds__(256, 4) residual_of_blocks(
        long long n_slices, const int* slices, const OFFSET* lower_indptr, const int* lower_indices,
        const VALUE* lower, const OFFSET* upper_indptr, const int* upper_indices, const VALUE* upper,
        const VALUE* diagonal, const VALUE* x, const VALUE* b, VALUE* r) {
    for_slices(n_slices, false, slices, [&](const Slice& slice) {
        VALUE total = 0;
        auto look = [&](int j) { return x[j]; };
        auto add = [&](VALUE a, int, VALUE x_j) { total += a * x_j; };
        slice.entries(lower_indptr, lower_indices, lower, look, add);
        slice.entries(upper_indptr, upper_indices, upper, look, add);
        total = slice.sum(total);
        long long i = slice.index();
        if (slice.leads()) r[i] = b[i] - (diagonal[i] * x[i] + total);
    });
}
