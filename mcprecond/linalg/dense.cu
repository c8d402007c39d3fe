// A dense matrix on vectors of k columns, LANES threads per row: neighboring threads have neighboring columns; and
// scaling before and after a matrix is inverted. See dense.py.

#include "cuda/reduce.cuh"

extern "C" __global__ void multiply_dense(long long n, long long k, const VALUE* matrix, const VALUE* x, VALUE* y) {
    long long i = thread_id() / LANES;
    int lane = threadIdx.x % LANES;
    for (long long first = 0; first < k; first += LANES) {
        int columns = (int)min(k - first, (long long)LANES), groups = LANES / columns, group = lane / columns;
        long long c = first + lane % columns;
        VALUE total = VALUE();
        if (i < n && group < groups)
            for (long long j = group; j < n; j += groups) total += matrix[i * n + j] * x[j * k + c];
        for (int count = groups; count > 1;) {
            int half = (count + 1) / 2;
            VALUE other = shuffle(total, (lane + half * columns) % LANES, LANES);
            if (group < count - half) total += other;
            count = half;
        }
        if (i < n && group == 0) y[i * k + c] = total;
    }
}

extern "C" __global__ void find_scales(long long n, const int* indptr, const int* indices, const VALUE* values,
                                       double* diagonal, double* scales) {
    long long i = thread_id() / LANES;
    if (i >= n || threadIdx.x % LANES > 0) return;
    double pivot = 1;
    for (int k = indptr[i]; k < indptr[i + 1]; ++k)
        if (indices[k] == i && real_part(values[k]) > 0) pivot = real_part(values[k]);
    diagonal[i] = pivot, scales[i] = 1 / sqrt(pivot);
}

extern "C" __global__ void scale_to_dense(long long n, const int* indptr, const int* indices, const VALUE* values,
                                          const double* scales, VALUE* dense) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    for (int k = indptr[i] + threadIdx.x % LANES; k < indptr[i + 1]; k += LANES)
        dense[i * n + indices[k]] = (REAL)(scales[i] * scales[indices[k]]) * values[k];
}

extern "C" __global__ void scale_back(long long n, const VALUE* matrix, const double* scales, VALUE* scaled) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    for (long long j = threadIdx.x % LANES; j < n; j += LANES)
        scaled[i * n + j] = (REAL)(scales[i] * scales[j]) * ((REAL)0.5 * (matrix[i * n + j] + conjugate(matrix[j * n + i])));
}
