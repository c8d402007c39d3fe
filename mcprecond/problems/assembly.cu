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

// The numbers from which the row of one corner in an element matrix is computed: along each axis, two entries of the
// mass matrix, and two of the stiffness or drift matrix.
struct Factors {
    double masses[3][2], others[3][2];

    // See fill_factors in assembly.py.
    __device__ __forceinline__ Factors(const double* axes, const int* intervals, int count, int e, int kind) {
#pragma unroll
        for (int d = 0; d < 3; ++d) {
            const double* matrix = axes + 16ll * (count * d + intervals[d]) + 4 * kind + 2 * ((7 - e) >> d & 1);
#pragma unroll
            for (int q = 0; q < 2; ++q) {
                masses[d][q] = matrix[q];
                others[d][q] = matrix[4 + q];
            }
        }
    }

    // Return the entry in the column of corner b. It is a sum of three products, one for each axis: the stiffness (or
    // drift) along this axis times the masses along the other two axes.
    __device__ __forceinline__ double sum_products(int b) const {
        int p = b & 1, q = b >> 1 & 1, r = b >> 2;
        double across = masses[1][q] * others[0][p] + others[1][q] * masses[0][p];
        return masses[2][r] * across + others[2][r] * (masses[1][q] * masses[0][p]);
    }
};

// Element e of a node is the product of three intervals: store their numbers, and return the volume of the element.
__device__ __forceinline__ double locate(int x, int y, int z, int e, const double* widths, int count, int* intervals) {
    intervals[0] = x - 1 + (e & 1), intervals[1] = y - 1 + (e >> 1 & 1), intervals[2] = z - 1 + (e >> 2);
    return widths[intervals[0]] * widths[count + intervals[1]] * widths[2 * count + intervals[2]];
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
                                             const double* __restrict__ axes, int kinds,
                                             const double* __restrict__ widths, const double* __restrict__ shape,
                                             double bottom, double top, double* __restrict__ R) {
    long long v = thread_id();
    if (v >= nodes) return;
    int x = v % m, y = v / m % m, z = v / (m * m);
    double total = 0;
    if (dirichlet(z, m)) {
        total = T[v] - (z == 0 ? bottom : top);
    } else {
        for (int e = 0; e < 8; ++e) {
            if (!has_element(x, y, e, m)) continue;
            double corners[8];
            int intervals[3];
            gather(T, v, e, m, corners);
            double weight = locate(x, y, z, e, widths, m - 1, intervals) / 8;
            for (int kind = 0; kind < kinds; ++kind) {
                Factors factors(axes, intervals, m - 1, e, 2 * kind);
#pragma unroll
                for (int b = 0; b < 8; ++b) total += factors.sum_products(b) * corners[b];
            }
            for (int g = 0; g < 8; ++g) {
                double value = at_gauss_point(shape, g, corners);
                total += weight * shape[8 * g + 7 - e] * value * value;
            }
        }
    }
    R[v] = total;
}

extern "C" __global__ void assemble_jacobian(long long nodes, long long m, const double* __restrict__ T,
                                             const double* __restrict__ axes, int kinds,
                                             const double* __restrict__ widths, const double* __restrict__ shape,
                                             const double* __restrict__ mass, const OFFSET* __restrict__ indptr,
                                             double* __restrict__ values) {
    long long v = thread_id();
    if (v >= nodes) return;
    int x = v % m, y = v / m % m, z = v / (m * m);
    double row[27] = {};
    if (dirichlet(z, m)) {
        row[13] = 1;
    } else {
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            if (!has_element(x, y, e, m)) continue;
            double corners[8];
            int intervals[3];
            gather(T, v, e, m, corners);
            double volume = locate(x, y, z, e, widths, m - 1, intervals);
#pragma unroll 1
            for (int kind = 0; kind < kinds; ++kind) {
                Factors factors(axes, intervals, m - 1, e, 2 * kind);
#pragma unroll
                for (int b = 0; b < 8; ++b)
                    row[neighbor_offset(e) + neighbor_offset(b)] += factors.sum_products(b);
            }
#pragma unroll 1
            for (int g = 0; g < 8; ++g) {
                double value = volume * at_gauss_point(shape, g, corners);
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
