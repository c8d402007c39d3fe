// A dense matrix on a vector, LANES threads per row, and inverses. See dense.py.

#include "cuda/memory.cuh"
#include "cuda/reduce.cuh"

extern "C" __global__ void multiply_dense(long long n, const VALUE* matrix, const VALUE* x, VALUE* y) {
    long long i = thread_id() / LANES;
    VALUE total = VALUE();
    if (i < n)
        for (long long j = threadIdx.x % LANES; j < n; j += LANES) total += matrix[i * n + j] * x[j];
    total = lane_sum<LANES>(total);
    if (i < n && threadIdx.x % LANES == 0) y[i] = total;
}

// A grid that fills the device; between barriers no element is read that another thread writes: each step first puts
// the pivot's column aside, and its row is divided last.
extern "C" __global__ void __launch_bounds__(BLOCK)
    invert(long long size, long long n, VALUE* A, const double* least, VALUE* column, void* scratch) {
    uint32* arrivals = (uint32*)scratch;
    for (long long p = 0; p < n; ++p) {
        for (long long i = thread_id(); i < n; i += thread_count()) column[i] = load_l2(A + i * n + p);
        grid_barrier(arrivals);
        VALUE pivot = load_l2(column + p);
        bool keeps = real_part(pivot) > least[p];
        for (long long e = thread_id(); e < size; e += thread_count()) {
            long long i = e / n, j = e % n;
            if (i != p && j != p && keeps) A[e] = load_l2(A + e) - load_l2(column + i) / pivot * load_l2(A + p * n + j);
        }
        grid_barrier(arrivals);
        for (long long i = thread_id(); i < n; i += thread_count()) {
            if (i == p) {
                A[p * n + p] = keeps ? VALUE(1) / pivot : VALUE();
                continue;
            }
            A[i * n + p] = keeps ? VALUE() - load_l2(column + i) / pivot : VALUE();
            A[p * n + i] = keeps ? load_l2(A + p * n + i) / pivot : VALUE();
        }
        grid_barrier(arrivals);
    }
}
