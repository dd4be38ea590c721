//! fragbench measures what GPU memory fragmentation costs.
//!
//! Modules, each of which knows only those above it: [`record`] (what was measured), `stats`,
//! `layout`, `device`, `kernel`, `measure`, `experiment`, `summary`, `report`, `cli`.

#![deny(unsafe_code)]

pub mod layout;
pub mod record;
pub mod stats;
