// FENL assembly: one thread per node, the same sums in the same order as the twins in fenl.py.

#define T_BOTTOM 1.0
#define T_TOP 2.0

__device__ __forceinline__ bool prescribed(long long k, long long n) { return k == 0 || k == n; }

// Node b of the element whose node 0 is `corner`.
__device__ __forceinline__ long long node(long long corner, int b, long long side) {
    return corner + (b & 1) + side * ((b >> 1 & 1) + side * (b >> 2));
}

__device__ void gauss_values(long long corner, long long side, const double* shape, const double* T, double* at_gauss) {
    double at_node[8];
#pragma unroll
    for (int b = 0; b < 8; ++b) at_node[b] = T[node(corner, b, side)];
#pragma unroll
    for (int g = 0; g < 8; ++g) {
        double value = 0;
#pragma unroll
        for (int b = 0; b < 8; ++b) value += shape[8 * g + b] * at_node[b];
        at_gauss[g] = value;
    }
}

__device__ __forceinline__ long long corner_of(long long v, int a, long long n) {
    long long side = n + 1;
    long long i = v % side - (a & 1), j = v / side % side - (a >> 1 & 1), k = v / side / side - (a >> 2);
    if (min(i, min(j, k)) < 0 || max(i, max(j, k)) >= n) return -1;
    return i + side * (j + side * k);
}

extern "C" __global__ void list_neighbors(long long nodes, long long n, const OFFSET* indptr, int* indices) {
    long long v = thread_id(), side = n + 1;
    if (v >= nodes) return;
    long long i = v % side, j = v / side % side, k = v / side / side;
    OFFSET place = indptr[v];
    for (long long z = max(k - 1, 0LL); z <= min(k + 1, n); ++z)
        for (long long y = max(j - 1, 0LL); y <= min(j + 1, n); ++y)
            for (long long x = max(i - 1, 0LL); x <= min(i + 1, n); ++x)
                indices[place++] = (int)(x + side * (y + side * z));
}

extern "C" __global__ void assemble_residual(long long nodes, long long n, const double* constant, const double* shape,
                                             double weight, const double* T, double* R) {
    long long v = thread_id(), side = n + 1;
    if (v >= nodes) return;
    long long k = v / side / side;
    if (prescribed(k, n)) {
        R[v] = T[v] - (k == 0 ? T_BOTTOM : T_TOP);
        return;
    }
    double at_gauss[8], total = 0;
    for (int a = 0; a < 8; ++a) {
        long long corner = corner_of(v, a, n);
        if (corner < 0) continue;
        gauss_values(corner, side, shape, T, at_gauss);
#pragma unroll
        for (int b = 0; b < 8; ++b) total += constant[8 * a + b] * T[node(corner, b, side)];
#pragma unroll
        for (int g = 0; g < 8; ++g) total += weight * shape[8 * g + a] * at_gauss[g] * at_gauss[g];
    }
    R[v] = total;
}

extern "C" __global__ void assemble_jacobian(long long nodes, long long n, const OFFSET* indptr, const double* constant,
                                             const double* shape, double weight, const double* T, double* values) {
    long long v = thread_id(), side = n + 1;
    if (v >= nodes) return;
    long long i = v % side, j = v / side % side, k = v / side / side;
    double at_gauss[8], row[27] = {};
    // Unrolled, so that `row` stays in registers: every index into it is then a constant.
#pragma unroll
    for (int a = 0; a < 8; ++a) {
        long long corner = corner_of(v, a, n);
        if (corner < 0 || prescribed(k, n)) continue;
        gauss_values(corner, side, shape, T, at_gauss);
#pragma unroll
        for (int b = 0; b < 8; ++b) {
            double entry = constant[8 * a + b];
#pragma unroll
            for (int g = 0; g < 8; ++g) entry += 2 * weight * shape[8 * g + a] * shape[8 * g + b] * at_gauss[g];
            row[13 + (b & 1) - (a & 1) + 3 * ((b >> 1 & 1) - (a >> 1 & 1)) + 9 * ((b >> 2) - (a >> 2))] += entry;
        }
    }
    if (prescribed(k, n)) row[13] = 1;
    OFFSET place = indptr[v];
#pragma unroll
    for (int e = 0; e < 27; ++e) {
        long long x = i + e % 3 - 1, y = j + e / 3 % 3 - 1, z = k + e / 9 - 1;
        if (x < 0 || y < 0 || z < 0 || x > n || y > n || z > n) continue;
        values[place++] = z == k || !prescribed(z, n) ? row[e] : 0;
    }
}
