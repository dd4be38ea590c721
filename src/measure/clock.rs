//! Lowered clocks: which rounds they spoil, and the pauses that let them rise again.

use std::time::Duration;

use crate::record::Reading;

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
    /// several rounds' worth of work, and was chosen, not measured. All of them take a second.
    fn default() -> Pauses {
        Pauses { length: Duration::from_millis(50), most: 20 }
    }
}

/// Which clocks are low on a device that has settled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Floor {
    /// None where the settled clock is not known: then no clock is low.
    khz: Option<f64>,
}

impl Floor {
    pub fn under(settled: Option<Reading>) -> Floor {
        let khz = settled.and_then(|reading| reading.sm_khz);
        Floor { khz: khz.map(|khz| LOWEST_CLOCK * f64::from(khz)) }
    }

    /// Whether a round with these clocks and NVML's reasons after it is slow.
    pub fn is_slow(&self, clocks: impl IntoIterator<Item = u32>, reasons: Option<u64>) -> bool {
        let is_low = |khz: u32| self.khz.is_some_and(|floor| f64::from(khz) < floor);
        clocks.into_iter().any(is_low) || reasons.unwrap_or(0) & SPOILING_REASONS != 0
    }
}
