//! The suite that every policy passes, on the device's own allocators and on policies over them.

use super::gpu::{MIB, alone, settles_at};
use crate::device::{Device, DeviceAllocator, DeviceError};
use crate::policy::conformance::{Refill, Refusal, Tells, Traits, check_opaque};
use crate::policy::{AsSource, Growth, Limited, Params, Policy, PolicyName};

/// A whole chunk for each block: blocks of one chunk, and a limit of some hundred.
fn of_chunks(chunk_bytes: u64) -> Traits {
    let block_bytes = chunk_bytes.max(MIB);
    Traits {
        capacity_bytes: Traits::OPAQUE.capacity_bytes.max(32 * chunk_bytes),
        least_taken_bytes: Traits::OPAQUE.least_taken_bytes.max(8 * chunk_bytes),
        most_bytes: Traits::OPAQUE.most_bytes.max(2 * chunk_bytes),
        block_bytes,
        ..Traits::OPAQUE
    }
}

#[test]
#[ignore = "needs a GPU: cargo test --lib -- --ignored cuda::allocator"]
fn the_devices_own_allocators_conform() {
    let (_guard, cuda) = alone();
    for &which in DeviceAllocator::ALL {
        if let Err(error @ DeviceError::NoAllocator { .. }) = cuda.allocator(which) {
            println!("{which} is skipped: {error}");
            continue;
        }
        println!("{which}");
        let before = cuda.free_bytes().unwrap();
        let traits = match which {
            DeviceAllocator::Vmm(chunk) => of_chunks(chunk.bytes()),
            // What it keeps goes back when it is told to, as far as whole pages are free.
            DeviceAllocator::MemPoolKeep | DeviceAllocator::MemPoolRelease => {
                Traits { refusal: Refusal::ChangesReserved, releases_all: false, ..Traits::OPAQUE }
            }
            _ => Traits::OPAQUE,
        };
        check_opaque(&mut || cuda.allocator(which).unwrap(), traits);
        settles_at(&cuda, before, which.name());
    }
}

#[test]
#[ignore = "needs a GPU: cargo test --lib -- --ignored cuda::allocator"]
fn policies_over_the_devices_memory_conform() {
    let (_guard, cuda) = alone();
    const CAPACITY: u64 = 256 * MIB;
    let before = cuda.free_bytes().unwrap();
    for &name in PolicyName::OF_ANY_SIZE {
        println!("{name}");
        let mut make = || -> Box<dyn Policy> {
            let plain = cuda.allocator(DeviceAllocator::CuMemAlloc).unwrap();
            // 32 MiB more than its blocks may take: segments are longer than what lies in them.
            let plain = Limited::new(plain, CAPACITY);
            let source = AsSource::with_capacity(plain, 2 * MIB, CAPACITY).unwrap();
            let growth = Growth::Regions { bytes: 8 * MIB };
            name.build(source, &Params::default().with_growth(growth)).unwrap()
        };
        let traits = Traits {
            tells: Tells::Holes,
            refill: Refill::AfterRelease,
            refusal: Refusal::ChangesReserved,
            ..Traits::OPAQUE
        };
        check_opaque(&mut make, traits);
        settles_at(&cuda, before, name.name());
    }
}
