//! How a number comes about: the order of a sample, rounds, the memory that may be taken, and the
//! worker process that all of it happens in.

pub mod limit;
mod rounds;
pub mod worker;

pub use rounds::{Budget, Measured, Ratio, measure};
