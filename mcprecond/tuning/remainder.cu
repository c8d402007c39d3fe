// What a coloring adds to the preconditioner: LANES threads per row. See remainders in remainder.py.

#include "cuda/reduce.cuh"

extern "C" __global__ void remainders(long long n, const OFFSET* indptr, const int* indices, const VALUE* values,
                                      long long block_size, const int* colors, long long every, double* terms) {
    long long i = thread_id() / LANES;
    double total = 0, diagonal = 0;
    if (i < n) {
        int node = (int)(i / block_size), color = colors[node];
        for (OFFSET k = indptr[i] + threadIdx.x % LANES, end = indptr[i + 1]; k < end; k += LANES) {
            int j = indices[k], other = j / (int)block_size;
            if (j == i)
                diagonal += (double)real_part(values[k]);
            else if (other != node && (every || colors[other] > color))
                total += (double)real_part(values[k]);
        }
    }
    total = lane_sum<LANES>(total) * (every ? 0.5 : 1.0);
    diagonal = lane_sum<LANES>(diagonal);
    if (i < n && threadIdx.x % LANES == 0) terms[i] = diagonal != 0 ? total * total / fabs(diagonal) : 0.0;
}
