/* How a piece of a fragment of varying length is found, and what it is checked against: one text for nvcc
 * and for the host's compiler. Layouts of the tables: `layout::Table` and `layout::Places`. */
#ifndef FRAGBENCH_VARIED_H
#define FRAGBENCH_VARIED_H

#include "index.h"

/* Of a row of pieces: how many fragments begin before it, and a bit for each of its pieces that is the
 * first of a fragment. */
struct fb_rank {
    uint32_t before, begins;
};

/* An entry of a fragment that need not be whole pieces. */
struct fb_ragged {
    /* What to add to the number of a piece for its place in the arena, modulo 2^60; then two bits each
     * for the words of the first piece before the fragment, and of the last piece behind it. */
    uint64_t lead;
    /* What to add to four times the number of a piece for the payload's word at which it begins. */
    uint64_t shift;
};

/* Where a fragment lies, and what comes before it: in units, and in pieces. */
struct fb_place {
    uint64_t offset, first_unit, first_piece;
};

/* The units of the arena that a fragment lies in: from `begin` to before `end`. */
struct fb_range {
    uint64_t begin, end;
};

FRAGBENCH_INLINE uint32_t fb_popcount(uint32_t bits) {
#ifdef __CUDA_ARCH__
    return (uint32_t)__popc(bits);
#else
    return (uint32_t)__builtin_popcount(bits);
#endif
}

/* The fragment of a row's piece: as many fragments have begun up to there, but one. */
FRAGBENCH_INLINE uint32_t fb_fragment_at(struct fb_rank rank, uint32_t lane) {
    return rank.before + fb_popcount(rank.begins & (0xffffffffu >> (31 - lane))) - 1;
}

/* Words of the fragment's first piece before it. */
FRAGBENCH_INLINE uint32_t fb_head(uint64_t lead) { return (uint32_t)lead >> 2 & 3; }

/* Words of the fragment's last piece behind it. */
FRAGBENCH_INLINE uint32_t fb_tail(uint64_t lead) { return (uint32_t)lead & 3; }

/* The byte of the arena at which a piece begins. */
FRAGBENCH_INLINE uint64_t fb_ragged_byte(uint64_t lead, uint64_t piece) {
    return (lead & ~(uint64_t)15) + FRAGBENCH_UNIT_BYTES * piece;
}

/* The place of a fragment: for checks, which know nothing of the table. */
FRAGBENCH_INLINE const struct fb_place *fb_place(const struct varied_task *task, uint64_t fragment) {
    return (const struct fb_place *)task->places + fragment;
}

/* The fragment that holds a unit of payload, by binary search. */
FRAGBENCH_INLINE uint64_t fb_fragment_of_unit(const struct varied_task *task, uint64_t unit) {
    uint64_t low = 0, high = task->fragments;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (fb_place(task, middle)->first_unit <= unit) low = middle;
        else high = middle;
    }
    return low;
}

/* How many fragments, the one behind the last included, have their first piece before this one. */
FRAGBENCH_INLINE uint64_t fb_begun_before(const struct varied_task *task, uint64_t piece) {
    uint64_t low = 0, high = task->fragments + 1;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (fb_place(task, middle)->first_piece < piece) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* How many fragments begin at this unit of the arena or before it. */
FRAGBENCH_INLINE uint64_t fb_ranges_until(const struct varied_task *task, uint64_t unit) {
    uint64_t low = 0, high = task->fragments;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (((const struct fb_range *)task->ranges)[middle].begin <= unit) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The unit of the arena at which a unit of payload lies, given its fragment. */
FRAGBENCH_INLINE uint64_t fb_place_unit(const struct varied_task *task, uint64_t fragment,
                                        uint64_t unit) {
    const struct fb_place *place = fb_place(task, fragment);
    return place->offset + (unit - place->first_unit);
}

/* What a unit of payload adds to the checksum of a read. */
FRAGBENCH_INLINE uint64_t fb_varied_term(const struct varied_task *task, uint64_t fragment,
                                         uint64_t unit) {
    const uint64_t at = fb_place_unit(task, fragment, unit);
    return fb_weigh(task->unit_bytes, unit, fb_unit_value(task->data_key, task->unit_bytes, at));
}

/* 1 where a unit of the destination is not what a gather puts there. */
FRAGBENCH_INLINE uint64_t fb_varied_gathered_differs(const struct varied_task *task,
                                                     uint64_t fragment, uint64_t unit) {
    const uint64_t at = fb_place_unit(task, fragment, unit);
    return fb_differ(fb_unit_at(task->destination, task->unit_bytes, unit),
                     fb_unit_value(task->data_key, task->unit_bytes, at));
}

/* 1 where the arena does not hold a unit of payload at the place where a scatter puts it. */
FRAGBENCH_INLINE uint64_t fb_varied_scattered_differs(const struct varied_task *task,
                                                      uint64_t fragment, uint64_t unit) {
    const uint64_t at = fb_place_unit(task, fragment, unit);
    return fb_differ(fb_unit_at(task->destination, task->unit_bytes, at),
                     fb_unit_value(task->data_key, task->unit_bytes, unit));
}

/* 1 where a unit of the arena lies in no fragment and has changed, given how many fragments begin at it
 * or before it. */
FRAGBENCH_INLINE uint64_t fb_varied_gap_differs(const struct varied_task *task, uint64_t ranges,
                                                uint64_t unit) {
    const struct fb_range *all = (const struct fb_range *)task->ranges;
    if (ranges > 0 && unit < all[ranges - 1].end) return 0;
    return fb_differ(fb_unit_at(task->destination, task->unit_bytes, unit),
                     fb_unit_value(task->data_key, task->unit_bytes, unit));
}

/* 1 where the places themselves do not follow from each other: each has to begin where the pieces of
 * its predecessor end, the first at nothing, and the one behind the last at all there is. */
FRAGBENCH_INLINE uint64_t fb_place_is_wrong(const struct varied_task *task, uint64_t fragment) {
    const struct fb_place *own = fb_place(task, fragment), *next = fb_place(task, fragment + 1);
    const uint64_t width = FRAGBENCH_UNIT_BYTES / task->unit_bytes;
    const uint64_t end = own->offset + (next->first_unit - own->first_unit);
    const uint64_t pieces = (end + width - 1) / width - own->offset / width;
    if (next->first_unit <= own->first_unit || next->first_piece - own->first_piece != pieces) {
        return 1;
    }
    if (fragment == 0 && (own->first_unit != 0 || own->first_piece != 0)) return 1;
    return fragment + 1 == task->fragments &&
           (next->first_unit != task->units || next->first_piece != task->pieces);
}

/* 1 where the entry of a fragment is not what its place says. */
FRAGBENCH_INLINE uint64_t fb_entry_differs(const struct varied_task *task, uint64_t fragment) {
    const struct fb_place *own = fb_place(task, fragment);
    if (task->entry_bytes == 16) {
        const struct fb_ragged *entry = (const struct fb_ragged *)task->entries + fragment;
        const uint64_t end = own->offset + ((own + 1)->first_unit - own->first_unit);
        const uint64_t head = own->offset % 4, tail = (4 - end % 4) % 4;
        const uint64_t lead = own->offset / 4 - own->first_piece;
        return entry->lead != (lead * 16 + head * 4 + tail) ||
               entry->shift + 4 * own->first_piece + head != own->first_unit;
    }
    const uint64_t lead = own->offset - own->first_piece;
    return task->entry_bytes == 4 ? ((const uint32_t *)task->entries)[fragment] != (uint32_t)lead
                                  : ((const uint64_t *)task->entries)[fragment] != lead;
}

/* 1 where the rank of a row is not what the places say. Bits behind that of the first piece that is not
 * there say nothing. */
FRAGBENCH_INLINE uint64_t fb_rank_differs(const struct varied_task *task, uint64_t row) {
    const struct fb_rank rank = ((const struct fb_rank *)task->ranks)[row];
    const uint64_t first = row * FRAGBENCH_ROW_PIECES, left = task->pieces - first;
    const uint64_t before = fb_begun_before(task, first);
    uint32_t begins = 0;
    for (uint64_t fragment = before; fragment <= task->fragments; fragment++) {
        const uint64_t at = fb_place(task, fragment)->first_piece - first;
        if (at >= FRAGBENCH_ROW_PIECES) break;
        begins |= 1u << at;
    }
    const uint32_t seen = left >= FRAGBENCH_ROW_PIECES - 1 ? 0xffffffffu : (2u << left) - 1;
    return rank.before != (uint32_t)before || ((rank.begins ^ begins) & seen) != 0;
}

#endif
