//! Named distributions of sizes and lifetimes: what programs ask allocators for.

mod class;
mod sampler;
mod tables;

pub use class::{Band, Class, Lifetime};
pub(super) use sampler::Sampler;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::HarnessError;
use super::names::{list, perhaps};
use crate::layout::{LEAST_UNIT_BYTES, UNIT_BYTES};

/// The most that sizes are shifted by, either way: far beyond what any heap calls for.
pub const MAX_SCALE_SHIFT: i32 = 20;

/// A distribution of sizes and lifetimes.
///
/// Sizes stand for models and tables of a common size. To suit heaps of any size they are *scaled*:
/// divided by 2 to the power of a shift (multiplied where it is negative), rounded up to grains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Distribution {
    /// A training step of a transformer: lasting parameters, activations freed in reverse.
    TrainingStep,
    /// A language model's server: KV blocks of one size, a request's freed together.
    InferenceKv,
    /// Columns of data frames: values of 4 and 8 B, masks, strings.
    DataFrames,
    /// Every size from 16 B to 1 MiB as often.
    Uniform,
    /// A log-normal distribution with a median of 32 KiB.
    LogNormal,
    /// A power law: as many bytes in each octave from 256 B to 16 MiB.
    PowerLaw,
}

impl Distribution {
    /// Every distribution.
    pub const ALL: [Distribution; 6] = [
        Distribution::TrainingStep,
        Distribution::InferenceKv,
        Distribution::DataFrames,
        Distribution::Uniform,
        Distribution::LogNormal,
        Distribution::PowerLaw,
    ];

    /// The name in cases and tables: `training_step`.
    pub fn name(self) -> &'static str {
        match self {
            Distribution::TrainingStep => "training_step",
            Distribution::InferenceKv => "inference_kv",
            Distribution::DataFrames => "data_frames",
            Distribution::Uniform => "uniform",
            Distribution::LogNormal => "log_normal",
            Distribution::PowerLaw => "power_law",
        }
    }

    /// What it stands for, for reports.
    pub fn words(self) -> &'static str {
        match self {
            Distribution::TrainingStep => {
                "a transformer's training step: many small parameters and few big ones, activations \
                 freed in reverse order"
            }
            Distribution::InferenceKv => {
                "a language model's server: KV blocks of one size, freed by request, among \
                 short-lived buffers"
            }
            Distribution::DataFrames => {
                "data frames: columns of 4 and 8 B values, masks and strings of batches of 1 Ki to \
                 4 Mi rows"
            }
            Distribution::Uniform => "sizes of which each is as likely",
            Distribution::LogNormal => "sizes of a log-normal distribution, two octaves wide",
            Distribution::PowerLaw => "sizes of a power law, as many bytes in each octave",
        }
    }

    /// Its classes, unscaled.
    pub fn classes(self) -> &'static [Class] {
        match self {
            Distribution::TrainingStep => tables::TRAINING_STEP,
            Distribution::InferenceKv => tables::INFERENCE_KV,
            Distribution::DataFrames => tables::DATA_FRAMES,
            Distribution::Uniform => tables::UNIFORM,
            Distribution::LogNormal => tables::LOG_NORMAL,
            Distribution::PowerLaw => tables::POWER_LAW,
        }
    }

    /// What every size is a multiple of, in bytes: the narrowest value of data frames, else a unit.
    pub fn grain_bytes(self) -> u64 {
        match self {
            Distribution::DataFrames => LEAST_UNIT_BYTES,
            _ => UNIT_BYTES,
        }
    }

    /// Its largest size in bytes, scaled.
    pub fn largest_bytes(self, scale_shift: i32) -> u64 {
        let bands = self.classes().iter().flat_map(|class| class.bands);
        let most = bands.map(|band| band.most_bytes).max().unwrap_or(0);
        scaled(most, scale_shift, self.grain_bytes())
    }

    /// About the size, unscaled, up to which blocks hold half of all live bytes.
    pub fn typical_bytes(self) -> u64 {
        // Parts of a million of all live bytes.
        let parts = |class: &Class, band: &Band| {
            let within = u128::from(band.weight * band.middle_bytes()) * 10_000;
            class.live_percent * (within / u128::from(class.weighted_bytes())) as u64
        };
        let mut bands: Vec<(u64, u64)> = (self.classes().iter())
            .flat_map(|class| class.bands.iter().map(move |band| (band, parts(class, band))))
            .map(|(band, parts)| (band.middle_bytes(), parts))
            .collect();
        bands.sort_unstable();
        let half = bands.iter().map(|(_, parts)| parts).sum::<u64>() / 2;
        let mut before = 0;
        let holds_half = |(_, parts): &&(u64, u64)| {
            before += parts;
            before >= half
        };
        bands.iter().find(holds_half).map_or(0, |(middle_bytes, _)| *middle_bytes)
    }

    /// About how many live blocks hold so many bytes.
    pub fn expected_blocks(self, live_bytes: u64, scale_shift: i32) -> u64 {
        let blocks = |class: &Class| {
            let share_bytes = live_bytes / 100 * class.live_percent;
            share_bytes / scaled(class.mean_bytes(), scale_shift, self.grain_bytes())
        };
        self.classes().iter().map(blocks).sum()
    }

    /// The least shift, not below 0, with which `live_bytes` hold at least `blocks` blocks; or the
    /// largest that leaves them `least_mean_bytes` on average.
    pub fn shift_for_blocks(self, live_bytes: u64, blocks: u64, least_mean_bytes: u64) -> i32 {
        let most = self.most_shift(live_bytes, least_mean_bytes).max(0);
        let is_enough = |shift: &i32| self.expected_blocks(live_bytes, *shift) >= blocks;
        (0..most).find(is_enough).unwrap_or(most)
    }

    /// The shift that brings the [typical](Self::typical_bytes) size between `bytes` and twice as
    /// much; or the largest that leaves blocks `least_mean_bytes` on average.
    pub fn shift_for_typical(self, bytes: u64, live_bytes: u64, least_mean_bytes: u64) -> i32 {
        let log = |bytes: u64| bytes.max(1).ilog2() as i32;
        let shift = log(self.typical_bytes()) - log(bytes);
        let least = -MAX_SCALE_SHIFT;
        shift.clamp(least, self.most_shift(live_bytes, least_mean_bytes))
    }

    /// The largest shift with which a block has `least_mean_bytes` on average.
    fn most_shift(self, live_bytes: u64, least_mean_bytes: u64) -> i32 {
        let is_wide = |shift: &i32| {
            live_bytes / self.expected_blocks(live_bytes, *shift).max(1) >= least_mean_bytes
        };
        (-MAX_SCALE_SHIFT..=MAX_SCALE_SHIFT).rev().find(is_wide).unwrap_or(-MAX_SCALE_SHIFT)
    }
}

/// A size by 2^shift, rounded up to a whole grain.
#[inline]
fn scaled(bytes: u64, shift: i32, grain_bytes: u64) -> u64 {
    let bytes = if shift < 0 { bytes << -shift } else { bytes >> shift };
    bytes.max(1).next_multiple_of(grain_bytes)
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Distribution {
    type Err = HarnessError;

    fn from_str(text: &str) -> Result<Self, HarnessError> {
        let names = || Distribution::ALL.into_iter().map(Distribution::name);
        Distribution::ALL.into_iter().find(|known| known.name() == text).ok_or_else(|| {
            HarnessError::UnknownDistribution {
                text: text.to_owned(),
                perhaps: perhaps(text, names()),
                known: list(names()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for distribution in Distribution::ALL {
            assert_eq!(distribution.to_string().parse(), Ok(distribution));
        }
        let error = "lognormal".parse::<Distribution>().unwrap_err().to_string();
        assert!(error.contains("`lognormal`, perhaps log_normal: there are"), "{error}");
        assert!(error.contains("training_step, inference_kv, data_frames"), "{error}");
    }

    #[test]
    fn tables_are_whole() {
        for distribution in Distribution::ALL {
            let classes = distribution.classes();
            let percent: u64 = classes.iter().map(|class| class.live_percent).sum();
            assert_eq!(percent, 100, "{distribution}");
            for class in classes {
                assert!(class.draws > 0 && class.weight() > 0, "{distribution}");
                for band in class.bands {
                    let grain = distribution.grain_bytes();
                    assert!(0 < band.least_bytes && band.least_bytes <= band.most_bytes);
                    assert!(band.least_bytes.is_multiple_of(grain), "{distribution}");
                    assert!(band.most_bytes.is_multiple_of(grain), "{distribution}");
                }
            }
        }
    }

    #[test]
    fn the_log_normal_table_is_the_normal_distribution_over_octaves() {
        let normal = Normal::new(15.0, 2.0).unwrap();
        let [class] = tables::LOG_NORMAL else { panic!("one class") };
        let within = normal.cdf(22.0) - normal.cdf(8.0);
        for band in class.bands {
            let octave = f64::from(band.least_bytes.ilog2());
            let share = (normal.cdf(octave + 1.0) - normal.cdf(octave)) / within;
            let weight = band.weight as f64 / class.weight() as f64;
            assert!((share - weight).abs() < 2e-5, "{band:?}: {share}");
        }
    }

    #[test]
    fn octaves_of_the_power_law_hold_as_many_bytes() {
        let [class] = tables::POWER_LAW else { panic!("one class") };
        let bytes = |band: &Band| band.weight * band.least_bytes;
        assert!(class.bands.iter().all(|band| bytes(band) == bytes(&class.bands[0])));
    }

    #[test]
    fn buffers_of_data_frames_add_up_by_octave() {
        // Octaves of a column of 2^k rows: 4n, 8n, n/8 and 16n bytes, weights as documented.
        let mut octaves = [0; 27];
        for rows in 10..22 {
            for (shift, weight) in [(2, 40), (3, 35), (-3, 15), (4, 10)] {
                octaves[(rows + shift) as usize] += weight;
            }
        }
        let [class] = tables::DATA_FRAMES else { panic!("one class") };
        for band in class.bands {
            let range = band.least_bytes.ilog2() as usize..band.most_bytes.ilog2() as usize;
            assert_eq!(band.weight, octaves[range].iter().sum::<u64>(), "{band:?}");
        }
        assert_eq!(class.weight(), octaves.iter().sum::<u64>());
    }

    #[test]
    fn sizes_are_scaled_until_a_heap_holds_enough_blocks() {
        for distribution in Distribution::ALL {
            for live_bytes in [256 << 20, 2 << 30, 64 << 30u64] {
                let shift = distribution.shift_for_blocks(live_bytes, 100_000, 1024);
                let blocks = distribution.expected_blocks(live_bytes, shift);
                assert!(blocks >= 100_000, "{distribution} {live_bytes}: {blocks}");
                let larger = distribution.expected_blocks(live_bytes, shift - 1);
                assert!(shift == 0 || larger < 100_000, "{distribution}: {larger}");
            }
            // Sizes do not fall to nothing where a heap is small.
            let shift = distribution.shift_for_blocks(1 << 20, 100_000, 1024);
            assert!((1 << 20) / distribution.expected_blocks(1 << 20, shift) >= 1024);
        }
        assert_eq!(Distribution::LogNormal.shift_for_blocks(512 << 30, 100_000, 1024), 0);
        assert_eq!([4, 0, -4].map(|shift| scaled(0x1234, shift, 16)), [0x130, 0x1240, 0x12340]);
        assert_eq!(scaled(16, 20, 4), 4);
    }

    #[test]
    fn typical_sizes_hold_half_of_the_bytes() {
        // Of a log-normal distribution e^(s^2) medians, s = 2 ln 2: 218 KiB, in the octave from 128.
        assert_eq!(Distribution::LogNormal.typical_bytes(), 192 << 10);
        assert_eq!(Distribution::PowerLaw.typical_bytes(), (32 << 10) * 3 / 2);
        for distribution in Distribution::ALL {
            for bytes in [4 << 10, 64 << 10, 2 << 20] {
                let shift = distribution.shift_for_typical(bytes, 64 << 30, 1024);
                let typical = scaled(distribution.typical_bytes(), shift, 16);
                // Small blocks may keep large ones from being made smaller.
                let is_least = distribution.most_shift(64 << 30, 1024) == shift;
                assert!(
                    (bytes..2 * bytes).contains(&typical) || is_least,
                    "{distribution} {typical}"
                );
            }
        }
    }
}
