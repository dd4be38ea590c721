//! The device's own allocators, each behind [`Policy`], and its virtual memory as a
//! [`Source`](crate::policy::Source).

mod books;
mod chunks;
mod home;
mod library;
mod plain;
mod pool;
mod ranges;
mod runtime;
mod source;
#[cfg(test)]
mod tests;
mod virtual_memory;
mod whole_chunks;

pub(super) use chunks::Chunks;
pub(super) use home::forget_thread;
pub use source::VmmSource;

use books::Books;
use home::Failure;

use super::DeviceError;
use crate::device::DeviceAllocator;
use crate::policy::{Block, CUDA_ALIGNMENT_BYTES, Hole, HoleOrder, Policy, PolicyError, Usage};

/// Where an allocator's blocks come from: the calls alone, without books.
trait Calls: Send {
    /// What a block needs to be given back, beside its address.
    type Held: Send;

    /// The alignment of every block in bytes.
    fn alignment_bytes(&self) -> u64 {
        CUDA_ALIGNMENT_BYTES
    }

    /// Bytes that a request takes; none where there is no such number. Where the allocator does not
    /// tell, whole 256 B: a lower bound, what a request really takes has to be measured.
    fn rounded_bytes(&self, bytes: u64) -> Option<u64> {
        books::whole(bytes, CUDA_ALIGNMENT_BYTES)
    }

    /// Takes a block of `bytes` bytes, at least 1; nothing is lost where that fails.
    fn take(&mut self, bytes: u64, rounded_bytes: u64) -> Result<(u64, Self::Held), Failure>;

    /// Gives a block back.
    fn give(&mut self, block: &Block, held: &Self::Held) -> Result<(), Failure>;

    /// Gives what is free back to the driver, and tells how much that was.
    fn trim(&mut self) -> Result<u64, Failure> {
        Ok(0)
    }
}

/// An allocator of the device with exact books. Frees what is live when it is dropped.
struct Allocator<C: Calls> {
    name: &'static str,
    calls: C,
    books: Books<C::Held>,
}

impl<C: Calls> Policy for Allocator<C> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn alignment_bytes(&self) -> u64 {
        self.calls.alignment_bytes()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        let requested_bytes = bytes.max(1);
        let rounded = self.calls.rounded_bytes(requested_bytes).ok_or(Failure::OutOfMemory);
        let taken = rounded.and_then(|rounded_bytes| {
            let (address, held) = self.calls.take(requested_bytes, rounded_bytes)?;
            Ok((Block { address, requested_bytes, rounded_bytes }, held))
        });
        let (block, held) = taken.map_err(|failure| failure.of_request(requested_bytes))?;
        self.books.add(block, held);
        Ok(block)
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        let (block, held) = self.books.remove(address).ok_or(PolicyError::NotLive { address })?;
        self.calls.give(&block, &held).map_err(|failure| {
            // Still there, for all that is known: it is tried again when the allocator is dropped.
            self.books.add(block, held);
            PolicyError::Source(failure.into())
        })
    }

    fn is_live(&self, address: u64) -> bool {
        self.books.is_live(address)
    }

    fn usage(&self) -> Usage {
        self.books.usage()
    }

    fn holes(&self, _order: HoleOrder) -> Vec<Hole> {
        Vec::new()
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        self.calls.trim().map_err(|failure| PolicyError::Source(failure.into()))
    }
}

impl<C: Calls> Drop for Allocator<C> {
    fn drop(&mut self) {
        for (block, held) in self.books.clear() {
            // Nobody is left to tell; the others are freed all the same.
            let _ = self.calls.give(&block, &held);
        }
    }
}

/// The allocator of a device, holding nothing yet.
pub(super) fn create(which: DeviceAllocator, ordinal: u32) -> Result<Box<dyn Policy>, DeviceError> {
    fn with<C: Calls + 'static>(which: DeviceAllocator, calls: C) -> Box<dyn Policy> {
        Box::new(Allocator { name: which.name(), calls, books: Books::new() })
    }
    Ok(match which {
        DeviceAllocator::CuMemAlloc => with(which, plain::Plain::create(ordinal)?),
        DeviceAllocator::CudaMalloc => with(which, runtime::Runtime::create(ordinal)?),
        DeviceAllocator::MemPoolRelease => with(which, pool::Pool::create(which, ordinal, 0)?),
        DeviceAllocator::MemPoolKeep => with(which, pool::Pool::create(which, ordinal, u64::MAX)?),
        DeviceAllocator::Vmm(chunk) => {
            with(which, whole_chunks::WholeChunks::create(which, ordinal, chunk.bytes())?)
        }
    })
}
