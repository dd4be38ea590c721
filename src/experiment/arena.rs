//! The memory that the layouts of groups lie in.

use super::Plan;
use super::backing::Backing;
use crate::device::{Buffer, Device, DeviceError, MapTimes, Span};
use crate::record::Mapping;

/// A plain allocation, or physical chunks under several ranges of addresses.
pub(super) struct Arena {
    /// The plain allocation, or the range whose chunks lie in order.
    buffer: Buffer,
    chunk_bytes: Option<u64>,
    others: Vec<Other>,
}

/// A range with the same chunks in another order.
struct Other {
    backing: Backing,
    order: Vec<u32>,
    buffer: Buffer,
}

/// The same for those who may not outlive it.
#[derive(Clone, Copy)]
pub(super) struct Range<'a> {
    pub backing: Backing,
    pub chunk_bytes: u64,
    /// The chunk under each part, as the arena itself counts them.
    pub order: &'a [u32],
    pub span: Span<'a>,
}

impl Arena {
    /// Makes the arena of a plan. What was mapped for it is told.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn make(
        device: &dyn Device,
        plan: &Plan,
        seed: u64,
    ) -> Result<(Arena, Vec<Mapping>), DeviceError> {
        let Some(chunked) = &plan.chunked else {
            let buffer = device.allocate(plan.arena_bytes())?;
            return Ok((Arena { buffer, chunk_bytes: None, others: Vec::new() }, Vec::new()));
        };
        let chunk_bytes = chunked.chunk_bytes;
        let count = u32::try_from(chunked.chunks(plan.arena_bytes())).map_err(|_| {
            let what = "so many chunks no device has".to_owned();
            DeviceError::Refused { entry: "arena", what }
        })?;
        let physical = device.physical(chunk_bytes, count)?;
        let mapping = |backing: Backing, create_ns: u64, times: &MapTimes| Mapping {
            backing: backing.to_string(),
            chunk_bytes,
            chunks: u64::from(count),
            reserve_ns: times.reserve_ns,
            create_ns,
            map_ns: times.map_ns.iter().sum(),
            open_ns: times.open_ns,
        };
        let in_order = Backing::InOrder;
        let first = physical.map(&in_order.order(count, chunk_bytes, seed))?;
        let mut mappings = vec![mapping(in_order, physical.create_ns().iter().sum(), &first.times)];
        let mut others = Vec::new();
        for &backing in chunked.backings.iter().filter(|backing| **backing != in_order) {
            let order = backing.order(count, chunk_bytes, seed);
            let mapped = physical.map(&order)?;
            mappings.push(mapping(backing, 0, &mapped.times));
            others.push(Other { backing, order, buffer: mapped.buffer });
        }
        // The chunks' own handles end here: what is mapped stays.
        Ok((Arena { buffer: first.buffer, chunk_bytes: Some(chunk_bytes), others }, mappings))
    }

    /// Whether a plan can do with it.
    pub fn serves(&self, plan: &Plan) -> bool {
        let is_alike = match &plan.chunked {
            None => self.chunk_bytes.is_none(),
            Some(chunked) => {
                let is_there = |backing: &Backing| {
                    *backing == Backing::InOrder
                        || self.others.iter().any(|other| other.backing == *backing)
                };
                self.chunk_bytes == Some(chunked.chunk_bytes)
                    && chunked.backings.iter().all(is_there)
            }
        };
        is_alike && self.bytes() >= plan.arena_bytes()
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.buffer.bytes()
    }

    /// All of it.
    pub fn span(&self) -> Span<'_> {
        self.buffer.span()
    }

    /// The ranges with the same chunks in other orders, in the order in which a plan asks for them.
    pub fn ranges(&self, plan: &Plan) -> Vec<Range<'_>> {
        let Some(chunk_bytes) = self.chunk_bytes else { return Vec::new() };
        let wanted = plan.chunked.iter().flat_map(|chunked| &chunked.backings);
        let find = |backing: &Backing| {
            let other = self.others.iter().find(|other| other.backing == *backing)?;
            let Other { backing, order, buffer } = other;
            Some(Range { backing: *backing, chunk_bytes, order, span: buffer.span() })
        };
        wanted.filter_map(find).collect()
    }
}
