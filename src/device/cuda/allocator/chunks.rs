//! Physical chunks that are mapped under ranges of addresses, in any order and several times.

use std::rc::Rc;
use std::time::Instant;

use super::super::DeviceError;
use super::home::Failure;
use super::virtual_memory::{Handle, VirtualMemory, release};
use crate::device::memory::Release;
use crate::device::physical::check_order;
use crate::device::{Buffer, MapTimes, Mapped, Physical};
use crate::policy::Region;

/// Who asks, where there is no virtual memory management.
const NAME: &str = "vmm";

/// Chunks of a device. Given back when dropped; what is mapped of them stays.
pub(in super::super) struct Chunks {
    memory: Rc<VirtualMemory>,
    chunk_bytes: u64,
    handles: Vec<Handle>,
    create_ns: Vec<u64>,
}

impl Chunks {
    pub fn create(ordinal: u32, chunk_bytes: u64, count: u32) -> Result<Chunks, DeviceError> {
        let memory = VirtualMemory::create(NAME, ordinal)?;
        memory.check_granules(NAME, "chunks", chunk_bytes)?;
        let memory = Rc::new(memory);
        let mut chunks = Chunks { memory, chunk_bytes, handles: Vec::new(), create_ns: Vec::new() };
        for _ in 0..count {
            let (handle, ns) = timed(|| chunks.memory.create_chunk(chunk_bytes));
            chunks.handles.push(handle.map_err(|failure| chunks.error(failure, chunk_bytes))?);
            chunks.create_ns.push(ns);
        }
        Ok(chunks)
    }

    fn error(&self, failure: Failure, requested: u64) -> DeviceError {
        match failure {
            Failure::OutOfMemory => {
                let free = self.memory.memory_bytes().map_or(0, |(free, _)| free);
                DeviceError::OutOfMemory { requested, free }
            }
            other => other.device_error(),
        }
    }
}

fn timed<T>(call: impl FnOnce() -> T) -> (T, u64) {
    let begin = Instant::now();
    let answer = call();
    (answer, begin.elapsed().as_nanos() as u64)
}

impl Physical for Chunks {
    fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    fn chunks(&self) -> u32 {
        self.handles.len() as u32
    }

    fn create_ns(&self) -> &[u64] {
        &self.create_ns
    }

    fn retain(&mut self, keep: &dyn Fn(u32) -> bool) -> Result<(), DeviceError> {
        let (mut at, mut released) = (0, Ok(()));
        self.handles.retain(|&handle| {
            let is_kept = keep(at);
            at += 1;
            if !is_kept {
                // Every one, whatever the others say.
                released = std::mem::replace(&mut released, Ok(())).and(release(handle));
            }
            is_kept
        });
        released.map_err(Failure::device_error)
    }

    fn map(&self, order: &[u32]) -> Result<Mapped, DeviceError> {
        check_order(order, self.chunks())?;
        let bytes = order.len() as u64 * self.chunk_bytes;
        let error = |failure| self.error(failure, bytes);
        let (region, reserve_ns) = timed(|| self.memory.reserve(bytes));
        let region = region.map_err(error)?;
        let mut range = Range { memory: self.memory.clone(), region, mapped_bytes: 0 };
        let mut times = MapTimes { reserve_ns, ..MapTimes::default() };
        for &at in order {
            let address = region.address + range.mapped_bytes;
            let piece = Region { address, bytes: self.chunk_bytes };
            let handle = self.handles[at as usize];
            let (mapped, ns) = timed(|| self.memory.map_chunk(piece, handle));
            mapped.map_err(error)?;
            range.mapped_bytes += self.chunk_bytes;
            times.map_ns.push(ns);
        }
        let (opened, ns) = timed(|| self.memory.open(region));
        opened.map_err(error)?;
        times.open_ns = ns;
        Ok(Mapped { buffer: Buffer::new(region.address, bytes, Rc::new(range)), times })
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        // Nobody is left to tell.
        for &handle in &self.handles {
            let _ = release(handle);
        }
    }
}

/// Addresses, the first part of which is mapped. Undone when dropped, by the buffer that owns it or
/// before there is one.
struct Range {
    memory: Rc<VirtualMemory>,
    region: Region,
    mapped_bytes: u64,
}

impl Release for Range {
    /// With the range itself, which nobody but the buffer holds.
    fn release(&self, _address: u64, _bytes: u64) {}
}

impl Drop for Range {
    fn drop(&mut self) {
        if self.mapped_bytes > 0 {
            let part = Region { bytes: self.mapped_bytes, ..self.region };
            let _ = self.memory.unmap(part, &[]);
        }
        let _ = self.memory.free_addresses(self.region);
    }
}
