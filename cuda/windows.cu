/* The gather by windows: each multiprocessor keeps to a part of the arena. */
#include "sums.h"

/* Reads what lies in one window of the arena for each multiprocessor, so that the pages that it asks for
 * are few: run after run of the window's part of the index, whoever takes it first. Each warp takes runs
 * of rows, the next before it is done with one, and knows where its next rows lie while it waits for
 * those before. */
template <typename Entry> struct windowed_reading {
    static constexpr int threads = FRAGBENCH_BLOCK_THREADS, depth = FRAGBENCH_GATHER_READ_DEPTH;
    static constexpr int rows = FRAGBENCH_WINDOW_ROWS;

    static __device__ __forceinline__ uint32_t take(uint32_t *next) {
        uint32_t taken = 0;
        if (threadIdx.x % 32 == 0) taken = atomicAdd(next, 1);
        return taken;
    }

    /* Behind the window its last unit stands in. */
    static __device__ __forceinline__ void find(const fragment_task &task, uint64_t unit, uint64_t last,
                                                Entry (&slots)[depth]) {
#pragma unroll
        for (int j = 0; j < depth; j++) {
            const uint64_t fragment = fb_fragment_of(min(unit + j * 32, last), task.unit_shift);
            slots[j] = __ldg((const Entry *)task.index + fragment);
        }
    }

    static __device__ __forceinline__ void read(const fragment_task &task) {
        window_table *table = (window_table *)task.destination;
        uint32_t own;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(own));
        const uint32_t window = table->window_of[own % FRAGBENCH_MOST_MULTIPROCESSORS];
        const uint64_t first = table->first[window], end = table->first[window + 1];
        uint32_t *next = table->next + window;
        const uint32_t lane = threadIdx.x % 32;
        const auto begin = [&](uint32_t taken) {
            return first + (uint64_t)(32 * rows) * __shfl_sync(0xffffffffu, taken, 0) + lane;
        };
        unsigned long long sums = 0;
        uint64_t unit = begin(take(next));
        Entry slots[depth];
        if (first < end) find(task, unit, end - 1, slots);
        /* The same for all lanes: those of a run that is taken begin within the window. */
        while (unit - lane < end) {
            const uint32_t ahead = take(next);
#pragma unroll
            for (int row = 0; row < rows; row += depth) {
                unit_16 units[depth];
#pragma unroll
                for (int j = 0; j < depth; j++) {
                    const uint64_t at = min(unit + j * 32, end - 1);
                    const uint64_t place = fb_arena_unit(slots[j], at, task.unit_shift);
                    units[j] = passing::load((const unit_16 *)task.source + place);
                }
                const uint64_t behind = row + depth < rows ? unit + depth * 32 : begin(ahead);
                find(task, behind, end - 1, slots);
                weighted_sum sum;
#pragma unroll
                for (int j = 0; j < depth; j++) {
                    sum.add(j, none_unless(unit + j * 32 < end, units[j]));
                }
                sums += sum.of<unit_16, 32>(unit);
                unit = behind;
            }
        }
        add_to_sums<threads>(task.sums, sums);
        end_of(table);
    }

    /* The last block leaves the table as it was. */
    static __device__ __forceinline__ void end_of(window_table *table) {
        __syncthreads();
        if (threadIdx.x != 0) return;
        __threadfence();
        if (atomicAdd(&table->ended, 1) != gridDim.x - 1) return;
        for (int window = 0; window < FRAGBENCH_MOST_WINDOWS; window++) table->next[window] = 0;
        table->ended = 0;
        __threadfence();
    }
};

#define WINDOWS_KERNEL(i, Entry)                                                                   \
    extern "C" __global__ void __launch_bounds__(FRAGBENCH_BLOCK_THREADS,                     \
                                                     FRAGBENCH_WINDOW_BLOCKS)                      \
        fragbench_gather_read_##i##_u16_windows(const fragment_task task) {                        \
        windowed_reading<Entry>::read(task);                                                       \
    }

WINDOWS_KERNEL(i4, uint32_t)
WINDOWS_KERNEL(i8, uint64_t)
