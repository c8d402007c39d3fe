// Blocks of nodes: the pattern of the nodes, and their blocks in the order of slices. See node_blocks.py.

#include "digests.cuh"
#include "slices.cuh"

// Whether entry k of row `row` is the first one of its node's row in that column of nodes.
__device__ __forceinline__ bool opens_block(long long first_row, long long row, OFFSET k, const OFFSET* indptr,
                                            const int* indices) {
    long long node = indices[k] / BLOCK_SIZE;
    if (k > indptr[row] && indices[k - 1] / BLOCK_SIZE == node) return false;
    for (long long other = first_row; other < row; ++other) {
        OFFSET end = indptr[other + 1], place = lower_bound(indices, indptr[other], end, node * BLOCK_SIZE);
        if (place < end && indices[place] / BLOCK_SIZE == node) return false;
    }
    return true;
}

extern "C" __global__ void count_blocks(long long n_nodes, const OFFSET* indptr, const int* indices, OFFSET* counts) {
    long long node = thread_id() / LANES, first_row = node * BLOCK_SIZE;
    int count = 0;
    if (node < n_nodes)
        for (long long row = first_row; row < first_row + BLOCK_SIZE; ++row)
            for (OFFSET k = indptr[row] + threadIdx.x % LANES; k < indptr[row + 1]; k += LANES)
                count += opens_block(first_row, row, k, indptr, indices);
    count = lane_sum<LANES>(count);
    if (node < n_nodes && threadIdx.x % LANES == 0) counts[node] = count;
}

extern "C" __global__ void list_blocks(long long n_nodes, const OFFSET* indptr, const int* indices,
                                       const OFFSET* node_indptr, int* node_indices) {
    long long node = thread_id() / LANES, first_row = node * BLOCK_SIZE;
    bool active = node < n_nodes;
    OFFSET place = active ? node_indptr[node] : 0;
    for (long long row = first_row; row < first_row + BLOCK_SIZE; ++row) {
        OFFSET end = active ? indptr[row + 1] : 0;
        for (OFFSET k = active ? indptr[row] + threadIdx.x % LANES : 0; __any_sync(FULL_WARP, k < end); k += LANES) {
            bool opens = k < end ? opens_block(first_row, row, k, indptr, indices) : false;
            OFFSET mine = place_in_row<LANES>(opens, place);
            if (opens) node_indices[mine] = indices[k] / BLOCK_SIZE;
        }
    }
}

// The block of A in node row `row`, node column `column`: number (p, q) goes to block[(p * BLOCK_SIZE + q) * stride].
__device__ void copy_block(long long row, long long column, const OFFSET* indptr, const int* indices,
                           const VALUE* values, STORED* block, int stride) {
    for (int p = 0; p < BLOCK_SIZE; ++p) {
        VALUE numbers[BLOCK_SIZE] = {};
        OFFSET end = indptr[row * BLOCK_SIZE + p + 1];
        OFFSET k = lower_bound(indices, indptr[row * BLOCK_SIZE + p], end, column * BLOCK_SIZE);
        for (; k < end && indices[k] / BLOCK_SIZE == column; ++k)
#pragma unroll
            for (int q = 0; q < BLOCK_SIZE; ++q)
                if (indices[k] % BLOCK_SIZE == q) numbers[q] = values[k];
#pragma unroll
        for (int q = 0; q < BLOCK_SIZE; ++q) block[(p * BLOCK_SIZE + q) * (long long)stride] = (STORED)numbers[q];
    }
}

// Block `number` of a row of nodes without holes.
__device__ void copy_full_block(long long row, int number, const OFFSET* indptr, const VALUE* values, STORED* block,
                                int stride) {
#pragma unroll
    for (int p = 0; p < BLOCK_SIZE; ++p) {
        const VALUE* numbers = values + indptr[row * BLOCK_SIZE + p] + number * (OFFSET)BLOCK_SIZE;
#pragma unroll
        for (int q = 0; q < BLOCK_SIZE; ++q) block[(p * BLOCK_SIZE + q) * (long long)stride] = (STORED)numbers[q];
    }
}

// One warp for each slice of each triangle.
extern "C" __global__ void fill_blocks(long long n_parts, const int* slices, const OFFSET* lower_indptr,
                                       const int* lower_columns, const SOURCE* lower_source, STORED* lower,
                                       const OFFSET* upper_indptr, const int* upper_columns, const SOURCE* upper_source,
                                       STORED* upper, const int* perm, long long full, const OFFSET* indptr,
                                       const int* indices, const VALUE* values, const uint64* expected,
                                       const uint64* digests) {
    long long k = thread_id() / WARP;
    if (k >= n_parts || !to_be_taken(expected, digests)) return;
    bool above = k % 2;
    const int* columns = above ? upper_columns : lower_columns;
    const SOURCE* source = above ? upper_source : lower_source;
    Slice slice(slices, k / 2);
    slice.steps(above ? upper_indptr : lower_indptr, columns, [&](const Step& step, OFFSET) {
        STORED* block = (above ? upper : lower) + step.first * (BLOCK_SIZE * BLOCK_SIZE) + step.rank;
        int row = perm[slice.index()];
        if (full)
            copy_full_block(row, source[step.place()], indptr, values, block, step.count);
        else
            copy_block(row, perm[columns[step.place()]], indptr, indices, values, block, step.count);
    });
}

// Write the inverse of a block, and return whether it is finite.
__device__ bool invert_block(const STORED* block, STORED* inverse) {
    STORED rest[BLOCK_SIZE][2 * BLOCK_SIZE];  // the block and beside it the unit matrix, which becomes its inverse
#pragma unroll
    for (int p = 0; p < BLOCK_SIZE; ++p)
#pragma unroll
        for (int q = 0; q < BLOCK_SIZE; ++q) {
            rest[p][q] = block[p * BLOCK_SIZE + q];
            rest[p][BLOCK_SIZE + q] = (STORED)(REAL)(p == q);
        }
#pragma unroll
    for (int c = 0; c < BLOCK_SIZE; ++c) {
#pragma unroll
        for (int p = c + 1; p < BLOCK_SIZE; ++p)
            if (fabs(rest[p][c]) > fabs(rest[c][c]))
#pragma unroll
                for (int q = 0; q < 2 * BLOCK_SIZE; ++q) {
                    STORED other = rest[p][q];
                    rest[p][q] = rest[c][q];
                    rest[c][q] = other;
                }
        STORED pivot = rest[c][c];
#pragma unroll
        for (int q = 0; q < 2 * BLOCK_SIZE; ++q) rest[c][q] = rest[c][q] / pivot;
#pragma unroll
        for (int p = 0; p < BLOCK_SIZE; ++p) {
            STORED factor = rest[p][c];
#pragma unroll
            for (int q = 0; q < 2 * BLOCK_SIZE; ++q)
                if (p != c) rest[p][q] -= factor * rest[c][q];
        }
    }
    bool finite = true;
#pragma unroll
    for (int p = 0; p < BLOCK_SIZE; ++p)
#pragma unroll
        for (int q = 0; q < BLOCK_SIZE; ++q) {
            inverse[p * BLOCK_SIZE + q] = rest[p][BLOCK_SIZE + q];
            finite &= isfinite(rest[p][BLOCK_SIZE + q]);
        }
    return finite;
}

extern "C" __global__ void fill_diagonal(long long n_nodes, const SOURCE* source, STORED* diagonal, STORED* dinv,
                                         const int* perm, long long full, const OFFSET* indptr, const int* indices,
                                         const VALUE* values, const uint64* expected, uint64* digests) {
    if (!to_be_taken(expected, digests)) return;
    for (long long i = thread_id(); i < n_nodes; i += thread_count()) {
        STORED* block = diagonal + i * (BLOCK_SIZE * BLOCK_SIZE);
        OFFSET row = perm[i] * (OFFSET)BLOCK_SIZE, entries = indptr[row + 1] - indptr[row];
        if (full && source[i] < entries / BLOCK_SIZE)
            copy_full_block(perm[i], source[i], indptr, values, block, 1);
        else  // also where there is none: zeros
            copy_block(perm[i], perm[i], indptr, indices, values, block, 1);
        if (!invert_block(block, dinv + i * (BLOCK_SIZE * BLOCK_SIZE))) atomicAdd(&digests[NO_PIVOTS], 1ull);
    }
}

extern "C" __global__ void blocks_by_rows(long long n_slices, const int* slices, const OFFSET* block_indptr,
                                          const int* columns, const STORED* blocks, STORED* result) {
    long long k = thread_id() / WARP;
    if (k >= n_slices) return;
    Slice slice(slices, k);
    slice.steps(block_indptr, columns, [&](const Step& step, OFFSET e) {
        const STORED* block = blocks + step.first * (BLOCK_SIZE * BLOCK_SIZE) + step.rank;
        for (int p = 0; p < BLOCK_SIZE * BLOCK_SIZE; ++p)
            result[e * (BLOCK_SIZE * BLOCK_SIZE) + p] = block[p * (long long)step.count];
    });
}
