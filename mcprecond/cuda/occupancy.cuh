// How many blocks a multiprocessor is to hold at once: with more of them a thread has fewer registers.
#pragma once

#include "cuda/elements.cuh"

// Vectors that do not fit into L2 take longer to come: more warps hide that, where their registers allow.
#if defined(LARGE_VECTORS) && !defined(SLICED_DIA)
#define USUAL_WARPS (sizeof(WorkEntry) + sizeof(MatrixEntry) > 8 ? 32 : 40)
#else
#define USUAL_WARPS 32
#endif
#define ENTRY_BYTES (sizeof(VectorEntry) + sizeof(MatrixEntry))
#define SWEEP_WARPS (ENTRY_BYTES > 24 ? 16 : ENTRY_BYTES > 16 ? 24 : USUAL_WARPS)

// For __launch_bounds__ of a sweep, and of one that needs registers for two sums.
#define SWEEP_BLOCKS (SWEEP_WARPS * WARP / BLOCK)
#define TWO_SUMS_BLOCKS (SWEEP_BLOCKS - SWEEP_WARPS / WARP)
