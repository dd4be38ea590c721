//! Lowered clocks: which rounds they spoil, and the pauses that let them rise again.

use std::time::Duration;

use crate::record::Samples;
use crate::stats;

/// NVML's reasons that spoil a round: hardware slowdown (0x8), software thermal slowdown (0x20),
/// hardware thermal slowdown (0x40), hardware power brake (0x80) (`nvmlClocksThrottleReasons*` in
/// nvml.h). The software power cap (0x4) is not among them: many units run at it all the time.
pub const SPOILING_REASONS: u64 = 0x8 | 0x20 | 0x40 | 0x80;

/// Below this share of a usual clock, a clock is low.
pub const LOWEST_CLOCK: f64 = 0.9;

/// Pauses after slow rounds, in which nothing is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// The length of each.
    pub length: Duration,
    /// The most of them in one group, voided attempts and all placements included.
    pub most: u32,
}

impl Default for Pauses {
    /// A power cap holds an average down, which sinks below the cap while nothing runs: 50 ms is
    /// several rounds' worth of work, and was chosen, not measured. All of them take half a second.
    fn default() -> Pauses {
        Pauses { length: Duration::from_millis(50), most: 10 }
    }
}

/// Which clocks are low, by what each arm had in the pilot. Not by what the device can do: an arm that
/// itself draws all the power that a unit allows has a lower clock than others in every round.
#[derive(Clone, Debug, Default)]
pub(super) struct Floors {
    /// By arm; none where no clock of it is known: then none is low.
    khz: Vec<Option<f64>>,
}

impl Floors {
    pub fn under(arms: &[Samples]) -> Floors {
        let floor = |samples: &Samples| {
            let known = samples.sm_khz.iter().flatten().map(|khz| f64::from(*khz));
            stats::median(&known.collect::<Vec<_>>()).map(|median| LOWEST_CLOCK * median)
        };
        Floors { khz: arms.iter().map(floor).collect() }
    }

    /// Whether a round in which the arms had these clocks, with NVML's reasons after it, is slow.
    pub fn is_slow(
        &self,
        clocks: impl IntoIterator<Item = Option<u32>>,
        reasons: Option<u64>,
    ) -> bool {
        let is_low = |(khz, floor): (Option<u32>, &Option<f64>)| {
            khz.zip(*floor).is_some_and(|(khz, floor)| f64::from(khz) < floor)
        };
        clocks.into_iter().zip(&self.khz).any(is_low)
            || reasons.unwrap_or(0) & SPOILING_REASONS != 0
    }
}
