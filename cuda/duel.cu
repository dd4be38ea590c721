/* Which multiprocessors share a TLB, and how long a read takes that has to wait for the one before it:
 * one block on each multiprocessor, its role by its number. */
#include "index.h"

constexpr uint64_t line_bytes = 128, page_lines = FRAGBENCH_DUEL_PAGE_BYTES / line_bytes;

/* A wait for other blocks that lasts longer will never end: they are not all there at once. */
constexpr uint64_t patience_ns = 250000000;

/* How long a flood runs before anything is timed beside it, in cycles. */
constexpr long long lead_cycles = 30000;

static __device__ __forceinline__ uint64_t nanoseconds() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Past L1, which a reader of fresh lines would only find empty. */
static __device__ __forceinline__ uint32_t read_line(uint64_t arena, uint64_t page, uint64_t line) {
    uint32_t value;
    const uint64_t at = arena + (page * page_lines + line) * line_bytes;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

/* Waits until `word` has come to `count`; false where that takes too long, or has for somebody. */
static __device__ bool wait_for(volatile uint32_t *word, uint32_t count, volatile uint32_t *gave_up) {
    const uint64_t begin = nanoseconds();
    while (*word < count) {
        if (*gave_up || nanoseconds() - begin > patience_ns) {
            *gave_up = 1;
            return false;
        }
    }
    return true;
}

/* A page and a line of `pages`, which follow from a number. */
static __device__ __forceinline__ uint32_t read_random(uint64_t arena, uint64_t first, uint64_t pages,
                                                       uint64_t number) {
    const uint64_t drawn = fb_mix(number);
    return read_line(arena, first + fb_below(drawn, pages), drawn % page_lines);
}

extern "C" __global__ void __launch_bounds__(FRAGBENCH_DUEL_THREADS)
    fragbench_duel(const duel_task task) {
    extern __shared__ volatile uint32_t shared[];
    volatile uint32_t *words = (volatile uint32_t *)task.words;
    uint32_t own;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(own));
    const bool floods = own == task.aggressor;
    const bool follows = task.only == FRAGBENCH_NOBODY || own == task.only;
    uint32_t seen = 0;
    if (threadIdx.x == 0) shared[0] = 0;
    if (task.warms && follows) {
        const uint64_t key = fb_mix(task.key ^ own);
        for (uint64_t page = threadIdx.x; page < task.pages; page += blockDim.x) {
            seen ^= read_line(task.arena, page, fb_mix(key + page) % page_lines);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd((uint32_t *)task.words, 1);
        shared[1] = wait_for(words, gridDim.x, words + 3);
    }
    __syncthreads();
    if (!shared[1]) return;
    if (threadIdx.x == 0) {
        const long long lead = clock64();
        while (clock64() - lead < lead_cycles) {
        }
        if (follows) {
            /* What was read is part of the next address: no read begins before the last is over. */
            uint64_t number = fb_mix(task.key + 0x100000001ull * (own + 1));
            const uint64_t begin_ns = nanoseconds();
            const long long begin = clock64();
            for (uint32_t i = 0; i < task.reads; i++) {
                number += 1 + (read_random(task.arena, 0, task.pages, number) & 1);
            }
            /* A store has to wait for the number, and the clock for the store. */
            shared[2] = (uint32_t)number;
            const long long end = clock64();
            const uint64_t end_ns = nanoseconds();
            volatile uint64_t *result = (volatile uint64_t *)task.results + 2 * own;
            result[0] = (uint64_t)(end - begin);
            result[1] = end_ns - begin_ns;
        }
        __threadfence();
        atomicAdd((uint32_t *)task.words + 1, 1);
        if (floods) {
            wait_for(words + 1, gridDim.x, words + 3);
            shared[0] = 1;
        }
    } else if (floods && threadIdx.x >= 32) {
        uint32_t reads = 0;
        const uint64_t key = fb_mix(task.key ^ 0x666c6f6f64ull);
        for (uint64_t i = threadIdx.x; !shared[0]; i += blockDim.x, reads++) {
            seen ^= read_random(task.arena, task.flood_first, task.flood_pages, key + i);
        }
        atomicAdd((uint32_t *)task.words + 2, reads);
    }
    /* Never so, and the compiler does not know: without it the reads would be for nothing. */
    if (seen == 1 && task.pages == 0) words[3] = seen;
}

/* Tells the multiprocessor of each block, which stays there for `reads` cycles, so that others go
 * elsewhere. */
extern "C" __global__ void __launch_bounds__(32) fragbench_who(const duel_task task) {
    if (threadIdx.x != 0) return;
    uint32_t own;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(own));
    ((volatile uint32_t *)task.results)[blockIdx.x] = own;
    const long long begin = clock64();
    while (clock64() - begin < (long long)task.reads) {
    }
}
