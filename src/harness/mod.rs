//! The fragmentation harness: it ages an allocation policy into a named state, and turns live blocks
//! or holes into layouts.
//!
//! A [`Recipe`] names a [`Distribution`] of sizes and lifetimes, a heap, its occupancy and the
//! [level](Recipe::level_bytes) wanted; [`age`] runs that program on a policy and tells what it came
//! to. A [`Preset`] is a situation that a reader may be in, with the fragments that it visits.

mod age;
mod aged;
mod churn;
mod distribution;
mod error;
mod lives;
pub mod metrics;
mod names;
mod preset;
mod program;
mod recipe;
#[cfg(test)]
mod tests;

pub use age::age;
pub use aged::{Aged, holes_layout, live_layout};
pub use distribution::{Band, Class, Distribution, Lifetime, MAX_SCALE_SHIFT};
pub use error::HarnessError;
pub use preset::{Embedding, KvCache, NullMask, Optimizer, Preset, PresetError, Situation};
pub use recipe::{
    LEAST_HEAP_BYTES, LEVELS_BYTES, LIMIT_OPERATIONS, LIVE_BLOCKS, Reached, Recipe, Scale, Stop,
};
