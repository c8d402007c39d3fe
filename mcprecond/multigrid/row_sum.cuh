// A row of a product, which a team adds up in shared memory: its numbers, a table that tells where those of a column
// are, and what each thread of the team found out about one of the rows to add. Rows that do not fit are added up in
// memory, where a binary search finds the columns.
#pragma once

#include "cuda/numbers.cuh"
#include "cuda/search.cuh"
#include "multigrid/team.cuh"

#define NUMBERS (LANES * (int)(NUMBER_BYTES / sizeof(VALUE)))
#define TABLE (LANES * TABLE_PER_THREAD)
#define EMPTY -1

struct RowSum {
    const int* columns;  // of the blocks, sorted; each has `width` numbers of this row
    int length, width;
    VALUE *result, *numbers;
    bool fits;

    struct Added {
        long long begin, list;  // where its numbers begin, and its columns
        int length;
        VALUE factor;
    };
    int* table;
    unsigned short* slots;
    Added* added;

    __device__ RowSum(const int* columns, int length, int width, VALUE* result)
        : columns(columns), length(length), width(width), result(result), numbers(result) {
        __shared__ VALUE all_numbers[BLOCK / LANES * NUMBERS];
        __shared__ int tables[BLOCK * TABLE_PER_THREAD];
        __shared__ unsigned short all_slots[BLOCK * TABLE_PER_THREAD];
        __shared__ Added all_added[BLOCK];
        int team = threadIdx.x / LANES;
        table = tables + team * TABLE, slots = all_slots + team * TABLE, added = all_added + team * LANES;
        fits = (long long)length * width <= NUMBERS && length <= TABLE / 4 * 3;
        if (fits) numbers = all_numbers + team * NUMBERS;
        for (int q = team_lane(); q < length * width; q += LANES) numbers[q] = VALUE();
        if (!fits) return;
        for (int h = team_lane(); h < TABLE; h += LANES) table[h] = EMPTY;
        team_sync();
        for (int t = team_lane(); t < length; t += LANES) {
            int h = hash(columns[t]);
            while (atomicCAS(&table[h], EMPTY, columns[t]) != EMPTY) h = (h + 1) % TABLE;
            slots[h] = (unsigned short)t;
        }
    }

    static __device__ __forceinline__ int hash(int column) { return (int)((uint32)column * 0x9e3779b9u >> 16) % TABLE; }

    __device__ __forceinline__ int slot_of(int column) const {
        if (!fits) return lower_bound(columns, 0, length, column);
        int h = hash(column);
        while (table[h] != column) h = (h + 1) % TABLE;
        return slots[h];
    }

    // A thread of the team takes note of a row of blocks of node u to be added: the one that is number r of `rows`.
    __device__ __forceinline__ void note(VALUE factor, long long u, long long r, long long rows,
                                         const long long* indptr) {
        Added& own = added[team_lane()];
        own.list = indptr[u], own.length = (int)(indptr[u + 1] - own.list);
        own.begin = (own.list * rows + r * own.length) * width;
        own.factor = factor;
    }

    // All threads of the team add the first `count` rows that they noted, one after the other.
    __device__ __forceinline__ void add(int count, const int* their_columns, const VALUE* values) {
        team_sync();
        for (int s = 0; s < count; ++s) {
            Added row = added[s];
            for (int q = team_lane(); q < row.length * width; q += LANES) {
                int t = width == 1 ? q : q / width;
                int slot = slot_of(their_columns[row.list + t]);
                numbers[slot * width + q - t * width] += row.factor * values[row.begin + q];
            }
            team_sync();
        }
    }

    __device__ __forceinline__ void write() const {
        if (!fits) return;
        for (int q = team_lane(); q < length * width; q += LANES) result[q] = numbers[q];
    }
};
