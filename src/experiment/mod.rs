//! A plan becomes groups, groups become records.

mod aids;
mod allocation;
mod arena;
mod arms;
mod backing;
mod bandwidth;
mod case;
mod cases;
mod fragments;
mod heap_cache;
mod heaps;
mod mitigations;
mod placements;
mod plan;
mod scatter;
mod scene;
mod session;
mod suite;
mod tlb;
mod translated;

pub use allocation::{AllocationPlan, Allocator, Factor, Freed, Study};
pub use backing::{Backing, Chunked};
pub use case::{parse_case, parse_plan};
pub use cases::{Case, cases};
pub use plan::{BACKINGS, COMPACTION, MITIGATIONS, MOVED, Plan, SAME, Subject};
pub use scene::{Heap, Part, Scene, Staged};
pub use session::Session;
pub use suite::{Suite, plans};
pub use tlb::tlb_groups;
