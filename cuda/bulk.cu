/* Competitors by bulk asynchronous copies through shared memory: compute capability 9.0 and later. A
 * block has one stage, is told by a barrier when it has arrived, and takes it; the other blocks of
 * the multiprocessor have theirs under way meanwhile. Blocks that kept several stages and went from
 * tile to tile were slower on an H200: their static share of the work was. */
#include "index.h"

/* Shared memory has 32-bit addresses of its own. */
__device__ __forceinline__ uint32_t shared_address(const void *pointer) {
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ void barrier_init(uint64_t *barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)));
}

/* Arrives at the barrier, which then waits for so many bytes of transfers. */
__device__ __forceinline__ void barrier_expect(uint64_t *barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void barrier_wait(uint64_t *barrier, uint32_t parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

__device__ __forceinline__ void bulk_load(void *to, uint64_t from, uint32_t bytes,
                                          uint64_t *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

__device__ __forceinline__ void bulk_store(uint64_t to, const void *from, uint32_t bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(shared_address(from)), "r"(bytes)
                 : "memory");
}

/* Where a unit of payload lies in the source, and how many units lie in one piece there. */
struct contiguous {
    static __device__ __forceinline__ uint64_t piece_units(const fragment_task &task) {
        return task.units;
    }
    static __device__ __forceinline__ uint64_t unit(const fragment_task &, uint64_t unit) {
        return unit;
    }
};

struct indexed {
    static __device__ __forceinline__ uint64_t piece_units(const fragment_task &task) {
        return (uint64_t)1 << task.unit_shift;
    }
    static __device__ __forceinline__ uint64_t unit(const fragment_task &task, uint64_t unit) {
        const uint64_t fragment = fb_fragment_of(unit, task.unit_shift);
        return fb_arena_unit(__ldg((const uint32_t *)task.index + fragment), unit, task.unit_shift);
    }
};

/* Sums what has arrived. */
template <int THREADS> struct summing {
    static __device__ __forceinline__ void take(const fragment_task &task, uint64_t first,
                                                const ulonglong2 *stage, uint32_t units) {
        unsigned long long sum = 0;
        for (uint32_t i = threadIdx.x; i < units; i += THREADS) {
            const ulonglong2 words = stage[i];
            sum += fb_weigh(FRAGBENCH_UNIT_BYTES, first + i, {words.x, words.y});
        }
        for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
        if (threadIdx.x % 32 == 0) {
            const uint32_t warp = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
            atomicAdd((unsigned long long *)task.sums + warp % FRAGBENCH_SUM_SLOTS, sum);
        }
    }
};

/* Sends what has arrived on to the destination. */
struct sending {
    static __device__ __forceinline__ void take(const fragment_task &task, uint64_t first,
                                                const ulonglong2 *stage, uint32_t units) {
        if (threadIdx.x != 0) return;
        bulk_store(task.destination + first * FRAGBENCH_UNIT_BYTES, stage,
                   units * FRAGBENCH_UNIT_BYTES);
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
};

template <int STAGE_BYTES, int THREADS, typename Place, typename Taker>
__device__ __forceinline__ void through_stage(const fragment_task &task) {
    constexpr uint32_t STAGE_UNITS = STAGE_BYTES / FRAGBENCH_UNIT_BYTES;
    __shared__ alignas(128) ulonglong2 stage[STAGE_UNITS];
    __shared__ uint64_t arrived;
    const uint64_t first = (uint64_t)blockIdx.x * STAGE_UNITS, left = task.units - first;
    const uint32_t units = left < STAGE_UNITS ? (uint32_t)left : STAGE_UNITS;
    const uint64_t whole = Place::piece_units(task);
    const uint32_t piece = whole < STAGE_UNITS ? (uint32_t)whole : STAGE_UNITS;
    if (threadIdx.x == 0) {
        barrier_init(&arrived);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        barrier_expect(&arrived, units * FRAGBENCH_UNIT_BYTES);
    }
    __syncthreads();
    /* Dealt out to the warps in turn: one warp issues a copy in some 80 cycles. */
    const uint32_t own = threadIdx.x % 32 * (THREADS / 32) + threadIdx.x / 32;
    for (uint32_t at = own * piece; at < units; at += THREADS * piece) {
        const uint64_t from = Place::unit(task, first + at);
        const uint32_t length = units - at < piece ? units - at : piece;
        bulk_load(stage + at, task.source + from * FRAGBENCH_UNIT_BYTES,
                  length * FRAGBENCH_UNIT_BYTES, &arrived);
    }
    barrier_wait(&arrived, 0);
    Taker::take(task, first, stage, units);
}

#define KERNEL(name, END, Place, ...)                                                              \
    extern "C" __global__ void __launch_bounds__(FRAGBENCH_BULK_##END##_THREADS)                   \
        fragbench_##name(const fragment_task task) {                                               \
        through_stage<FRAGBENCH_BULK_##END##_BYTES, FRAGBENCH_BULK_##END##_THREADS, Place,         \
                      __VA_ARGS__>(task);                                                          \
    }

KERNEL(read_bulk, READ, contiguous, summing<FRAGBENCH_BULK_READ_THREADS>)
KERNEL(copy_bulk, COPY, contiguous, sending)
KERNEL(gather_read_i4_u16_bulk, READ, indexed, summing<FRAGBENCH_BULK_READ_THREADS>)
KERNEL(gather_copy_i4_u16_bulk, COPY, indexed, sending)
