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

/* What one unit adds to a checksum: each 64-bit word times an odd weight that no other position of
 * the payload has. Odd weights are invertible modulo 2^64: no change of one word goes unseen. */
FRAGBENCH_INLINE uint64_t fb_weigh(uint64_t unit, uint64_t low, uint64_t high) {
    return low * (4 * unit + 1) + high * (4 * unit + 3);
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

/* The slot of fragment i, from the layout's closed form alone. A sorted random layout has none. */
FRAGBENCH_INLINE uint64_t fb_layout_slot(const struct fragment_task *task, uint64_t i) {
    switch (task->pattern) {
    case FRAGBENCH_PATTERN_STRIDED:
        return i * task->stride;
    case FRAGBENCH_PATTERN_SHUFFLED: {
        const uint64_t k = task->sorted ? i : fb_permute(task->layout_key, task->fragments, i);
        return k * task->stride + fb_below(fb_draw(~task->layout_key, k), task->stride);
    }
    case FRAGBENCH_PATTERN_RANDOM:
        return fb_below(fb_draw(~task->layout_key, i), task->slots);
    default:
        return i;
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

/* The unit of the source at which a unit of payload lies, given its fragment's slot. */
FRAGBENCH_INLINE uint64_t fb_source_unit(uint64_t slot, uint64_t unit, uint32_t unit_shift) {
    return (slot << unit_shift) + (unit & (((uint64_t)1 << unit_shift) - 1));
}

/* The source unit of a payload unit by a route that the measured kernels do not take: the closed
 * form, or, for a sorted random layout, the index, whose order and content are checked apart. */
FRAGBENCH_INLINE uint64_t fb_expected_unit(const struct fragment_task *task, uint64_t unit) {
    const uint64_t fragment = fb_fragment_of(unit, task->unit_shift);
    const uint64_t slot = task->sorted && task->pattern == FRAGBENCH_PATTERN_RANDOM
                              ? fb_index_slot(task->index, task->index_entry_bytes, fragment)
                              : fb_layout_slot(task, fragment);
    return fb_source_unit(slot, unit, task->unit_shift);
}

/* Whether entry i of the index differs from what the layout says; of a sorted random layout, whether
 * it lies below its predecessor or outside the footprint. */
FRAGBENCH_INLINE int fb_index_differs(const struct fragment_task *task, uint64_t i) {
    const uint64_t slot = fb_index_slot(task->index, task->index_entry_bytes, i);
    if (task->sorted && task->pattern == FRAGBENCH_PATTERN_RANDOM) {
        return slot >= task->slots ||
               (i > 0 && fb_index_slot(task->index, task->index_entry_bytes, i - 1) > slot);
    }
    return slot != fb_layout_slot(task, i);
}

#endif
