// Columns as bases and offsets: a column is stored in two bytes, the number of a base of its slice and the distance
// from it. A warp stages the bases of its slice in shared memory. See delta.py.
#pragma once

#ifdef COMPRESSED_COLUMNS

#define MOST_BASES (1 << 16 - LEAST_SHIFT)

// Of a slice: where its bases begin in the list, counted in ints, and the next slice's begin where they end; by how
// many bits the number of a base is shifted; the first entry, and the lengths of rows, which take fewer bytes than row
// offsets.
struct __align__(16) Head {
    int first, shift;
    long long entry;
    unsigned char lengths[WARP];
};
static_assert(sizeof(Head) == HEAD * sizeof(int), "as delta.py has it");
// The list begins with the place of its codes; then come the heads, the bases and the codes.
__device__ __forceinline__ const Head* heads_of(const int* list) { return (const Head*)(list + FIRST_HEAD); }
__device__ __forceinline__ const uint16* codes_of(const int* list) { return (const uint16*)(list + list[0]); }

// The bases that a warp has staged, in the same shared memory for all loops of a kernel.
__device__ __forceinline__ int* staged_by_warp() {
    __shared__ int of_warps[BLOCK / WARP][MOST_BASES];
    return of_warps[threadIdx.x / WARP];
}

struct Columns {
    static constexpr int USUAL = 2;  // bases for each thread
    OFFSET first;
    int length;
    const int* list;
    const uint16* codes;
    int begin, end, shift, own[USUAL];

    __device__ __forceinline__ Columns(const OFFSET*, const int* list, const SliceRows& slice, int number)
        : list(list) {
        const Head* head = heads_of(list) + number;
        length = head[0].lengths[slice.row], first = (OFFSET)head[0].entry;
        begin = head[0].first, end = head[1].first, shift = head[0].shift;
        codes = ptx::keep_in_register(codes_of(list) + first);
#pragma unroll
        for (int k = 0; k < USUAL; ++k) own[k] = base(k * WARP + lane_id());
    }
    // Such that base + code is the column.
    __device__ __forceinline__ int base(int number) const {
        return begin + number < end ? list[begin + number] - (number << shift) : 0;
    }
    __device__ __forceinline__ int prefetch(OFFSET place) const { return ptx::load_streaming(&codes[place]); }
    __device__ __forceinline__ void stage() const {
        int* staged = staged_by_warp();
        __syncwarp();  // before this, others may read those of the last slice
#pragma unroll
        for (int k = 0; k < USUAL; ++k) staged[k * WARP + lane_id()] = own[k];
#pragma unroll 1
        for (int k = USUAL * WARP + lane_id(); begin + k < end; k += WARP) staged[k] = base(k);
        __syncwarp();
    }
    __device__ __forceinline__ int column(int code) const { return staged_by_warp()[code >> shift] + code; }
};

#endif
