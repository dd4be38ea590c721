//! How a number comes about: the order of a sample, rounds, the memory that may be taken, and the
//! worker process that all of it happens in.

mod cache;
mod clock;
mod conduct;
pub mod doctor;
pub mod limit;
mod rounds;
mod sentinel;
#[cfg(test)]
mod tests;
pub mod worker;

pub use cache::{CACHE_MULTIPLE, eviction_bytes, known_l2_bytes};
pub use clock::{LOWEST_CLOCK, Pauses, SPOILING_REASONS};
pub use conduct::{Budget, Conduct, Count, Measured, Steady, measure};
pub use rounds::{Quota, Ratio};
pub use sentinel::{Rest, SENTINEL_BYTES, Watch, has_drifted};
