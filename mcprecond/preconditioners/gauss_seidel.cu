// Gauss-Seidel sweeps: one launch per color and direction, LANES threads per row. See gauss_seidel.py.
// Inside a color no row reads what another one writes.

// This thread's share of the sum over a row; 0 for a row beyond the color, so that whole warps stay together.
__device__ __forceinline__ VALUE share(bool active, long long i, const OFFSET* indptr, const int* indices,
                                       const STORED* values, const VALUE* y) {
    VALUE total = 0;
    if (active)
        for (OFFSET k = indptr[i] + threadIdx.x % LANES, end = indptr[i + 1]; k < end; k += LANES)
            total += (VALUE)values[k] * y[indices[k]];
    return total;
}

extern "C" __global__ void substitute(long long rows, long long first, const OFFSET* indptr, const int* indices,
                                      const STORED* values, const VALUE* dinv, const int* perm, const VALUE* r,
                                      double omega, double scale, VALUE* y, long long finish, VALUE* z) {
    long long row = thread_id() / LANES, i = first + row;
    bool active = row < rows;
    VALUE total = lane_sum<LANES>(share(active, i, indptr, indices, values, y));
    if (active && threadIdx.x % LANES == 0) {
        VALUE value = ((VALUE)scale * r[perm[i]] - (VALUE)omega * total) * dinv[i];
        y[i] = value;
        if (finish) z[perm[i]] = value;
    }
}

extern "C" __global__ void back_substitute(long long rows, long long first, const OFFSET* indptr, const int* indices,
                                           const STORED* values, const VALUE* dinv, const int* perm, double omega,
                                           VALUE* y, VALUE* z) {
    long long row = thread_id() / LANES, i = first + row;
    bool active = row < rows;
    VALUE total = lane_sum<LANES>(share(active, i, indptr, indices, values, y));
    if (active && threadIdx.x % LANES == 0) {
        VALUE value = y[i] - (VALUE)omega * dinv[i] * total;
        y[i] = value;
        z[perm[i]] = value;
    }
}

extern "C" __global__ void relax(long long rows, long long first, const OFFSET* lower_indptr, const int* lower_indices,
                                 const STORED* lower, const OFFSET* upper_indptr, const int* upper_indices,
                                 const STORED* upper, const VALUE* dinv, const int* perm, const VALUE* r, double omega,
                                 VALUE* y, VALUE* z) {
    long long row = thread_id() / LANES, i = first + row;
    bool active = row < rows;
    VALUE total = lane_sum<LANES>(share(active, i, lower_indptr, lower_indices, lower, y) +
                                  share(active, i, upper_indptr, upper_indices, upper, y));
    if (active && threadIdx.x % LANES == 0) {
        VALUE value = (1 - (VALUE)omega) * y[i] + (VALUE)omega * (r[perm[i]] - total) * dinv[i];
        y[i] = value;
        z[perm[i]] = value;
    }
}
