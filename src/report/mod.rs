//! Rows into bytes and text. Pure functions; nothing here reads, writes or measures.
//!
//! [`csv()`] and [`json`] write the whole table for programs, [`markdown`] a page for people,
//! [`answer`] and [`table`] what a run shows on a terminal. Strings of rows come from files and are
//! never trusted: control characters are spelled out wherever a person reads.

mod answer;
mod case;
mod causes;
mod escape;
mod export;
mod grid;
mod markdown;
mod provenance;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod threshold;

pub use answer::answer;
pub use export::{csv, json};
pub use markdown::markdown;
pub use table::table;
