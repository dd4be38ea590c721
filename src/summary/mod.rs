//! From records to rows: the only place where medians, ratios, intervals and flags are derived.
//!
//! [`rows`] turns the groups of a run into the rows of the summary table, one per case and metric.
//! [`brackets`] reads from those rows above which fragment size a share of the packed bandwidth
//! stays, and [`Times`] tells where the time went. Everything here is a pure function of what the journal holds.

mod access;
mod allocation;
mod backings;
mod between;
mod bracket;
mod ceiling;
mod compaction;
mod dropped;
#[cfg(test)]
pub(crate) mod fixture;
mod flag;
mod flat;
mod group_flags;
mod metric;
mod mitigations;
mod reach;
mod row;
mod rows;
mod same;
mod sample;
mod source;
#[cfg(test)]
mod tests;
mod times;
mod trust;
mod variants;

pub use allocation::{Histogram, LENGTHS, OWNERS, TRIES};
pub use bracket::{Bracket, BracketKey, Outcome, brackets};
pub use flag::Flag;
pub use metric::Metric;
pub use row::{COLUMNS, Figure, Row};
pub use rows::{Summary, rows, run_id};
pub use times::Times;
pub use trust::{CLOCKS_AGREE, ClockFigures, SameCount, count_same};
