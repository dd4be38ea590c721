/* The structs that kernel launches take, on the GPU and on the host: one for fragments of one length, one
 * for fragments of varying length. Bound to Rust by bindgen. */
#ifndef FRAGBENCH_FRAGMENT_H
#define FRAGBENCH_FRAGMENT_H

#include <stdint.h>

/** The widest unit: the piece that one load or store of a thread moves. Units are 4, 8 or 16 B. */
#define FRAGBENCH_UNIT_BYTES 16
/** Threads of a block, where nothing else is said. */
#define FRAGBENCH_BLOCK_THREADS 256
/** Threads of a block of the gather copy kernels. */
#define FRAGBENCH_GATHER_COPY_THREADS 128
/** Threads of a block of the gather read kernels with narrow units. */
#define FRAGBENCH_NARROW_THREADS 128
/** Units of 4 B that each thread of the gather read kernels has in flight. */
#define FRAGBENCH_NARROW_RUN_4 32
/** Units of 8 B that each thread of the gather read kernels has in flight. */
#define FRAGBENCH_NARROW_RUN_8 16
/** 64-bit sums that a launch spreads its result over, so that atomics do not queue up. */
#define FRAGBENCH_SUM_SLOTS 4096
/** Units that each thread of the read kernel has in flight. */
#define FRAGBENCH_READ_DEPTH 4
/** Units that each thread of the write kernel writes. */
#define FRAGBENCH_WRITE_DEPTH 1
/** Units that each thread of the copy kernel moves. */
#define FRAGBENCH_COPY_DEPTH 1
/** Units of 16 B that each thread of the gather read kernels has in flight. */
#define FRAGBENCH_GATHER_READ_DEPTH 4
/** Units of 16 B that each thread of the gather copy kernels has in flight. */
#define FRAGBENCH_GATHER_COPY_DEPTH 2
/** Units of 16 B that each thread of the scatter copy kernels has in flight. */
#define FRAGBENCH_SCATTER_COPY_DEPTH 1
/** Units of 16 B that each thread of the strided gather kernels has in flight. */
#define FRAGBENCH_STRIDED_GATHER_DEPTH 4
/** From so many bytes between units on a strided gather is sparse, and its threads move a unit each. */
#define FRAGBENCH_SPARSE_STRIDE_BYTES 128
/** Threads of a block of such a gather. */
#define FRAGBENCH_SPARSE_THREADS 1024
/** How many times deeper every other kernel of a layout is with units of 8 or 4 B. */
#define FRAGBENCH_NARROW_FACTOR 2
/** Pieces of 16 B in a row: what a warp loads at once, and what a rank stands for. */
#define FRAGBENCH_ROW_PIECES 32
/** Rows that a warp may have ranks of at once, and that a directory of ranks has behind its last. */
#define FRAGBENCH_RANK_ROWS 16
/** Rows that each warp of the read kernels for varying lengths has in flight. */
#define FRAGBENCH_VARIED_READ_DEPTH 4
/** Threads of a block of those. */
#define FRAGBENCH_VARIED_READ_THREADS 256
/** Rows that each warp of the gather copy kernels for varying lengths has in flight. */
#define FRAGBENCH_VARIED_GATHER_DEPTH 4
/** Threads of a block of those. */
#define FRAGBENCH_VARIED_GATHER_THREADS 128
/** Rows that each warp of the scatter copy kernels for varying lengths has in flight. */
#define FRAGBENCH_VARIED_SCATTER_DEPTH 4
/** Threads of a block of those. */
#define FRAGBENCH_VARIED_SCATTER_THREADS 256
/** Bytes that a block of the bulk kernels that read has under way. */
#define FRAGBENCH_BULK_READ_BYTES 16384
/** Threads of such a block. */
#define FRAGBENCH_BULK_READ_THREADS 128
/** Bytes that a block of the bulk kernels that copy has under way. */
#define FRAGBENCH_BULK_COPY_BYTES 2048
/** Threads of such a block: one warp. */
#define FRAGBENCH_BULK_COPY_THREADS 32
/** The most windows that a gather's index may be cut into. */
#define FRAGBENCH_MOST_WINDOWS 16
/** The most multiprocessors that a device may have. */
#define FRAGBENCH_MOST_MULTIPROCESSORS 1024
/** Rows of 32 units of 16 B that a warp of a gather by windows takes at a time. */
#define FRAGBENCH_WINDOW_ROWS 16
/** Blocks of such a gather on a multiprocessor: fewer leave registers that keep loads from queueing. */
#define FRAGBENCH_WINDOW_BLOCKS 5
/** Threads of the one block that each multiprocessor has in a duel. */
#define FRAGBENCH_DUEL_THREADS 512
/** Bytes of a page of a duel: whatever a TLB's entries map, none of them maps less. */
#define FRAGBENCH_DUEL_PAGE_BYTES 2097152
/** No multiprocessor, where one is named. */
#define FRAGBENCH_NOBODY 0xffffffffu
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
/** Every other slot; permuted unless sorted. */
#define FRAGBENCH_PATTERN_CHECKERBOARD 4
/** The free slots of a random occupancy. */
#define FRAGBENCH_PATTERN_HOLES 5

/** Everything a launch needs to know. Addresses are 64-bit integers, so that the layout of the
 * struct is the same for both compilers. */
struct fragment_task {
    /** Address of the memory that is read: the first slot of a gather. */
    uint64_t source;
    /** Address of the memory that is written: the first slot of a scatter. */
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
    /** Slots of a stride. */
    uint64_t stride;
    /** Fragments of a window that a shuffle stays within; 0 without windows. */
    uint64_t window;
    /** Units between the begin of the arena's data and its first slot. */
    uint64_t origin;
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
    /** Length of a unit: 4, 8 or 16 bytes. */
    uint32_t unit_bytes;
    /** Keeps the length of the struct a multiple of 8; 0. */
    uint32_t reserved;
};

/** Which part of a payload each multiprocessor reads: its index is sorted into windows, and a
 * multiprocessor keeps to one of them. Lies in the device's memory. */
struct window_table {
    /** The first unit of each window, and behind the last. */
    uint64_t first[FRAGBENCH_MOST_WINDOWS + 1];
    /** The next rows of each window that nobody has taken yet; 0 between launches. */
    uint32_t next[FRAGBENCH_MOST_WINDOWS];
    /** The window of each multiprocessor. */
    uint32_t window_of[FRAGBENCH_MOST_MULTIPROCESSORS];
    /** Blocks that have ended; 0 between launches. */
    uint32_t ended;
    /** Keeps the length of the struct a multiple of 8; 0. */
    uint32_t reserved;
};

/** A duel: some multiprocessors follow dependent reads of random lines in pages of their own, while one,
 * the aggressor, floods others with reads. */
struct duel_task {
    /** Address of the memory that is read. */
    uint64_t arena;
    /** Pages from its beginning on that are followed through. */
    uint64_t pages;
    /** The first page of those that are flooded. */
    uint64_t flood_first;
    /** How many these are. */
    uint64_t flood_pages;
    /** Key of the lines that are read: a fresh one each time, so that none of them lies in a cache. */
    uint64_t key;
    /** Address of four 32-bit words, 0 at the beginning: blocks that are warm, blocks that are done,
     * reads of the flood, and whether a block gave up waiting for others. */
    uint64_t words;
    /** Address of the result of each multiprocessor, by its number, two 64-bit words: cycles and
     * nanoseconds of its reads. */
    uint64_t results;
    /** The multiprocessor that floods, or FRAGBENCH_NOBODY. */
    uint32_t aggressor;
    /** The only one that follows reads, or FRAGBENCH_NOBODY for all. */
    uint32_t only;
    /** Dependent reads of each. */
    uint32_t reads;
    /** 1 where each touches all of its pages before, else 0. */
    uint32_t warms;
};

/** Everything that a launch on fragments of varying length needs to know. Its work is counted in
 * pieces: aligned 16 B of the arena that a fragment touches, each fragment for itself, numbered in the
 * order of the visits. */
struct varied_task {
    /** Address of the memory that is read: the arena of a gather, the payload of a scatter. */
    uint64_t source;
    /** Address of the memory that is written: the payload of a gather, the arena of a scatter. */
    uint64_t destination;
    /** Address of the entry of each fragment, which tells where its pieces lie. */
    uint64_t entries;
    /** Address of the rank of each row of pieces, which tells whose they are. */
    uint64_t ranks;
    /** Address of FRAGBENCH_SUM_SLOTS 64-bit sums that the launch adds to. */
    uint64_t sums;
    /** Address of the place of each fragment in the order of the visits, and of one behind the last:
     * for checks only. */
    uint64_t places;
    /** Address of the range of each fragment in address order: for checks only. */
    uint64_t ranges;
    /** Pieces that the launch covers. */
    uint64_t pieces;
    /** Fragments that they belong to. */
    uint64_t fragments;
    /** Units of payload in them. */
    uint64_t units;
    /** Units of the arena that are looked at for gaps. */
    uint64_t arena_units;
    /** Key of the source data. */
    uint64_t data_key;
    /** Width of an entry: 4 or 8 bytes, or 16 where fragments need not be whole pieces. */
    uint32_t entry_bytes;
    /** Length of a unit: 16 bytes, or 4 where fragments need not be whole pieces. */
    uint32_t unit_bytes;
};

#endif
