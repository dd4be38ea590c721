/* The same kernels for the host's processor. */
#include "host.h"

/* Calls body(arena unit, unit, units) for each run of payload that lies in one piece, with the slot
 * of each fragment from `slot`. */
template <typename Slot, typename Body>
static inline void each_run(const fragment_task *task, range units, Slot slot, Body body) {
    for (uint64_t unit = units.first; unit < units.last;) {
        const uint64_t fragment = fb_fragment_of(unit, task->unit_shift);
        const uint64_t end = (fragment + 1) << task->unit_shift;
        const uint64_t length = (end < units.last ? end : units.last) - unit;
        body(fb_arena_unit(slot(fragment), unit, task->unit_shift), unit, length);
        unit += length;
    }
}

template <typename Unit, typename Slot>
static inline uint64_t read_runs(const fragment_task *task, range units, Slot slot) {
    const Unit *source = (const Unit *)task->source;
    uint64_t sum = 0;
    each_run(task, units, slot, [&](uint64_t at, uint64_t unit, uint64_t length) {
        sum += sum_run(source + at, length, unit);
    });
    return sum;
}

template <typename Entry, typename Unit>
static inline uint64_t gather_read(const fragment_task *task, range units) {
    const Entry *index = (const Entry *)task->index;
    return read_runs<Unit>(task, units, [&](uint64_t fragment) -> uint64_t {
        return index[fragment];
    });
}

template <typename Unit>
static inline uint64_t strided_gather(const fragment_task *task, range units) {
    return read_runs<Unit>(task, units, [&](uint64_t fragment) { return fragment * task->stride; });
}

template <typename Entry, typename Unit>
static inline uint64_t gather_copy(const fragment_task *task, range units) {
    const Entry *index = (const Entry *)task->index;
    const Unit *source = (const Unit *)task->source;
    Unit *destination = (Unit *)task->destination;
    each_run(task, units, [&](uint64_t fragment) -> uint64_t { return index[fragment]; },
             [&](uint64_t at, uint64_t unit, uint64_t length) {
                 copy_run(destination + unit, source + at, length);
             });
    return 0;
}

template <typename Entry, typename Unit>
static inline uint64_t scatter_copy(const fragment_task *task, range units) {
    const Entry *index = (const Entry *)task->index;
    const Unit *source = (const Unit *)task->source;
    Unit *destination = (Unit *)task->destination;
    each_run(task, units, [&](uint64_t fragment) -> uint64_t { return index[fragment]; },
             [&](uint64_t at, uint64_t unit, uint64_t length) {
                 copy_run(destination + at, source + unit, length);
             });
    return 0;
}

#define FRAGBENCH_HOST(name) FRAGBENCH_HOST_ENTRY(fragment_task, name)

FRAGBENCH_HOST(read) {
    const range units = items_of(first_block, last_block, task->units);
    return sum_run((const unit_16 *)task->source + units.first, units.last - units.first,
                   units.first);
}

FRAGBENCH_HOST(copy) {
    const range units = items_of(first_block, last_block, task->units);
    copy_run((unit_16 *)task->destination + units.first,
             (const unit_16 *)task->source + units.first, units.last - units.first);
    return 0;
}

FRAGBENCH_HOST(write) {
    const range units = items_of(first_block, last_block, task->units);
    unit_16 *destination = (unit_16 *)task->destination;
    for (uint64_t unit = units.first; unit < units.last; unit++) {
        destination[unit] = {fb_written(task->data_key, 2 * unit),
                             fb_written(task->data_key, 2 * unit + 1)};
    }
    return 0;
}

#define FRAGBENCH_HOST_RUNS(name, ...)                                                             \
    FRAGBENCH_HOST(name) {                                                                         \
        return __VA_ARGS__(task, items_of(first_block, last_block, task->units));                  \
    }

#define FRAGBENCH_HOST_LAYOUT(i, Entry, u, Unit)                                                   \
    FRAGBENCH_HOST_RUNS(gather_read_##i##_##u, gather_read<Entry, Unit>)                           \
    FRAGBENCH_HOST_RUNS(gather_copy_##i##_##u, gather_copy<Entry, Unit>)                           \
    FRAGBENCH_HOST_RUNS(scatter_copy_##i##_##u, scatter_copy<Entry, Unit>)

FRAGBENCH_HOST_LAYOUT(i4, uint32_t, u4, uint32_t)
FRAGBENCH_HOST_LAYOUT(i4, uint32_t, u8, uint64_t)
FRAGBENCH_HOST_LAYOUT(i4, uint32_t, u16, unit_16)
FRAGBENCH_HOST_LAYOUT(i8, uint64_t, u4, uint32_t)
FRAGBENCH_HOST_LAYOUT(i8, uint64_t, u8, uint64_t)
FRAGBENCH_HOST_LAYOUT(i8, uint64_t, u16, unit_16)
FRAGBENCH_HOST_RUNS(strided_gather_u4, strided_gather<uint32_t>)
FRAGBENCH_HOST_RUNS(strided_gather_u8, strided_gather<uint64_t>)
FRAGBENCH_HOST_RUNS(strided_gather_u16, strided_gather<unit_16>)

FRAGBENCH_HOST(fill) {
    const range units = items_of(first_block, last_block, task->units);
    unit_16 *destination = (unit_16 *)task->destination;
    for (uint64_t unit = units.first; unit < units.last; unit++) {
        destination[unit] = {fb_value(task->data_key, 2 * unit),
                             fb_value(task->data_key, 2 * unit + 1)};
    }
    return 0;
}

/* An entry point that sums what `term` gives for each item. */
#define FRAGBENCH_HOST_SUM(name, items, term)                                                      \
    FRAGBENCH_HOST(name) {                                                                         \
        const range each = items_of(first_block, last_block, task->items);                         \
        uint64_t sum = 0;                                                                          \
        for (uint64_t i = each.first; i < each.last; i++) sum += (term);                           \
        return sum;                                                                                \
    }

FRAGBENCH_HOST_SUM(check_fill, units,
                   fb_differ(fb_unit_at(task->source, FRAGBENCH_UNIT_BYTES, i),
                             fb_unit_value(task->data_key, FRAGBENCH_UNIT_BYTES, i)))
FRAGBENCH_HOST_SUM(check_gathered, units, fb_gathered_differs(task, i))
FRAGBENCH_HOST_SUM(check_scattered, units, fb_scattered_differs(task, i))
FRAGBENCH_HOST_SUM(check_gaps, units, fb_gap_differs(task, i))
FRAGBENCH_HOST_SUM(check_written, units, fb_written_differs(task, i))
FRAGBENCH_HOST_SUM(expect_checksum, units,
                   fb_weigh(task->unit_bytes, i, fb_gathered_value(task, i)))
FRAGBENCH_HOST_SUM(check_index, fragments, fb_index_differs(task, i))
FRAGBENCH_HOST_SUM(sum_index, fragments,
                   fb_mix(fb_index_slot(task->index, task->index_entry_bytes, i)))
FRAGBENCH_HOST_SUM(expect_index_sum, fragments, fb_mix(fb_layout_slot(task, i)))
