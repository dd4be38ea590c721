/* The kernels that are measured. A tile is what a block moves at once: DEPTH units of each of its
 * THREADS threads, which lie side by side. Both were chosen on an H200 from the variants below. */
#include "sums.h"

/* Where a unit of payload lies in the arena. */
struct contiguous {
    static __device__ __forceinline__ uint64_t unit(const fragment_task &, uint64_t unit) {
        return unit;
    }
};

template <typename Entry> struct indexed {
    static __device__ __forceinline__ uint64_t unit(const fragment_task &task, uint64_t unit) {
        const uint64_t fragment = fb_fragment_of(unit, task.unit_shift);
        return fb_arena_unit(__ldg((const Entry *)task.index + fragment), unit, task.unit_shift);
    }
};

struct at_stride {
    static __device__ __forceinline__ uint64_t unit(const fragment_task &task, uint64_t unit) {
        const uint64_t fragment = fb_fragment_of(unit, task.unit_shift);
        return fb_arena_unit(fragment * task.stride, unit, task.unit_shift);
    }
};

/* The payload unit that this thread moves as its j-th: neighbours move neighbouring units. */
template <int DEPTH, int THREADS>
__device__ __forceinline__ uint64_t own_unit(uint64_t tile, int j) {
    return (tile * DEPTH + j) * THREADS + threadIdx.x;
}

/* Loads every unit of this thread from where `Place` says it lies. All addresses are known before
 * the first load, and all loads are under way before the first use. */
template <typename Unit, int DEPTH, int THREADS, typename Hint, typename Place>
__device__ __forceinline__ void load_units(const fragment_task &task, uint64_t tile,
                                           Unit (&units)[DEPTH]) {
    uint64_t from[DEPTH];
#pragma unroll
    for (int j = 0; j < DEPTH; j++) {
        const uint64_t unit = own_unit<DEPTH, THREADS>(tile, j);
        from[j] = unit < task.units ? Place::unit(task, unit) : 0;
    }
#pragma unroll
    for (int j = 0; j < DEPTH; j++) units[j] = Hint::load((const Unit *)task.source + from[j]);
}

template <typename Unit, int DEPTH, int THREADS, typename Hint, typename Place>
__device__ __forceinline__ void store_units(const fragment_task &task, uint64_t tile,
                                            const Unit (&units)[DEPTH]) {
    uint64_t to[DEPTH];
#pragma unroll
    for (int j = 0; j < DEPTH; j++) {
        const uint64_t unit = own_unit<DEPTH, THREADS>(tile, j);
        to[j] = unit < task.units ? Place::unit(task, unit) : 0;
    }
#pragma unroll
    for (int j = 0; j < DEPTH; j++) {
        if (own_unit<DEPTH, THREADS>(tile, j) < task.units) {
            Hint::store((Unit *)task.destination + to[j], units[j]);
        }
    }
}

/* Reads every unit of a tile into the checksum. */
template <typename Unit, int DEPTH, int THREADS, typename Hint, typename Place> struct reading {
    static constexpr int depth = DEPTH, threads = THREADS;
    static __device__ __forceinline__ void tile(const fragment_task &task, uint64_t tile) {
        Unit units[DEPTH];
        load_units<Unit, DEPTH, THREADS, Hint, Place>(task, tile, units);
        weighted_sum sum;
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            sum.add(j, none_unless(own_unit<DEPTH, THREADS>(tile, j) < task.units, units[j]));
        }
        add_to_sums<THREADS>(task.sums, sum.of<Unit, THREADS>(own_unit<DEPTH, THREADS>(tile, 0)));
    }
};

/* Reads units at a constant stride. Where each is a fragment of its own the addresses of a thread are
 * at a constant stride too: with a 64-bit multiplication for each, packed 4 B units reached 63 % of the
 * read on an H200. */
template <typename Unit, int DEPTH, int THREADS> struct strided_reading {
    static constexpr int depth = DEPTH, threads = THREADS;
    static __device__ __forceinline__ void tile(const fragment_task &task, uint64_t tile) {
        if (task.unit_shift != 0) {
            reading<Unit, DEPTH, THREADS, plain, at_stride>::tile(task, tile);
            return;
        }
        const uint64_t first = own_unit<DEPTH, THREADS>(tile, 0);
        const uint64_t behind = first < task.units ? task.units - first : 0;
        const uint32_t left = behind < DEPTH * THREADS ? (uint32_t)behind : DEPTH * THREADS;
        const Unit *from = (const Unit *)task.source + (left > 0 ? first * task.stride : 0);
        const uint64_t step = THREADS * task.stride;
        Unit units[DEPTH];
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            units[j] = plain::load(from + (j * THREADS < left ? j * step : 0));
        }
        weighted_sum sum;
#pragma unroll
        for (int j = 0; j < DEPTH; j++) sum.add(j, none_unless(j * THREADS < left, units[j]));
        add_to_sums<THREADS>(task.sums, sum.of<Unit, THREADS>(first));
    }
};

/* Reads narrow units: each warp has a run of RUN times 32 of them, and one coalesced load of the
 * index for all, which its lanes pass to each other. With a load of the index for each unit, half of
 * all loads of long fragments were those, and packed 4 B units reached 62 % of the read on an H200. */
template <typename Entry, typename Unit, int RUN> struct narrow_reading {
    static constexpr int depth = RUN, threads = FRAGBENCH_NARROW_THREADS;

    static __device__ __forceinline__ void tile(const fragment_task &task, uint64_t tile) {
        const uint32_t lane = threadIdx.x % 32, shift = task.unit_shift;
        const uint64_t warp = tile * (threads / 32) + threadIdx.x / 32;
        const uint64_t first = warp * (32 * RUN), last = task.units - 1;
        /* The whole warp. */
        if (first > last) return;
        uint64_t from[RUN];
        /* Fragments of the run; none where it lies within one. */
        const uint32_t fragments = shift < 31 ? (32u * RUN) >> shift : 0;
        if (fragments <= 32) {
            const uint64_t own = (first >> shift) + (lane < fragments ? lane : 0);
            const Entry slot = __ldg((const Entry *)task.index + min(own, last >> shift));
#pragma unroll
            for (int j = 0; j < RUN; j++) {
                const uint64_t unit = first + j * 32 + lane;
                const Entry theirs = fragments > 1 ? __shfl_sync(0xffffffffu, slot,
                                                                 (j * 32 + lane) >> shift)
                                                   : slot;
                from[j] = fb_arena_unit(theirs, unit, shift);
            }
        } else {
#pragma unroll
            for (int j = 0; j < RUN; j++) {
                from[j] = indexed<Entry>::unit(task, min(first + j * 32 + lane, last));
            }
        }
        Unit units[RUN];
#pragma unroll
        for (int j = 0; j < RUN; j++) {
            units[j] = 0;
            if (first + j * 32 + lane <= last) {
                units[j] = passing::load((const Unit *)task.source + from[j]);
            }
        }
        weighted_sum sum;
#pragma unroll
        for (int j = 0; j < RUN; j++) sum.add(j, units[j]);
        add_to_sums<threads>(task.sums, sum.of<Unit, 32>(first + lane));
    }
};

/* Copies every unit of a tile from where `From` says it lies to where `To` says it goes. */
template <typename Unit, int DEPTH, int THREADS, typename Hint, typename From, typename To>
struct copying {
    static constexpr int depth = DEPTH, threads = THREADS;
    static __device__ __forceinline__ void tile(const fragment_task &task, uint64_t tile) {
        Unit units[DEPTH];
        load_units<Unit, DEPTH, THREADS, Hint, From>(task, tile, units);
        store_units<Unit, DEPTH, THREADS, Hint, To>(task, tile, units);
    }
};

/* Writes every unit of a tile with words that follow from its position. */
template <int DEPTH, int THREADS, typename Hint> struct writing {
    static constexpr int depth = DEPTH, threads = THREADS;
    static __device__ __forceinline__ void tile(const fragment_task &task, uint64_t tile) {
        unit_16 units[DEPTH];
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            const uint64_t word = 2 * own_unit<DEPTH, THREADS>(tile, j);
            units[j] = make_ulonglong2(fb_written(task.data_key, word),
                                       fb_written(task.data_key, word + 1));
        }
        store_units<unit_16, DEPTH, THREADS, Hint, contiguous>(task, tile, units);
    }
};

/* One tile a block. */
template <typename Work> __device__ __forceinline__ void once(const fragment_task &task) {
    Work::tile(task, blockIdx.x);
}

/* As many blocks as the device holds, each with tile after tile. */
template <typename Work> __device__ __forceinline__ void persistent(const fragment_task &task) {
    for (uint64_t tile = blockIdx.x; tile * (Work::depth * Work::threads) < task.units;
         tile += gridDim.x) {
        Work::tile(task, tile);
    }
}

#define KERNEL(name, grid, ...)                                                                    \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__::threads)                             \
        fragbench_##name(const fragment_task task) {                                               \
        grid<__VA_ARGS__>(task);                                                                   \
    }

/* Contiguous kernels: the default and its competitors. */
constexpr int block = FRAGBENCH_BLOCK_THREADS, gather_copy_block = FRAGBENCH_GATHER_COPY_THREADS;
template <int DEPTH, int THREADS, typename Hint>
using read_tile = reading<unit_16, DEPTH, THREADS, Hint, contiguous>;
template <int DEPTH, int THREADS, typename Hint>
using copy_tile = copying<unit_16, DEPTH, THREADS, Hint, contiguous, contiguous>;

KERNEL(read, once, read_tile<FRAGBENCH_READ_DEPTH, block, passing>)
KERNEL(read_depth_2, once, read_tile<2, block, passing>)
KERNEL(read_depth_8, once, read_tile<8, block, passing>)
KERNEL(read_threads_512, once, read_tile<FRAGBENCH_READ_DEPTH, 512, passing>)
KERNEL(read_plain, once, read_tile<FRAGBENCH_READ_DEPTH, block, plain>)
KERNEL(read_streaming, once, read_tile<FRAGBENCH_READ_DEPTH, block, streaming>)
KERNEL(read_persistent, persistent, read_tile<FRAGBENCH_READ_DEPTH, block, passing>)
KERNEL(write, once, writing<FRAGBENCH_WRITE_DEPTH, block, plain>)
KERNEL(write_depth_2, once, writing<2, block, plain>)
KERNEL(write_depth_4, once, writing<4, block, plain>)
KERNEL(write_threads_128, once, writing<FRAGBENCH_WRITE_DEPTH, 128, plain>)
KERNEL(write_streaming, once, writing<FRAGBENCH_WRITE_DEPTH, block, streaming>)
KERNEL(write_persistent, persistent, writing<FRAGBENCH_WRITE_DEPTH, block, plain>)
KERNEL(copy, once, copy_tile<FRAGBENCH_COPY_DEPTH, block, keeping>)
KERNEL(copy_depth_2, once, copy_tile<2, block, keeping>)
KERNEL(copy_threads_128, once, copy_tile<FRAGBENCH_COPY_DEPTH, 128, keeping>)
KERNEL(copy_plain, once, copy_tile<FRAGBENCH_COPY_DEPTH, block, plain>)
KERNEL(copy_streaming, once, copy_tile<FRAGBENCH_COPY_DEPTH, block, streaming>)
KERNEL(copy_persistent, persistent, copy_tile<FRAGBENCH_COPY_DEPTH, block, keeping>)

/* Kernels of a layout, for each width of an index entry (i) and of a unit (u). */
template <typename Unit>
constexpr int deeper = sizeof(Unit) == 16 ? 1 : FRAGBENCH_NARROW_FACTOR;
template <typename Entry, typename Unit, int DEPTH, int THREADS, typename Hint>
using gather_read_tile = reading<Unit, DEPTH, THREADS, Hint, indexed<Entry>>;
template <typename Entry, typename Unit, int DEPTH, int THREADS, typename Hint>
using gather_copy_tile = copying<Unit, DEPTH, THREADS, Hint, indexed<Entry>, contiguous>;
template <typename Entry, typename Unit, int DEPTH, int THREADS, typename Hint>
using scatter_copy_tile = copying<Unit, DEPTH, THREADS, Hint, contiguous, indexed<Entry>>;
template <typename Unit, int DEPTH, int THREADS = block>
using strided_gather_tile = strided_reading<Unit, DEPTH, THREADS>;

#define LAYOUT_KERNEL(kernel, i, Entry, u, Unit, DEPTH, THREADS, Hint)                             \
    KERNEL(kernel##_##i##_##u, once,                                                               \
           kernel##_tile<Entry, Unit, DEPTH * deeper<Unit>, THREADS, Hint>)

#define COPY_KERNELS(i, Entry, u, Unit)                                                            \
    LAYOUT_KERNEL(gather_copy, i, Entry, u, Unit, FRAGBENCH_GATHER_COPY_DEPTH, gather_copy_block,  \
                  keeping)                                                                         \
    LAYOUT_KERNEL(scatter_copy, i, Entry, u, Unit, FRAGBENCH_SCATTER_COPY_DEPTH, block, keeping)

#define WIDE_KERNELS(i, Entry)                                                                     \
    LAYOUT_KERNEL(gather_read, i, Entry, u16, unit_16, FRAGBENCH_GATHER_READ_DEPTH, block, passing) \
    COPY_KERNELS(i, Entry, u16, unit_16)

#define NARROW_KERNELS(i, Entry, u, Unit, RUN)                                                     \
    KERNEL(gather_read_##i##_##u, once, narrow_reading<Entry, Unit, RUN>)                          \
    COPY_KERNELS(i, Entry, u, Unit)

WIDE_KERNELS(i4, uint32_t)
WIDE_KERNELS(i8, uint64_t)
NARROW_KERNELS(i4, uint32_t, u4, unit_4, FRAGBENCH_NARROW_RUN_4)
NARROW_KERNELS(i4, uint32_t, u8, unit_8, FRAGBENCH_NARROW_RUN_8)
NARROW_KERNELS(i8, uint64_t, u4, unit_4, FRAGBENCH_NARROW_RUN_4)
NARROW_KERNELS(i8, uint64_t, u8, unit_8, FRAGBENCH_NARROW_RUN_8)

#define STRIDED_KERNEL(u, Unit)                                                                    \
    KERNEL(strided_gather_##u, once,                                                               \
           strided_gather_tile<Unit, FRAGBENCH_STRIDED_GATHER_DEPTH * deeper<Unit>>)               \
    KERNEL(strided_gather_##u##_sparse, once,                                                      \
           strided_gather_tile<Unit, 1, FRAGBENCH_SPARSE_THREADS>)

STRIDED_KERNEL(u4, unit_4)
STRIDED_KERNEL(u8, unit_8)
STRIDED_KERNEL(u16, unit_16)
KERNEL(strided_gather_u8_depth_1, once, strided_gather_tile<unit_8, 1>)
KERNEL(strided_gather_u8_depth_2, once, strided_gather_tile<unit_8, 2>)
KERNEL(strided_gather_u8_depth_8, once, strided_gather_tile<unit_8, 8>)
KERNEL(strided_gather_u8_depth_16, once, strided_gather_tile<unit_8, 16>)

/* Competitors, behind an index of 4 B entries and with units of 16 B. */
#define COMPETITOR(kernel, name, DEPTH, THREADS, Hint)                                             \
    KERNEL(kernel##_i4_u16_##name, once, kernel##_tile<uint32_t, unit_16, DEPTH, THREADS, Hint>)

COMPETITOR(gather_read, depth_2, 2, block, passing)
COMPETITOR(gather_read, depth_8, 8, block, passing)
COMPETITOR(gather_read, threads_128, FRAGBENCH_GATHER_READ_DEPTH, 128, passing)
COMPETITOR(gather_read, plain, FRAGBENCH_GATHER_READ_DEPTH, block, plain)
COMPETITOR(gather_read, streaming, FRAGBENCH_GATHER_READ_DEPTH, block, streaming)
COMPETITOR(gather_copy, depth_1, 1, gather_copy_block, keeping)
COMPETITOR(gather_copy, depth_4, 4, gather_copy_block, keeping)
COMPETITOR(gather_copy, threads_256, FRAGBENCH_GATHER_COPY_DEPTH, 256, keeping)
COMPETITOR(gather_copy, plain, FRAGBENCH_GATHER_COPY_DEPTH, gather_copy_block, plain)
COMPETITOR(gather_copy, streaming, FRAGBENCH_GATHER_COPY_DEPTH, gather_copy_block, streaming)
COMPETITOR(scatter_copy, depth_2, 2, block, keeping)
COMPETITOR(scatter_copy, depth_4, 4, block, keeping)
COMPETITOR(scatter_copy, threads_128, FRAGBENCH_SCATTER_COPY_DEPTH, 128, keeping)
COMPETITOR(scatter_copy, plain, FRAGBENCH_SCATTER_COPY_DEPTH, block, plain)
COMPETITOR(scatter_copy, streaming, FRAGBENCH_SCATTER_COPY_DEPTH, block, streaming)
