// Products of sparse matrices: a team of LANES threads per row, or a block for a row that is WIDE. See products.py.
//
// For each entry in a row of the first factor a team adds a multiple of a row of the second, each thread some numbers of
// it. So every sum is in the order of the entries.

#include "cuda/numbers.cuh"
#include "multigrid/blocks.cuh"
#include "multigrid/team.cuh"

struct Csr {
    const OFFSET* indptr;
    const int* indices;
    const VALUE* values;
};

struct Rows {
    long long *begins, *ends;
    int* columns;
    VALUE* numbers;
};

// A row of the second factor times a factor: where its list begins, and its number among those that share the list.
struct Multiple {
    VALUE factor;
    long long list;
    int length, row;

    // Where its numbers begin.
    __device__ __forceinline__ long long begin() const { return (list * SHARING + row * length) * WIDTH; }
};

#ifdef WIDE
// The sums of a row in memory, a number for each column, and a bit for each that is there. Both are zero before and
// afterwards.
struct Sums {
    VALUE* numbers;
    uint32* marks;
    int words;

    __device__ Sums(long long width, VALUE* all_numbers, uint32* all_marks) : words((int)((width + 31) / 32)) {
        numbers = all_numbers + blockIdx.x * width * WIDTH;
        marks = all_marks + blockIdx.x * (long long)words;
    }
    __device__ __forceinline__ bool fits() const { return true; }

    // The first LANES numbers, and the first column of each thread, are loaded already.
    __device__ void add(const Multiple& row, int column, VALUE number, const Rows& from) {
        for (int q = team_lane(); q < row.length * WIDTH; q += LANES) {
            int t = q / WIDTH;
            if (q >= LANES) column = from.columns[row.list + t], number = from.numbers[row.begin() + q];
            numbers[(long long)column * WIDTH + (q - t * WIDTH)] += row.factor * number;
            if (q == t * WIDTH) atomicOr(&marks[column / 32], 1u << column % 32);
        }
        team_sync();
    }

    // Call `visit(place, column)` for all columns, in order; returns how many they are.
    template <typename Visit>
    __device__ int visit(Visit visit) {
        __shared__ int of_warps[BLOCK / WARP];
        int count = 0;
        for (int first = 0; first < words; first += BLOCK) {
            int w = first + threadIdx.x, warp = threadIdx.x / WARP;
            uint32 bits = w < words ? ptx::load_l2(&marks[w]) : 0;
            int through = __popc(bits);
            for (int step = 1; step < WARP; step *= 2) {
                int before = __shfl_up_sync(FULL_WARP, through, step);
                if (lane_id() >= step) through += before;
            }
            if (lane_id() == WARP - 1) of_warps[warp] = through;
            __syncthreads();
            int place = count + through - __popc(bits);
            for (int other = 0; other < BLOCK / WARP; ++other) {
                if (other < warp) place += of_warps[other];
                count += of_warps[other];
            }
            for (; bits; bits &= bits - 1) visit(place++, w * 32 + __ffs(bits) - 1);
            __syncthreads();
        }
        return count;
    }
    __device__ int count() {
        return visit([](int, int) {});
    }

    __device__ __forceinline__ void take(int column, VALUE* result) {
        for (int c = 0; c < WIDTH; ++c) {
            VALUE& sum = numbers[(long long)column * WIDTH + c];
            result[c] = sum, sum = VALUE();
        }
    }
    __device__ void take_all(int* columns, VALUE* result) {
        visit([&](int place, int column) {
            columns[place] = column;
            take(column, result + (long long)place * WIDTH);
        });
        clear();
    }
    __device__ void take_sorted(int length, const int* columns, VALUE* result) {
        for (int t = team_lane(); t < length; t += LANES) take(columns[t], result + (long long)t * WIDTH);
        clear();
    }
    __device__ void clear() {
        for (int w = threadIdx.x; w < words; w += BLOCK) marks[w] = 0;
        __syncthreads();
    }
    // If the row is not kept.
    __device__ void drop() {
        visit([&](int, int column) {
            for (int c = 0; c < WIDTH; ++c) numbers[(long long)column * WIDTH + c] = VALUE();
        });
        clear();
    }
};
#else
#define TABLE_OF_THREAD (sizeof(VALUE) == 16 ? TABLE_PER_THREAD / 2 : TABLE_PER_THREAD)
#define TABLE (LANES * (int)TABLE_OF_THREAD)
#define EMPTY -1
#if WIDTH == 1
#define PLACES TABLE  // a number stands at the place of its column
#define MOST_COLUMNS (TABLE / 4 * 3)
#else
#define PLACES (LANES * (int)(NUMBER_BYTES / sizeof(VALUE)))
#define MOST_COLUMNS (PLACES / WIDTH < TABLE / 4 * 3 ? PLACES / WIDTH : TABLE / 4 * 3)
#endif

// The sums of a row in shared memory, by a hash table of the columns. All is empty or zero before and afterwards.
struct Sums {
    int *keys, *length;
    unsigned short *order, *slots;  // where the columns are in the table, as they came, and the numbers of a column
    VALUE* numbers;

    __device__ Sums(long long, VALUE*, uint32*) {
        __shared__ int tables[BLOCK * TABLE_OF_THREAD], lengths[BLOCK / LANES];
        __shared__ unsigned short orders[BLOCK * TABLE_OF_THREAD], all_slots[WIDTH == 1 ? 1 : BLOCK * TABLE_OF_THREAD];
        __shared__ VALUE all_numbers[BLOCK / LANES * PLACES];
        int team = threadIdx.x / LANES;
        keys = tables + team * TABLE, length = lengths + team, order = orders + team * TABLE;
        slots = all_slots + (WIDTH == 1 ? 0 : team * TABLE), numbers = all_numbers + team * PLACES;
        drop();
    }
    __device__ __forceinline__ bool fits() const { return ptx::load_volatile(length) <= MOST_COLUMNS; }

    static __device__ __forceinline__ int hash(int column) { return (int)((uint32)column * 0x9e3779b9u >> 16) % TABLE; }

    // Where a column is in the table; EMPTY if there was no room left for it. Then the row does not fit.
    __device__ __forceinline__ int insert(int column) {
        for (int h = hash(column);; h = (h + 1) % TABLE) {
            int there = ptx::load_volatile(&keys[h]);
            if (there == EMPTY) there = atomicCAS(&keys[h], EMPTY, column);
            if (there == column) return h;
            if (there != EMPTY) continue;
            int place = atomicAdd(length, 1);
            if (place >= MOST_COLUMNS) return EMPTY;
            order[place] = (unsigned short)h;
            if (WIDTH > 1) slots[h] = (unsigned short)place;
            return h;
        }
    }
    __device__ __forceinline__ int find(int column) const {
        int h = hash(column);
        while (keys[h] != column) CHECK(column, keys[h] != EMPTY), h = (h + 1) % TABLE;
        return h;
    }
    __device__ __forceinline__ int slot_of(int column) const {
        int h = find(column);
        return WIDTH == 1 ? h : slots[h];
    }

    // The first LANES numbers, and the first column of each thread, are loaded already.
    __device__ __forceinline__ void add(const Multiple& row, int column, VALUE number, const Rows& from) {
        if (!fits()) return;
#if WIDTH == 1
        for (int t = team_lane(); t < row.length; t += LANES) {
            if (t >= LANES) column = from.columns[row.list + t], number = from.numbers[row.begin() + t];
            int h = insert(column);
            if (h == EMPTY) break;
            numbers[h] += row.factor * number;
        }
#else
        for (int t = team_lane(); t < row.length; t += LANES)
            if (insert(from.columns[row.list + t]) == EMPTY) break;
        team_sync();
        for (int q = team_lane(); q < row.length * WIDTH && fits(); q += LANES) {
            int t = q / WIDTH;
            if (q >= LANES) column = from.columns[row.list + t], number = from.numbers[row.begin() + q];
            numbers[slot_of(column) * WIDTH + q - t * WIDTH] += row.factor * number;
        }
#endif
        team_sync();
    }

    __device__ __forceinline__ int count() const { return *length; }

    __device__ void take_all(int* columns, VALUE* result) {
        int count = *length;
        for (int q = team_lane(); q < count * WIDTH; q += LANES) {
            int t = q / WIDTH, h = order[t];
            if (q == t * WIDTH) columns[t] = keys[h];
            result[q] = numbers[WIDTH == 1 ? h : q];
        }
        clear();
    }
    __device__ void take_sorted(int count, const int* columns, VALUE* result) {
        for (int q = team_lane(); q < count * WIDTH; q += LANES) {
            int t = q / WIDTH;
            result[q] = numbers[slot_of(columns[t]) * WIDTH + q - t * WIDTH];
        }
        clear();
    }
    __device__ void clear() {
        team_sync();
        int count = *length;
        for (int q = team_lane(); q < count * WIDTH; q += LANES) {
            int h = order[q / WIDTH];
            keys[h] = EMPTY, numbers[WIDTH == 1 ? h : q] = VALUE();
        }
        team_sync();
        if (team_lane() == 0) *length = 0;
        team_sync();
    }
    // If the row does not fit, or is not kept.
    __device__ void drop() {
        team_sync();
        for (int h = team_lane(); h < TABLE; h += LANES) keys[h] = EMPTY;
        for (int q = team_lane(); q < PLACES; q += LANES) numbers[q] = VALUE();
        if (team_lane() == 0) *length = 0;
        team_sync();
    }
};
#endif

#define AHEAD 4  // rows

// Add up row i of the product; returns whether it fits. Each thread of the team looks up one of the next rows of the
// second factor, and the first numbers of some of them are loaded before they are added.
__device__ __forceinline__ bool add_up(Sums& sums, long long i, const Csr& left, const Rows& right) {
    __shared__ Multiple multiples[BLOCK];
    Multiple* next = multiples + threadIdx.x / LANES * LANES;
    OFFSET begin = left.indptr[i];
    int count = (int)(left.indptr[i + 1] - begin);
    for (int first = 0; first < count; first += LANES) {
        int rows = min(LANES, count - first);
        if (team_lane() < rows) {
            int j = left.indices[begin + first + team_lane()], u = j / SHARING;
            Multiple& own = next[team_lane()];
            own.factor = left.values[begin + first + team_lane()];
            own.list = right.begins[u], own.length = (int)(right.ends[u] - own.list);
            own.row = j % SHARING;
        }
        team_sync();
        for (int s = 0; s < rows; s += AHEAD) {
            int columns[AHEAD];
            VALUE numbers[AHEAD];
#pragma unroll
            for (int a = 0; a < AHEAD; ++a) {
                const Multiple& row = next[(s + a) % LANES];
                bool is_there = s + a < rows && team_lane() < row.length * WIDTH;
                columns[a] = is_there ? right.columns[row.list + team_lane() / WIDTH] : -1;
                numbers[a] = is_there ? right.numbers[row.begin() + team_lane()] : VALUE();
            }
#pragma unroll
            for (int a = 0; a < AHEAD; ++a)
                if (s + a < rows) sums.add(next[(s + a) % LANES], columns[a], numbers[a], right);
        }
        if (!sums.fits()) return false;
        team_sync();
    }
    return true;
}

// The number that thread 0 of the team has.
__device__ __forceinline__ long long of_first(long long number) {
#ifdef WIDE
    __shared__ long long of_block;
    if (threadIdx.x == 0) of_block = number;
    __syncthreads();
    number = of_block;
    __syncthreads();
    return number;
#else
    return __shfl_sync(team_mask(), number, lane_id() / LANES * LANES);
#endif
}

extern "C" __global__ void multiply_rows(long long n, long long width, long long sharing, long long k,
                                         long long is_listed, const int* rows, Csr left, Rows right, long long room,
                                         long long reserved, uint64* found, Rows result, int* left_over,
                                         long long blocks, VALUE* all_sums, uint32* marks) {
    long long teams = thread_count() / LANES, entries = 0, next = 0, stop = 0;
    int longest = 0;
#ifdef WIDE
    if (blockIdx.x >= blocks) return;
    teams = min(teams, blocks);
#endif
    Sums sums(width, all_sums, marks);
    for (long long r = thread_id() / LANES; r < n; r += teams) {
        long long i = is_listed ? rows[r] : r;
        if (!add_up(sums, i, left, right)) {
            if (reserved && team_lane() == 0) left_over[atomicAdd(&found[LEFT_OVER], (uint64)1)] = (int)i;
            sums.drop();
            continue;
        }
        int count = sums.count();
        if (reserved) {
            if (next + count > stop) {
                long long most = max((long long)count, reserved);
                if (team_lane() == 0) next = (long long)atomicAdd(&found[USED], (uint64)most);
                next = of_first(next), stop = next + most;
            }
            if (team_lane() == 0) result.begins[i] = next, result.ends[i] = next + count;
            next += count, entries += count, longest = max(longest, count);
        }
        long long begin = reserved ? next - count : result.begins[i];
        if (begin + count <= room)
            sums.take_all(result.columns + begin, result.numbers + begin * WIDTH);
        else
            sums.drop();
    }
    if (team_lane() == 0 && longest) {
        atomicAdd(&found[ENTRIES], (uint64)entries);
        if (longest > (long long)ptx::load_l2(&found[LONGEST])) atomicMax(&found[LONGEST], (uint64)longest);
    }
}

// The columns of the result are known, and sorted.
extern "C" __global__ void multiply_into(long long n, long long width, long long sharing, long long k,
                                         long long is_listed, const int* rows, Csr left, Rows right,
                                         long long result_sharing, const long long* result_indptr,
                                         const int* result_columns, VALUE* result, long long blocks, VALUE* all_sums,
                                         uint32* marks) {
    long long teams = thread_count() / LANES;
#ifdef WIDE
    if (blockIdx.x >= blocks) return;
    teams = min(teams, blocks);
#endif
    Sums sums(width, all_sums, marks);
    for (long long s = thread_id() / LANES; s < n; s += teams) {
        long long i = is_listed ? rows[s] : s;
        if (!add_up(sums, i, left, right)) {
            sums.drop();
            continue;
        }
        long long v = i / result_sharing, list = result_indptr[v];
        VALUE* numbers = result + begin_of(v, i - v * result_sharing, result_sharing, WIDTH, result_indptr);
        sums.take_sorted((int)(result_indptr[v + 1] - list), result_columns + list, numbers);
    }
}

// A column goes where as many are as there are smaller ones. Rows from memory are sorted already.
extern "C" __global__ void sort_rows(long long n, long long width, long long sharing, long long k, Rows from,
                                     const long long* indptr, int* columns, VALUE* numbers) {
    long long i = thread_id() / LANES;
    if (i >= n) return;
    long long v = i / SHARING, r = i - v * SHARING, begin = from.begins[i], list = indptr[v];
    int length = (int)(indptr[v + 1] - list);
    const int* found = from.columns + begin;
    bool is_sorted = true;
    for (int t = team_lane(); t + 1 < length; t += LANES) is_sorted &= found[t] < found[t + 1];
    is_sorted = __all_sync(team_mask(), is_sorted);
    VALUE* own = numbers + begin_of(v, r, SHARING, WIDTH, indptr);
    for (int t = team_lane(); t < length; t += LANES) {
        int place = is_sorted ? t : 0;
        for (int other = 0; other < length && !is_sorted; ++other) place += found[other] < found[t];
        if (r == 0) columns[list + place] = found[t];
        for (int c = 0; c < WIDTH; ++c) own[place * WIDTH + c] = from.numbers[(begin + t) * WIDTH + c];
    }
}
