/* The split of work and the index arithmetic: one text for nvcc and for the host's compiler. */
#ifndef FRAGBENCH_INDEX_H
#define FRAGBENCH_INDEX_H

#include "fragment.h"

#ifdef __CUDACC__
#define FRAGBENCH_INLINE __host__ __device__ __forceinline__
#else
#define FRAGBENCH_INLINE static inline
#endif

#define FRAGBENCH_PERMUTE_ROUNDS 6
#define FRAGBENCH_GOLDEN 0x9E3779B97F4A7C15ull

/* The finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014; constants of Stafford's variant 13). A bijection of 64 bits. */
FRAGBENCH_INLINE uint64_t fb_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/* The n-th output of a SplitMix64 generator that was seeded with `key`. */
FRAGBENCH_INLINE uint64_t fb_draw(uint64_t key, uint64_t n) {
    return fb_mix(key + (n + 1) * FRAGBENCH_GOLDEN);
}

/* A number below `bound`, as the high half of a 128-bit product. */
FRAGBENCH_INLINE uint64_t fb_below(uint64_t random, uint64_t bound) {
#ifdef __CUDA_ARCH__
    return __umul64hi(random, bound);
#else
    return (uint64_t)(((unsigned __int128)random * bound) >> 64);
#endif
}

/* The 64-bit word that the source holds at word position `word`. */
FRAGBENCH_INLINE uint64_t fb_value(uint64_t data_key, uint64_t word) {
    return fb_draw(data_key, word);
}

/* The 64-bit word that the write kernel puts at word position `word`: the state of the generator
 * instead of its output, so that working it out costs no bandwidth. */
FRAGBENCH_INLINE uint64_t fb_written(uint64_t data_key, uint64_t word) {
    return data_key + (word + 1) * FRAGBENCH_GOLDEN;
}

/* What a unit holds: one or two 64-bit words, or the half of one. */
struct fb_words {
    uint64_t low, high;
};

/* The words of a unit of the source. */
FRAGBENCH_INLINE struct fb_words fb_unit_value(uint64_t data_key, uint32_t unit_bytes,
                                               uint64_t unit) {
    struct fb_words words = {0, 0};
    if (unit_bytes == 16) {
        words.low = fb_value(data_key, 2 * unit);
        words.high = fb_value(data_key, 2 * unit + 1);
    } else if (unit_bytes == 8) {
        words.low = fb_value(data_key, unit);
    } else {
        words.low = (uint32_t)(fb_value(data_key, unit / 2) >> (32 * (unit % 2)));
    }
    return words;
}

/* The words of a unit in memory. */
FRAGBENCH_INLINE struct fb_words fb_unit_at(uint64_t base, uint32_t unit_bytes, uint64_t unit) {
    struct fb_words words = {0, 0};
    if (unit_bytes == 16) {
        words.low = ((const uint64_t *)base)[2 * unit];
        words.high = ((const uint64_t *)base)[2 * unit + 1];
    } else if (unit_bytes == 8) {
        words.low = ((const uint64_t *)base)[unit];
    } else {
        words.low = ((const uint32_t *)base)[unit];
    }
    return words;
}

/* 1 where the two differ. */
FRAGBENCH_INLINE uint64_t fb_differ(struct fb_words a, struct fb_words b) {
    return a.low != b.low || a.high != b.high;
}

/* What one unit adds to a checksum: each word times an odd weight that no other position of the
 * payload has. Odd weights are invertible modulo 2^64: no change of one word goes unseen. */
FRAGBENCH_INLINE uint64_t fb_weigh(uint32_t unit_bytes, uint64_t unit, struct fb_words words) {
    return unit_bytes == 16 ? words.low * (4 * unit + 1) + words.high * (4 * unit + 3)
                            : words.low * (2 * unit + 1);
}

/* Bits of the smallest power of two that is not below n; 0 for n = 1. */
FRAGBENCH_INLINE uint32_t fb_ceil_log2(uint64_t n) {
    uint32_t bits = 0;
    while (bits < 63 && ((uint64_t)1 << bits) < n) bits++;
    return bits;
}

/* A keyed bijection of [0, n): rounds of an affine step modulo 2^bits and a right shift by half the
 * bits, each invertible; outputs of n and above are walked on to the next one below n. With four
 * rounds the differences of neighbours failed a chi-squared test for a fifth of the keys at 2^14
 * fragments; with five to eight they passed as often as chance has it. */
FRAGBENCH_INLINE uint64_t fb_permute(uint64_t key, uint64_t n, uint64_t i) {
    const uint32_t bits = fb_ceil_log2(n);
    const uint32_t half = bits / 2 + 1;
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t x = i;
    do {
        for (uint32_t round = 0; round < FRAGBENCH_PERMUTE_ROUNDS; round++) {
            x = (x * (fb_draw(key, 2 * round) | 1) + fb_draw(key, 2 * round + 1)) & mask;
            x ^= x >> half;
        }
    } while (x >= n);
    return x;
}

/* The inverse of an odd number modulo 2^64, by Newton's iteration: each step doubles the right bits,
 * of which the first guess has five. */
FRAGBENCH_INLINE uint64_t fb_inverse(uint64_t odd) {
    uint64_t inverse = (3 * odd) ^ 2;
    for (int step = 0; step < 4; step++) inverse *= 2 - odd * inverse;
    return inverse;
}

/* The position that fb_permute takes to x. */
FRAGBENCH_INLINE uint64_t fb_unpermute(uint64_t key, uint64_t n, uint64_t x) {
    const uint32_t bits = fb_ceil_log2(n);
    const uint32_t half = bits / 2 + 1;
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t i = x;
    do {
        for (uint32_t round = FRAGBENCH_PERMUTE_ROUNDS; round-- > 0;) {
            /* The shift is longer than half the bits, so that it undoes itself. */
            i ^= i >> half;
            i = ((i - fb_draw(key, 2 * round + 1)) * fb_inverse(fb_draw(key, 2 * round) | 1)) & mask;
        }
    } while (i >= n);
    return i;
}

/* A shuffle of all fragments, or of each window of them. */
FRAGBENCH_INLINE uint64_t fb_shuffle(const struct fragment_task *task, uint64_t i) {
    if (task->window == 0) return fb_permute(task->layout_key, task->fragments, i);
    const uint64_t number = i / task->window, first = number * task->window;
    const uint64_t left = task->fragments - first;
    return first + fb_permute(fb_mix(task->layout_key ^ (number + 1)),
                              left < task->window ? left : task->window, i - first);
}

/* The random slot of stride k. */
FRAGBENCH_INLINE uint64_t fb_slot_of_stride(const struct fragment_task *task, uint64_t k) {
    return k * task->stride + fb_below(fb_draw(~task->layout_key, k), task->stride);
}

/* Whether the slot of a fragment follows from its number alone. In address order a random choice
 * has no closed form. */
FRAGBENCH_INLINE int fb_has_closed_form(const struct fragment_task *task) {
    return !task->sorted || (task->pattern != FRAGBENCH_PATTERN_RANDOM &&
                             task->pattern != FRAGBENCH_PATTERN_HOLES);
}

/* The slot of fragment i, from the layout's closed form alone. */
FRAGBENCH_INLINE uint64_t fb_layout_slot(const struct fragment_task *task, uint64_t i) {
    switch (task->pattern) {
    case FRAGBENCH_PATTERN_STRIDED:
        return i * task->stride;
    case FRAGBENCH_PATTERN_SHUFFLED:
        return fb_slot_of_stride(task, task->sorted ? i : fb_shuffle(task, i));
    case FRAGBENCH_PATTERN_RANDOM:
        return fb_below(fb_draw(~task->layout_key, i), task->slots);
    case FRAGBENCH_PATTERN_CHECKERBOARD:
        return 2 * (task->sorted ? i : fb_shuffle(task, i));
    case FRAGBENCH_PATTERN_HOLES:
        return fb_permute(task->layout_key, task->slots, i);
    default:
        return i;
    }
}

/* Whether any fragment lies in the slot, without knowing which: the inverse of the closed form. Not
 * defined for random layouts, which may use a slot twice. */
FRAGBENCH_INLINE int fb_slot_is_taken(const struct fragment_task *task, uint64_t slot) {
    switch (task->pattern) {
    case FRAGBENCH_PATTERN_STRIDED:
        return slot % task->stride == 0 && slot / task->stride < task->fragments;
    case FRAGBENCH_PATTERN_SHUFFLED: {
        const uint64_t k = slot / task->stride;
        return k < task->fragments && slot == fb_slot_of_stride(task, k);
    }
    case FRAGBENCH_PATTERN_CHECKERBOARD:
        return slot % 2 == 0 && slot / 2 < task->fragments;
    case FRAGBENCH_PATTERN_HOLES:
        return fb_unpermute(task->layout_key, task->slots, slot) < task->fragments;
    default:
        return slot < task->fragments;
    }
}

/* The slot of fragment i, as the index says. */
FRAGBENCH_INLINE uint64_t fb_index_slot(uint64_t index, uint32_t entry_bytes, uint64_t i) {
    return entry_bytes == 4 ? ((const uint32_t *)index)[i] : ((const uint64_t *)index)[i];
}

/* The fragment that holds a unit of payload. */
FRAGBENCH_INLINE uint64_t fb_fragment_of(uint64_t unit, uint32_t unit_shift) {
    return unit >> unit_shift;
}

/* The unit of the arena, counted from the first slot, at which a unit of payload lies, given its
 * fragment's slot. */
FRAGBENCH_INLINE uint64_t fb_arena_unit(uint64_t slot, uint64_t unit, uint32_t unit_shift) {
    return (slot << unit_shift) + (unit & (((uint64_t)1 << unit_shift) - 1));
}

/* The same by a route that the measured kernels do not take: the closed form, or where there is none
 * the index, whose order and content are checked apart. */
FRAGBENCH_INLINE uint64_t fb_expected_unit(const struct fragment_task *task, uint64_t unit) {
    const uint64_t fragment = fb_fragment_of(unit, task->unit_shift);
    const uint64_t slot = fb_has_closed_form(task)
                              ? fb_layout_slot(task, fragment)
                              : fb_index_slot(task->index, task->index_entry_bytes, fragment);
    return fb_arena_unit(slot, unit, task->unit_shift);
}

/* The words that a unit of payload has when it is gathered. */
FRAGBENCH_INLINE struct fb_words fb_gathered_value(const struct fragment_task *task,
                                                   uint64_t unit) {
    return fb_unit_value(task->data_key, task->unit_bytes,
                         task->origin + fb_expected_unit(task, unit));
}

/* 1 where a unit of the destination is not what a gather puts there. */
FRAGBENCH_INLINE uint64_t fb_gathered_differs(const struct fragment_task *task, uint64_t unit) {
    return fb_differ(fb_unit_at(task->destination, task->unit_bytes, unit),
                     fb_gathered_value(task, unit));
}

/* 1 where the arena does not hold a unit of payload at the place where a scatter puts it. */
FRAGBENCH_INLINE uint64_t fb_scattered_differs(const struct fragment_task *task, uint64_t unit) {
    return fb_differ(
        fb_unit_at(task->destination, task->unit_bytes, fb_expected_unit(task, unit)),
        fb_unit_value(task->data_key, task->unit_bytes, unit));
}

/* 1 where a unit of the arena, counted from its begin, lies in no fragment and has changed. */
FRAGBENCH_INLINE uint64_t fb_gap_differs(const struct fragment_task *task, uint64_t unit) {
    if (unit >= task->origin) {
        const uint64_t slot = (unit - task->origin) >> task->unit_shift;
        if (slot < task->slots && fb_slot_is_taken(task, slot)) return 0;
    }
    return fb_differ(fb_unit_at(task->destination, task->unit_bytes, unit),
                     fb_unit_value(task->data_key, task->unit_bytes, unit));
}

/* 1 where a unit of 16 B is not what the write kernel puts there. */
FRAGBENCH_INLINE uint64_t fb_written_differs(const struct fragment_task *task, uint64_t unit) {
    const struct fb_words expected = {fb_written(task->data_key, 2 * unit),
                                      fb_written(task->data_key, 2 * unit + 1)};
    return fb_differ(fb_unit_at(task->destination, FRAGBENCH_UNIT_BYTES, unit), expected);
}

/* Whether entry i of the index differs from what the layout says; where there is no closed form,
 * whether it lies below its predecessor (or, of holes, on it) or outside the footprint. */
FRAGBENCH_INLINE int fb_index_differs(const struct fragment_task *task, uint64_t i) {
    const uint64_t slot = fb_index_slot(task->index, task->index_entry_bytes, i);
    if (fb_has_closed_form(task)) return slot != fb_layout_slot(task, i);
    if (slot >= task->slots) return 1;
    if (i == 0) return 0;
    const uint64_t before = fb_index_slot(task->index, task->index_entry_bytes, i - 1);
    return task->pattern == FRAGBENCH_PATTERN_HOLES ? before >= slot : before > slot;
}

#endif
