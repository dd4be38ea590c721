//! Physical memory apart from addresses.

use super::{Buffer, DeviceError};

/// Physical memory of a device in chunks of one length, to be mapped under addresses in any order, and
/// under several ranges at a time. What is mapped stays when the chunks are given back.
pub trait Physical {
    /// How long each chunk is, in bytes.
    fn chunk_bytes(&self) -> u64;

    /// How many there are. They are numbered in the order in which they were made.
    fn chunks(&self) -> u32;

    /// How long the driver took to make each chunk, in nanoseconds, those given back included.
    fn create_ns(&self) -> &[u64];

    /// Gives back the chunks that are not to be kept; the others are numbered anew, in their order.
    ///
    /// # Errors
    ///
    /// Whatever the driver says.
    fn retain(&mut self, keep: &dyn Fn(u32) -> bool) -> Result<(), DeviceError>;

    /// Maps chunks one behind the other under a range of new addresses: `order[i]` is the number of
    /// the chunk under its i-th part.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] where the order names a chunk that is not there, or none at all;
    /// else whatever the driver says. Nothing is mapped then.
    fn map(&self, order: &[u32]) -> Result<Mapped, DeviceError>;
}

/// A range of addresses with memory under it.
pub struct Mapped {
    /// The range: unmapped when dropped.
    pub buffer: Buffer,
    /// How long mapping took.
    pub times: MapTimes,
}

/// How long the driver's calls took that put memory under a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapTimes {
    /// The reservation of the addresses, in nanoseconds.
    pub reserve_ns: u64,
    /// Mapping each chunk, in nanoseconds.
    pub map_ns: Vec<u64>,
    /// Making all of the range accessible in one call, in nanoseconds.
    pub open_ns: u64,
}

/// Refuses an order that names chunks which are not there.
pub(super) fn check_order(order: &[u32], chunks: u32) -> Result<(), DeviceError> {
    let refused = |what: String| Err(DeviceError::Refused { entry: "chunks", what });
    if order.is_empty() {
        return refused("there is nothing to map".to_owned());
    }
    match order.iter().find(|&&at| at >= chunks) {
        Some(at) => refused(format!("chunk {at} is asked for, and there are {chunks}")),
        None => Ok(()),
    }
}
