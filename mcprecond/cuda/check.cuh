// Checks of indices in a debug build, which MCPRECOND_DEBUG asks for; otherwise they are nothing. See
// backends/checking.py.
#pragma once

#include "cuda/types.cuh"

#ifdef CHECKED
__device__ __noinline__ void fail_check(const char* file, int line, const char* condition, long long index) {
    printf("mcprecond/%s, line %d: %lld is no index here: %s\n", file, line, index, condition);
    __trap();
}
#define CHECK(index, condition) ((condition) ? (void)0 : fail_check(__FILE__, __LINE__, #condition, index))
#else
#define CHECK(index, condition) ((void)0)
#endif
