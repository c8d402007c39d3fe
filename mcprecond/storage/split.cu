// The triangles of a matrix in color order: LANES threads per row, which take its entries LANES at a time. See split.py.

#include "cuda/compact.cuh"
#include "cuda/reduce.cuh"

// Stretches of LANES entries, until the longest row of the warp is done; k may lie behind the end of this row.
#define FOR_STRETCHES(k, begin, end) \
    for (OFFSET k = (begin) + threadIdx.x % LANES; __any_sync(FULL_WARP, k < (end)); k += LANES)

// The triangle of an entry in row i, column j of the color order: -1 for the lower, 1 for the upper one, 0 for the
// diagonal.
__device__ __forceinline__ int triangle_of(long long i, long long j) { return (j > i) - (j < i); }

extern "C" __global__ void count_entries(long long n, const OFFSET* indptr, const int* indices, const int* inverse,
                                         long long uncut, OFFSET* lower_counts, OFFSET* upper_counts) {
    long long v = thread_id() / LANES;
    int i = v < n ? inverse[v] : 0, lower = 0, upper = 0;
    OFFSET begin = v < n ? indptr[v] : 0, end = v < n ? indptr[v + 1] : 0;
    bool is_counted = v < n && end - begin <= uncut;
    if (is_counted)
        for (OFFSET k = begin + threadIdx.x % LANES; k < end; k += LANES) {
            int triangle = triangle_of(i, inverse[indices[k]]);
            lower += triangle == -1;
            upper += triangle == 1;
        }
    lower = lane_sum<LANES>(lower);
    upper = lane_sum<LANES>(upper);
    if (is_counted && threadIdx.x % LANES == 0) {
        lower_counts[i] = lower;
        upper_counts[i] = upper;
    }
}

// A piece of a long row of A, which is row i in color order: the work of one warp, so LANES is 32.
struct Piece {
    int i;
    OFFSET row_begin, begin, end;

    __device__ __forceinline__ Piece(long long p, const int* rows, const OFFSET* begins, const OFFSET* indptr,
                                     const int* inverse) {
        i = inverse[rows[p]];
        row_begin = indptr[rows[p]], begin = begins[p];
        OFFSET row_end = indptr[rows[p] + 1];
        end = row_end - begin > PIECE ? begin + PIECE : row_end;
    }
};

extern "C" __global__ void count_pieces(long long n_pieces, const int* rows, const OFFSET* begins, const OFFSET* indptr,
                                        const int* indices, const int* inverse,
                                        OFFSET* lower_counts, OFFSET* upper_counts) {
    long long p = thread_id() / WARP;
    if (p >= n_pieces) return;
    Piece piece(p, rows, begins, indptr, inverse);
    int lower = 0, upper = 0;
    for (OFFSET k = piece.begin + lane_id(); k < piece.end; k += WARP) {
        int triangle = triangle_of(piece.i, inverse[indices[k]]);
        lower += triangle == -1;
        upper += triangle == 1;
    }
    lower = lane_sum<WARP>(lower);
    upper = lane_sum<WARP>(upper);
    if (lane_id()) return;
    lower_counts[p] = lower;
    upper_counts[p] = upper;
}

extern "C" __global__ void fill_pieces(long long n_pieces, const int* rows, const OFFSET* begins, const OFFSET* indptr,
                                       const int* indices, const int* inverse,
                                       const OFFSET* lower_places, const OFFSET* upper_places, int* lower_columns, SOURCE* lower_source,
                                       int* upper_columns, SOURCE* upper_source, SOURCE* diagonal_source) {
    long long p = thread_id() / WARP;
    if (p >= n_pieces) return;
    Piece piece(p, rows, begins, indptr, inverse);
    OFFSET lower = lower_places[p], upper = upper_places[p];
    for (OFFSET first = piece.begin; first < piece.end; first += WARP) {
        OFFSET k = first + lane_id();
        int j = k < piece.end ? inverse[indices[k]] : piece.i;
        SOURCE number = (SOURCE)(k - piece.row_begin);
        int triangle = triangle_of(piece.i, j);
        OFFSET lower_place = place_in_row<WARP>(triangle == -1, lower),
               upper_place = place_in_row<WARP>(triangle == 1, upper);
        if (triangle == -1) {
            lower_columns[lower_place] = j;
            lower_source[lower_place] = number;
        } else if (triangle == 1) {
            upper_columns[upper_place] = j;
            upper_source[upper_place] = number;
        } else if (triangle == 0 && k < piece.end) {
            diagonal_source[piece.i] = number;
        }
    }
}

// Where the entries of row i of the color order are stored: `store(k, j, place, triangle)` for each entry k of A, with
// its column j in color order; triangle is what `triangle_of` says; 0 has no place. Whole warps call it.
#define SHARE 8  // entries of a sorted row per thread, at most

template <typename Store>
__device__ __forceinline__ void place_row(long long i, bool active, const OFFSET* indptr, const int* indices,
                                          const int* perm, const int* inverse,
                                          long long sorted_length, long long uncut, const OFFSET* lower_indptr, const OFFSET* upper_indptr, Store store) {
    int lane = threadIdx.x % LANES;
    OFFSET begin = active ? indptr[perm[i]] : 0, end = active ? indptr[perm[i] + 1] : 0;
    OFFSET lower = active ? lower_indptr[i] : 0, upper = active ? upper_indptr[i] : 0;
    bool sorts = end - begin <= sorted_length;
    int length = sorts ? (int)(end - begin) : 0;

    // A short row is sorted in registers. An entry's rank is the number of entries before it.
    int column[SHARE], rank[SHARE], longest = length;
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) longest = max(longest, __shfl_xor_sync(FULL_WARP, longest, step));
#pragma unroll
    for (int e = 0; e < SHARE; ++e) {
        column[e] = lane + e * LANES < length ? inverse[indices[begin + lane + e * LANES]] : 0x7fffffff;
        rank[e] = 0;
    }
#pragma unroll
    for (int o = 0; o < SHARE; ++o) {
        if (o * LANES >= longest) break;
        for (int l = 0; l < LANES; ++l) {
            int other = __shfl_sync(FULL_WARP, column[o], l, LANES);
#pragma unroll
            for (int e = 0; e < SHARE; ++e) {
                if (e * LANES >= longest) break;
                rank[e] += other < column[e];  // no column comes twice
            }
        }
    }
    if (length) {
        // Before the upper triangle come the lower one and the diagonal.
        int before = length - (int)(upper_indptr[i + 1] - upper);
#pragma unroll
        for (int e = 0; e < SHARE; ++e)
            if (lane + e * LANES < length) {
                int j = column[e], triangle = triangle_of(i, j);
                store(begin + lane + e * LANES, j, triangle < 0 ? lower + rank[e] : upper + rank[e] - before, triangle);
            }
    }

    // A longer row keeps its order. The kernel fill_pieces stores rows that are too long for a few threads.
    if (sorts || end - begin > uncut) begin = end;
    FOR_STRETCHES(k, begin, end) {
        int j = k < end ? inverse[indices[k]] : (int)i, triangle = triangle_of(i, j);
        OFFSET lower_place = place_in_row<LANES>(k < end && triangle == -1, lower);
        OFFSET upper_place = place_in_row<LANES>(k < end && triangle == 1, upper);
        if (k < end) store(k, j, triangle < 0 ? lower_place : upper_place, triangle);
    }
}

extern "C" __global__ void fill_columns(long long n, const OFFSET* indptr, const int* indices, const int* perm,
                                        const int* inverse, long long sorted_length,
                                        long long uncut, const OFFSET* lower_indptr, int* lower_columns, SOURCE* lower_source,
                                        const OFFSET* upper_indptr, int* upper_columns, SOURCE* upper_source,
                                        SOURCE* diagonal_source) {
    long long i = thread_id() / LANES;
    place_row(i, i < n, indptr, indices, perm, inverse, sorted_length, uncut, lower_indptr, upper_indptr,
              [&](OFFSET k, int j, OFFSET place, int triangle) {
                  SOURCE number = (SOURCE)(k - indptr[perm[i]]);
                  if (triangle == 0) {
                      diagonal_source[i] = number;
                  } else {
                      (triangle < 0 ? lower_columns : upper_columns)[place] = j;
                      (triangle < 0 ? lower_source : upper_source)[place] = number;
                  }
              });
}
