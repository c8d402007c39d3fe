// A row of a product, as a sum of multiples of rows of blocks that a team adds up, one after the other.
#pragma once

#include "cuda/numbers.cuh"
#include "cuda/search.cuh"
#include "multigrid/team.cuh"

#define WIDTH CANDIDATES  // numbers of a block in a row

// Row number r of UNKNOWNS in the blocks of node u, times a factor.
struct Addend {
    VALUE factor;
    int u, r;
};

#if LANES < LEAST_SHARING
// In memory, where a binary search finds the columns.
struct RowSum {
    const int* columns;  // of blocks that have WIDTH numbers in this row each; sorted
    int length;
    VALUE* result;

    __device__ __forceinline__ RowSum(const int* columns, int length, VALUE* result)
        : columns(columns), length(length), result(result) {
        for (int q = team_lane(); q < length * WIDTH; q += LANES) result[q] = VALUE();
        team_sync();
    }

    // Add what `addend` gives for 0 to count - 1.
    template <typename Find>
    __device__ __forceinline__ void add(int count, const long long* indptr, const int* their_columns,
                                        const VALUE* values, Find addend) const {
        for (int e = 0; e < count; ++e) {
            Addend row = addend(e);
            long long list = indptr[row.u];
            int their_length = (int)(indptr[row.u + 1] - list);
            const VALUE* numbers = values + (list * UNKNOWNS + row.r * their_length) * WIDTH;
            for (int q = team_lane(); q < their_length * WIDTH; q += LANES) {
                int t = q / WIDTH, slot = lower_bound(columns, 0, length, their_columns[list + t]);
                CHECK(slot, slot < length && columns[slot] == their_columns[list + t]);
                result[slot * WIDTH + q - t * WIDTH] += row.factor * numbers[q];
            }
            team_sync();
        }
    }

    __device__ __forceinline__ void write() const {}
};
#else
// In shared memory: its numbers, a table that tells where those of a column are, and where the rows to add are. A row
// that does not fit is added up in memory.
#define NUMBERS (LANES * (int)(NUMBER_BYTES / sizeof(VALUE)))
#define TABLE (LANES * TABLE_PER_THREAD)
#define EMPTY -1
#define AHEAD 4  // rows

struct RowSum {
    const int* columns;  // of the blocks, sorted; each has WIDTH numbers of this row
    int length;
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

    __device__ RowSum(const int* columns, int length, VALUE* result)
        : columns(columns), length(length), result(result), numbers(result) {
        __shared__ VALUE all_numbers[BLOCK / LANES * NUMBERS];
        __shared__ int tables[BLOCK * TABLE_PER_THREAD];
        __shared__ unsigned short all_slots[BLOCK * TABLE_PER_THREAD];
        __shared__ Added all_added[BLOCK];
        int team = threadIdx.x / LANES;
        table = tables + team * TABLE, slots = all_slots + team * TABLE, added = all_added + team * LANES;
        fits = (long long)length * WIDTH <= NUMBERS && length <= TABLE / 4 * 3;
        if (fits) numbers = all_numbers + team * NUMBERS;
        for (int q = team_lane(); q < length * WIDTH; q += LANES) numbers[q] = VALUE();
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
        while (table[h] != column) CHECK(column, table[h] != EMPTY), h = (h + 1) % TABLE;
        return slots[h];
    }

    // Add what `addend` gives for 0 to count - 1, in this order. Each thread of the team looks up one of the next rows.
    // The first numbers of some rows are loaded before they are added.
    template <typename Find>
    __device__ __forceinline__ void add(int count, const long long* indptr, const int* their_columns,
                                        const VALUE* values, Find addend) {
        for (int first = 0; first < count; first += LANES) {
            int rows = min(LANES, count - first);
            if (team_lane() < rows) look_up(addend(first + team_lane()), indptr);
            team_sync();
            for (int s = 0; s < rows; s += AHEAD) {
                int listed[AHEAD];
                VALUE loaded[AHEAD];
#pragma unroll
                for (int a = 0; a < AHEAD; ++a) {
                    const Added& row = added[(s + a) % LANES];
                    bool is_there = s + a < rows && team_lane() < row.length * WIDTH;
                    int t = team_lane() / WIDTH;
                    listed[a] = is_there ? their_columns[row.list + t] : -1;
                    loaded[a] = is_there ? values[row.begin + team_lane()] : VALUE();
                }
#pragma unroll
                for (int a = 0; a < AHEAD; ++a) {
                    if (s + a < rows) add_row(added[(s + a) % LANES], listed[a], loaded[a], their_columns, values);
                }
            }
        }
    }

    // The first LANES numbers, and the first column of each thread, are loaded already.
    __device__ __forceinline__ void add_row(const Added& row, int column, VALUE number, const int* their_columns,
                                            const VALUE* values) {
        for (int q = team_lane(); q < row.length * WIDTH; q += LANES) {
            int t = q / WIDTH;
            bool is_first = q < LANES;
            int slot = slot_of(is_first ? column : their_columns[row.list + t]);
            CHECK(slot, slot < length && columns[slot] == (is_first ? column : their_columns[row.list + t]));
            numbers[slot * WIDTH + q - t * WIDTH] += row.factor * (is_first ? number : values[row.begin + q]);
        }
        team_sync();
    }

    __device__ __forceinline__ void look_up(const Addend& row, const long long* indptr) {
        Added& own = added[team_lane()];
        own.list = indptr[row.u], own.length = (int)(indptr[row.u + 1] - own.list);
        own.begin = (own.list * UNKNOWNS + row.r * own.length) * WIDTH;
        own.factor = row.factor;
    }

    __device__ __forceinline__ void write() const {
        if (!fits) return;
        for (int q = team_lane(); q < length * WIDTH; q += LANES) result[q] = numbers[q];
    }
};
#endif
