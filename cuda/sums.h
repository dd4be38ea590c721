/* The checksum that the reading kernels give. */
#ifndef FRAGBENCH_SUMS_H
#define FRAGBENCH_SUMS_H

#include "hints.h"

template <typename Unit> __device__ __forceinline__ Unit none_unless(bool valid, Unit unit) {
    return valid ? unit : 0;
}

template <> __device__ __forceinline__ unit_16 none_unless(bool valid, unit_16 unit) {
    return valid ? unit : make_ulonglong2(0, 0);
}

/* Sums of a thread's units from which their weighted sum follows with one multiplication each: unit j
 * of a thread is the payload's unit first + j * THREADS, so its weight is linear in j. Eight 64-bit
 * multiplications a thread instead would cost a power-capped GPU clock. */
struct weighted_sum {
    unsigned long long plain = 0, ramp = 0, high = 0;

    __device__ __forceinline__ void add(unsigned j, unsigned long long value) {
        plain += value;
        ramp += j * value;
    }
    __device__ __forceinline__ void add(unsigned j, unit_16 value) {
        add(j, value.x + value.y);
        high += value.y;
    }
    /* Sum of fb_weigh over the units: with w words a unit, weights step by 2 w. */
    template <typename Unit, int THREADS>
    __device__ __forceinline__ unsigned long long of(uint64_t first) const {
        constexpr unsigned step = sizeof(Unit) == 16 ? 4 : 2;
        return (step * first + 1) * plain + (unsigned long long)step * THREADS * ramp + 2 * high;
    }
};

/* Adds each warp's sum to one of the slots. */
template <int THREADS>
__device__ __forceinline__ void add_to_sums(uint64_t sums, unsigned long long sum) {
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) {
        const uint32_t warp = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
        atomicAdd((unsigned long long *)sums + warp % FRAGBENCH_SUM_SLOTS, sum);
    }
}

#endif
