// Teams: LANES neighboring threads of a warp that share a row and wait for each other, but not for other teams.
#pragma once

#include "cuda/grid.cuh"

__device__ __forceinline__ int team_lane() { return threadIdx.x % LANES; }
__device__ __forceinline__ unsigned team_mask() { return FULL_WARP >> (WARP - LANES) << (lane_id() / LANES * LANES); }
