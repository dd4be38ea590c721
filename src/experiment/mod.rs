//! A plan becomes groups, groups become records.

mod aids;
mod allocation;
mod arms;
mod bandwidth;
mod case;
mod cases;
mod fragments;
mod heap_cache;
mod heaps;
mod placements;
mod plan;
mod scene;
mod session;
mod suite;

pub use allocation::{AllocationPlan, Allocator, Factor, Freed, Study};
pub use case::{parse_case, parse_plan};
pub use cases::{Case, cases};
pub use plan::{MOVED, Plan, SAME, Subject};
pub use scene::{Heap, Part, Scene, Staged};
pub use session::Session;
pub use suite::{Suite, plans};
