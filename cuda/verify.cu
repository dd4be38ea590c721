/* Data by position, and the checks of what the measured kernels did, by another route. Every kernel
 * here walks its items with a stride of the whole grid, so that any number of blocks will do. */
#include "index.h"

__device__ __forceinline__ void add_to_slot(uint64_t sums, unsigned long long sum) {
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0 && sum != 0) {
        atomicAdd((unsigned long long *)sums + blockIdx.x % FRAGBENCH_SUM_SLOTS, sum);
    }
}

#define FRAGBENCH_EACH(i, end)                                                                     \
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (end);                  \
         i += (uint64_t)gridDim.x * blockDim.x)

/* A kernel that adds what `term` gives for each item to the sums. */
#define FRAGBENCH_SUM(name, items, term)                                                           \
    extern "C" __global__ void fragbench_##name(const fragment_task task) {                        \
        unsigned long long sum = 0;                                                                \
        FRAGBENCH_EACH(i, task.items) sum += (term);                                               \
        add_to_slot(task.sums, sum);                                                               \
    }

/* Writes each unit of the destination's random bits. */
extern "C" __global__ void fragbench_fill(const fragment_task task) {
    ulonglong2 *destination = (ulonglong2 *)task.destination;
    FRAGBENCH_EACH(unit, task.units) {
        destination[unit] = make_ulonglong2(fb_value(task.data_key, 2 * unit),
                                            fb_value(task.data_key, 2 * unit + 1));
    }
}

/* Counts the units of the source that do not hold the random bits of their position. */
FRAGBENCH_SUM(check_fill, units,
              fb_differ(fb_unit_at(task.source, FRAGBENCH_UNIT_BYTES, i),
                        fb_unit_value(task.data_key, FRAGBENCH_UNIT_BYTES, i)))

/* Counts the units of the destination that do not hold the bits that a gather puts there. */
FRAGBENCH_SUM(check_gathered, units, fb_gathered_differs(&task, i))

/* Counts the units of payload that the arena does not hold where a scatter puts them. */
FRAGBENCH_SUM(check_scattered, units, fb_scattered_differs(&task, i))

/* Counts the units of the arena that lie in no fragment and have changed. */
FRAGBENCH_SUM(check_gaps, units, fb_gap_differs(&task, i))

/* Counts the units of the destination that are not what the write kernel puts there. */
FRAGBENCH_SUM(check_written, units, fb_written_differs(&task, i))

/* The checksum that a read of the layout has to give, without reading the source. */
FRAGBENCH_SUM(expect_checksum, units, fb_weigh(task.unit_bytes, i, fb_gathered_value(&task, i)))

/* Counts the entries of the index that are not what the layout says. */
FRAGBENCH_SUM(check_index, fragments, fb_index_differs(&task, i))

/* A sum over the index that does not depend on its order. */
FRAGBENCH_SUM(sum_index, fragments, fb_mix(fb_index_slot(task.index, task.index_entry_bytes, i)))

/* The same sum over the layout's closed form, unsorted. */
FRAGBENCH_SUM(expect_index_sum, fragments, fb_mix(fb_layout_slot(&task, i)))
