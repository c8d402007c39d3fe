// Products of sparse matrices: a team of LANES threads per row, or a block for a row that is WIDE. See products.py.
//
// For each entry in a row of the first factor a team adds a multiple of a row of the second, each thread some numbers
// of it. So every sum is in the order of the entries. Where WIDTH is 0, entries have columns and no numbers.

#include "cuda/reduce.cuh"
#include "multigrid/marks.cuh"
#include "multigrid/team.cuh"

#define ITEMS (WIDTH > 0 ? WIDTH : 1)  // of an entry: its numbers, or the column alone

struct Csr {
    const OFFSET* indptr;
    const int* indices;
    const VALUE* values;
};

struct Rows {
    OFFSET *begins, *ends;
    int* columns;
    VALUE* numbers;
};

// A multiple of a row of the second factor. `places` is where the team keeps the positions of its columns in the hash
// table.
struct __align__(16) Multiple {
    const int* columns;
    const VALUE* numbers;
    VALUE factor;
    int length;
    unsigned short places;
};

// All teams of a warp take the same branches. If they did not, the hardware would run them one after the other. A team
// that has no row, or a shorter row than the others, adds nothing.
__device__ __forceinline__ void sync_together() {
#ifdef WIDE
    __syncthreads();
#else
    __syncwarp();
#endif
}

#ifdef WIDE
// The sums of a row in memory, with numbers for each column, which are zero before and afterwards.
template <bool IS_KNOWN>
struct Sums {
    VALUE* numbers;
    Marks marks;

    __device__ Sums(long long width, VALUE* all_numbers, uint32* all_marks)
        : numbers(all_numbers + blockIdx.x * width * WIDTH), marks(width, all_marks) {}
    __device__ __forceinline__ VALUE* of(int column) const { return numbers + (long long)column * WIDTH; }
    __device__ __forceinline__ bool fits() const { return true; }
    __device__ __forceinline__ void start(int, const int*) const {}

    // Add a row. The first column of each thread, and the first LANES numbers, are loaded already.
    __device__ void add(const Multiple& row, int length, int column, VALUE number, bool) {
        for (int q = team_lane(); q < length * ITEMS; q += LANES) {
            int t = q / ITEMS;
            if (q >= LANES) column = row.columns[t];
            if (q >= LANES && WIDTH) number = row.numbers[q];
            if (WIDTH) of(column)[q - t * ITEMS] += row.factor * number;
            if (q == t * ITEMS) marks.set(column);
        }
        __syncthreads();
    }

    __device__ int count() {
        return (int)marks.visit([](long long, int) {});
    }
    __device__ void take_all(bool is_kept, int* columns, VALUE* result) {
        if (!is_kept) return;
        marks.visit([&](long long place, int column) {
            columns[place] = column;
            for (int c = 0; c < WIDTH; ++c) result[place * WIDTH + c] = of(column)[c];
        });
    }
    __device__ void take(int count, const int* columns, VALUE* result) {
        for (long long q = threadIdx.x; q < (long long)count * WIDTH; q += BLOCK)
            result[q] = of(columns[q / ITEMS])[q % ITEMS];
    }
    __device__ void clear() {
        __syncthreads();
        marks.visit([&](long long, int column) {
            for (int c = 0; c < WIDTH; ++c) of(column)[c] = VALUE();
        });
        marks.clear();
    }
};
#else
#define TABLE_OF_THREAD (sizeof(VALUE) == 16 ? TABLE_PER_THREAD / 2 : TABLE_PER_THREAD)
#define TABLE (LANES * (int)TABLE_OF_THREAD)
#define SLOTS 4
#define BUCKETS (TABLE / SLOTS)
// Teams of a warp use other banks of shared memory.
#define PADDED(size) ((size) + (LANES < WARP && WIDTH <= 1 ? LANES : 0))
#define EMPTY -1
#define PLACES (WIDTH == 1 ? TABLE : LANES * (int)(NUMBER_BYTES / sizeof(VALUE)))

// A part of the hash table, which is read at once.
struct __align__(4 * SLOTS) Bucket {
    int keys[SLOTS];

    // Where a key is, or SLOTS if it is not there.
    __device__ __forceinline__ int slot_of(int key) const {
        int slot = SLOTS;
#pragma unroll
        for (int s = SLOTS - 1; s >= 0; --s) slot = keys[s] == key ? s : slot;
        return slot;
    }
};

// A hash table of column indices in shared memory. A column is in the first free slot of its bucket, or of a following
// one if that is full. The table is empty at the beginning and at the end of each row.
struct Table {
    Bucket* buckets;
    bool is_full;  // whether this thread found no place for a column

    __device__ Table() : is_full(false) {
        __shared__ Bucket tables[BLOCK / LANES * PADDED(TABLE) / SLOTS];
        buckets = tables + threadIdx.x / LANES * (PADDED(TABLE) / SLOTS);
    }
    __device__ __forceinline__ bool fits() const { return !(__ballot_sync(FULL_WARP, is_full) & team_mask()); }
    __device__ __forceinline__ int& key(int position) { return buckets[position / SLOTS].keys[position % SLOTS]; }

    static __device__ __forceinline__ int hash(int column) {
        return (int)((uint32)column * 0x9e3779b9u >> 16) % BUCKETS;
    }

    // Return the position of a column. If the column is new, it is inserted, and `is_new(position)` is called. If the
    // table is full, the row does not fit. A slot that was seen with a key keeps it, so that it need not be seen again.
    template <typename New>
    __device__ __forceinline__ int insert(int column, New is_new) {
        int b = hash(column);
        for (int tries = 0; tries < BUCKETS && !is_full;) {
            Bucket seen = buckets[b];
            int slot = seen.slot_of(column);
            if (slot < SLOTS) return b * SLOTS + slot;
            slot = seen.slot_of(EMPTY);
            if (slot == SLOTS) {
                b = (b + 1) % BUCKETS, ++tries;
                continue;
            }
            int there = atomicCAS(&buckets[b].keys[slot], EMPTY, column);
            if (there == EMPTY) is_new(b * SLOTS + slot);
            if (there == EMPTY || there == column) return b * SLOTS + slot;
        }
        is_full = true;
        return 0;
    }
    // Return the position of a column that the table contains.
    __device__ __forceinline__ int find(int column) const {
        for (int b = hash(column);; b = (b + 1) % BUCKETS) {
            Bucket seen = buckets[b];
            int slot = seen.slot_of(column);
            if (slot < SLOTS) return b * SLOTS + slot;
        }
    }
};

// The sums of a row in shared memory. If IS_KNOWN, the columns are inserted before anything is added; otherwise they
// are inserted while rows are added.
#if WIDTH <= 1
// The sum of a column has the same position as the column in the hash table.
template <bool IS_KNOWN>
struct Sums : Table {
    VALUE* numbers;
    int own;  // columns that this thread has found

    __device__ Sums(long long, VALUE*, uint32*) {
        __shared__ VALUE all_numbers[WIDTH ? BLOCK / LANES * PADDED(TABLE) : 1];
        numbers = all_numbers + threadIdx.x / LANES * PADDED(TABLE);
        clear();
    }
    __device__ __forceinline__ int place_of(int column) {
        return IS_KNOWN ? find(column) : insert(column, [&](int) { ++own; });
    }
    __device__ __forceinline__ void start(int count, const int* columns) {
        for (int t = team_lane(); t < count && !is_full; t += LANES) insert(columns[t], [](int) {});
        is_full = !fits();
    }

    // The search for the place comes before the product: the compiler fuses a product and a sum only where no loop is
    // between them, and both kernels have to round alike.
    __device__ __forceinline__ void add(int place, VALUE factor, VALUE number) { numbers[place] += factor * number; }
    // Add a row. The first LANES columns and numbers are loaded already; only where rows of the warp are long, this
    // one may have more.
    __device__ __forceinline__ void add(const Multiple& row, int length, int column, VALUE number, bool any_long) {
        if (team_lane() < length) add(place_of(column), row.factor, number);
        for (int t = team_lane() + LANES; any_long && t < length && !is_full; t += LANES)
            add(place_of(row.columns[t]), row.factor, row.numbers[t]);
        __syncwarp();
    }

    __device__ __forceinline__ int count() const {
        int count = own;
        for (int step = LANES / 2; step > 0; step /= 2) count += __shfl_xor_sync(FULL_WARP, count, step);
        return count;
    }
    __device__ __forceinline__ void take_all(bool is_kept, int* columns, VALUE* result) {
        int place = 0;
        for (int h = team_lane(); h < TABLE; h += LANES) {
            int column = key(h);
            uint32 there = __ballot_sync(FULL_WARP, column != EMPTY) & team_mask();
            int before = place + __popc(there & (1u << lane_id()) - 1);
            if (is_kept && column != EMPTY) columns[before] = column;
            if (is_kept && column != EMPTY && WIDTH) result[before] = numbers[h];
            place += __popc(there);
        }
    }
    __device__ __forceinline__ void take(int count, const int* columns, VALUE* result) {
        for (int t = team_lane(); t < count && WIDTH; t += LANES) result[t] = numbers[find(columns[t])];
    }
    __device__ __forceinline__ void clear() {
        __syncwarp();
        for (int h = team_lane(); h < TABLE; h += LANES) {
            key(h) = EMPTY;
            if (WIDTH) numbers[h] = VALUE();
        }
        own = 0, is_full = false;
        __syncwarp();
    }
};
#else
template <bool IS_KNOWN>
struct Sums : Table {
    unsigned short* slots;   // which numbers are those of a column in the table
    unsigned short* places;  // of the columns of the next rows
    int* length;
    VALUE* numbers;

    __device__ Sums(long long, VALUE*, uint32*) {
        __shared__ unsigned short arrays[2][BLOCK * TABLE_OF_THREAD];
        __shared__ int lengths[BLOCK / LANES];
        __shared__ VALUE all_numbers[BLOCK / LANES * PLACES];
        int team = threadIdx.x / LANES;
        slots = arrays[0] + team * TABLE, places = arrays[1] + team * TABLE;
        length = lengths + team, numbers = all_numbers + team * PLACES;
        for (int h = team_lane(); h < TABLE; h += LANES) slots[h] = 0;
        clear();
    }
    __device__ __forceinline__ int insert(int column) {
        return Table::insert(column, [&](int h) {
            int slot = atomicAdd(length, 1);
            if (slot < PLACES / WIDTH)
                slots[h] = (unsigned short)slot;
            else
                is_full = true;
        });
    }
    __device__ __forceinline__ void start(int count, const int* columns) {
        for (int t = team_lane(); t < count && !is_full; t += LANES) insert(columns[t]);
        is_full = !fits();
    }

    // Find where the numbers of the columns of a list are. `threads` of them share it; this one is number t.
    __device__ __forceinline__ void find_places(const Multiple& row, int t, int threads) {
        const int* columns = ptx::in_global(row.columns);
        for (int own = t; own < row.length && !is_full; own += threads)
            places[row.places + own] = (unsigned short)(IS_KNOWN ? find(columns[own]) : insert(columns[own]));
        __syncwarp();  // others may have inserted them
        for (int own = t; own < row.length && !is_full; own += threads) {
            unsigned short& place = places[row.places + own];
            place = (unsigned short)(slots[place] * WIDTH);
        }
        __syncwarp();
    }
    // Add some rows that share a list, the places of whose columns are known. Of each, the first LANES numbers are
    // loaded already.
    __device__ __forceinline__ void add(const Multiple* rows, int count, int length, const VALUE* loaded) {
        for (int q = team_lane(); q < length * WIDTH; q += LANES) {
            int t = q / WIDTH, place = places[rows->places + t] + q - t * WIDTH;
            VALUE sum = numbers[place];
#pragma unroll
            for (int r = 0; r < SHARING; ++r)
                if (r < count) sum += rows[r].factor * (q < LANES ? loaded[r] : *(ptx::in_global(rows[r].numbers) + q));
            numbers[place] = sum;
        }
        __syncwarp();
    }

    __device__ __forceinline__ int count() const { return *length; }

    __device__ __forceinline__ void take_all(bool is_kept, int* columns, VALUE* result) {
        int count = is_kept ? *length : 0;
        for (int h = team_lane(); h < TABLE; h += LANES)
            if (is_kept && key(h) != EMPTY) columns[slots[h]] = key(h);
        for (int q = team_lane(); q < count * WIDTH; q += LANES) result[q] = numbers[q];
    }
    __device__ __forceinline__ void take(int count, const int* columns, VALUE* result) {
        for (int q = team_lane(); q < count * WIDTH; q += LANES) {
            int t = q / WIDTH;
            result[q] = numbers[slots[find(columns[t])] * WIDTH + q - t * WIDTH];
        }
    }
    __device__ __forceinline__ void clear() {
        __syncwarp();
        for (int h = team_lane(); h < TABLE; h += LANES) key(h) = EMPTY;
        for (int q = team_lane(); q < PLACES; q += LANES) numbers[q] = VALUE();
        if (team_lane() == 0) *length = 0;
        is_full = false;
        __syncwarp();
    }
};
#endif
#endif

#define AHEAD (SHARING == 1 ? 4 : 2)  // lists

// Return the maximum over the teams of the warp.
__device__ __forceinline__ int most_of(int number) {
    for (int step = WARP / 2; step >= LANES; step /= 2) number = max(number, __shfl_xor_sync(FULL_WARP, number, step));
    return number;
}

#if WIDTH <= 1 || defined(WIDE)
// Add the next rows. The first columns and numbers of AHEAD rows are loaded before these rows are added, so that the
// loads overlap.
template <bool IS_KNOWN>
__device__ __forceinline__ void add_rows(Sums<IS_KNOWN>& sums, Multiple* next, int rows) {
    bool any_long = __any_sync(FULL_WARP, next[team_lane()].length > LANES);
    int most = most_of(rows);
    for (int s = 0; s < most; s += AHEAD) {
        int lengths[AHEAD], columns[AHEAD];
        VALUE numbers[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
            const Multiple& row = next[s + a];
            const int* column = ptx::in_global(row.columns) + team_lane() / ITEMS;
            const VALUE* number = ptx::in_global(row.numbers) + team_lane();
            lengths[a] = row.length;
            if (team_lane() < lengths[a] * ITEMS) columns[a] = *column;
            if (team_lane() < lengths[a] * WIDTH) numbers[a] = *number;
        }
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) sums.add(next[s + a], lengths[a], columns[a], numbers[a], any_long);
    }
}
#else
// Add rows whose columns have known positions. Bit r of `firsts` is set if row r of `next` is the first one with its
// list, and `end` is the number after that of the last row. The first numbers of the rows of AHEAD lists are loaded
// before any of these rows is added.
template <bool IS_KNOWN>
__device__ __forceinline__ void add_lists(Sums<IS_KNOWN>& sums, const Multiple* next, uint32 firsts, int end) {
    int most = most_of(__popc(firsts));
    for (int s = 0; s < most; s += AHEAD) {
        int places[AHEAD], counts[AHEAD], lengths[AHEAD];
        VALUE numbers[AHEAD][SHARING];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
            bool is_there = firsts != 0;
            places[a] = is_there ? __ffs(firsts) - 1 : 0;
            firsts &= firsts - 1;
            counts[a] = is_there ? (firsts ? __ffs(firsts) - 1 : end) - places[a] : 0;
            const Multiple* rows = next + places[a];
            lengths[a] = is_there ? rows->length : 0;
#pragma unroll
            for (int r = 0; r < SHARING; ++r)
                if (r < counts[a] && team_lane() < lengths[a] * WIDTH)
                    numbers[a][r] = *(ptx::in_global(rows[r].numbers) + team_lane());
        }
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) sums.add(next + places[a], counts[a], lengths[a], numbers[a]);
    }
}

// Add the next rows. Consecutive rows that share a list are added together. The positions of their columns are looked
// up before, for as many lists at a time as `places` has room for.
template <bool IS_KNOWN>
__device__ __forceinline__ void add_rows(Sums<IS_KNOWN>& sums, Multiple* next, int rows) {
    Multiple &own = next[team_lane()], &last = next[max(team_lane() - 1, 0)];
    // An empty list may begin where the following one does.
    bool is_first = team_lane() == 0 || own.columns != last.columns || own.length != last.length;
    int through = is_first ? own.length : 0;
    for (int step = 1; step < LANES; step *= 2) {
        int other = __shfl_up_sync(FULL_WARP, through, step);
        if (team_lane() >= step) through += other;
    }
    uint32 firsts = (__ballot_sync(FULL_WARP, is_first) & team_mask()) >> (lane_id() - team_lane());
    int first = WARP - 1 - __clz(firsts & (2u << team_lane()) - 1);  // of the rows that share this list
    uint32 others = firsts >> team_lane() >> 1;
    int behind = min(others ? team_lane() + __ffs(others) : LANES, rows);
    for (int done = 0; most_of(rows - done) > 0;) {
        int before = __shfl_sync(FULL_WARP, through - own.length, lane_id() - team_lane() + done % LANES);
        bool comes = team_lane() >= done && team_lane() < rows && through - before <= TABLE;
        uint32 coming = (__ballot_sync(FULL_WARP, comes) & team_mask()) >> (lane_id() - team_lane());
        sums.is_full |= done < rows && !coming;  // a single list is longer than the table
        if (comes) own.places = (unsigned short)(through - own.length - before);
        sums.find_places(own, comes ? team_lane() - first : own.length, max(behind - first, 1));
        int end = done + __popc(coming);
        add_lists(sums, next, sums.fits() ? firsts & coming : 0, end);
        done = min(max(end, done + 1), LANES);
    }
}
#endif

// Add up row i of the product, or nothing if i is negative, and return whether the row fits. Each thread of the team
// looks up one of the next rows of the second factor.
#if WIDTH == 0 && !defined(WIDE)
// If the product has no numbers, its columns may be inserted in any order. So each thread inserts the columns of rows of
// its own: if these have only one entry each, threads that shared a row would have nothing to do.
template <bool IS_KNOWN>
__device__ __forceinline__ bool add_up(Sums<IS_KNOWN>& sums, long long i, const Csr& left, const Rows& right) {
    OFFSET begin = i < 0 ? 0 : left.indptr[i], end = i < 0 ? 0 : left.indptr[i + 1];
    for (OFFSET e = begin + team_lane(); e < end && !sums.is_full; e += LANES) {
        int u = left.indices[e];
        long long stop = right.ends[u];
        for (long long t = right.begins[u]; t < stop && !sums.is_full; ++t) sums.place_of(right.columns[t]);
    }
    __syncwarp();
    return sums.fits();
}
#else
template <bool IS_KNOWN>
__device__ __forceinline__ bool add_up(Sums<IS_KNOWN>& sums, long long i, const Csr& left, const Rows& right) {
    __shared__ Multiple multiples[BLOCK + BLOCK / LANES];
    Multiple* next = multiples + threadIdx.x / LANES * (LANES + 1);  // so that teams use other banks
    OFFSET begin = i < 0 ? 0 : left.indptr[i];
    int count = i < 0 ? 0 : (int)(left.indptr[i + 1] - begin), most = most_of(count);
    for (int first = 0; first < most; first += LANES) {
        Multiple& own = next[team_lane()];
        own.length = 0;
        if (first + team_lane() < count) {
            int j = left.indices[begin + first + team_lane()], u = j / SHARING;
            long long list = right.begins[u];
            own.length = (int)(right.ends[u] - list);
            if (WIDTH) own.factor = left.values[begin + first + team_lane()];
            own.columns = right.columns + list;
            own.numbers = right.numbers + (list * SHARING + j % SHARING * own.length) * WIDTH;
        }
        sync_together();
        add_rows(sums, next, max(min(LANES, count - first), 0));
        sync_together();
    }
    return sums.fits();
}
#endif

// The teams of a warp, or of a block if rows are WIDE, reserve room for their rows together. Each thread counts the
// entries of the rows of its team.
struct Room {
    long long next = 0, stop = 0;  // the unused part of the last reservation
    uint64 entries = 0, lacking = 0;
    int longest = 0;

    // Return the position at which the row of this team, which has `count` entries, is to be stored. All teams of the
    // warp call this function together.
    __device__ __forceinline__ long long take(int count, long long reserved, uint64* used) {
        long long before = 0, all = count;
#ifndef WIDE
        int through = count;
        for (int step = LANES; step < WARP; step *= 2) {
            int other = __shfl_up_sync(FULL_WARP, through, step);
            if (lane_id() >= step) through += other;
        }
        before = through - count, all = __shfl_sync(FULL_WARP, through, WARP - 1);
#endif
        if (next + all > stop) {
            long long most = max(all, reserved);
            next = reserve(most, used), stop = next + most;
        }
        next += all;
        return next - all + before;
    }
    // Reserve room for `most` entries, by one atomic operation for all teams of the warp, and return its position.
    static __device__ __forceinline__ long long reserve(long long most, uint64* used) {
#ifdef WIDE
        __shared__ long long of_block;
        if (threadIdx.x == 0) of_block = (long long)atomicAdd(used, (uint64)most);
        __syncthreads();
        long long place = of_block;
        __syncthreads();
        return place;
#else
        long long place = lane_id() == 0 ? (long long)atomicAdd(used, (uint64)most) : 0;
        return __shfl_sync(FULL_WARP, place, 0);
#endif
    }
    __device__ __forceinline__ void report_to(uint64* found) {
        bool leads = team_lane() == 0;
        add_block_sums<2>(&found[ENTRIES], {leads ? entries : 0, leads ? lacking : 0});
        for (int step = WARP / 2; step > 0; step /= 2) longest = max(longest, __shfl_xor_sync(FULL_WARP, longest, step));
        if (lane_id() == 0 && longest > (int)ptx::load_l2(&found[LONGEST])) atomicMax(&found[LONGEST], (uint64)longest);
    }
};

// Call `visit(i)` for each row i of this team, and `visit(-1)` while other teams of the warp still have rows.
template <typename Visit>
__device__ __forceinline__ void visit_rows(long long n, long long is_listed, const int* rows, long long blocks,
                                           Visit visit) {
    long long teams = thread_count() / LANES, first = thread_id() / LANES, together = 0;
#ifdef WIDE
    if (blockIdx.x >= blocks) return;
    teams = min(teams, blocks);
#else
    together = lane_id() / LANES;
#endif
    for (long long r = first; r - together < n; r += teams) visit(r >= n ? -1 : is_listed ? (long long)rows[r] : r);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 4) multiply_rows(long long n, long long width, long long sharing, long long k,
                                         long long is_listed, const int* rows, Csr left, Rows right, long long room,
                                         long long reserved, uint64* found, Rows result, int* left_over,
                                         long long blocks, VALUE* all_sums, uint32* marks) {
    Room own;
    Sums<false> sums(width, all_sums, marks);
    visit_rows(n, is_listed, rows, blocks, [&](long long i) {
        bool is_there = add_up(sums, i, left, right) && i >= 0, leads = team_lane() == 0;
        int all = sums.count(), count = is_there ? all : 0;  // the teams count together
        if (i >= 0 && !is_there && leads) left_over[atomicAdd(&found[LEFT_OVER], (uint64)1)] = (int)i;
        long long place = own.take(count, reserved, &found[USED]);
        bool has_room = place + count <= room;
        if (is_there && leads && has_room) result.begins[i] = (OFFSET)place, result.ends[i] = (OFFSET)(place + count);
        if (is_there && leads && !has_room) left_over[n - 1 - atomicAdd(&found[WAITING], (uint64)1)] = (int)i;
        sums.take_all(is_there && has_room, result.columns + place, result.numbers + place * WIDTH);
        (has_room ? own.entries : own.lacking) += count;
        own.longest = max(own.longest, count);
        sums.clear();
    });
    own.report_to(found);
}

// Compute the numbers of rows whose columns are known.
extern "C" __global__ void __launch_bounds__(BLOCK, 4) multiply_into(long long n, long long width, long long sharing, long long k,
                                         long long is_listed, const int* rows, Csr left, Rows right,
                                         long long result_sharing, Rows result, long long blocks, VALUE* all_sums,
                                         uint32* marks) {
    Sums<true> sums(width, all_sums, marks);
    visit_rows(n, is_listed, rows, blocks, [&](long long i) {
        long long v = i < 0 ? 0 : i / result_sharing, list = i < 0 ? 0 : result.begins[v];
        int count = i < 0 ? 0 : (int)(result.ends[v] - list);
        const int* columns = result.columns + list;
        sums.start(count, columns);
        if (add_up(sums, sums.fits() ? i : -1, left, right) && i >= 0)
            sums.take(count, columns, result.numbers + (list * result_sharing + (i - v * result_sharing) * count) * WIDTH);
        sums.clear();
    });
}

// The position of a column is the number of smaller columns in the row. Rows that were added up in global memory are
// sorted already.
extern "C" __global__ void __launch_bounds__(BLOCK)
    sort_rows(long long teams, long long n, long long width, long long sharing, long long k, Rows from, OFFSET* indptr,
              int* columns, VALUE* numbers, Control* control) {
    auto length_of = [=](long long v) { return from.ends[v * SHARING] - from.begins[v * SHARING]; };
    write_offsets(n / SHARING, length_of, indptr, control);
    for (long long i = thread_id() / LANES; i < n; i += thread_count() / LANES) {
        long long v = i / SHARING, r = i - v * SHARING, begin = from.begins[i], list = ptx::load_l2(&indptr[v]);
        int length = (int)length_of(v);
        const int* found = from.columns + begin;
        bool is_sorted = true;
        for (int t = team_lane(); t + 1 < length; t += LANES) is_sorted &= found[t] < found[t + 1];
        is_sorted = __all_sync(team_mask(), is_sorted);
        VALUE* own = numbers + (list * SHARING + r * length) * WIDTH;
        for (int t = team_lane(); t - team_lane() < length; t += LANES) {
            int column = t < length ? found[t] : 0, place = is_sorted ? t : 0;
            for (int other = team_lane(); other - team_lane() < length && !is_sorted; other += LANES)
                place += count_below(column, other < length ? found[other] : 0x7fffffff);
            if (t >= length) continue;
            if (r == 0) columns[list + place] = column;
            for (int c = 0; c < WIDTH; ++c) own[place * WIDTH + c] = from.numbers[(begin + t) * WIDTH + c];
        }
    }
}
