//! The pools, and in each the free blocks of each stream.

use std::collections::BTreeMap;

use super::blocks::{Blocks, Id, State};
use crate::policy::by_size::{BySize, Key};

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
}

/// What is free in a pool for one stream.
#[derive(Debug)]
pub(super) struct List {
    /// Index of the pool.
    pub pool: usize,
    pub stream: u64,
    pub free: BySize,
    /// Addresses of expandable segments without memory, by the first.
    pub unmapped: BTreeMap<u64, Id>,
}

/// All pools and their lists.
#[derive(Debug, Default)]
pub(super) struct Pools {
    /// Small and large by turns.
    pools: Vec<Pool>,
    lists: Vec<List>,
    /// Lists by pool and stream.
    order: BTreeMap<(usize, u64), u32>,
}

impl Pools {
    /// Adds a small and a large pool.
    pub(super) fn add_pair(&mut self) {
        let pair = [PoolKind::Small, PoolKind::Large];
        self.pools.extend(pair.map(|kind| Pool { kind, searches: 0 }));
    }

    pub(super) fn len(&self) -> usize {
        self.pools.len()
    }

    pub(super) fn pool(&self, index: usize) -> &Pool {
        &self.pools[index]
    }

    pub(super) fn pool_mut(&mut self, index: usize) -> &mut Pool {
        &mut self.pools[index]
    }

    /// The pool that a list is of.
    pub(super) fn pool_of(&self, list: u32) -> &Pool {
        &self.pools[self[list].pool]
    }

    /// Index of the list of a pool and stream.
    pub(super) fn list(&mut self, pool: usize, stream: u64) -> u32 {
        *self.order.entry((pool, stream)).or_insert_with(|| {
            let unmapped = BTreeMap::new();
            self.lists.push(List { pool, stream, free: BySize::default(), unmapped });
            (self.lists.len() - 1) as u32
        })
    }

    /// The lists of a pool, by stream.
    pub(super) fn lists(&self, pool: usize) -> impl Iterator<Item = &List> {
        let lists = self.order.range((pool, 0)..=(pool, u64::MAX));
        lists.map(|(_, &list)| &self[list])
    }

    /// The free blocks of a pool: by stream, then size, then address.
    pub(super) fn free(&self, pool: usize) -> impl Iterator<Item = Id> {
        self.lists(pool).flat_map(|list| list.free.iter_from(Key::at_least(0)))
    }

    /// Puts a free or unmapped block into its list.
    pub(super) fn insert(&mut self, blocks: &mut Blocks, id: Id) {
        let block = &mut blocks[id];
        let list = &mut self.lists[block.tag.list as usize];
        if block.tag.state == State::Unmapped {
            list.unmapped.insert(block.address, id);
            return;
        }
        block.tag.born = self.pools[list.pool].searches;
        list.free.insert(Key::of(block), id);
    }

    /// Takes a free or unmapped block out of its list.
    pub(super) fn remove(&mut self, blocks: &Blocks, id: Id) {
        let block = &blocks[id];
        let list = &mut self.lists[block.tag.list as usize];
        let removed = match block.tag.state {
            State::Unmapped => list.unmapped.remove(&block.address),
            _ => Some(list.free.remove_key(Key::of(block))),
        };
        debug_assert_eq!(removed, Some(id));
    }
}

impl std::ops::Index<u32> for Pools {
    type Output = List;

    fn index(&self, list: u32) -> &List {
        &self.lists[list as usize]
    }
}

impl std::ops::IndexMut<u32> for Pools {
    fn index_mut(&mut self, list: u32) -> &mut List {
        &mut self.lists[list as usize]
    }
}
