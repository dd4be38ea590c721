//! What only a GPU can tell of its virtual memory as a source.

use super::gpu::{MIB, alone, check_apart, check_memory, fill, read, settles_at};
use crate::device::Device;
use crate::device::cuda::Cuda;
use crate::policy::caching::{Caching, Config};
use crate::policy::{Block, Policy, Region, Source, SourceError};

/// Takes what the first use leaves behind.
fn first_use(cuda: &Cuda) {
    cuda.vmm_source(2 * MIB).unwrap().allocate(1).unwrap();
}

#[test]
#[ignore = "needs a GPU: cargo test --lib -- --ignored cuda::allocator"]
fn parts_of_addresses_are_mapped_and_unmapped() {
    let (_alone, cuda) = alone();
    first_use(&cuda);
    let before = cuda.free_bytes().unwrap();
    let mut source = cuda.vmm_source(20 * MIB).unwrap();
    println!("granule {} B", source.granule_bytes());
    assert!(cuda.vmm_source(source.granule_bytes() + 1).is_err());
    let range = source.reserve_addresses(cuda.facts().memory_bytes * 9 / 8).unwrap();
    assert_eq!(cuda.free_bytes().unwrap(), before, "addresses take no memory");
    let part = |offset, bytes| Region { address: range.address + offset * MIB, bytes: bytes * MIB };
    let memory = |part: Region| Block {
        address: part.address,
        requested_bytes: part.bytes,
        rounded_bytes: part.bytes,
    };

    // Pieces at 40, 60 and 80, and a short one at 2.
    source.map(part(40, 60)).unwrap();
    source.map(part(2, 2)).unwrap();
    check_memory(&[memory(part(40, 60)), memory(part(2, 2))]);
    settles_at(&cuda, before - 62 * MIB, "62 MiB are mapped");
    assert!(matches!(source.map(part(30, 20)), Err(SourceError::Unknown { .. })));
    assert!(matches!(source.unmap(part(40, 10)), Err(SourceError::Unknown { .. })));
    assert!(matches!(source.release_addresses(range), Err(SourceError::Unknown { .. })));
    // One from the middle; its neighbours stay what they are.
    fill(part(40, 0).address, 7);
    source.unmap(part(60, 20)).unwrap();
    settles_at(&cuda, before - 42 * MIB, "20 MiB are unmapped");
    assert_eq!(read(part(40, 0).address), 7);
    check_memory(&[memory(part(40, 20)), memory(part(80, 20))]);
    source.map(part(60, 20)).unwrap();
    check_memory(&[memory(part(40, 60))]);
    // Three pieces of two calls at once.
    source.unmap(part(40, 60)).unwrap();

    // More than there is: what was mapped of it goes back.
    let held = cuda.free_bytes().unwrap();
    let whole_mib = cuda.facts().memory_bytes / (20 * MIB) * 20;
    let refused = source.map(part(100, whole_mib));
    assert!(matches!(refused, Err(SourceError::OutOfMemory { .. })), "{refused:?}");
    settles_at(&cuda, held, "a refused map");
    source.map(part(100, 20)).unwrap();
    check_memory(&[memory(part(100, 20)), memory(part(2, 2))]);

    source.unmap(part(100, 20)).unwrap();
    source.unmap(part(2, 2)).unwrap();
    source.release_addresses(range).unwrap();
    settles_at(&cuda, before, "everything is unmapped");

    let region = source.allocate(30 * MIB).unwrap();
    check_memory(&[memory(region)]);
    assert!(matches!(source.unmap(region), Err(SourceError::Unknown { .. })));
    source.release(region).unwrap();
    assert!(matches!(source.release(region), Err(SourceError::Unknown { .. })));
    source.allocate(50 * MIB).unwrap();
    let range = source.reserve_addresses(100 * MIB).unwrap();
    source.map(Region { bytes: 40 * MIB, ..range }).unwrap();
    // The rest goes back with it.
    drop(source);
    settles_at(&cuda, before, "the source is dropped");
}

#[test]
#[ignore = "needs a GPU: cargo test --lib -- --ignored cuda::allocator"]
fn the_caching_policy_expands_its_segments_in_it() {
    let (_alone, cuda) = alone();
    first_use(&cuda);
    let before = cuda.free_bytes().unwrap();
    let config: Config = "expandable_segments:True".parse().unwrap();
    let source = cuda.vmm_source(20 * MIB).unwrap();
    let mut caching = Caching::new(config, source).unwrap();
    let sizes = [300, 5 * MIB, 70 * MIB, 18 * MIB, MIB, 130 * MIB, 9 * MIB];
    let blocks = sizes.map(|bytes| Policy::allocate(&mut caching, bytes).unwrap());
    check_apart(&blocks, 512);
    check_memory(&blocks);
    // The pages of the large block in the middle were mapped at once, and go with its neighbours'.
    for freed in [2, 5] {
        Policy::free(&mut caching, blocks[freed].address).unwrap();
        assert!(caching.release_unused().unwrap() > 0);
    }
    let live = [0, 1, 3, 4, 6].map(|index: usize| blocks[index]);
    check_memory(&live);
    drop(caching);
    settles_at(&cuda, before, "the policy is dropped");
}
