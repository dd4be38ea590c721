/* What the host's kernels have in common: native inner loops over a range of blocks, whose threads come
 * from Rust. Each entry point takes the task and the blocks [first, last) of FRAGBENCH_HOST_BLOCK_UNITS
 * units (or pieces, or entries), and returns what it adds to the sums. */
#ifndef FRAGBENCH_HOST_H
#define FRAGBENCH_HOST_H

#include "index.h"

struct unit_16 {
    uint64_t low, high;
};

/* fb_weigh of a unit, for inner loops whose unit is known to the compiler. */
static inline uint64_t weigh(unit_16 unit, uint64_t position) {
    return fb_weigh(sizeof unit, position, {unit.low, unit.high});
}

static inline uint64_t weigh(uint64_t unit, uint64_t position) {
    return fb_weigh(sizeof unit, position, {unit, 0});
}

static inline uint64_t weigh(uint32_t unit, uint64_t position) {
    return fb_weigh(sizeof unit, position, {unit, 0});
}

struct range {
    uint64_t first, last;
};

static inline range items_of(uint64_t first_block, uint64_t last_block, uint64_t items) {
    const uint64_t first = first_block * FRAGBENCH_HOST_BLOCK_UNITS;
    const uint64_t last = last_block * FRAGBENCH_HOST_BLOCK_UNITS;
    return {first < items ? first : items, last < items ? last : items};
}

template <typename Unit>
static inline uint64_t sum_run(const Unit *from, uint64_t units, uint64_t unit) {
    uint64_t sum = 0;
    for (uint64_t j = 0; j < units; j++) sum += weigh(from[j], unit + j);
    return sum;
}

template <typename Unit>
static inline void copy_run(Unit *to, const Unit *from, uint64_t units) {
    for (uint64_t j = 0; j < units; j++) to[j] = from[j];
}

#define FRAGBENCH_HOST_ENTRY(Task, name)                                                           \
    extern "C" uint64_t fragbench_host_##name(const Task *task, uint64_t first_block,              \
                                              uint64_t last_block)

#endif
