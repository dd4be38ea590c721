//! A plan becomes groups, groups become records.

mod aids;
mod arms;
mod bandwidth;
mod case;
mod fragments;
mod heap_cache;
mod heaps;
mod placements;
mod plan;
mod scene;
mod session;
mod suite;

pub use case::parse_case;
pub use plan::{MOVED, Plan, SAME, Subject};
pub use scene::{Heap, Part, Scene, Staged};
pub use session::Session;
pub use suite::{Suite, plans};
