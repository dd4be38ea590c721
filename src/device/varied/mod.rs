//! The kernels for fragments of varying length: their names, and their launches.

mod entry;
mod launch;

pub use entry::{VariedEntry, VariedMover};
pub use launch::{VariedShape, VariedSpans};
