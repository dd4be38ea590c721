/* The kernels around a timed interval: the one that holds a stream while launches are queued behind
 * it, and the one that stamps the interval's ends. */
#include "fragment.h"

/* Waits until the word at `source` (mapped host memory) is not zero. Gives up after `units`
 * nanoseconds, and then sets the word at `destination`. */
extern "C" __global__ void fragbench_hold(const fragment_task task) {
    const volatile uint32_t *released = (const volatile uint32_t *)task.source;
    volatile uint32_t *gave_up = (volatile uint32_t *)task.destination;
    uint64_t begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    while (*released == 0) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (now - begin > task.units) {
            *gave_up = 1;
            return;
        }
    }
}

/* Writes the device's timer, the SM's clock and the SM's number into the three 64-bit words at
 * `destination` (mapped host memory). Timer and clock are read in the same order in every stamp, so
 * that the time between the two reads cancels in the difference of two stamps. */
extern "C" __global__ void fragbench_stamp(const fragment_task task) {
    volatile uint64_t *words = (volatile uint64_t *)task.destination;
    uint64_t timer, clock;
    uint32_t sm;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(clock));
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    words[0] = timer;
    words[1] = clock;
    words[2] = sm;
}
