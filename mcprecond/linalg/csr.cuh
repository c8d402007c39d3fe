// Products of a sparse matrix and a vector. Each block loads the entries of neighboring rows, and LANES threads sum one
// row. The warps of all blocks share the long rows. See csr.py.
#pragma once

#include "linalg/long_rows.cuh"

#define ROWS_OF_BLOCK (BLOCK / LANES)
#define AT_ONCE (BLOCK * LOADS)  // entries

// Multiply ROWS_OF_BLOCK rows with x, from row `first` on, and return the product of one row to each of the LANES threads
// that share it, or 0 beyond row n and for rows with more than `longest` entries, which others multiply. Sums are
// accumulated in the type SUM. x is a pointer, or an object whose operator[] loads an element of the vector.
//
// The entries of neighboring rows are contiguous in memory. In each round the block loads the next AT_ONCE of them, and
// stores their products with x in shared memory. Then the threads of each row add up the products of the row. If the rows
// have too many entries for MOST_ROUNDS rounds, the threads of each row load its entries themselves.
template <typename SUM, typename T, typename Vector>
__device__ __forceinline__ SUM block_row_product(long long first, long long n, const Matrix<T>& A, Vector x,
                                                 long long longest = 1ll << 62) {
    __shared__ SUM products[AT_ONCE];
    const OFFSET* indptr = A.indptr;
    long long i = first + threadIdx.x / LANES;
    OFFSET base = indptr[first], total = indptr[min(first + ROWS_OF_BLOCK, n)] - base;
    OFFSET next = i < n ? indptr[i] - base + threadIdx.x % LANES : 0, end = i < n ? indptr[i + 1] - base : 0;
    if (end - next > longest) end = next;
    const int* indices = A.indices + base;
    const T* values = A.values + base;
    SUM sum = SUM();
    if (total > MOST_ROUNDS * AT_ONCE) {
        for (; next < end; next += LANES)
            CHECK(indices[next], indices[next] >= 0), sum += (SUM)values[next] * (SUM)x[indices[next]];
        return lane_sum<LANES>(sum);
    }
    for (int begin = 0; begin < (int)total; begin += AT_ONCE) {
        int columns[LOADS];
        T loaded[LOADS];
        int there = min(AT_ONCE, (int)total - begin);
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            int k = l * BLOCK + threadIdx.x;
            columns[l] = k < there ? indices[begin + k] : 0;
            CHECK(columns[l], columns[l] >= 0);
            loaded[l] = k < there ? values[begin + k] : T();
        }
        if (begin) __syncthreads();
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            int k = l * BLOCK + threadIdx.x;
            if (k < there) products[k] = (SUM)loaded[l] * (SUM)x[columns[l]];
        }
        __syncthreads();
        for (; next < end && next < begin + there; next += LANES) sum += products[next - begin];
    }
    return lane_sum<LANES>(sum);
}

// Multiply all rows of A with x. For each row one thread calls `row_done(i, total)`, which returns a term of an inner
// product. The function returns the sum of the terms of this thread's short rows; those of the long rows are in `work`.
// If MAY_BE_LONG is false, A must not have long rows. The kernel then needs fewer registers.
template <typename SUM, bool MAY_BE_LONG = true, typename T, typename Vector, typename RowDone>
__device__ __forceinline__ double multiply_rows(long long n, const Matrix<T>& A, Vector x, RowDone row_done) {
    if constexpr (MAY_BE_LONG) A.template multiply_long_rows<SUM>(x, row_done, A.work);
    double sum = 0;
    for (long long first = (long long)blockIdx.x * ROWS_OF_BLOCK; first < n;
         first += (long long)gridDim.x * ROWS_OF_BLOCK) {
        long long i = first + threadIdx.x / LANES;
        SUM total = block_row_product<SUM>(first, n, A, x, MAY_BE_LONG ? A.longest : 1ll << 62);
        if (i < n && threadIdx.x % LANES == 0 && !(MAY_BE_LONG && A.is_long(i))) sum += row_done(i, total);
        __syncthreads();  // before the next products
    }
    return sum;
}

// The same without an inner product, in a grid that has LANES threads for each row. The code for long rows is compiled
// only if the matrix has some (LONG_ROWS), since its registers would slow down the products of short rows.
template <typename SUM, typename T, typename Vector, typename RowDone>
__device__ __forceinline__ void multiply_each_row(long long n, const Matrix<T>& A, Vector x, RowDone row_done) {
#ifdef LONG_ROWS
    multiply_rows<SUM>(n, A, x, row_done);
#else
    long long first = (long long)blockIdx.x * ROWS_OF_BLOCK, i = first + threadIdx.x / LANES;
    if (first >= n) return;
    SUM total = block_row_product<SUM>(first, n, A, x);
    if (i < n && threadIdx.x % LANES == 0) row_done(i, total);
#endif
}
