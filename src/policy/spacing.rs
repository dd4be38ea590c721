//! Which sizes size classes have.

/// Classes of a doubling.
const STEPS: u64 = 4;

/// Units of a page: 4 KiB pages of 16 B units in jemalloc, 64 KiB pages of 256 B units here.
pub(super) const PAGE_UNITS: u64 = 256;

/// Units of the largest small class: 3.5 pages. From 4 pages on classes would be whole pages.
const MOST_UNITS: u64 = PAGE_UNITS * 7 / 2;

/// How many small classes there are.
pub(super) const CLASSES: usize = 35;

/// A class: its number and its length in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) number: usize,
    pub(super) units: u64,
}

impl Class {
    /// The least class that holds `units` units, at least 1; none where that is large.
    ///
    /// Four classes to a doubling, as jemalloc has them (its manual, "Implementation notes", table
    /// 1; `sz.h`) and, from its own table, nearly tcmalloc: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16,
    /// 20, … units. Rounding adds at most a fifth of a class from 5 units on.
    pub(super) fn of(units: u64) -> Option<Self> {
        if units > MOST_UNITS {
            return None;
        }
        if units <= STEPS {
            return Some(Self { number: units as usize - 1, units });
        }
        let doubling = (units - 1).ilog2();
        let step = (1 << doubling) / STEPS;
        let steps = units.div_ceil(step);
        let number = STEPS * u64::from(doubling - 1) + steps - STEPS - 1;
        Some(Self { number: number as usize, units: steps * step })
    }

    /// Pages of a run: the fewest that blocks of the class fill to the last unit (jemalloc's slabs).
    pub(super) fn run_pages(self) -> u64 {
        self.units / (1 << self.units.trailing_zeros().min(PAGE_UNITS.ilog2()))
    }

    /// Blocks in a run.
    pub(super) fn run_blocks(self) -> u64 {
        self.run_pages() * PAGE_UNITS / self.units
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_four_to_a_doubling() {
        let mut classes: Vec<Class> = (1..=MOST_UNITS).filter_map(Class::of).collect();
        assert!(classes.iter().zip(1..).all(|(class, units)| class.units >= units));
        classes.dedup();
        let units: Vec<u64> = classes.iter().map(|class| class.units).collect();
        let small = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40];
        assert_eq!(units[..17], small);
        assert_eq!(units[31..], [512, 640, 768, 896]);
        assert!(classes.iter().map(|class| class.number).eq(0..CLASSES));
        assert_eq!(Class::of(MOST_UNITS + 1), None);
    }

    #[test]
    fn rounding_adds_at_most_a_fifth() {
        for units in 5..=MOST_UNITS {
            let class = Class::of(units).unwrap();
            assert!(5 * (class.units - units) < class.units, "{units} in {class:?}");
        }
    }

    #[test]
    fn blocks_fill_their_runs() {
        for class in (1..=MOST_UNITS).filter_map(Class::of) {
            assert_eq!(class.run_blocks() * class.units, class.run_pages() * PAGE_UNITS);
            assert!((1..=7).contains(&class.run_pages()), "{class:?}");
        }
        let of = |units| Class::of(units).map(|class| (class.run_pages(), class.run_blocks()));
        assert_eq!(of(1), Some((1, 256)));
        assert_eq!(of(20), Some((5, 64)));
        assert_eq!(of(896), Some((7, 2)));
    }
}
