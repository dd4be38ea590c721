//! What first fit, best fit and next fit have in common: all but the search.

use super::blocks::{Blocks, Free, Merged};
use super::{
    Block, Growth, Hole, HoleOrder, Params, ParamsError, Policy, PolicyError, Source, Usage,
};

/// Which hole a request gets.
pub trait Search: Default + Send {
    /// Name of the policy that searches so.
    const NAME: &'static str;

    /// A new hole.
    fn add(&mut self, hole: Free);

    /// A hole is gone.
    fn remove(&mut self, hole: Free);

    /// A hole has grown, or lost its first bytes. Its place among the holes by address stays.
    fn change(&mut self, from: Free, to: Free);

    /// The hole for a request of `bytes` bytes, which gets its first bytes.
    fn find(&mut self, bytes: u64) -> Option<Free>;

    /// Every hole, in the order in which the search would meet them.
    fn in_order(&self) -> Vec<Hole>;
}

/// A policy that takes a block from the front of a hole, and merges a freed block with the holes
/// beside it at once, also across regions where these are neighbours in address.
pub struct Coalescing<S, F> {
    source: S,
    growth: Growth,
    alignment_bytes: u64,
    /// What sizes are rounded up to: the alignment, unless a policy hands out pages.
    unit_bytes: u64,
    blocks: Blocks,
    search: F,
    usage: Usage,
}

impl<S: Source, F: Search> Coalescing<S, F> {
    /// A policy that holds nothing yet.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] says which parameter cannot be.
    pub fn new(source: S, params: &Params) -> Result<Self, ParamsError> {
        Self::with_unit(source, params, params.alignment_bytes)
    }

    /// One that rounds sizes up to multiples of `unit_bytes`, a power of two.
    pub(super) fn with_unit(
        source: S,
        params: &Params,
        unit_bytes: u64,
    ) -> Result<Self, ParamsError> {
        params.check(&source)?;
        let Params { alignment_bytes, growth, .. } = *params;
        Ok(Self {
            source,
            growth,
            alignment_bytes,
            unit_bytes,
            blocks: Blocks::default(),
            search: F::default(),
            usage: Usage::default(),
        })
    }

    /// Where it takes its memory from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The hole for a request, after taking a region where none fits.
    fn hole_for(&mut self, bytes: u64) -> Result<Option<Free>, PolicyError> {
        if let Some(hole) = self.search.find(bytes) {
            return Ok(Some(hole));
        }
        let Some(region) = self.growth.grow(&mut self.source, bytes)? else { return Ok(None) };
        self.usage.reserved_bytes += region.bytes;
        let merged = self.blocks.add(region);
        self.tell(merged);
        Ok(self.search.find(bytes))
    }

    fn tell(&mut self, merged: Merged) {
        match merged {
            Merged::Alone(hole) => self.search.add(hole),
            Merged::Grown { from, to } => self.search.change(from, to),
            Merged::Joined { gone, from, to } => {
                self.search.remove(gone);
                self.search.change(from, to);
            }
        }
    }

    /// Gives the regions that lie wholly in a hole back to the source.
    fn release_in(&mut self, mut hole: Free) -> Result<u64, PolicyError> {
        let mut released_bytes = 0;
        for region in self.blocks.regions_in(hole) {
            self.source.release(region).map_err(PolicyError::Source)?;
            released_bytes += region.bytes;
            self.usage.reserved_bytes -= region.bytes;
            self.search.remove(hole);
            let (before, after) = self.blocks.cut(hole, region);
            before.into_iter().chain(after).for_each(|left| self.search.add(left));
            let Some(after) = after else { break };
            hole = after;
        }
        Ok(released_bytes)
    }
}

impl<S: Source + Send, F: Search> Policy for Coalescing<S, F> {
    fn name(&self) -> &'static str {
        F::NAME
    }

    fn alignment_bytes(&self) -> u64 {
        self.alignment_bytes
    }

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        let requested_bytes = bytes.max(1);
        let hole_bytes = self.usage.reserved_bytes - self.usage.rounded_bytes;
        let out_of_memory = PolicyError::OutOfMemory { requested_bytes, hole_bytes };
        let Some(rounded_bytes) = requested_bytes.checked_next_multiple_of(self.unit_bytes) else {
            return Err(out_of_memory);
        };
        let hole = self.hole_for(rounded_bytes)?.ok_or(out_of_memory)?;
        match self.blocks.take(hole, rounded_bytes, requested_bytes) {
            Some(rest) => self.search.change(hole, rest),
            None => self.search.remove(hole),
        }
        self.usage.add(requested_bytes, rounded_bytes);
        Ok(Block { address: hole.address, requested_bytes, rounded_bytes })
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        let freed = self.blocks.free(address);
        let (requested, rounded, merged) = freed.ok_or(PolicyError::NotLive { address })?;
        self.usage.remove(requested, rounded);
        self.tell(merged);
        Ok(())
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn holes(&self, order: HoleOrder) -> Vec<Hole> {
        let mut holes = self.search.in_order();
        if order == HoleOrder::Address {
            holes.sort_unstable_by_key(|hole| hole.address);
        }
        holes
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        self.blocks.all_free().into_iter().map(|hole| self.release_in(hole)).sum()
    }
}
