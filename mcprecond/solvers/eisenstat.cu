// Eisenstat's form: sweeps with one launch per color, LANES threads per row. See eisenstat.py.
// Inside a color no row reads what another one writes.

enum { STATE };
enum { RUNNING };
enum { ALPHA };

__device__ __forceinline__ VALUE share(bool active, long long i, const OFFSET* indptr, const int* indices,
                                       const VALUE* values, const VALUE* y) {
    VALUE total = 0;
    if (active)
        for (OFFSET k = indptr[i] + threadIdx.x % LANES, end = indptr[i + 1]; k < end; k += LANES)
            total += values[k] * y[indices[k]];
    return total;
}

extern "C" __global__ void solve_color(long long rows, long long first, const OFFSET* indptr, const int* indices,
                                       const VALUE* values, const VALUE* Tinv, const VALUE* b, VALUE* y) {
    long long row = thread_id() / LANES, i = first + row;
    bool active = row < rows;
    VALUE total = lane_sum<LANES>(share(active, i, indptr, indices, values, y));
    if (active && threadIdx.x % LANES == 0) y[i] = (b[i] - total) * Tinv[i];
}

extern "C" __global__ void product_of_color(long long rows, long long first, const OFFSET* indptr, const int* indices,
                                            const VALUE* values, const VALUE* T, const VALUE* Tinv,
                                            const VALUE* diagonal, const VALUE* q, const VALUE* t, VALUE* s, VALUE* At,
                                            VALUE* w) {
    long long row = thread_id() / LANES, i = first + row;
    bool active = row < rows;
    VALUE L_t = 0, L_s = 0;
    if (active)
        for (OFFSET k = indptr[i] + threadIdx.x % LANES, end = indptr[i + 1]; k < end; k += LANES) {
            VALUE value = values[k];
            int j = indices[k];
            L_t += value * t[j];
            L_s += value * s[j];
        }
    L_t = lane_sum<LANES>(L_t);
    L_s = lane_sum<LANES>(L_s);
    if (active && threadIdx.x % LANES == 0) {
        VALUE t_i = t[i], T_i = T[i], d_i = diagonal[i];
        VALUE s_i = (q[i] - (2 * T_i - d_i) * t_i - L_s) * Tinv[i];
        s[i] = s_i;
        w[i] = t_i + s_i;
        At[i] = q[i] + L_t + (d_i - T_i) * t_i;
    }
}

extern "C" __global__ void advance_all(long long n, const VALUE* t, const VALUE* At, const VALUE* w, const VALUE* T,
                                       VALUE* x, VALUE* r, VALUE* rho, VALUE* z, const long long* control,
                                       const double* scalars) {
    long long i = thread_id();
    if (i >= n || control[STATE] != RUNNING) return;
    VALUE alpha = (VALUE)scalars[ALPHA];
    x[i] += alpha * t[i];
    r[i] -= alpha * At[i];
    VALUE rho_i = rho[i] - alpha * w[i];
    rho[i] = rho_i;
    z[i] = T[i] * rho_i;
}

extern "C" __global__ void residual_of_blocks(long long n, const OFFSET* lower_indptr, const int* lower_indices,
                                              const VALUE* lower, const OFFSET* upper_indptr, const int* upper_indices,
                                              const VALUE* upper, const VALUE* diagonal, const VALUE* x, const VALUE* b,
                                              VALUE* r) {
    long long i = thread_id() / LANES;
    bool active = i < n;
    VALUE total = lane_sum<LANES>(share(active, i, lower_indptr, lower_indices, lower, x) +
                                  share(active, i, upper_indptr, upper_indices, upper, x));
    if (active && threadIdx.x % LANES == 0) r[i] = b[i] - (diagonal[i] * x[i] + total);
}
