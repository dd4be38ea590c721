//! An aged heap, and the layouts that lie in it.

use super::churn::Churn;
use super::program::Live;
use super::{HarnessError, Reached, Recipe};
use crate::layout::{Extents, Fragment, LEAST_UNIT_BYTES, UNIT_BYTES};
use crate::policy::{Hole, HoleOrder};

/// A heap that a program has used for a while: where its blocks lie, and where its holes.
///
/// Offsets count from the lowest address of a block or hole.
#[derive(Clone, Debug)]
pub struct Aged {
    policy: &'static str,
    recipe: Recipe,
    reached: Reached,
    unit_bytes: u64,
    footprint_bytes: u64,
    live: Vec<Fragment>,
    holes_by_address: Vec<Fragment>,
    holes_by_list: Vec<Fragment>,
}

impl Aged {
    pub(super) fn new(churn: Churn<'_>, recipe: Recipe, reached: Reached) -> Self {
        let policy = churn.policy();
        let name = policy.name();
        let unit_bytes = policy.alignment_bytes().clamp(LEAST_UNIT_BYTES, UNIT_BYTES);
        let [by_address, by_list] =
            [HoleOrder::Address, HoleOrder::FreeList].map(|order| policy.holes(order));
        let live = churn.into_live();
        let blocks = live.iter().map(|live| (live.address, live.requested_bytes));
        let ranges = blocks.chain(by_address.iter().map(|hole| (hole.address, hole.bytes)));
        let (base, end) = ranges.fold((u64::MAX, 0), |(base, end), (address, bytes)| {
            (base.min(address), end.max(address + bytes.next_multiple_of(unit_bytes)))
        });
        let block = |live: &Live| Fragment {
            offset: live.address - base,
            bytes: live.requested_bytes.next_multiple_of(unit_bytes),
        };
        let hole = |hole: &Hole| Fragment { offset: hole.address - base, bytes: hole.bytes };
        Self {
            policy: name,
            recipe,
            reached,
            unit_bytes,
            footprint_bytes: end.saturating_sub(base),
            live: live.iter().map(block).collect(),
            holes_by_address: by_address.iter().map(hole).collect(),
            holes_by_list: by_list.iter().map(hole).collect(),
        }
    }

    /// The policy's name.
    pub fn policy(&self) -> &'static str {
        self.policy
    }

    /// What was asked for.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// What it came to.
    pub fn reached(&self) -> &Reached {
        &self.reached
    }

    /// What offsets and lengths of layouts are multiples of: 16 B where the policy aligns to that,
    /// else its alignment, at least 4 B.
    pub fn unit_bytes(&self) -> u64 {
        self.unit_bytes
    }

    /// From the lowest to the highest address of a block or hole, in bytes. Regions that are no
    /// neighbours make it longer than the heap.
    pub fn footprint_bytes(&self) -> u64 {
        self.footprint_bytes
    }

    /// Live blocks in the order in which they were made: what was requested of each, rounded up to
    /// whole units, so that loads stay wide. The blocks themselves are no shorter.
    pub fn live(&self) -> &[Fragment] {
        &self.live
    }

    /// Holes of the policy, whole.
    pub fn holes(&self, order: HoleOrder) -> &[Fragment] {
        match order {
            HoleOrder::Address => &self.holes_by_address,
            HoleOrder::FreeList => &self.holes_by_list,
        }
    }
}

/// The layout of all live blocks, each whole, in the order in which they were made: as the program
/// that made them would go through its own table of them.
///
/// # Errors
///
/// [`HarnessError::Layout`] where the policy has handed out what is no layout.
pub fn live_layout(aged: &Aged) -> Result<Extents, HarnessError> {
    Ok(Extents::new(aged.live.clone(), aged.footprint_bytes)?)
}

/// The layout of a payload that lies in the holes: each hole filled with whole units, one after the
/// other in this order, until the payload ends.
///
/// # Errors
///
/// [`HarnessError::UnevenPayload`] or [`HarnessError::HolesTooSmall`].
pub fn holes_layout(
    aged: &Aged,
    payload_bytes: u64,
    order: HoleOrder,
) -> Result<Extents, HarnessError> {
    let unit_bytes = aged.unit_bytes;
    if payload_bytes == 0 || !payload_bytes.is_multiple_of(unit_bytes) {
        return Err(HarnessError::UnevenPayload { payload_bytes, unit_bytes });
    }
    let whole = |hole: &Fragment| hole.bytes - hole.bytes % unit_bytes;
    let mut left = payload_bytes;
    let filled = aged.holes(order).iter().map_while(|hole| {
        let bytes = whole(hole).min(left);
        let more = left > 0;
        left -= bytes;
        more.then_some(Fragment { offset: hole.offset, bytes })
    });
    let fragments: Vec<Fragment> = filled.filter(|fragment| fragment.bytes > 0).collect();
    if left > 0 {
        let held_bytes = payload_bytes - left;
        return Err(HarnessError::HolesTooSmall { policy: aged.policy, payload_bytes, held_bytes });
    }
    Ok(Extents::new(fragments, aged.footprint_bytes)?)
}
