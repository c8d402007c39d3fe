// What EB keeps and how; each function here is the part of color_sets.py with the same name.
#pragma once

#include "cuda/compact.cuh"

__device__ __forceinline__ int first_available(int forbidden) {
    return ~forbidden & (int)((uint32)forbidden + 1u) & ALL_FORBIDDEN;
}

__device__ bool forbid_color(int2 edge, const int* C, const int* CS, int* VF) {
    int cu = C[edge.x], cv = C[edge.y];
    if (cu != 0 && cv != 0) return false;
    if (cu == 0 && cv == 0) return true;
    int colored = cu ? edge.x : edge.y, other = cu ? edge.y : edge.x;
    int set = CS[colored], other_set = CS[other];
    if (set == other_set) atomicOr(&VF[other], cu | cv);
    return set > other_set;
}

__device__ void detect_conflict(int2 edge, int* C, const int* CS) {
    int color = C[edge.x];
    if (color != 0 && color == C[edge.y] && CS[edge.x] == CS[edge.y]) C[edge.x] = 0;
}

// CS(v) * 31 + log2 C(v).
__device__ __forceinline__ int to_number(int bit, int color_set) { return color_set * SET_SIZE + __ffs(bit) - 1; }

// From bits to numbers.
__device__ void from_bits(long long n, int* C, const int* CS) {
    for (long long v = thread_id(); v < n; v += thread_count())
        C[v] = to_number(ptx::load_l2(&C[v]), ptx::load_l2(&CS[v]));
}
