// Strength of connection, a thread per row. See strength.py.

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"

__device__ __forceinline__ bool is_strong(int i, int j, VALUE a, const double* sizes, double theta) {
    return i != j && fabs(a) > 0 && fabs(a) >= theta * sizes[i] * sizes[j];
}

extern "C" __global__ void count_strong(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                        const double* sizes, double theta, OFFSET* counts) {
    int i = (int)thread_id(), count = 0;
    if (i >= n) return;
    for (OFFSET k = indptr[i]; k < indptr[i + 1]; ++k) count += is_strong(i, indices[k], values[k], sizes, theta);
    counts[i] = count;
}

extern "C" __global__ void list_strong(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                       const double* sizes, double theta, const OFFSET* strong_indptr,
                                       int* strong_indices) {
    int i = (int)thread_id();
    if (i >= n) return;
    OFFSET place = strong_indptr[i];
    for (OFFSET k = indptr[i]; k < indptr[i + 1]; ++k)
        if (is_strong(i, indices[k], values[k], sizes, theta)) strong_indices[place++] = indices[k];
}

extern "C" __global__ void find_unsymmetric(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                            const double* sizes, double tolerance, long long* first) {
    int i = (int)thread_id();
    if (i >= n) return;
    for (OFFSET k = indptr[i]; k < indptr[i + 1]; ++k) {
        int j = indices[k];
        OFFSET low = indptr[j], high = indptr[j + 1];
        while (low < high) {
            OFFSET middle = low + (high - low) / 2;
            if (indices[middle] < i) low = middle + 1;
            else high = middle;
        }
        VALUE other = low < indptr[j + 1] && indices[low] == i ? values[low] : VALUE();
        if (fabs(values[k] - conjugate(other)) > tolerance * sizes[i] * sizes[j]) {
            atomicMin(first, (long long)k);
            return;
        }
    }
}
