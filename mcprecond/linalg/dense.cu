// A dense matrix on vectors of k columns, LANES threads per row: neighboring threads have neighboring columns. See
// dense.py.

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
