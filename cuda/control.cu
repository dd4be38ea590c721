/* The kernel that holds a stream while launches are queued behind it. */
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
