//! Pure functions on samples: quantiles, their intervals, and how many rounds an interval needs.
//!
//! Nothing here assumes a distribution. A function that has no answer for what it was given says
//! `None`; no function returns a NaN.

mod interval;
mod quantile;
mod rounds;
#[cfg(test)]
mod simulate;

pub use interval::{Interval, median_interval, quantile_interval};
pub use quantile::{median, quantile};
pub use rounds::{CONFIDENCE, rounds_for};
