//! Which ranges of the reserved memory are live and which are free, with their neighbours.

use std::collections::BTreeMap;

use super::{AddressMap, Region};

/// A free range and its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) node: u32,
}

impl Free {
    /// The address behind its last byte.
    pub(super) fn end(&self) -> u64 {
        self.address + self.bytes
    }
}

/// What freeing a block did to the free ranges.
pub(super) enum Merged {
    /// A free range of its own.
    Alone(Free),
    /// A neighbour has grown.
    Grown { from: Free, to: Free },
    /// Both neighbours have become one: the later is gone, the earlier has grown.
    Joined { gone: Free, from: Free, to: Free },
}

/// Ranges as nodes that know the nodes before and behind them (boundary tags: Knuth, TAOCP volume 1,
/// section 2.5), so that a freed one merges with its neighbours at once.
///
/// Regions that are neighbours in address are one span. A span lies between two fences, nodes of no
/// bytes that are never free, so every range has two neighbours.
#[derive(Default)]
pub(super) struct Blocks {
    nodes: Vec<Node>,
    vacant: Vec<u32>,
    live: AddressMap,
    regions: BTreeMap<u64, u64>,
    /// The fences at the first address of each span, and at the address behind each.
    first: AddressMap,
    last: AddressMap,
}

#[derive(Clone, Copy)]
struct Node {
    address: u64,
    bytes: u64,
    /// What was requested; [`FREE`] or [`FENCE`].
    requested: u64,
    before: u32,
    after: u32,
}

const FREE: u64 = 0;
const FENCE: u64 = u64::MAX;

impl Blocks {
    /// Adds a region, all of it free, merged with free neighbours.
    pub(super) fn add(&mut self, region: Region) -> Merged {
        self.regions.insert(region.address, region.bytes);
        let node = self.make(region.address, region.bytes, FENCE);
        let before = match self.last.remove(&region.address) {
            Some(fence) => self.unlink(fence).0,
            None => self.fence(region.address, true),
        };
        let after = match self.first.remove(&region.end()) {
            Some(fence) => self.unlink(fence).1,
            None => self.fence(region.end(), false),
        };
        self.link(before, node);
        self.link(node, after);
        self.merge(node)
    }

    /// Makes the first `bytes` bytes of a free range live, and tells what is left free.
    pub(super) fn take(&mut self, hole: Free, bytes: u64, requested: u64) -> Option<Free> {
        if hole.bytes == bytes {
            self.nodes[hole.node as usize].requested = requested;
            self.live.insert(hole.address, hole.node);
            return None;
        }
        let block = self.make(hole.address, bytes, requested);
        self.link(self.nodes[hole.node as usize].before, block);
        self.link(block, hole.node);
        self.live.insert(hole.address, block);
        let rest = &mut self.nodes[hole.node as usize];
        rest.address += bytes;
        rest.bytes -= bytes;
        Some(self.free_range(hole.node))
    }

    /// Frees the live block at an address: its requested and its own bytes, and what it merged with.
    pub(super) fn free(&mut self, address: u64) -> Option<(u64, u64, Merged)> {
        let node = self.live.remove(&address)?;
        let Node { bytes, requested, .. } = self.nodes[node as usize];
        Some((requested, bytes, self.merge(node)))
    }

    /// Every free range.
    pub(super) fn all_free(&self) -> Vec<Free> {
        let mut free = Vec::new();
        for &fence in self.first.values() {
            let mut node = self.nodes[fence as usize].after;
            // A fence is its own neighbour outwards.
            while self.nodes[node as usize].after != node {
                if self.nodes[node as usize].requested == FREE {
                    free.push(self.free_range(node));
                }
                node = self.nodes[node as usize].after;
            }
        }
        free.sort_unstable_by_key(|hole| hole.address);
        free
    }

    /// Regions that lie wholly in a free range.
    pub(super) fn regions_in(&self, hole: Free) -> Vec<Region> {
        let regions = self.regions.range(hole.address..hole.end());
        let regions = regions.map(|(&address, &bytes)| Region { address, bytes });
        regions.take_while(|region| region.end() <= hole.end()).collect()
    }

    /// Cuts a region out of the free range around it: the free ranges that are left before and
    /// behind it.
    pub(super) fn cut(&mut self, hole: Free, region: Region) -> (Option<Free>, Option<Free>) {
        self.regions.remove(&region.address);
        let (mut before, mut after) = self.unlink(hole.node);
        let part = |blocks: &mut Self, address: u64, end: u64| {
            (address < end).then(|| blocks.make(address, end - address, FREE))
        };
        let left = part(self, hole.address, region.address);
        let right = part(self, region.end(), hole.end());
        if let Some(left) = left {
            self.link(before, left);
            before = left;
        }
        if let Some(right) = right {
            self.link(right, after);
            after = right;
        }
        if self.first.get(&region.address) == Some(&before) {
            self.first.remove(&region.address);
            self.vacant.push(before);
        } else {
            let fence = self.fence(region.address, false);
            self.link(before, fence);
        }
        if self.last.get(&region.end()) == Some(&after) {
            self.last.remove(&region.end());
            self.vacant.push(after);
        } else {
            let fence = self.fence(region.end(), true);
            self.link(fence, after);
        }
        (left.map(|node| self.free_range(node)), right.map(|node| self.free_range(node)))
    }

    /// Makes a node free and merges it with what is free beside it.
    fn merge(&mut self, node: u32) -> Merged {
        let Node { address, bytes, before, after, .. } = self.nodes[node as usize];
        let is_free = |node: u32| self.nodes[node as usize].requested == FREE;
        match (is_free(before), is_free(after)) {
            (false, false) => {
                self.nodes[node as usize].requested = FREE;
                Merged::Alone(self.free_range(node))
            }
            (true, false) => {
                let from = self.free_range(before);
                self.absorb(before, node);
                Merged::Grown { from, to: self.free_range(before) }
            }
            (false, true) => {
                let from = self.free_range(after);
                self.unlink(node);
                let later = &mut self.nodes[after as usize];
                later.address = address;
                later.bytes += bytes;
                Merged::Grown { from, to: self.free_range(after) }
            }
            (true, true) => {
                let (from, gone) = (self.free_range(before), self.free_range(after));
                self.absorb(before, node);
                self.absorb(before, after);
                Merged::Joined { gone, from, to: self.free_range(before) }
            }
        }
    }

    /// Adds the bytes of a node to the one before it.
    fn absorb(&mut self, before: u32, node: u32) {
        self.nodes[before as usize].bytes += self.nodes[node as usize].bytes;
        self.unlink(node);
    }

    fn free_range(&self, node: u32) -> Free {
        let Node { address, bytes, .. } = self.nodes[node as usize];
        Free { address, bytes, node }
    }

    /// A fence at the first address of a span, or behind its last.
    fn fence(&mut self, address: u64, is_first: bool) -> u32 {
        let fence = self.make(address, 0, FENCE);
        let fences = if is_first { &mut self.first } else { &mut self.last };
        fences.insert(address, fence);
        fence
    }

    fn make(&mut self, address: u64, bytes: u64, requested: u64) -> u32 {
        let number = self.vacant.pop().unwrap_or(self.nodes.len() as u32);
        // Its own neighbour until it is linked: what lies outside a fence stays so.
        let node = Node { address, bytes, requested, before: number, after: number };
        match self.nodes.get_mut(number as usize) {
            Some(place) => *place = node,
            None => self.nodes.push(node),
        }
        number
    }

    fn link(&mut self, before: u32, after: u32) {
        self.nodes[before as usize].after = after;
        self.nodes[after as usize].before = before;
    }

    /// Takes a node out from between its neighbours, which it tells.
    fn unlink(&mut self, node: u32) -> (u32, u32) {
        let Node { before, after, .. } = self.nodes[node as usize];
        self.link(before, after);
        self.vacant.push(node);
        (before, after)
    }
}
