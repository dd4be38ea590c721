/* The same kernels for the host's processor: native inner loops over a range of blocks, whose
 * threads come from Rust. Each entry point takes the task and the blocks [first, last) of
 * FRAGBENCH_HOST_BLOCK_UNITS units (or index entries), and returns what it adds to the sums. */
#include "index.h"

struct unit_words {
    uint64_t low, high;
};

struct range {
    uint64_t first, last;
};

static inline range items_of(uint64_t first_block, uint64_t last_block, uint64_t items) {
    const uint64_t first = first_block * FRAGBENCH_HOST_BLOCK_UNITS;
    const uint64_t last = last_block * FRAGBENCH_HOST_BLOCK_UNITS;
    return {first < items ? first : items, last < items ? last : items};
}

static inline uint64_t sum_run(const unit_words *from, uint64_t units, uint64_t unit) {
    uint64_t sum = 0;
    for (uint64_t j = 0; j < units; j++) sum += fb_weigh(unit + j, from[j].low, from[j].high);
    return sum;
}

static inline void copy_run(unit_words *to, const unit_words *from, uint64_t units) {
    for (uint64_t j = 0; j < units; j++) to[j] = from[j];
}

/* Calls body(source, unit, units) for each run of payload that lies in one piece. */
template <typename Entry, typename Body>
static inline void each_run(const fragment_task *task, range units, Body body) {
    const unit_words *source = (const unit_words *)task->source;
    const Entry *index = (const Entry *)task->index;
    for (uint64_t unit = units.first; unit < units.last;) {
        const uint64_t fragment = fb_fragment_of(unit, task->unit_shift);
        const uint64_t end = (fragment + 1) << task->unit_shift;
        const uint64_t length = (end < units.last ? end : units.last) - unit;
        body(source + fb_source_unit(index[fragment], unit, task->unit_shift), unit, length);
        unit += length;
    }
}

template <typename Entry>
static inline uint64_t gather_read(const fragment_task *task, range units) {
    uint64_t sum = 0;
    each_run<Entry>(task, units, [&](const unit_words *from, uint64_t unit, uint64_t length) {
        sum += sum_run(from, length, unit);
    });
    return sum;
}

template <typename Entry>
static inline uint64_t gather_copy(const fragment_task *task, range units) {
    unit_words *destination = (unit_words *)task->destination;
    each_run<Entry>(task, units, [&](const unit_words *from, uint64_t unit, uint64_t length) {
        copy_run(destination + unit, from, length);
    });
    return 0;
}

#define FRAGBENCH_HOST(name)                                                                       \
    extern "C" uint64_t fragbench_host_##name(const fragment_task *task, uint64_t first_block,     \
                                              uint64_t last_block)

FRAGBENCH_HOST(read) {
    const range units = items_of(first_block, last_block, task->units);
    return sum_run((const unit_words *)task->source + units.first, units.last - units.first,
                   units.first);
}

FRAGBENCH_HOST(copy) {
    const range units = items_of(first_block, last_block, task->units);
    copy_run((unit_words *)task->destination + units.first,
             (const unit_words *)task->source + units.first, units.last - units.first);
    return 0;
}

FRAGBENCH_HOST(gather_read_4) {
    return gather_read<uint32_t>(task, items_of(first_block, last_block, task->units));
}

FRAGBENCH_HOST(gather_read_8) {
    return gather_read<uint64_t>(task, items_of(first_block, last_block, task->units));
}

FRAGBENCH_HOST(gather_copy_4) {
    return gather_copy<uint32_t>(task, items_of(first_block, last_block, task->units));
}

FRAGBENCH_HOST(gather_copy_8) {
    return gather_copy<uint64_t>(task, items_of(first_block, last_block, task->units));
}

FRAGBENCH_HOST(fill) {
    const range units = items_of(first_block, last_block, task->units);
    unit_words *destination = (unit_words *)task->destination;
    for (uint64_t unit = units.first; unit < units.last; unit++) {
        destination[unit] = {fb_value(task->data_key, 2 * unit),
                             fb_value(task->data_key, 2 * unit + 1)};
    }
    return 0;
}

/* 1 where the unit does not hold the random bits of position `from`. */
static inline uint64_t unit_differs(unit_words words, uint64_t data_key, uint64_t from) {
    return words.low != fb_value(data_key, 2 * from) || words.high != fb_value(data_key, 2 * from + 1);
}

FRAGBENCH_HOST(check_fill) {
    const range units = items_of(first_block, last_block, task->units);
    const unit_words *source = (const unit_words *)task->source;
    uint64_t differing = 0;
    for (uint64_t unit = units.first; unit < units.last; unit++) {
        differing += unit_differs(source[unit], task->data_key, unit);
    }
    return differing;
}

FRAGBENCH_HOST(check_destination) {
    const range units = items_of(first_block, last_block, task->units);
    const unit_words *destination = (const unit_words *)task->destination;
    uint64_t differing = 0;
    for (uint64_t unit = units.first; unit < units.last; unit++) {
        differing += unit_differs(destination[unit], task->data_key, fb_expected_unit(task, unit));
    }
    return differing;
}

FRAGBENCH_HOST(expect_checksum) {
    const range units = items_of(first_block, last_block, task->units);
    uint64_t sum = 0;
    for (uint64_t unit = units.first; unit < units.last; unit++) {
        const uint64_t from = fb_expected_unit(task, unit);
        sum += fb_weigh(unit, fb_value(task->data_key, 2 * from),
                        fb_value(task->data_key, 2 * from + 1));
    }
    return sum;
}

FRAGBENCH_HOST(check_index) {
    const range entries = items_of(first_block, last_block, task->fragments);
    uint64_t differing = 0;
    for (uint64_t i = entries.first; i < entries.last; i++) differing += fb_index_differs(task, i);
    return differing;
}

FRAGBENCH_HOST(sum_index) {
    const range entries = items_of(first_block, last_block, task->fragments);
    uint64_t sum = 0;
    for (uint64_t i = entries.first; i < entries.last; i++) {
        sum += fb_mix(fb_index_slot(task->index, task->index_entry_bytes, i));
    }
    return sum;
}

FRAGBENCH_HOST(expect_index_sum) {
    const range entries = items_of(first_block, last_block, task->fragments);
    uint64_t sum = 0;
    for (uint64_t i = entries.first; i < entries.last; i++) sum += fb_mix(fb_layout_slot(task, i));
    return sum;
}
