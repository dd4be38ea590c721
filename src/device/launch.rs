//! One launch: an entry point, its buffers and its shape, checked against each other.

use super::bindings::{self as b, fragment_task};
use super::{DeviceError, Entry, Span};
use crate::layout::UNIT_BYTES;

// Layouts count in the units that the kernels move.
const _: () = assert!(UNIT_BYTES == b::FRAGBENCH_UNIT_BYTES as u64);

/// Bytes of the sums that a launch adds its result to.
pub const SUM_BYTES: u64 = b::FRAGBENCH_SUM_SLOTS as u64 * 8;

/// The shape of a launch: what a layout looks like to a kernel. Field by field as in
/// `cuda/fragment.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Units of payload.
    pub units: u64,
    /// Fragments.
    pub fragments: u64,
    /// Slots in the footprint.
    pub slots: u64,
    /// Slots of a stride.
    pub stride: u64,
    /// Key of the layout's random choices.
    pub layout_key: u64,
    /// Key of the data.
    pub data_key: u64,
    /// log2 of the units in a fragment.
    pub unit_shift: u32,
    /// Width of an index entry, 0 without an index.
    pub index_entry_bytes: u32,
    /// One of the `FRAGBENCH_PATTERN_*` constants.
    pub pattern: u32,
    /// Whether fragments are visited in address order.
    pub sorted: bool,
}

/// What a launch reads and writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spans<'a> {
    /// Read by the kernel.
    pub source: Option<Span<'a>>,
    /// Written (or checked) by the kernel.
    pub destination: Option<Span<'a>>,
    /// The index.
    pub index: Option<Span<'a>>,
    /// [`SUM_BYTES`] of sums.
    pub sums: Option<Span<'a>>,
}

/// Work that can be queued on a device.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    pub(super) work: Work,
    spans: std::marker::PhantomData<Span<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    Kernel { entry: Entry, task: fragment_task },
    DriverCopy { source: u64, destination: u64, bytes: u64 },
}

impl<'a> Launch<'a> {
    /// A launch of `entry`. Whatever the kernel addresses directly is checked to lie inside the
    /// spans; of an index, that its entries are there. What the entries *say* is data: it is
    /// checked on the device (see [`Entry::CheckIndex`]) before a kernel follows it.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] names what is missing or too short.
    pub fn kernel(entry: Entry, spans: Spans<'a>, shape: Shape) -> Result<Launch<'a>, DeviceError> {
        let refused = |what: String| DeviceError::Refused { entry: entry.name(), what };
        let need = |what: &str, span: Option<Span<'a>>, bytes: Option<u64>, alignment: u64| {
            let bytes = bytes.ok_or_else(|| refused(format!("the {what}'s length overflows")))?;
            match span {
                Some(span) if span.bytes < bytes => {
                    Err(refused(format!("the {what} has {} bytes and needs {bytes}", span.bytes)))
                }
                Some(span) if span.address % alignment != 0 => {
                    Err(refused(format!("the {what} is not aligned to {alignment} bytes")))
                }
                Some(span) => Ok(span.address),
                None => Err(refused(format!("the {what} is missing"))),
            }
        };
        if shape.unit_shift > 40 || (entry.gathers() && ![4, 8].contains(&shape.index_entry_bytes))
        {
            return Err(refused("the fragment or the index has an impossible width".to_owned()));
        }
        let items = if entry.walks_index() { shape.fragments } else { shape.units };
        if items == 0 {
            return Err(refused("there is nothing to do".to_owned()));
        }
        let payload = shape.units.checked_mul(UNIT_BYTES);
        let footprint = shape.slots.checked_mul(UNIT_BYTES << shape.unit_shift);
        let index = shape.fragments.checked_mul(u64::from(shape.index_entry_bytes));
        let covered = shape.fragments.checked_mul(1 << shape.unit_shift);
        if entry.gathers() && covered.is_none_or(|covered| covered < shape.units) {
            return Err(refused("the payload is longer than the fragments".to_owned()));
        }
        let mut task = fragment_task {
            units: shape.units,
            fragments: shape.fragments,
            slots: shape.slots,
            stride: shape.stride,
            layout_key: shape.layout_key,
            data_key: shape.data_key,
            unit_shift: shape.unit_shift,
            index_entry_bytes: shape.index_entry_bytes,
            pattern: shape.pattern,
            sorted: u32::from(shape.sorted),
            ..fragment_task::default()
        };
        if entry.reads_source() {
            let bytes = if entry.gathers() { footprint } else { payload };
            task.source = need("source", spans.source, bytes, UNIT_BYTES)?;
        }
        if entry.uses_destination() {
            task.destination = need("destination", spans.destination, payload, UNIT_BYTES)?;
        }
        // A sorted random layout has no closed form: its expectation goes through the index.
        let through_index = shape.sorted && shape.pattern == b::FRAGBENCH_PATTERN_RANDOM;
        if entry.reads_index() || through_index {
            task.index =
                need("index", spans.index, index, u64::from(shape.index_entry_bytes).max(1))?;
        }
        if entry.adds_to_sums() {
            task.sums = need("sums", spans.sums, Some(SUM_BYTES), 8)?;
        }
        Ok(Launch { work: Work::Kernel { entry, task }, spans: std::marker::PhantomData })
    }

    /// The driver's own copy of a contiguous range (`memcpy` on the host).
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] where the lengths differ.
    pub fn driver_copy(source: Span<'a>, destination: Span<'a>) -> Result<Launch<'a>, DeviceError> {
        if source.bytes != destination.bytes {
            return Err(DeviceError::Refused {
                entry: "driver_copy",
                what: format!("{} bytes into {}", source.bytes, destination.bytes),
            });
        }
        let (source, destination, bytes) = (source.address, destination.address, source.bytes);
        Ok(Launch {
            work: Work::DriverCopy { source, destination, bytes },
            spans: std::marker::PhantomData,
        })
    }
}
