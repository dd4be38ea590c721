//! The allocator over simulated memory.

mod check;
mod expandable;
mod properties;
mod release;
mod rules;
mod streams;

use super::*;
use crate::policy::{Placement, SimulatedSource};

const MIB: u64 = 1 << 20;

const GIB: u64 = 1 << 30;

/// An allocator with these settings over so much memory in pages of 2 MiB.
fn caching(settings: &str, capacity_bytes: u64) -> Caching<SimulatedSource> {
    let source = SimulatedSource::new(capacity_bytes, 2 * MIB, Placement::Contiguous);
    Caching::new(settings.parse().unwrap(), source.unwrap()).unwrap()
}

/// So many blocks of one size.
fn fill(allocator: &mut Caching<SimulatedSource>, blocks: usize, bytes: u64) -> Vec<u64> {
    (0..blocks).map(|_| allocator.allocate(bytes).unwrap().address).collect()
}

fn free_all(allocator: &mut Caching<SimulatedSource>, addresses: Vec<u64>) {
    addresses.into_iter().for_each(|address| allocator.free(address).unwrap());
}

fn reserved(allocator: &Caching<SimulatedSource>) -> u64 {
    allocator.usage().reserved_bytes
}

/// Lengths of all holes in the order of the search.
fn holes(allocator: &Caching<SimulatedSource>) -> Vec<u64> {
    allocator.holes(HoleOrder::FreeList).iter().map(|hole| hole.bytes).collect()
}
