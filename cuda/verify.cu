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

/* Writes each unit of the destination's random bits. */
extern "C" __global__ void fragbench_fill(const fragment_task task) {
    ulonglong2 *destination = (ulonglong2 *)task.destination;
    FRAGBENCH_EACH(unit, task.units) {
        destination[unit] = make_ulonglong2(fb_value(task.data_key, 2 * unit),
                                            fb_value(task.data_key, 2 * unit + 1));
    }
}

/* Counts the units of the source that do not hold the random bits of their position. */
extern "C" __global__ void fragbench_check_fill(const fragment_task task) {
    const ulonglong2 *source = (const ulonglong2 *)task.source;
    unsigned long long differing = 0;
    FRAGBENCH_EACH(unit, task.units) {
        const ulonglong2 words = source[unit];
        differing += words.x != fb_value(task.data_key, 2 * unit) ||
                     words.y != fb_value(task.data_key, 2 * unit + 1);
    }
    add_to_slot(task.sums, differing);
}

/* Counts the units of the destination that do not hold the bits that the layout puts there. */
extern "C" __global__ void fragbench_check_destination(const fragment_task task) {
    const ulonglong2 *destination = (const ulonglong2 *)task.destination;
    unsigned long long differing = 0;
    FRAGBENCH_EACH(unit, task.units) {
        const uint64_t from = fb_expected_unit(&task, unit);
        const ulonglong2 words = destination[unit];
        differing += words.x != fb_value(task.data_key, 2 * from) ||
                     words.y != fb_value(task.data_key, 2 * from + 1);
    }
    add_to_slot(task.sums, differing);
}

/* The checksum that a read of the layout has to give, without reading the source. */
extern "C" __global__ void fragbench_expect_checksum(const fragment_task task) {
    unsigned long long sum = 0;
    FRAGBENCH_EACH(unit, task.units) {
        const uint64_t from = fb_expected_unit(&task, unit);
        sum += fb_weigh(unit, fb_value(task.data_key, 2 * from),
                        fb_value(task.data_key, 2 * from + 1));
    }
    add_to_slot(task.sums, sum);
}

/* Counts the entries of the index that are not what the layout says. */
extern "C" __global__ void fragbench_check_index(const fragment_task task) {
    unsigned long long differing = 0;
    FRAGBENCH_EACH(i, task.fragments) differing += fb_index_differs(&task, i);
    add_to_slot(task.sums, differing);
}

/* A sum over the index that does not depend on its order. */
extern "C" __global__ void fragbench_sum_index(const fragment_task task) {
    unsigned long long sum = 0;
    FRAGBENCH_EACH(i, task.fragments) {
        sum += fb_mix(fb_index_slot(task.index, task.index_entry_bytes, i));
    }
    add_to_slot(task.sums, sum);
}

/* The same sum over the layout's closed form, unsorted. */
extern "C" __global__ void fragbench_expect_index_sum(const fragment_task task) {
    unsigned long long sum = 0;
    FRAGBENCH_EACH(i, task.fragments) sum += fb_mix(fb_layout_slot(&task, i));
    add_to_slot(task.sums, sum);
}
