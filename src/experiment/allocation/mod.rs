//! Experiments on allocators: what is refused, what is left, and what a call takes.

mod allocator;
mod capacity;
mod classic;
mod factor;
mod failure;
mod latency;
mod perform;
mod plan;
mod steps;
mod suite;
mod window;

pub use allocator::Allocator;
pub use capacity::Freed;
pub use factor::Factor;
pub use plan::{AllocationPlan, Study};
pub(super) use suite::{plans, samples};
