//! A plan becomes groups, groups become records.

mod bandwidth;
mod plan;
mod session;
mod suite;

pub use plan::Plan;
pub use session::{Answer, Session};
pub use suite::{Suite, plans};
