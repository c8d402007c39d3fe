// FENL: one thread per node. See assembly.py; the tables are those of its kernels, row by row.
//
// The loops over elements, corners and neighbors are unrolled so that a matrix row stays in registers.

#include "cuda/grid.cuh"

__device__ __forceinline__ bool inside(int i, int m) { return 0 <= i && i < m; }

__device__ __forceinline__ bool dirichlet(int z, int m) { return z == 0 || z == m - 1; }

__device__ __forceinline__ bool has_element(int x, int y, int e, int m) {
    return inside(x - 1 + (e & 1), m - 1) && inside(y - 1 + (e >> 1 & 1), m - 1);
}

__device__ __forceinline__ long long node_offset(int corner, long long m) {
    return (corner & 1) + (corner >> 1 & 1) * m + (corner >> 2) * m * m;
}

__device__ __forceinline__ constexpr int neighbor_offset(int corner) {
    return (corner & 1) + (corner >> 1 & 1) * 3 + (corner >> 2) * 9;
}

__device__ __forceinline__ void gather(const double* T, long long v, int e, long long m, double* corners) {
    long long first = v - node_offset(7 - e, m);
#pragma unroll
    for (int b = 0; b < 8; ++b) corners[b] = T[first + node_offset(b, m)];
}

__device__ __forceinline__ double at_gauss_point(const double* shape, int g, const double* corners) {
    double value = 0;
#pragma unroll
    for (int b = 0; b < 8; ++b) value += shape[8 * g + b] * corners[b];
    return value;
}

extern "C" __global__ void fill_indices(long long nodes, long long m, const OFFSET* indptr, int* indices) {
    long long v = thread_id();
    if (v >= nodes) return;
    int x = v % m, y = v / m % m, z = v / (m * m);
    OFFSET place = indptr[v];
    for (int p = 0; p < 27; ++p) {
        int px = x + p % 3 - 1, py = y + p / 3 % 3 - 1, pz = z + p / 9 - 1;
        if (inside(px, m) && inside(py, m) && inside(pz, m)) indices[place++] = (int)(px + m * (py + m * pz));
    }
}

extern "C" __global__ void assemble_residual(long long nodes, long long m, const double* __restrict__ T,
                                             const double* __restrict__ linear, const double* __restrict__ shape,
                                             double weight, double bottom, double top, double* __restrict__ R) {
    long long v = thread_id();
    if (v >= nodes) return;
    int x = v % m, y = v / m % m, z = v / (m * m);
    double total = 0;
    if (dirichlet(z, m)) {
        total = T[v] - (z == 0 ? bottom : top);
    } else {
        const double* layer = linear + 64 * (z - 1);  // of the elements below the node
        for (int e = 0; e < 8; ++e) {
            if (!has_element(x, y, e, m)) continue;
            double corners[8];
            gather(T, v, e, m, corners);
#pragma unroll
            for (int b = 0; b < 8; ++b) total += layer[64 * (e >> 2) + 8 * (7 - e) + b] * corners[b];
            for (int g = 0; g < 8; ++g) {
                double value = at_gauss_point(shape, g, corners);
                total += weight * shape[8 * g + 7 - e] * value * value;
            }
        }
    }
    R[v] = total;
}

extern "C" __global__ void assemble_jacobian(long long nodes, long long m, const double* __restrict__ T,
                                             const double* __restrict__ linear, const double* __restrict__ shape,
                                             const double* __restrict__ mass, const OFFSET* __restrict__ indptr,
                                             double* __restrict__ values) {
    long long v = thread_id();
    if (v >= nodes) return;
    int x = v % m, y = v / m % m, z = v / (m * m);
    double row[27] = {};
    if (dirichlet(z, m)) {
        row[13] = 1;
    } else {
        const double* layer = linear + 64 * (z - 1);  // of the elements below the node
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            if (!has_element(x, y, e, m)) continue;
            double corners[8];
            gather(T, v, e, m, corners);
#pragma unroll
            for (int b = 0; b < 8; ++b)
                row[neighbor_offset(e) + neighbor_offset(b)] += layer[64 * (e >> 2) + 8 * (7 - e) + b];
#pragma unroll 1
            for (int g = 0; g < 8; ++g) {
                double value = at_gauss_point(shape, g, corners);
#pragma unroll
                for (int b = 0; b < 8; ++b)
                    row[neighbor_offset(e) + neighbor_offset(b)] += value * mass[64 * (7 - e) + 8 * g + b];
            }
        }
    }
    OFFSET place = indptr[v];
#pragma unroll
    for (int p = 0; p < 27; ++p) {
        int pz = z + p / 9 - 1;
        if (inside(x + p % 3 - 1, m) && inside(y + p / 3 % 3 - 1, m) && inside(pz, m))
            values[place++] = dirichlet(pz, m) && p != 13 ? 0 : row[p];
    }
}
