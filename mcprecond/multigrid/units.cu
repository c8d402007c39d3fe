// Conversion of numbers to a narrower type, and rows of products that are about zero. See units.py.

#include "cuda/grid.cuh"
#include "cuda/numbers.cuh"

extern "C" __global__ void narrow_numbers(long long n, const REAL* numbers, double least, double most,
                                          Real<STORED>* narrow, int* flaws) {
    long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= n) return;
    double size = fabs((double)numbers[k]);
    narrow[k] = size < least ? 0 : (Real<STORED>)numbers[k];
    if (size < least && size > 0) flaws[0] = 1;
    if (!(size <= most)) flaws[1] = 1;  // or NaN
}

extern "C" __global__ void count_small(long long n, const VALUE* product, const VALUE* diagonal, const double* x,
                                       double share, uint64* count) {
    long long i = thread_id();
    bool is_small = i < n && fabs(product[i]) <= share * (double)real_part(diagonal[i]) * x[i];
    int small = __popc(__ballot_sync(FULL_WARP, is_small));
    if (lane_id() == 0 && small) atomicAdd(count, (uint64)small);
}
