// Marks for the columns of a matrix: a bit in memory for each. A block of threads visits the marked columns in order.
#pragma once

#include "cuda/scan.cuh"

// All bits are zero before and afterwards. Each block has its own.
struct Marks {
    uint32* marks;
    int words;

    __device__ Marks(long long width, uint32* all_marks) : words((int)((width + 31) / 32)) {
        marks = all_marks + blockIdx.x * (long long)words;
    }
    __device__ __forceinline__ void set(int column) { atomicOr(&marks[column / 32], 1u << column % 32); }

    // Call `visit(place, column)` for each marked column, where `place` is the number of smaller marked columns.
    // Returns the number of marked columns.
    template <typename Visit>
    __device__ long long visit(Visit visit) {
        long long count = 0, found;
        for (int first = 0; first < words; first += BLOCK) {
            int w = first + threadIdx.x;
            uint32 bits = w < words ? ptx::load_l2(&marks[w]) : 0;
            long long place = count + block_scan(__popc(bits), found);
            for (; bits; bits &= bits - 1) visit(place++, w * 32 + __ffs(bits) - 1);
            count += found;
        }
        __syncthreads();
        return count;
    }
    __device__ void clear() {
        for (int w = threadIdx.x; w < words; w += BLOCK) marks[w] = 0;
        __syncthreads();
    }
};
