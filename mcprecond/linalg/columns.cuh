// Vectors of k columns in C order, number c of row i at i * k + c, and sums by column. See columns.py.
#pragma once

#include "cuda/memory.cuh"
#include "cuda/reduce.cuh"

// Which number of the rows that a block takes at once belongs to a thread. Neighboring threads have neighboring columns.
struct Place {
    int k, rows, row, column;
    bool is_used;  // a few threads are left over if BLOCK is no multiple of k

    __device__ __forceinline__ explicit Place(long long k)
        : k((int)k), rows(BLOCK / (int)k), row((int)threadIdx.x / (int)k), column((int)threadIdx.x % (int)k) {
        is_used = row < rows;
    }

    // Call `visit(e, i)` with the place of each of this thread's numbers of a vector of n rows, and its row.
    template <typename Visit>
    __device__ __forceinline__ void each(long long n, Visit visit) const {
        if (!is_used) return;
        for (long long i = (long long)blockIdx.x * rows + row; i < n; i += (long long)gridDim.x * rows)
            visit(i * k + column, i);
    }

    // The sum over the rows of the block in a fixed order; the threads of row 0 get that of their column.
    __device__ double sum(double value) const {
        __shared__ double parts[BLOCK];
        __syncthreads();
        parts[threadIdx.x] = value;
        __syncthreads();
        for (int count = rows; count > 1;) {
            int half = (count + 1) / 2;
            if (row < count - half) parts[threadIdx.x] += parts[threadIdx.x + half * k];
            count = half;
            __syncthreads();
        }
        return parts[column];
    }
};

// Sum values over the grid by column, in a fixed order. In the last block to arrive one thread for each column calls
// `take(column, totals)`. Every thread calls this function once, as its last step. If `terms` is given, `count` numbers
// for each column, `pitch` from those of the next one, are added to the first totals.
template <int COUNT, typename Function>
__device__ __forceinline__ void sum_columns(const double (&values)[COUNT], const Place& place, double* partials,
                                            uint32* arrivals, Function take, const double* terms = nullptr,
                                            long long count = 0, long long pitch = 0) {
    __shared__ bool is_last;
    bool is_first_row = place.row == 0;
    for (int s = 0; s < COUNT; ++s) {
        double sum = place.sum(values[s]);
        if (is_first_row) partials[((long long)s * gridDim.x + blockIdx.x) * place.k + place.column] = sum;
    }
    if (is_first_row) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(arrivals, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    double totals[COUNT];
    for (int s = 0; s < COUNT; ++s) {
        double total = 0;
        if (place.is_used) {
            for (int b = place.row; b < gridDim.x; b += place.rows)
                total += ptx::load_l2(&partials[((long long)s * gridDim.x + b) * place.k + place.column]);
            if (s == 0)
                for (long long t = place.row; t < count; t += place.rows)
                    total += ptx::load_l2(&terms[place.column * pitch + t]);
        }
        totals[s] = place.sum(total);
    }
    if (is_first_row) take(place.column, totals);
    if (threadIdx.x == 0) *arrivals = 0;
}
