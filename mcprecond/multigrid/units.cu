// Conversion of numbers to a narrower type. See units.py.

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
