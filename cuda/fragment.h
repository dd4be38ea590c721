/* The one struct that a kernel launch takes, on the GPU and on the host. Bound to Rust by bindgen. */
#ifndef FRAGBENCH_FRAGMENT_H
#define FRAGBENCH_FRAGMENT_H

#include <stdint.h>

/** The smallest piece that a thread moves: one 16 B load. */
#define FRAGBENCH_UNIT_BYTES 16
/** Threads of a block, in every kernel. */
#define FRAGBENCH_BLOCK_THREADS 256
/** 64-bit sums that a launch spreads its result over, so that atomics do not queue up. */
#define FRAGBENCH_SUM_SLOTS 4096
/** Units that each thread of the read kernel has in flight. */
#define FRAGBENCH_READ_DEPTH 4
/** Units that each thread of the copy kernel moves. */
#define FRAGBENCH_COPY_DEPTH 1
/** Units that each thread of the gather read kernels has in flight. */
#define FRAGBENCH_GATHER_READ_DEPTH 4
/** Units that each thread of the gather copy kernels has in flight. */
#define FRAGBENCH_GATHER_COPY_DEPTH 2
/** Units (or index entries) of a block on the host: the grain that threads share work by. */
#define FRAGBENCH_HOST_BLOCK_UNITS 4096

/** Fragment after fragment. */
#define FRAGBENCH_PATTERN_CONTIGUOUS 0
/** The first slot of each stride. */
#define FRAGBENCH_PATTERN_STRIDED 1
/** One random slot of each stride; permuted unless sorted. */
#define FRAGBENCH_PATTERN_SHUFFLED 2
/** Any slot, with replacement. */
#define FRAGBENCH_PATTERN_RANDOM 3

/** Everything a launch needs to know. Addresses are 64-bit integers, so that the layout of the
 * struct is the same for both compilers. */
struct fragment_task {
    /** Address of the memory that fragments are read from. */
    uint64_t source;
    /** Address of the contiguous range that is written. */
    uint64_t destination;
    /** Address of the index: the slot of each fragment. */
    uint64_t index;
    /** Address of FRAGBENCH_SUM_SLOTS 64-bit sums that the launch adds to. */
    uint64_t sums;
    /** Units of payload that the launch covers. */
    uint64_t units;
    /** Fragments of the layout. */
    uint64_t fragments;
    /** Slots of the layout: places of one fragment's length in the footprint. */
    uint64_t slots;
    /** Slots of a stride: slots / fragments, rounded down. */
    uint64_t stride;
    /** Key of the layout's random choices. */
    uint64_t layout_key;
    /** Key of the source data. */
    uint64_t data_key;
    /** log2 of the units in a fragment. */
    uint32_t unit_shift;
    /** Width of an index entry: 4 or 8 bytes; 0 without an index. */
    uint32_t index_entry_bytes;
    /** One of FRAGBENCH_PATTERN_*. */
    uint32_t pattern;
    /** 1 where the fragments are visited in address order, else 0. */
    uint32_t sorted;
};

#endif
