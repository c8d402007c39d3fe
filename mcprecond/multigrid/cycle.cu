// The steps of a cycle between sweeps: LANES threads per row. See cycle.py.

template <typename Matrix>
__device__ __forceinline__ VALUE row_product(bool active, long long i, const OFFSET* indptr, const int* indices,
                                             const Matrix* values, const VALUE* x) {
    VALUE total = VALUE();
    if (active)
        for (OFFSET k = indptr[i] + threadIdx.x % LANES, end = indptr[i + 1]; k < end; k += LANES)
            total += values[k] * x[indices[k]];
    return lane_sum<LANES>(total);
}

extern "C" __global__ void multiply(long long n, const OFFSET* indptr, const int* indices, const STORED* values,
                                    const VALUE* x, long long adds, VALUE* y) {
    long long i = thread_id() / LANES;
    VALUE total = row_product(i < n, i, indptr, indices, values, x);
    if (i < n && threadIdx.x % LANES == 0) y[i] = adds ? y[i] + total : total;
}

extern "C" __global__ void multiply_dense(long long n, const VALUE* matrix, const VALUE* x, VALUE* y) {
    long long i = thread_id() / LANES;
    VALUE total = VALUE();
    if (i < n)
        for (long long j = threadIdx.x % LANES; j < n; j += LANES) total += matrix[i * n + j] * x[j];
    total = lane_sum<LANES>(total);
    if (i < n && threadIdx.x % LANES == 0) y[i] = total;
}

extern "C" __global__ void add(long long n, double factor, const VALUE* x, VALUE* y) {
    long long i = thread_id();
    if (i < n) y[i] += rounded_product((REAL)factor, x[i]);
}
