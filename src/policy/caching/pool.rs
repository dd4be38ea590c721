//! The pools: free blocks by stream, and the addresses of expandable segments without memory.

use std::collections::BTreeMap;

use super::blocks::{Blocks, Id};
use super::free_set::FreeSet;

/// Whether a pool is for blocks up to 1 MiB or above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PoolKind {
    /// Blocks up to 1 MiB, in segments of 2 MiB.
    Small,
    /// Larger blocks.
    Large,
}

/// One pool.
#[derive(Debug)]
pub(super) struct Pool {
    pub kind: PoolKind,
    /// How often it was searched, where garbage collection asks for the age of blocks.
    pub searches: u64,
    /// Unmapped blocks by stream and address.
    pub unmapped: BTreeMap<(u64, u64), Id>,
    /// Sorted by stream.
    streams: Vec<(u64, FreeSet)>,
}

impl Pool {
    pub(super) fn new(kind: PoolKind) -> Self {
        Self { kind, searches: 0, unmapped: BTreeMap::new(), streams: Vec::new() }
    }

    /// The free blocks of a stream.
    pub(super) fn free(&self, stream: u64) -> Option<&FreeSet> {
        let index = self.streams.binary_search_by_key(&stream, |(stream, _)| *stream).ok()?;
        Some(&self.streams[index].1)
    }

    /// Puts a free block in.
    pub(super) fn insert(&mut self, blocks: &mut Blocks, id: Id) {
        let block = &mut blocks[id];
        block.born = self.searches;
        let stream = block.stream;
        let index = match self.streams.binary_search_by_key(&stream, |(stream, _)| *stream) {
            Ok(index) => index,
            Err(index) => {
                self.streams.insert(index, (stream, FreeSet::default()));
                index
            }
        };
        self.streams[index].1.insert((block.bytes, block.address), id);
    }

    /// Takes a free block out.
    pub(super) fn remove(&mut self, blocks: &Blocks, id: Id) {
        let block = &blocks[id];
        if let Ok(index) = self.streams.binary_search_by_key(&block.stream, |(stream, _)| *stream) {
            let removed = self.streams[index].1.remove((block.bytes, block.address));
            debug_assert_eq!(removed, Some(id));
        }
    }

    /// All free blocks: by stream, then size, then address.
    pub(super) fn iter(&self) -> impl Iterator<Item = Id> {
        self.streams.iter().flat_map(|(_, free)| free.iter_from(0))
    }

    /// How many blocks are free.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.streams.iter().map(|(_, free)| free.len()).sum()
    }
}
