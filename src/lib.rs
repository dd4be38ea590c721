//! fragbench measures what GPU memory fragmentation costs.
//!
//! Modules, each of which knows only those above it: [`record`] (what was measured), [`stats`],
//! [`layout`], [`policy`], [`harness`], [`device`], [`kernel`], [`selftest`], [`measure`],
//! [`experiment`], [`summary`], [`report`], [`cli`].

#![deny(unsafe_code)]

pub mod cli;
pub mod device;
pub mod experiment;
pub mod harness;
pub mod kernel;
pub mod layout;
pub mod measure;
pub mod policy;
pub mod record;
pub mod report;
pub mod selftest;
pub mod stats;
pub mod summary;
