/* The kernel that faults, to show that a fault costs the group in which it happens and no more. In a
 * module of its own: no run loads it that was not asked to. */
#include "fragment.h"

/* Stores to the address `destination`, wherever that lies. */
extern "C" __global__ void fragbench_fault(const fragment_task task) {
    *(volatile uint32_t *)task.destination = 1;
}
