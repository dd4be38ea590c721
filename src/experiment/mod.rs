//! A plan becomes groups, groups become records.

mod aids;
mod arms;
mod bandwidth;
mod case;
mod placements;
mod plan;
mod session;
mod suite;

pub use case::parse_case;
pub use plan::{Plan, Subject};
pub use session::{Answer, Session};
pub use suite::{Suite, plans};
