// Columns in two bytes, counted from bases of their slice, which a warp puts into shared memory: see delta.py.

#define LEAST_SHIFT 9
#define MOST_BASES (1 << 16 - LEAST_SHIFT)

// Where the bases of a slice begin in its list, counted in numbers of four bytes; the next slice's begin where they end. The
// slice's first entry, and how many each row has: that is fewer bytes than row offsets.
struct __align__(16) Head {
    int first, shift;
    long long entry;
    unsigned char lengths[WARP];
};
// The list begins with where its codes are, and heads.
__device__ __forceinline__ const Head* heads_of(const int* list) { return (const Head*)(list + 4); }
__device__ __forceinline__ const uint16* codes_of(const int* list) { return (const uint16*)(list + list[0]); }

// Room for the bases that a warp works with: the same for all slices in a kernel.
__device__ __forceinline__ int* held_by_warp() {
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

    __device__ __forceinline__ Columns(const OFFSET*, const int* list, const SliceRows& slice, int number) : list(list) {
        const Head* head = heads_of(list) + number;
        length = head[0].lengths[slice.row], first = (OFFSET)head[0].entry;
        begin = head[0].first, end = head[1].first, shift = head[0].shift;
        codes = kept(codes_of(list) + first);
#pragma unroll
        for (int k = 0; k < USUAL; ++k) own[k] = base(k * WARP + lane_id());
    }
    // So that the sum of it and a code is the column.
    __device__ __forceinline__ int base(int number) const {
        return begin + number < end ? list[begin + number] - (number << shift) : 0;
    }
    __device__ __forceinline__ int ask(OFFSET place) const { return __ldcs(&codes[place]); }
    __device__ __forceinline__ void hold() const {
        int* held = held_by_warp();
        __syncwarp();  // nobody needs those before
#pragma unroll
        for (int k = 0; k < USUAL; ++k) held[k * WARP + lane_id()] = own[k];
#pragma unroll 1
        for (int k = USUAL * WARP + lane_id(); begin + k < end; k += WARP) held[k] = base(k);
        __syncwarp();
    }
    __device__ __forceinline__ int column(int code) const { return held_by_warp()[code >> shift] + code; }
};
