//! Random classes and sizes of a distribution.

use super::{Class, Distribution, scaled};
use crate::layout::{below, draw};

/// Draws from a distribution: the n-th number of a key, so that a key gives the same everywhere.
#[derive(Clone, Debug)]
pub(in crate::harness) struct Sampler {
    key: u64,
    drawn: u64,
    grain_bytes: u64,
    scale_shift: i32,
    classes: Vec<Table>,
}

#[derive(Clone, Debug)]
struct Table {
    class: &'static Class,
    /// Weights of all bands up to each.
    upto: Vec<u64>,
}

impl Sampler {
    pub(in crate::harness) fn new(distribution: Distribution, scale_shift: i32, key: u64) -> Self {
        let classes = distribution.classes();
        let table = |class: &'static Class| Table {
            class,
            upto: running(class.bands.iter().map(|band| band.weight)),
        };
        Self {
            key,
            drawn: 0,
            grain_bytes: distribution.grain_bytes(),
            scale_shift,
            classes: classes.iter().map(table).collect(),
        }
    }

    /// A random number below `bound`.
    #[inline]
    pub(in crate::harness) fn below(&mut self, bound: u64) -> u64 {
        let random = draw(self.key, self.drawn);
        self.drawn += 1;
        below(random, bound)
    }

    /// Running sums of the draws of those classes that `is_open` lets through.
    pub(in crate::harness) fn draws(&self, is_open: impl Fn(usize, &Class) -> bool) -> Vec<u64> {
        let open = |(number, table): (usize, &Table)| {
            if is_open(number, table.class) { table.class.draws } else { 0 }
        };
        running(self.classes.iter().enumerate().map(open))
    }

    /// A class, as often as its [draws](Sampler::draws) say; none where they are all 0.
    #[inline]
    pub(in crate::harness) fn class(&mut self, draws: &[u64]) -> Option<usize> {
        let total = draws.last().copied().filter(|&total| total > 0)?;
        let random = self.below(total);
        Some(position(draws, random))
    }

    /// A size of a class, in bytes.
    #[inline]
    pub(in crate::harness) fn size(&mut self, class: usize) -> u64 {
        let total = self.classes[class].upto.last().copied().unwrap_or(0);
        let weight = self.below(total);
        let random = draw(self.key, self.drawn);
        self.drawn += 1;
        let table = &self.classes[class];
        let band = &table.class.bands[position(&table.upto, weight)];
        scaled(band.size(random, self.grain_bytes), self.scale_shift, self.grain_bytes)
    }
}

/// Running sums.
fn running(weights: impl Iterator<Item = u64>) -> Vec<u64> {
    let add = |sum: &mut u64, weight: u64| {
        *sum += weight;
        Some(*sum)
    };
    weights.scan(0, add).collect()
}

/// The first part that reaches beyond a number.
#[inline]
fn position(upto: &[u64], number: u64) -> usize {
    upto.partition_point(|&sum| sum <= number)
}

#[cfg(test)]
mod tests {
    use super::super::{Band, Lifetime};
    use super::*;
    use crate::layout::mix;

    #[test]
    fn bands_come_as_often_as_their_weights_say() {
        for distribution in Distribution::ALL {
            let mut sampler = Sampler::new(distribution, 0, 7);
            for (number, class) in distribution.classes().iter().enumerate() {
                let draws = 100_000;
                let sizes: Vec<u64> = (0..draws).map(|_| sampler.size(number)).collect();
                let mean = sizes.iter().sum::<u64>() / draws;
                let expected = class.mean_bytes();
                // Heavy tails: some percent off.
                assert!(
                    mean.abs_diff(expected) < expected / 8,
                    "{distribution}: {mean} {expected}"
                );
                for size in sizes {
                    let holds = |band: &Band| band.least_bytes <= size && size <= band.most_bytes;
                    assert!(class.bands.iter().any(holds), "{distribution}: {size}");
                    assert!(size.is_multiple_of(distribution.grain_bytes()));
                }
            }
        }
    }

    #[test]
    fn classes_come_as_often_as_their_draws_say() {
        let mut sampler = Sampler::new(Distribution::TrainingStep, 0, 3);
        let draws = sampler.draws(|_, class| class.lifetime != Lifetime::Lasting);
        let mut seen = [0u64; 4];
        (0..75_000).for_each(|_| seen[sampler.class(&draws).unwrap()] += 1);
        // Draws of 30, 20 and 25; nothing that lasts.
        for (count, expected) in seen.into_iter().zip([0u64, 30_000, 20_000, 25_000]) {
            assert!(expected.abs_diff(count) < 1_000, "{seen:?}");
        }
        let first = sampler.draws(|number, _| number == 0);
        assert!((0..100).all(|_| sampler.class(&first) == Some(0)));
        let none = sampler.draws(|_, _| false);
        assert_eq!(sampler.class(&none), None);
    }

    #[test]
    fn the_same_key_draws_the_same_everywhere() {
        // Also what the same arithmetic gives elsewhere, in Python's unbounded integers.
        let golden = [
            (Distribution::TrainingStep, 11_718_259_443_938_444_235),
            (Distribution::InferenceKv, 2_439_757_097_358_271_892),
            (Distribution::DataFrames, 2_284_806_086_743_735_929),
            (Distribution::Uniform, 7_231_828_379_239_725_206),
            (Distribution::LogNormal, 8_021_340_472_117_385_095),
            (Distribution::PowerLaw, 8_051_262_432_608_922_599),
        ];
        let hash = |distribution| {
            let mut sampler = Sampler::new(distribution, 3, 42);
            let all = sampler.draws(|_, _| true);
            (0..1000).fold(0, |hash, _| {
                let class = sampler.class(&all).unwrap();
                mix(hash ^ sampler.size(class))
            })
        };
        assert_eq!(golden.map(|(distribution, _)| (distribution, hash(distribution))), golden);
    }
}
