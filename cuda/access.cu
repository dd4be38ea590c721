/* The kernels that are measured. Each thread moves DEPTH units, a block's threads side by side. */
#include "index.h"

struct unit_words {
    unsigned long long low, high;
};

/* A read through the read-only path. Evict-first loads (ld.global.cs) were 2.4 % slower in copies on
 * an H200; for the stores the hint made no difference. */
__device__ __forceinline__ unit_words load_unit(uint64_t base, uint64_t unit) {
    const ulonglong2 words = __ldg((const ulonglong2 *)base + unit);
    return {words.x, words.y};
}

__device__ __forceinline__ void store_unit(uint64_t base, uint64_t unit, unit_words words) {
    ((ulonglong2 *)base)[unit] = make_ulonglong2(words.low, words.high);
}

/* Adds each warp's sum to one of the slots. */
__device__ __forceinline__ void add_to_sums(uint64_t sums, unsigned long long sum) {
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) {
        const uint32_t warp = blockIdx.x * (FRAGBENCH_BLOCK_THREADS / 32) + threadIdx.x / 32;
        atomicAdd((unsigned long long *)sums + warp % FRAGBENCH_SUM_SLOTS, sum);
    }
}

/* The unit of the source that holds a unit of payload. */
template <typename Entry>
__device__ __forceinline__ uint64_t gathered_unit(const fragment_task &task, uint64_t unit) {
    const uint64_t fragment = fb_fragment_of(unit, task.unit_shift);
    return fb_source_unit(__ldg((const Entry *)task.index + fragment), unit, task.unit_shift);
}

/* The payload unit that this thread moves as its j-th: neighbours move neighbouring units. */
template <int DEPTH> __device__ __forceinline__ uint64_t own_unit(int j) {
    return (uint64_t)blockIdx.x * (FRAGBENCH_BLOCK_THREADS * DEPTH) + j * FRAGBENCH_BLOCK_THREADS +
           threadIdx.x;
}

/* Loads every unit of this thread from where `from` says it lies. All addresses are known before the
 * first load, and all loads are under way before the first use. */
template <int DEPTH, typename From>
__device__ __forceinline__ void load_units(const fragment_task &task, unit_words (&words)[DEPTH],
                                           From from) {
    uint64_t source_unit[DEPTH];
#pragma unroll
    for (int j = 0; j < DEPTH; j++) {
        const uint64_t unit = own_unit<DEPTH>(j);
        source_unit[j] = unit < task.units ? from(unit) : 0;
    }
#pragma unroll
    for (int j = 0; j < DEPTH; j++) words[j] = load_unit(task.source, source_unit[j]);
}

template <int DEPTH>
__device__ __forceinline__ void sum_units(const fragment_task &task,
                                          const unit_words (&words)[DEPTH]) {
    unsigned long long sum = 0;
#pragma unroll
    for (int j = 0; j < DEPTH; j++) {
        const uint64_t unit = own_unit<DEPTH>(j);
        if (unit < task.units) sum += fb_weigh(unit, words[j].low, words[j].high);
    }
    add_to_sums(task.sums, sum);
}

template <int DEPTH>
__device__ __forceinline__ void store_units(const fragment_task &task,
                                            const unit_words (&words)[DEPTH]) {
#pragma unroll
    for (int j = 0; j < DEPTH; j++) {
        const uint64_t unit = own_unit<DEPTH>(j);
        if (unit < task.units) store_unit(task.destination, unit, words[j]);
    }
}

template <int DEPTH> __device__ __forceinline__ void read(const fragment_task &task) {
    unit_words words[DEPTH];
    load_units(task, words, [](uint64_t unit) { return unit; });
    sum_units(task, words);
}

template <int DEPTH> __device__ __forceinline__ void copy(const fragment_task &task) {
    unit_words words[DEPTH];
    load_units(task, words, [](uint64_t unit) { return unit; });
    store_units(task, words);
}

template <typename Entry, int DEPTH>
__device__ __forceinline__ void gather_read(const fragment_task &task) {
    unit_words words[DEPTH];
    load_units(task, words, [&](uint64_t unit) { return gathered_unit<Entry>(task, unit); });
    sum_units(task, words);
}

template <typename Entry, int DEPTH>
__device__ __forceinline__ void gather_copy(const fragment_task &task) {
    unit_words words[DEPTH];
    load_units(task, words, [&](uint64_t unit) { return gathered_unit<Entry>(task, unit); });
    store_units(task, words);
}

#define FRAGBENCH_KERNEL(name, body)                                                               \
    extern "C" __global__ void __launch_bounds__(FRAGBENCH_BLOCK_THREADS)                          \
        fragbench_##name(const fragment_task task) {                                               \
        body(task);                                                                                \
    }
#define FRAGBENCH_PAIR(...) __VA_ARGS__

FRAGBENCH_KERNEL(read, read<FRAGBENCH_READ_DEPTH>)
FRAGBENCH_KERNEL(copy, copy<FRAGBENCH_COPY_DEPTH>)
FRAGBENCH_KERNEL(gather_read_4, FRAGBENCH_PAIR(gather_read<uint32_t, FRAGBENCH_GATHER_READ_DEPTH>))
FRAGBENCH_KERNEL(gather_read_8, FRAGBENCH_PAIR(gather_read<uint64_t, FRAGBENCH_GATHER_READ_DEPTH>))
FRAGBENCH_KERNEL(gather_copy_4, FRAGBENCH_PAIR(gather_copy<uint32_t, FRAGBENCH_GATHER_COPY_DEPTH>))
FRAGBENCH_KERNEL(gather_copy_8, FRAGBENCH_PAIR(gather_copy<uint64_t, FRAGBENCH_GATHER_COPY_DEPTH>))
