//! The books around calls that fail when they are told to.

mod conformance;
mod gpu;
mod memory_source;

use std::sync::{Arc, Mutex};

use super::*;
use crate::policy::SourceError;

/// Calls of no device: addresses in ascending order, and a list of those that are held.
#[derive(Clone, Default)]
struct Fake {
    held: Arc<Mutex<Vec<u64>>>,
    failure: Arc<Mutex<Option<Failure>>>,
}

impl Fake {
    fn fail(&self) -> Result<(), Failure> {
        self.failure.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn fail_with(&self, failure: Option<Failure>) {
        *self.failure.lock().unwrap() = failure;
    }

    fn held(&self) -> Vec<u64> {
        self.held.lock().unwrap().clone()
    }
}

impl Calls for Fake {
    type Held = u64;

    fn take(&mut self, bytes: u64, rounded_bytes: u64) -> Result<(u64, u64), Failure> {
        self.fail()?;
        let mut held = self.held.lock().unwrap();
        let address = held.last().map_or(4096, |last| last + 4096);
        held.push(address);
        Ok((address, bytes + rounded_bytes))
    }

    fn give(&mut self, block: &Block, held: &u64) -> Result<(), Failure> {
        self.fail()?;
        assert_eq!(*held, block.requested_bytes + block.rounded_bytes);
        self.held.lock().unwrap().retain(|address| *address != block.address);
        Ok(())
    }
}

fn allocator(fake: &Fake) -> Allocator<Fake> {
    Allocator { name: "fake", calls: fake.clone(), books: Books::new() }
}

fn illegal() -> Failure {
    Failure::Call { call: "cuMemFree", code: "CUDA_ERROR_ILLEGAL_ADDRESS".to_owned() }
}

#[test]
fn the_books_are_exact_and_a_drop_frees_what_is_live() {
    let fake = Fake::default();
    let mut allocator = allocator(&fake);
    let none = allocator.allocate(0).unwrap();
    assert_eq!(none, Block { address: 4096, requested_bytes: 1, rounded_bytes: 256 });
    let block = allocator.allocate(257).unwrap();
    let usage =
        Usage { live_blocks: 2, requested_bytes: 258, rounded_bytes: 768, reserved_bytes: 768 };
    assert_eq!(allocator.usage(), usage);
    assert_eq!(allocator.holes(HoleOrder::Address), []);
    assert_eq!(allocator.release_unused(), Ok(0));
    assert_eq!(allocator.free(none.address), Ok(()));
    // What is not live does not reach the device.
    fake.fail_with(Some(illegal()));
    for address in [none.address, block.address + 1] {
        assert_eq!(allocator.free(address), Err(PolicyError::NotLive { address }));
    }
    fake.fail_with(None);
    assert_eq!(fake.held(), [block.address]);
    drop(allocator);
    assert!(fake.held().is_empty());
}

#[test]
fn a_refusal_changes_nothing() {
    let fake = Fake::default();
    let mut allocator = allocator(&fake);
    let block = allocator.allocate(1000).unwrap();
    let usage = allocator.usage();

    fake.fail_with(Some(Failure::OutOfMemory));
    let refused = |requested_bytes| {
        Err::<Block, _>(PolicyError::OutOfMemory { requested_bytes, hole_bytes: 0 })
    };
    assert_eq!(allocator.allocate(5), refused(5));
    fake.fail_with(Some(illegal()));
    // Too long to be rounded: never asked for.
    assert_eq!(allocator.allocate(u64::MAX), refused(u64::MAX));
    let text = "cuMemFree failed with CUDA_ERROR_ILLEGAL_ADDRESS".to_owned();
    let said = PolicyError::Source(SourceError::Device(text));
    assert_eq!(allocator.allocate(5), Err(said.clone()));
    assert_eq!(allocator.free(block.address), Err(said));
    assert_eq!(allocator.usage(), usage);
    assert!(allocator.is_live(block.address));

    // A drop tries again.
    fake.fail_with(None);
    drop(allocator);
    assert!(fake.held().is_empty());
}
