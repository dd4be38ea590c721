/* The checks of what the kernels for fragments of varying length did, by another route: from the
 * fragments themselves, by binary search, without their table. */
#include "checks.h"
#include "varied.h"

#define SUM(name, items, term) FRAGBENCH_SUM(varied_task, varied_##name, items, term)

/* Counts the entries that are not what the fragments say. */
SUM(check_entries, fragments, fb_place_is_wrong(&task, i) | fb_entry_differs(&task, i))

/* Counts the ranks that are not what the fragments say, that of the piece behind the last included. */
SUM(check_ranks, pieces / FRAGBENCH_ROW_PIECES + 1, fb_rank_differs(&task, i))

/* The checksum that a read has to give, without reading the source. */
SUM(expect_checksum, units, fb_varied_term(&task, fb_fragment_of_unit(&task, i), i))

/* Counts the units of the destination that do not hold the bits that a gather puts there. */
SUM(check_gathered, units, fb_varied_gathered_differs(&task, fb_fragment_of_unit(&task, i), i))

/* Counts the units of payload that the arena does not hold where a scatter puts them. */
SUM(check_scattered, units, fb_varied_scattered_differs(&task, fb_fragment_of_unit(&task, i), i))

/* Counts the units of the arena that lie in no fragment and have changed. */
SUM(check_gaps, arena_units, fb_varied_gap_differs(&task, fb_ranges_until(&task, i), i))
