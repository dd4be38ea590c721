//! Rows into bytes and text. Pure functions; nothing here reads, writes or measures.
//!
//! [`csv()`] and [`json`] write the whole table for programs, [`markdown`] a page for people,
//! [`answer`], [`plot`] and [`table`] what a run shows on a terminal; [`selftest_table`] and
//! [`selftest_page`] do so for a selftest. Strings of rows come from files and are
//! never trusted: control characters are spelled out wherever a person reads.

mod allocators;
mod answer;
mod case;
mod causes;
mod distributions;
mod escape;
mod export;
mod grid;
mod heaps;
mod markdown;
mod plot;
mod provenance;
mod scatter;
mod selftest;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod threshold;
mod trust;

pub use answer::answer;
pub use export::{csv, json};
pub use markdown::markdown;
pub use plot::plot;
pub use selftest::{selftest_page, selftest_table};
pub use table::table;
pub use trust::{
    clock_complaint, clock_page, clock_text, coverage_page, coverage_table, same_page, same_table,
};
