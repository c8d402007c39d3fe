// Blocks of nodes: the pattern of the nodes, and their blocks in the order of slices. See node_blocks.py.

#include "cuda/search.cuh"
#include "layouts/slices.cuh"

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
