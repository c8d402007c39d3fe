// Products of a sparse matrix with vectors of k columns. See columns.py.
#pragma once

#include "linalg/columns.cuh"
#include "linalg/long_rows.cuh"

#define AT_ONCE (BLOCK * LOADS)  // entries

// Column number `column` of a vector.
template <typename T>
struct Column {
    const T* values;
    int k, column;
    __device__ __forceinline__ T operator[](long long i) const { return values[i * k + column]; }
};

// Multiply all rows of A with the columns of x. For each number of the product one thread calls
// `row_done(i, column, total)`, which returns a term of an inner product. The function returns the sum of the terms of
// this thread's short rows. The terms of the long rows are in `work`, those of each column `pitch` numbers behind those of
// the column before. Columns that are not wanted are skipped.
//
// The threads of a block load the entries of its rows in the order of memory, each of them once for all columns, into
// shared memory. If the rows have so many entries that this takes too many rounds, each thread reads those of its row.
template <typename SUM, typename T, typename Argument, typename RowDone>
__device__ __forceinline__ double multiply_columns(long long n, const Place& place, bool is_wanted, const Matrix<T>& A,
                                                   const Argument* x, RowDone row_done) {
    const OFFSET* indptr = A.indptr;
#ifdef LONG_ROWS
    for (int c = 0; c < place.k; ++c)
        A.template multiply_long_rows<SUM>(
            Column<Argument>{x, place.k, c}, [&](long long i, SUM total) { return row_done(i, c, total); },
            A.work + c * A.pitch);
#endif
    __shared__ T staged[AT_ONCE];
    __shared__ int staged_columns[AT_ONCE];
    double sum = 0;
    const Column<Argument> own{x, place.k, place.column};
    for (long long first = (long long)blockIdx.x * place.rows; first < n; first += (long long)gridDim.x * place.rows) {
        long long i = first + place.row;
        OFFSET base = indptr[first], total = indptr[min(first + place.rows, n)] - base, next = 0, end = 0;
        bool has_row = place.is_used && is_wanted && i < n;
#ifdef LONG_ROWS
        has_row = has_row && !A.is_long(i);
#endif
        if (has_row) next = indptr[i] - base, end = indptr[i + 1] - base;
        SUM product = SUM();
        if (total > MOST_ROUNDS * AT_ONCE) {
            for (; next < end; ++next) product += (SUM)A.values[base + next] * (SUM)own[A.indices[base + next]];
        } else {
            for (int begin = 0; begin < (int)total; begin += AT_ONCE) {
                int there = min(AT_ONCE, (int)total - begin);
                __syncthreads();  // after the last entries were read
#pragma unroll
                for (int l = 0; l < LOADS; ++l) {
                    int e = l * BLOCK + threadIdx.x;
                    if (e < there)
                        staged[e] = A.values[base + begin + e], staged_columns[e] = A.indices[base + begin + e];
                }
                __syncthreads();
                for (; next < end && next < begin + there; ++next)
                    product += (SUM)staged[next - begin] * (SUM)own[staged_columns[next - begin]];
            }
        }
        if (has_row) sum += row_done(i, place.column, product);
    }
    return sum;
}
