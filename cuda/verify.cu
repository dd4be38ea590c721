/* Data by position, and the checks of what the measured kernels did, by another route. */
#include "checks.h"

#define SUM(...) FRAGBENCH_SUM(fragment_task, __VA_ARGS__)

/* Writes each unit of the destination's random bits. */
extern "C" __global__ void fragbench_fill(const fragment_task task) {
    ulonglong2 *destination = (ulonglong2 *)task.destination;
    FRAGBENCH_EACH(unit, task.units) {
        destination[unit] = make_ulonglong2(fb_value(task.data_key, 2 * unit),
                                            fb_value(task.data_key, 2 * unit + 1));
    }
}

/* Counts the units of the source that do not hold the random bits of their position. */
SUM(check_fill, units,
    fb_differ(fb_unit_at(task.source, FRAGBENCH_UNIT_BYTES, i),
              fb_unit_value(task.data_key, FRAGBENCH_UNIT_BYTES, i)))

/* Counts the units of the destination that do not hold the bits that a gather puts there. */
SUM(check_gathered, units, fb_gathered_differs(&task, i))

/* Counts the units of payload that the arena does not hold where a scatter puts them. */
SUM(check_scattered, units, fb_scattered_differs(&task, i))

/* Counts the units of the arena that lie in no fragment and have changed. */
SUM(check_gaps, units, fb_gap_differs(&task, i))

/* Counts the units of the destination that are not what the write kernel puts there. */
SUM(check_written, units, fb_written_differs(&task, i))

/* The checksum that a read of the layout has to give, without reading the source. */
SUM(expect_checksum, units, fb_weigh(task.unit_bytes, i, fb_gathered_value(&task, i)))

/* Counts the entries of the index that are not what the layout says. */
SUM(check_index, fragments, fb_index_differs(&task, i))

/* A sum over the index that does not depend on its order. */
SUM(sum_index, fragments, fb_mix(fb_index_slot(task.index, task.index_entry_bytes, i)))

/* The same sum over the layout's closed form, unsorted. */
SUM(expect_index_sum, fragments, fb_mix(fb_layout_slot(&task, i)))
