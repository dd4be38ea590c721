/* The kernels for fragments of varying length, for the host's processor. */
#include "host.h"
#include "varied.h"

/* The first piece from `from` on that begins a fragment; `last` where there is none before it. */
static inline uint64_t next_begin(const fb_rank *ranks, uint64_t from, uint64_t last) {
    while (from < last) {
        const uint32_t lane = from % FRAGBENCH_ROW_PIECES;
        const uint32_t begins = ranks[from / FRAGBENCH_ROW_PIECES].begins >> lane;
        if (begins != 0) {
            from += (uint64_t)__builtin_ctz(begins);
            break;
        }
        from += FRAGBENCH_ROW_PIECES - lane;
    }
    return from < last ? from : last;
}

static inline bool begins_at(const fb_rank *ranks, uint64_t piece) {
    return ranks[piece / FRAGBENCH_ROW_PIECES].begins >> (piece % FRAGBENCH_ROW_PIECES) & 1;
}

/* Calls body(fragment, first piece, the one behind the last) for each run of pieces of one fragment. */
template <typename Body>
static inline void each_run(const varied_task *task, range pieces, Body body) {
    const fb_rank *ranks = (const fb_rank *)task->ranks;
    for (uint64_t piece = pieces.first; piece < pieces.last;) {
        const fb_rank rank = ranks[piece / FRAGBENCH_ROW_PIECES];
        const uint64_t fragment = fb_fragment_at(rank, piece % FRAGBENCH_ROW_PIECES);
        const uint64_t end = next_begin(ranks, piece + 1, pieces.last);
        body(fragment, piece, end);
        piece = end;
    }
}

/* Fragments of whole pieces: body(arena piece, payload piece, pieces). */
template <typename Entry, typename Body>
static inline void each_whole_run(const varied_task *task, range pieces, Body body) {
    const Entry *entries = (const Entry *)task->entries;
    each_run(task, pieces, [&](uint64_t fragment, uint64_t first, uint64_t end) {
        body((Entry)(entries[fragment] + (Entry)first), first, end - first);
    });
}

/* Fragments of any words: body(arena word, payload word, words). */
template <typename Body>
static inline void each_ragged_run(const varied_task *task, range pieces, Body body) {
    const fb_ragged *entries = (const fb_ragged *)task->entries;
    const fb_rank *ranks = (const fb_rank *)task->ranks;
    each_run(task, pieces, [&](uint64_t fragment, uint64_t first, uint64_t end) {
        const fb_ragged entry = entries[fragment];
        const uint64_t head = begins_at(ranks, first) ? fb_head(entry.lead) : 0;
        const uint64_t tail = begins_at(ranks, end) ? fb_tail(entry.lead) : 0;
        body(fb_ragged_byte(entry.lead, first) / 4 + head, 4 * first + entry.shift + head,
             4 * (end - first) - head - tail);
    });
}

/* The movements, over the runs that `each` gives. */
template <typename Unit, typename Each>
static inline uint64_t gather_read(const varied_task *task, Each each) {
    uint64_t sum = 0;
    each([&](uint64_t at, uint64_t unit, uint64_t units) {
        sum += sum_run((const Unit *)task->source + at, units, unit);
    });
    return sum;
}

template <typename Unit, typename Each>
static inline uint64_t gather_copy(const varied_task *task, Each each) {
    each([&](uint64_t at, uint64_t unit, uint64_t units) {
        copy_run((Unit *)task->destination + unit, (const Unit *)task->source + at, units);
    });
    return 0;
}

template <typename Unit, typename Each>
static inline uint64_t scatter_copy(const varied_task *task, Each each) {
    each([&](uint64_t at, uint64_t unit, uint64_t units) {
        copy_run((Unit *)task->destination + at, (const Unit *)task->source + unit, units);
    });
    return 0;
}

#define HOST(name) FRAGBENCH_HOST_ENTRY(varied_task, varied_##name)

#define HOST_EACH(...)                                                                             \
    [&](auto body) { __VA_ARGS__(task, items_of(first_block, last_block, task->pieces), body); }

#define HOST_FORM(form, Unit, ...)                                                                 \
    HOST(gather_read_##form) { return gather_read<Unit>(task, HOST_EACH(__VA_ARGS__)); }           \
    HOST(gather_copy_##form) { return gather_copy<Unit>(task, HOST_EACH(__VA_ARGS__)); }           \
    HOST(scatter_copy_##form) { return scatter_copy<Unit>(task, HOST_EACH(__VA_ARGS__)); }

HOST_FORM(e4, unit_16, each_whole_run<uint32_t>)
HOST_FORM(e8, unit_16, each_whole_run<uint64_t>)
HOST_FORM(ragged, uint32_t, each_ragged_run)

/* An entry point that sums what `term` gives for each item. `mark` is what was found by binary search for
 * the first item of a thread; `moves_on(mark, i)` tells whether it is over at item i. No fragment is
 * shorter than an item, so that it moves by one at most. */
#define HOST_SUM(name, items, found, moves_on, term)                                               \
    HOST(name) {                                                                                   \
        const range each = items_of(first_block, last_block, items);                               \
        uint64_t sum = 0;                                                                          \
        if (each.first == each.last) return sum;                                                   \
        uint64_t mark = found(task, each.first);                                                   \
        for (uint64_t i = each.first; i < each.last; i++) {                                        \
            if (moves_on(task, mark, i)) mark++;                                                   \
            sum += term(task, mark, i);                                                            \
        }                                                                                          \
        return sum;                                                                                \
    }

/* Whether a unit of payload lies behind this fragment. */
static inline bool is_behind(const varied_task *task, uint64_t fragment, uint64_t unit) {
    return unit >= fb_place(task, fragment + 1)->first_unit;
}

/* Whether one more range than these begins at a unit of the arena or before it. */
static inline bool begins_another(const varied_task *task, uint64_t ranges, uint64_t unit) {
    return ranges < task->fragments && ((const fb_range *)task->ranges)[ranges].begin <= unit;
}

HOST_SUM(expect_checksum, task->units, fb_fragment_of_unit, is_behind, fb_varied_term)
HOST_SUM(check_gathered, task->units, fb_fragment_of_unit, is_behind, fb_varied_gathered_differs)
HOST_SUM(check_scattered, task->units, fb_fragment_of_unit, is_behind, fb_varied_scattered_differs)
HOST_SUM(check_gaps, task->arena_units, fb_ranges_until, begins_another, fb_varied_gap_differs)

HOST(check_entries) {
    const range each = items_of(first_block, last_block, task->fragments);
    uint64_t sum = 0;
    for (uint64_t i = each.first; i < each.last; i++) {
        sum += fb_place_is_wrong(task, i) | fb_entry_differs(task, i);
    }
    return sum;
}

HOST(check_ranks) {
    const range each =
        items_of(first_block, last_block, task->pieces / FRAGBENCH_ROW_PIECES + 1);
    uint64_t sum = 0;
    for (uint64_t i = each.first; i < each.last; i++) sum += fb_rank_differs(task, i);
    return sum;
}
