//! What the tests of policies share.

use super::{Growth, Hole, Params, Placement, SimulatedSource};

/// 1 MiB of memory in pages of 4 KiB at neighbouring addresses.
pub(super) fn arena() -> SimulatedSource {
    SimulatedSource::new(1 << 20, 4096, Placement::Contiguous).expect("sizes are powers of two")
}

pub(super) fn addresses(holes: &[Hole]) -> Vec<u64> {
    holes.iter().map(|hole| hole.address).collect()
}

/// All of the memory at once.
pub(super) fn whole() -> Params {
    Params::default().with_growth(Growth::Whole)
}
