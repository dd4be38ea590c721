//! Random bits by position: what every source holds, and what poisons a destination.

use crate::device::{Device, DeviceError, Entry, Launch, Shape, Span, Spans};
use crate::layout::UNIT_BYTES;

/// Bytes behind each destination that nobody may write.
pub const GUARD_BYTES: u64 = 64 << 10;

/// Fills the span with the random bits of `data_key`: the 64-bit word at position `w` (counted
/// from the span's begin) is `layout::bijection::draw(data_key, w)`.
///
/// # Errors
///
/// Whatever the device says.
pub fn fill(device: &dyn Device, span: Span<'_>, data_key: u64) -> Result<(), DeviceError> {
    let spans = Spans { destination: Some(span), ..Spans::default() };
    let shape = Shape { units: span.bytes() / UNIT_BYTES, data_key, ..Shape::default() };
    device.launch(&Launch::kernel(Entry::Fill, spans, shape)?)
}
