//! Slabs: blocks of one size.

use super::{
    AddressMap, Block, Growth, Hole, HoleOrder, Params, ParamsError, Policy, PolicyError, Region,
    Source, Usage,
};

/// Regions cut into blocks of one size, as caches of kernel objects are (Bonwick, "The slab
/// allocator", USENIX Summer 1994). The last freed block is the first used; the blocks of a new
/// region are used in the order of addresses.
///
/// The end of a region that is too short for a block is no hole: nothing is ever allocated there.
pub struct Slab<S> {
    source: S,
    growth: Growth,
    alignment_bytes: u64,
    block_bytes: u64,
    /// Regions with how many of their blocks are live; none where one was given back.
    chunks: Vec<Option<Chunk>>,
    vacant_chunks: Vec<u32>,
    free: Vec<Place>,
    fresh: Fresh,
    live: AddressMap<Live>,
    usage: Usage,
}

/// Blocks of the newest region that were never used.
#[derive(Clone, Copy, Default)]
struct Fresh {
    address: u64,
    blocks: u64,
    chunk: u32,
}

#[derive(Clone, Copy)]
struct Chunk {
    region: Region,
    live: u64,
}

/// A free block.
#[derive(Clone, Copy)]
struct Place {
    address: u64,
    chunk: u32,
}

#[derive(Clone, Copy, Default)]
struct Live {
    requested_bytes: u64,
    chunk: u32,
}

impl<S: Source> Slab<S> {
    /// A policy that holds nothing yet, with blocks of [`Params::block_bytes`], rounded up to the
    /// alignment.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] says which parameter cannot be.
    pub fn new(source: S, params: &Params) -> Result<Self, ParamsError> {
        params.check(&source)?;
        Ok(Self {
            source,
            growth: params.growth,
            alignment_bytes: params.alignment_bytes,
            block_bytes: params.block_bytes.next_multiple_of(params.alignment_bytes),
            chunks: Vec::new(),
            vacant_chunks: Vec::new(),
            free: Vec::new(),
            fresh: Fresh::default(),
            live: AddressMap::default(),
            usage: Usage::default(),
        })
    }

    /// Where it takes its memory from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Length of every block, in bytes.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn hole_bytes(&self) -> u64 {
        (self.free.len() as u64 + self.fresh.blocks) * self.block_bytes
    }

    /// A free block, after taking a region where there is none.
    fn place(&mut self) -> Result<Option<Place>, PolicyError> {
        if let Some(place) = self.free.pop() {
            return Ok(Some(place));
        }
        if self.fresh.blocks == 0 {
            let region = self.growth.grow(&mut self.source, self.block_bytes)?;
            let Some(region) = region else { return Ok(None) };
            self.add(region);
        }
        let Fresh { address, chunk, .. } = self.fresh;
        self.fresh.address += self.block_bytes;
        self.fresh.blocks -= 1;
        Ok(Some(Place { address, chunk }))
    }

    fn add(&mut self, region: Region) {
        self.usage.reserved_bytes += region.bytes;
        let chunk = self.vacant_chunks.pop().unwrap_or(self.chunks.len() as u32);
        let held = Some(Chunk { region, live: 0 });
        match self.chunks.get_mut(chunk as usize) {
            Some(place) => *place = held,
            None => self.chunks.push(held),
        }
        let blocks = region.bytes / self.block_bytes;
        self.fresh = Fresh { address: region.address, blocks, chunk };
    }
}

impl<S: Source + Send> Policy for Slab<S> {
    fn name(&self) -> &'static str {
        "slab"
    }

    fn alignment_bytes(&self) -> u64 {
        self.alignment_bytes
    }

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        let (requested_bytes, rounded_bytes) = (bytes.max(1), self.block_bytes);
        if requested_bytes > self.block_bytes {
            let takes = format!("up to {} bytes", self.block_bytes);
            return Err(PolicyError::Size { requested_bytes, takes });
        }
        let hole_bytes = self.hole_bytes();
        let out_of_memory = PolicyError::OutOfMemory { requested_bytes, hole_bytes };
        let Place { address, chunk } = self.place()?.ok_or(out_of_memory)?;
        self.live.insert(address, Live { requested_bytes, chunk });
        if let Some(chunk) = &mut self.chunks[chunk as usize] {
            chunk.live += 1;
        }
        self.usage.add(requested_bytes, rounded_bytes);
        Ok(Block { address, requested_bytes, rounded_bytes })
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        let block = self.live.remove(address).ok_or(PolicyError::NotLive { address })?;
        if let Some(chunk) = &mut self.chunks[block.chunk as usize] {
            chunk.live -= 1;
        }
        self.usage.remove(block.requested_bytes, self.block_bytes);
        self.free.push(Place { address, chunk: block.chunk });
        Ok(())
    }

    fn is_live(&self, address: u64) -> bool {
        self.live.get(address).is_some()
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn holes(&self, order: HoleOrder) -> Vec<Hole> {
        let Fresh { address, blocks, .. } = self.fresh;
        let fresh = (0..blocks).map(|block| address + block * self.block_bytes);
        let places = self.free.iter().rev().map(|place| place.address).chain(fresh);
        let hole = |address| Hole { address, bytes: self.block_bytes };
        let mut holes: Vec<Hole> = places.map(hole).collect();
        if order == HoleOrder::Address {
            holes.sort_unstable_by_key(|hole| hole.address);
        }
        holes
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        let mut released_bytes = 0;
        let mut result = Ok(());
        for (number, chunk) in self.chunks.iter_mut().enumerate() {
            let Some(Chunk { region, live: 0 }) = *chunk else { continue };
            result = self.source.release(region).map_err(PolicyError::Source);
            if result.is_err() {
                break;
            }
            *chunk = None;
            if self.fresh.chunk == number as u32 {
                self.fresh = Fresh::default();
            }
            self.vacant_chunks.push(number as u32);
            released_bytes += region.bytes;
        }
        self.free.retain(|place| self.chunks[place.chunk as usize].is_some());
        self.usage.reserved_bytes -= released_bytes;
        result.map(|()| released_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::{addresses, arena};

    fn slab(block_bytes: u64) -> Slab<impl Source> {
        let growth = Growth::Regions { bytes: 4096 };
        let params = Params { growth, block_bytes, ..Params::default() };
        Slab::new(arena(), &params).unwrap()
    }

    #[test]
    fn the_last_freed_is_the_first_used() {
        let mut policy = slab(1024);
        let blocks = [(); 4].map(|()| policy.allocate(1000).unwrap().address);
        assert!(blocks.is_sorted());
        for n in [2, 0, 3] {
            policy.free(blocks[n]).unwrap();
        }
        let met = addresses(&policy.holes(HoleOrder::FreeList));
        assert_eq!(met, [blocks[3], blocks[0], blocks[2]]);
        assert_eq!(policy.allocate(1).unwrap().address, blocks[3]);
    }

    #[test]
    fn longer_requests_are_told_what_it_takes() {
        let error = slab(1000).allocate(1025).unwrap_err();
        let expected = "a block of 1025 bytes is none that this policy hands out; it takes up to \
                        1024 bytes";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_short_end_of_a_region_is_no_hole() {
        let mut policy = slab(1536);
        let first = policy.allocate(1).unwrap();
        let hole = Hole { address: first.address + 1536, bytes: 1536 };
        assert_eq!(policy.holes(HoleOrder::Address), [hole]);
        assert_eq!(policy.usage().reserved_bytes, 4096);
    }

    #[test]
    fn regions_go_back_when_their_last_block_is_freed() {
        let mut policy = slab(2048);
        let blocks = [(); 4].map(|()| policy.allocate(1).unwrap().address);
        policy.free(blocks[0]).unwrap();
        policy.free(blocks[2]).unwrap();
        policy.free(blocks[3]).unwrap();
        assert_eq!(policy.release_unused(), Ok(4096));
        assert_eq!(addresses(&policy.holes(HoleOrder::FreeList)), [blocks[0]]);
        policy.free(blocks[1]).unwrap();
        assert_eq!(policy.release_unused(), Ok(4096));
        assert_eq!(policy.usage(), Usage::default());
        assert_eq!(policy.allocate(1).unwrap().address, blocks[0]);
    }
}
