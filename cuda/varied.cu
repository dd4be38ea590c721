/* The kernels for fragments of varying length that are measured. Each warp has DEPTH rows of 32 pieces
 * that lie side by side, whoever's they are: one fragment of 1 GiB beside a million of 64 B is cut
 * like the others. Whose piece it is follows from the row's rank, where it lies from the fragment's
 * entry; a fragment costs one entry, however long it is. Every load of the arena is 16 B. */
#include "sums.h"
#include "varied.h"

constexpr uint32_t ROW = FRAGBENCH_ROW_PIECES;

/* The rows of a warp, and whose pieces are in them. */
template <int DEPTH, int THREADS> struct warp_rows {
    static_assert(DEPTH <= FRAGBENCH_RANK_ROWS && FRAGBENCH_RANK_ROWS % DEPTH == 0,
                  "ranks are read in whole steps");
    uint64_t first_row;
    uint32_t lane;
    fb_rank ranks[DEPTH];
    /* The pieces of the next row that begin a fragment. */
    uint32_t next;

    __device__ __forceinline__ warp_rows() {
        first_row = ((uint64_t)blockIdx.x * (THREADS / 32) + threadIdx.x / 32) * DEPTH;
        lane = threadIdx.x % 32;
    }
    /* Loads the ranks, two at a time: all lanes ask for the same ones. The directory goes on behind the
     * last row. */
    __device__ __forceinline__ void load_ranks(const varied_task &task) {
        const uint2 *from = (const uint2 *)task.ranks + first_row;
        if constexpr (DEPTH % 2 == 0) {
#pragma unroll
            for (int j = 0; j < DEPTH; j += 2) {
                const uint4 two = __ldg((const uint4 *)(from + j));
                ranks[j] = {two.x, two.y};
                ranks[j + 1] = {two.z, two.w};
            }
        } else {
#pragma unroll
            for (int j = 0; j < DEPTH; j++) {
                const uint2 one = __ldg(from + j);
                ranks[j] = {one.x, one.y};
            }
        }
    }
    /* For `is_last`. */
    __device__ __forceinline__ void load_next(const varied_task &task) {
        next = __ldg(&((const uint2 *)task.ranks + first_row)[DEPTH].y);
    }
    /* Whether the whole warp has nothing to do. */
    __device__ __forceinline__ bool is_behind(const varied_task &task) const {
        return first_row * ROW >= task.pieces;
    }
    __device__ __forceinline__ uint64_t piece(int j) const { return (first_row + j) * ROW + lane; }
    __device__ __forceinline__ bool has(const varied_task &task, int j) const {
        return piece(j) < task.pieces;
    }
    /* The fragment of this lane's piece; some fragment where there is no piece. */
    __device__ __forceinline__ uint32_t fragment(const varied_task &task, int j) const {
        return has(task, j) ? fb_fragment_at(ranks[j], lane) : 0;
    }
    /* 1 where this lane's piece is its fragment's first one, or its last one. */
    __device__ __forceinline__ uint32_t is_first(int j) const { return ranks[j].begins >> lane & 1; }
    __device__ __forceinline__ uint32_t is_last(int j) const {
        const uint32_t behind = j + 1 < DEPTH ? ranks[j + 1 < DEPTH ? j + 1 : j].begins : next;
        return __funnelshift_r(ranks[j].begins, behind, 1) >> lane & 1;
    }
};

/* Fragments of whole pieces: the arena's piece of each of a lane's pieces; the first one, which is always
 * there, where there is none. */
template <typename Entry, int DEPTH, int THREADS>
__device__ __forceinline__ void find(const varied_task &task,
                                     const warp_rows<DEPTH, THREADS> &rows,
                                     uint64_t (&places)[DEPTH]) {
    Entry entries[DEPTH];
#pragma unroll
    for (int j = 0; j < DEPTH; j++) {
        entries[j] = __ldg((const Entry *)task.entries + rows.fragment(task, j));
    }
#pragma unroll
    for (int j = 0; j < DEPTH; j++) {
        places[j] = rows.has(task, j) ? (Entry)(entries[j] + (Entry)rows.piece(j)) : 0;
    }
}

/* Reads every piece into the checksum. */
template <typename Entry, int DEPTH, int THREADS, typename Hint> struct gather_read {
    static constexpr int threads = THREADS;
    static __device__ __forceinline__ void run(const varied_task &task) {
        warp_rows<DEPTH, THREADS> rows;
        if (rows.is_behind(task)) return;
        rows.load_ranks(task);
        uint64_t from[DEPTH];
        find<Entry>(task, rows, from);
        unit_16 units[DEPTH];
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            units[j] = Hint::load((const unit_16 *)task.source + from[j]);
        }
        weighted_sum sum;
#pragma unroll
        for (int j = 0; j < DEPTH; j++) sum.add(j, none_unless(rows.has(task, j), units[j]));
        add_to_sums<THREADS>(task.sums, sum.of<unit_16, ROW>(rows.piece(0)));
    }
};

/* Copies every piece to its place in the payload. */
template <typename Entry, int DEPTH, int THREADS, typename Hint> struct gather_copy {
    static constexpr int threads = THREADS;
    static __device__ __forceinline__ void run(const varied_task &task) {
        warp_rows<DEPTH, THREADS> rows;
        if (rows.is_behind(task)) return;
        rows.load_ranks(task);
        uint64_t from[DEPTH];
        find<Entry>(task, rows, from);
        unit_16 units[DEPTH];
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            units[j] = Hint::load((const unit_16 *)task.source + from[j]);
        }
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            if (rows.has(task, j)) {
                Hint::store((unit_16 *)task.destination + rows.piece(j), units[j]);
            }
        }
    }
};

/* Copies every piece of the payload to its place. */
template <typename Entry, int DEPTH, int THREADS, typename Hint> struct scatter_copy {
    static constexpr int threads = THREADS;
    static __device__ __forceinline__ void run(const varied_task &task) {
        warp_rows<DEPTH, THREADS> rows;
        if (rows.is_behind(task)) return;
        rows.load_ranks(task);
        unit_16 units[DEPTH];
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            const uint64_t piece = rows.has(task, j) ? rows.piece(j) : 0;
            units[j] = Hint::load((const unit_16 *)task.source + piece);
        }
        uint64_t to[DEPTH];
        find<Entry>(task, rows, to);
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            if (rows.has(task, j)) Hint::store((unit_16 *)task.destination + to[j], units[j]);
        }
    }
};

/* A piece of a fragment that need not be whole pieces. */
struct ragged_piece {
    /* Its byte in the arena, and the payload's word at which it begins. */
    uint64_t byte, word;
    /* Its words from `low` to before `high` belong to the fragment; none where there is no piece. */
    uint32_t low, high;

    __device__ __forceinline__ bool has(uint32_t k) const { return low <= k && k < high; }
    __device__ __forceinline__ bool is_whole() const { return high - low == 4; }
    /* Whether all of it moves at once: it lies alike in the arena and in the payload. */
    __device__ __forceinline__ bool is_unit() const { return is_whole() && word % 4 == 0; }
};

template <int DEPTH, int THREADS>
__device__ __forceinline__ void find(const varied_task &task,
                                     const warp_rows<DEPTH, THREADS> &rows,
                                     ragged_piece (&pieces)[DEPTH]) {
    ulonglong2 entries[DEPTH];
#pragma unroll
    for (int j = 0; j < DEPTH; j++) {
        entries[j] = __ldg((const ulonglong2 *)task.entries + rows.fragment(task, j));
    }
#pragma unroll
    for (int j = 0; j < DEPTH; j++) {
        const bool has = rows.has(task, j);
        pieces[j].byte = has ? fb_ragged_byte(entries[j].x, rows.piece(j)) : 0;
        pieces[j].word = 4 * rows.piece(j) + entries[j].y;
        /* By masks: with choices the compiler makes branches of them. */
        pieces[j].low = fb_head(entries[j].x) & -rows.is_first(j);
        pieces[j].high = (4 - (fb_tail(entries[j].x) & -rows.is_last(j))) & -(uint32_t)has;
    }
}

/* Stores a whole piece at once: left to itself the compiler took some of these stores apart. */
__device__ __forceinline__ void store_whole(void *to, unit_16 unit) { __stwb((unit_16 *)to, unit); }

/* A word of a unit. */
__device__ __forceinline__ unit_4 word_of(unit_16 unit, uint32_t k) {
    const unit_8 half = k < 2 ? unit.x : unit.y;
    return (unit_4)(half >> 32 * (k % 2));
}

template <int DEPTH, int THREADS, typename Hint> struct ragged_gather_read {
    static constexpr int threads = THREADS;
    static __device__ __forceinline__ void run(const varied_task &task) {
        warp_rows<DEPTH, THREADS> rows;
        if (rows.is_behind(task)) return;
        rows.load_ranks(task);
        rows.load_next(task);
        ragged_piece pieces[DEPTH];
        find(task, rows, pieces);
        unit_16 units[DEPTH];
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            units[j] = Hint::load((const unit_16 *)(task.source + pieces[j].byte));
        }
        unsigned long long sum = 0;
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            /* Of fb_weigh over the words: their weights step by 2. */
            unsigned long long plain = 0, ramp = 0;
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) {
                const unsigned long long word = pieces[j].has(k) ? word_of(units[j], k) : 0;
                plain += word;
                ramp += k * word;
            }
            sum += (2 * pieces[j].word + 1) * plain + 2 * ramp;
        }
        add_to_sums<THREADS>(task.sums, sum);
    }
};

template <int DEPTH, int THREADS, typename Hint> struct ragged_gather_copy {
    static constexpr int threads = THREADS;
    static __device__ __forceinline__ void run(const varied_task &task) {
        warp_rows<DEPTH, THREADS> rows;
        if (rows.is_behind(task)) return;
        rows.load_ranks(task);
        rows.load_next(task);
        ragged_piece pieces[DEPTH];
        find(task, rows, pieces);
        unit_16 units[DEPTH];
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            units[j] = Hint::load((const unit_16 *)(task.source + pieces[j].byte));
        }
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            unit_4 *to = (unit_4 *)task.destination + pieces[j].word;
            if (pieces[j].is_unit()) {
                store_whole(to, units[j]);
            } else {
#pragma unroll
                for (uint32_t k = 0; k < 4; k++) {
                    if (pieces[j].has(k)) Hint::store(to + k, word_of(units[j], k));
                }
            }
        }
    }
};

template <int DEPTH, int THREADS, typename Hint> struct ragged_scatter_copy {
    static constexpr int threads = THREADS;
    static __device__ __forceinline__ void run(const varied_task &task) {
        warp_rows<DEPTH, THREADS> rows;
        if (rows.is_behind(task)) return;
        rows.load_ranks(task);
        rows.load_next(task);
        ragged_piece pieces[DEPTH];
        find(task, rows, pieces);
        unit_4 words[DEPTH][4];
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            const unit_4 *from = (const unit_4 *)task.source + pieces[j].word;
            if (pieces[j].is_unit()) {
                const unit_16 unit = Hint::load((const unit_16 *)from);
#pragma unroll
                for (uint32_t k = 0; k < 4; k++) words[j][k] = word_of(unit, k);
            } else {
#pragma unroll
                for (uint32_t k = 0; k < 4; k++) {
                    words[j][k] = pieces[j].has(k) ? Hint::load(from + k) : 0;
                }
            }
        }
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            unit_4 *to = (unit_4 *)task.destination + pieces[j].byte / 4;
            if (pieces[j].is_whole()) {
                const unit_8 low = words[j][0] | (unit_8)words[j][1] << 32;
                const unit_8 high = words[j][2] | (unit_8)words[j][3] << 32;
                store_whole(to, make_ulonglong2(low, high));
            } else {
#pragma unroll
                for (uint32_t k = 0; k < 4; k++) {
                    if (pieces[j].has(k)) Hint::store(to + k, words[j][k]);
                }
            }
        }
    }
};

#define KERNEL(name, ...)                                                                          \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__::threads)                             \
        fragbench_varied_##name(const varied_task task) {                                          \
        __VA_ARGS__::run(task);                                                                    \
    }

constexpr int read_depth = FRAGBENCH_VARIED_READ_DEPTH, read_block = FRAGBENCH_VARIED_READ_THREADS;
constexpr int gather_depth = FRAGBENCH_VARIED_GATHER_DEPTH;
constexpr int gather_block = FRAGBENCH_VARIED_GATHER_THREADS;
constexpr int scatter_depth = FRAGBENCH_VARIED_SCATTER_DEPTH;
constexpr int scatter_block = FRAGBENCH_VARIED_SCATTER_THREADS;

/* For each width of an entry (e), and for fragments that need not be whole pieces. */
KERNEL(gather_read_e4, gather_read<uint32_t, read_depth, read_block, passing>)
KERNEL(gather_read_e8, gather_read<uint64_t, read_depth, read_block, passing>)
KERNEL(gather_read_ragged, ragged_gather_read<read_depth, read_block, passing>)
KERNEL(gather_copy_e4, gather_copy<uint32_t, gather_depth, gather_block, keeping>)
KERNEL(gather_copy_e8, gather_copy<uint64_t, gather_depth, gather_block, keeping>)
KERNEL(gather_copy_ragged, ragged_gather_copy<gather_depth, gather_block, keeping>)
KERNEL(scatter_copy_e4, scatter_copy<uint32_t, scatter_depth, scatter_block, keeping>)
KERNEL(scatter_copy_e8, scatter_copy<uint64_t, scatter_depth, scatter_block, keeping>)
KERNEL(scatter_copy_ragged, ragged_scatter_copy<scatter_depth, scatter_block, keeping>)

/* Competitors, with entries of 4 B. */
KERNEL(gather_read_e4_depth_2, gather_read<uint32_t, 2, read_block, passing>)
KERNEL(gather_read_e4_depth_8, gather_read<uint32_t, 8, read_block, passing>)
KERNEL(gather_read_e4_threads_128, gather_read<uint32_t, read_depth, 128, passing>)
KERNEL(gather_copy_e4_depth_1, gather_copy<uint32_t, 1, gather_block, keeping>)
KERNEL(gather_copy_e4_depth_4, gather_copy<uint32_t, 4, gather_block, keeping>)
KERNEL(gather_copy_e4_threads_256, gather_copy<uint32_t, gather_depth, 256, keeping>)
KERNEL(scatter_copy_e4_depth_2, scatter_copy<uint32_t, 2, scatter_block, keeping>)
KERNEL(scatter_copy_e4_depth_4, scatter_copy<uint32_t, 4, scatter_block, keeping>)
KERNEL(scatter_copy_e4_threads_128, scatter_copy<uint32_t, scatter_depth, 128, keeping>)
