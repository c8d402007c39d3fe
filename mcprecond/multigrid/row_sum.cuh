// A row of a product, as a sum of multiples of rows of blocks.
#pragma once

#include "cuda/numbers.cuh"
#include "multigrid/team.cuh"

#define HELD 2  // numbers of the row that a thread holds

// Row number r of `rows` in the blocks of node u, times a factor.
struct Addend {
    VALUE factor;
    long long u, r, rows;
};

// Where the numbers of an addend begin, and its columns.
struct Added {
    long long begin, list;
    int length;
    VALUE factor;
};

// Add up what `addend` gives for 0 to count - 1, in this order. Each thread of the team holds some numbers of the row,
// goes over all addends, and takes what stands in its column. The threads look up the next LANES addends together.
//
// `columns`: of the blocks of the row, which have `width` numbers in it each; not the same twice.
template <typename Find>
__device__ __forceinline__ void add_up(const int* columns, int length, int width, VALUE* result, long long count,
                                       const long long* indptr, const int* their_columns, const VALUE* values,
                                       Find addend) {
    __shared__ Added of_teams[BLOCK];
    Added* added = of_teams + threadIdx.x / LANES * LANES;
    for (int first = 0; first < length * width; first += LANES * HELD) {
        int own[HELD], within[HELD];
        VALUE sums[HELD];
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            int q = first + h * LANES + team_lane(), t = width == 1 ? q : q / width;
            own[h] = q < length * width ? columns[t] : -1, within[h] = q - t * width;
            sums[h] = VALUE();
        }
        for (long long before = 0; before < count; before += LANES) {
            int n = (int)min((long long)LANES, count - before);
            if (team_lane() < n) {
                Addend row = addend(before + team_lane());
                Added& next = added[team_lane()];
                next.list = indptr[row.u], next.length = (int)(indptr[row.u + 1] - next.list);
                next.begin = (next.list * row.rows + row.r * next.length) * width, next.factor = row.factor;
            }
            team_sync();
            for (int s = 0; s < n; ++s) {
                const Added& row = added[s];
                const int* theirs = their_columns + row.list;
                const VALUE* numbers = values + row.begin;
#pragma unroll 4
                for (int t = 0; t < row.length; ++t) {
                    int column = theirs[t];
#pragma unroll
                    for (int h = 0; h < HELD; ++h)
                        if (column == own[h]) sums[h] += row.factor * numbers[t * width + within[h]];
                }
            }
            team_sync();
        }
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            int q = first + h * LANES + team_lane();
            if (q < length * width) result[q] = sums[h];
        }
    }
}
