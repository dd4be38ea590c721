/* What the checking kernels have in common. Every one walks its items with a stride of the whole grid,
 * so that any number of blocks will do. */
#ifndef FRAGBENCH_CHECKS_H
#define FRAGBENCH_CHECKS_H

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
#define FRAGBENCH_SUM(Task, name, items, term)                                                     \
    extern "C" __global__ void fragbench_##name(const Task task) {                                 \
        unsigned long long sum = 0;                                                                \
        FRAGBENCH_EACH(i, task.items) sum += (term);                                               \
        add_to_slot(task.sums, sum);                                                               \
    }

#endif
