//! What was measured: runs, groups, samples, selftests, and the journal that holds them.
//!
//! This module is the bottom of the crate: it depends on nothing else here. It stores observations
//! only; whatever can be derived from them (medians, ratios, intervals, flags) is derived by
//! [`crate::summary`].

mod allocation;
mod clock;
mod condition;
mod coverage;
mod entry;
mod group;
mod heap;
pub mod journal;
mod open_enum;
mod refined;
mod run;
mod selftest;
mod sentinel;
pub mod size;

pub use allocation::{Allocation, Calls, MemoryKind, Quantity, State, Subsets};
pub use clock::ClockTest;
pub use condition::{Condition, Health};
pub use coverage::{Coverage, IntervalKind, Noise};
pub use entry::Entry;
pub use group::{
    Arm, Check, CheckKind, Clocks, Duels, Experiment, Group, KernelName, LayoutFacts, Lost,
    Mapping, Mechanism, Order, PatternName, Phases, Placement, Samples, Status, StopReason, When,
};
pub use heap::HeapFacts;
pub use refined::Refined;
pub use run::{
    ComputeMode, DeviceFacts, DeviceKind, HostFacts, Run, SCHEMA, Selection, Virtualization,
};
pub use selftest::{Fault, FaultKind, Selftest};
pub use sentinel::{Attempt, Reading, Sentinel};
