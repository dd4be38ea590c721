//! What only a GPU can tell of the allocators.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cudarc::driver::result;

use crate::device::cuda::Cuda;
use crate::device::{Chunk, Device, DeviceAllocator, DeviceError};
use crate::layout::{below, draw};
use crate::policy::{Block, Policy, PolicyError};

pub(super) const MIB: u64 = 1 << 20;

/// The device for one test at a time: they compare its free bytes.
pub(super) fn alone() -> (MutexGuard<'static, ()>, Cuda) {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (guard, Cuda::open(0).unwrap())
}

/// Runs a test with each allocator that the device has, with what the first use of one leaves
/// behind already taken.
fn with_each(cuda: &Cuda, test: impl Fn(DeviceAllocator)) {
    for &which in DeviceAllocator::ALL {
        match cuda.allocator(which) {
            Ok(mut first) => drop(first.allocate(1).unwrap()),
            Err(error @ DeviceError::NoAllocator { .. }) => {
                println!("{which} is skipped: {error}");
                continue;
            }
            Err(error) => panic!("{which}: {error}"),
        }
        println!("{which}");
        test(which);
    }
}

/// Waits until the driver has as many free bytes as before. It may have more: short of memory, it
/// gives up pages that it had kept for itself.
pub(super) fn settles_at(cuda: &Cuda, before: u64, what: &str) {
    let begin = Instant::now();
    while cuda.free_bytes().unwrap() < before {
        let after = cuda.free_bytes().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(2), "{what}: {before} free, then {after}");
        sleep(Duration::from_millis(10));
    }
}

/// From 1 B to 8 MiB, all magnitudes alike.
fn sizes(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|number| {
        let most = 1 << below(draw(1, number), 24);
        1 + below(draw(2, number), most)
    })
}

/// How many blocks of one chunk at least fit into half of what is free, at most 200.
fn count(cuda: &Cuda, which: DeviceAllocator) -> u64 {
    let least = match which {
        DeviceAllocator::Vmm(chunk) => chunk.bytes().max(8 * MIB),
        _ => 8 * MIB,
    };
    (cuda.free_bytes().unwrap() / 2 / least).min(200)
}

pub(super) fn fill(address: u64, byte: u8) {
    // SAFETY: the tests pass addresses of live blocks only.
    unsafe { result::memset_d8_sync(address, byte, 1) }.unwrap();
}

pub(super) fn read(address: u64) -> u8 {
    let mut byte = [0];
    // SAFETY: the tests pass addresses of live blocks only.
    unsafe { result::memcpy_dtoh_sync(&mut byte, address) }.unwrap();
    byte[0]
}

pub(super) fn check_memory(blocks: &[Block]) {
    // Those of a pool are there when its stream has come so far.
    result::ctx::synchronize().unwrap();
    let last = |block: &Block| block.address + block.requested_bytes - 1;
    for (number, block) in blocks.iter().enumerate() {
        fill(block.address, number as u8);
        fill(last(block), number as u8);
    }
    result::ctx::synchronize().unwrap();
    for (number, block) in blocks.iter().enumerate() {
        let bytes = [read(block.address), read(last(block))];
        assert_eq!(bytes, [number as u8; 2], "{block:?}");
    }
}

pub(super) fn check_apart(blocks: &[Block], alignment_bytes: u64) {
    assert!(alignment_bytes >= 256);
    assert!(blocks.iter().all(|block| block.address.is_multiple_of(alignment_bytes)));
    let mut blocks = blocks.to_vec();
    blocks.sort_by_key(|block| block.address);
    for pair in blocks.windows(2) {
        assert!(pair[0].address + pair[0].rounded_bytes <= pair[1].address, "{pair:?}");
    }
}

fn take_all(allocator: &mut dyn Policy, count: u64) -> Vec<Block> {
    sizes(count).map(|bytes| allocator.allocate(bytes).unwrap()).collect()
}

#[test]
#[ignore = "needs a GPU: cargo test --lib -- --ignored cuda::allocator"]
fn blocks_are_memory_of_their_own_and_all_of_it_comes_back() {
    let (_alone, cuda) = alone();
    with_each(&cuda, |which| {
        let before = cuda.free_bytes().unwrap();
        let mut allocator = cuda.allocator(which).unwrap();
        assert_eq!(allocator.name(), which.name());
        let mut blocks = take_all(&mut *allocator, count(&cuda, which));
        check_apart(&blocks, allocator.alignment_bytes());
        check_memory(&blocks);
        let usage = allocator.usage();
        assert_eq!(usage.live_blocks, blocks.len() as u64);
        let sum = |of: fn(&Block) -> u64| blocks.iter().map(of).sum::<u64>();
        assert_eq!(usage.requested_bytes, sum(|block| block.requested_bytes));
        assert_eq!(usage.rounded_bytes, sum(|block| block.rounded_bytes));
        assert_eq!(usage.reserved_bytes, usage.rounded_bytes);

        blocks.sort_by_key(|block| draw(3, block.address));
        let (freed, live) = blocks.split_at(blocks.len() / 2);
        for block in freed {
            assert_eq!(allocator.free(block.address), Ok(()));
            let address = block.address;
            assert_eq!(allocator.free(address), Err(PolicyError::NotLive { address }));
            assert!(!allocator.is_live(address));
        }
        let inside = live[0].address + 1;
        let not_live = Err(PolicyError::NotLive { address: inside });
        assert_eq!(allocator.free(inside), not_live);
        check_memory(live);
        let released = allocator.release_unused().unwrap();
        println!("  {released} B released, {} blocks live", live.len());
        check_memory(live);
        // What is live goes back with it.
        drop(allocator);
        settles_at(&cuda, before, which.name());
    });
}

#[test]
#[ignore = "needs a GPU: cargo test --lib -- --ignored cuda::allocator"]
fn what_the_device_has_not_is_out_of_memory_and_takes_nothing() {
    let (_alone, cuda) = alone();
    let whole_bytes = cuda.facts().memory_bytes / (2 * MIB) * (2 * MIB);
    with_each(&cuda, |which| {
        let mut allocator = cuda.allocator(which).unwrap();
        let live = allocator.allocate(300).unwrap();
        let (usage, before) = (allocator.usage(), cuda.free_bytes().unwrap());
        // The driver has never so much free: its own context takes some.
        for requested_bytes in [1 << 50, whole_bytes, u64::MAX] {
            let refused = Err(PolicyError::OutOfMemory { requested_bytes, hole_bytes: 0 });
            assert_eq!(allocator.allocate(requested_bytes), refused, "{which}");
            assert_eq!(allocator.usage(), usage);
            // A pool that keeps has taken all that was free for a request that it then refused.
            allocator.release_unused().unwrap();
            settles_at(&cuda, before, which.name());
        }
        check_memory(&[live]);
        let next = allocator.allocate(0).unwrap();
        assert_eq!(next.requested_bytes, 1);
        assert!(next.rounded_bytes >= 256);
        assert_eq!(allocator.free(next.address), Ok(()));
        check_memory(&[live]);
    });
}

#[test]
#[ignore = "needs a GPU: cargo test --lib -- --ignored cuda::allocator"]
fn they_are_used_on_any_thread() {
    let (_alone, cuda) = alone();
    with_each(&cuda, |which| {
        let before = cuda.free_bytes().unwrap();
        let mut allocator = cuda.allocator(which).unwrap();
        let here = allocator.allocate(MIB).unwrap();
        let there = std::thread::spawn(move || {
            let there = allocator.allocate(3 * MIB).unwrap();
            allocator.free(here.address).unwrap();
            let (_, total) = result::mem_get_info().unwrap();
            assert!(total > 0);
            (allocator, there)
        });
        let (allocator, there) = there.join().unwrap();
        check_memory(&[there]);
        // Dropped where nothing of CUDA was called before.
        std::thread::spawn(move || drop(allocator)).join().unwrap();
        settles_at(&cuda, before, which.name());
    });
}

#[test]
#[ignore = "needs a GPU: cargo test --lib -- --ignored cuda::allocator"]
fn they_outlive_the_device_that_they_came_from() {
    let (_alone, cuda) = alone();
    let vmm = DeviceAllocator::Vmm(Chunk::of(2 * MIB).unwrap());
    for which in [DeviceAllocator::CuMemAlloc, DeviceAllocator::MemPoolKeep, vmm] {
        let Ok(mut allocator) = cuda.allocator(which) else { continue };
        let cuda = Cuda::open(0).unwrap();
        drop(cuda);
        let block = allocator.allocate(MIB).unwrap();
        check_memory(&[block]);
    }
    let Ok(mut last) = cuda.allocator(vmm) else { return };
    drop(cuda);
    let block = last.allocate(MIB).unwrap();
    check_memory(&[block]);
    assert_eq!(last.free(block.address), Ok(()));
}

#[test]
#[ignore = "needs a GPU: cargo test --lib -- --ignored cuda::allocator"]
fn chunks_lie_where_they_are_mapped_at_every_range() {
    let (_guard, cuda) = alone();
    let chunk_bytes = 2 * MIB;
    match cuda.physical(chunk_bytes, 1).map(|first| first.map(&[0]).map(drop)) {
        Err(error @ DeviceError::NoAllocator { .. }) => return println!("skipped: {error}"),
        first => first.unwrap().unwrap(),
    }
    let before = cuda.free_bytes().unwrap();
    let mut chunks = cuda.physical(chunk_bytes, 8).unwrap();
    assert_eq!(
        (chunks.chunks(), chunks.chunk_bytes(), chunks.create_ns().len()),
        (8, chunk_bytes, 8)
    );
    let order = [5, 2, 7, 0, 3, 6, 1, 4];
    let [straight, shuffled] =
        [[0, 1, 2, 3, 4, 5, 6, 7], order].map(|order| chunks.map(&order).unwrap());
    assert_eq!(shuffled.times.map_ns.len(), 8);
    let at = |mapped: &crate::device::Mapped, part: u64| {
        mapped.buffer.span().address() + part * chunk_bytes + part
    };
    (0..8).for_each(|part| fill(at(&straight, part), 10 + part as u8));
    for (part, chunk) in (0..).zip(order) {
        let address = shuffled.buffer.span().address() + part * chunk_bytes + u64::from(chunk);
        assert_eq!(read(address), 10 + chunk as u8, "part {part}");
    }
    assert!(chunks.map(&[8]).is_err() && chunks.map(&[]).is_err());
    // What is mapped stays, whoever gives the chunks back.
    chunks.retain(&|at| at % 2 == 1).unwrap();
    assert_eq!(chunks.chunks(), 4);
    drop(straight);
    drop(chunks);
    assert_eq!(read(shuffled.buffer.span().address() + 5), 15);
    drop(shuffled);
    settles_at(&cuda, before, "chunks");
    let wanted = (before / chunk_bytes) as u32 + 1;
    let refused = cuda.physical(chunk_bytes, wanted).err();
    assert!(matches!(refused, Some(DeviceError::OutOfMemory { .. })), "{refused:?}");
    settles_at(&cuda, before, "chunks that could not all be made");
    assert!(matches!(cuda.physical(4096, 1).err(), Some(DeviceError::NoAllocator { .. })));
}
