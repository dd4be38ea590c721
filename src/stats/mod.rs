//! Pure functions on samples: quantiles, their intervals, whether rounds depend on each other, and
//! how many rounds an interval needs.
//!
//! Nothing here assumes a distribution. A function that has no answer for what it was given says
//! `None`; no function returns a NaN.

mod autocorrelation;
mod between;
mod bootstrap;
mod interval;
mod modes;
mod quantile;
mod random;
mod reach;
mod rounds;
mod sharing;
pub(crate) mod simulate;

pub use autocorrelation::is_autocorrelated;
pub use between::between_interval;
pub use bootstrap::block_median_interval;
pub use interval::{Interval, median_interval, quantile_interval};
pub use modes::modes;
pub use quantile::{median, quantile};
pub use reach::{Footprint, NoReach, Reach, reach};
pub use rounds::{CONFIDENCE, rounds_for};
pub use sharing::{Sharing, Trials, sharing};
