//! One launch: an entry point, its buffers and its shape, checked against each other.

use super::bindings::{self as b, fragment_task, varied_task};
use super::entry::Extent;
use super::{DeviceError, Entry, Span};
use crate::layout::UNIT_BYTES;

// Layouts count in the units that the kernels move.
const _: () = assert!(UNIT_BYTES == b::FRAGBENCH_UNIT_BYTES as u64);

/// Bytes of the sums that a launch adds its result to.
pub const SUM_BYTES: u64 = b::FRAGBENCH_SUM_SLOTS as u64 * 8;

/// Bytes of a table of windows.
pub const WINDOW_TABLE_BYTES: u64 = size_of::<b::window_table>() as u64;

/// The shape of a launch: what a layout looks like to a kernel. Field by field as in
/// `cuda/fragment.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Units of payload.
    pub units: u64,
    /// Fragments.
    pub fragments: u64,
    /// Slots in the footprint.
    pub slots: u64,
    /// Slots of a stride.
    pub stride: u64,
    /// Fragments of a window that a shuffle stays within, 0 without windows.
    pub window: u64,
    /// Units between the begin of the arena's data and its first slot.
    pub origin: u64,
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
    /// Length of a unit: 4, 8 or 16 bytes.
    pub unit_bytes: u32,
}

/// Nothing, in units of 16 bytes.
impl Default for Shape {
    fn default() -> Self {
        Shape {
            units: 0,
            fragments: 0,
            slots: 0,
            stride: 0,
            window: 0,
            origin: 0,
            layout_key: 0,
            data_key: 0,
            unit_shift: 0,
            index_entry_bytes: 0,
            pattern: b::FRAGBENCH_PATTERN_CONTIGUOUS,
            sorted: false,
            unit_bytes: b::FRAGBENCH_UNIT_BYTES,
        }
    }
}

impl Shape {
    /// Whether every slot of a strided layout is there; other closed forms stay below `slots` by
    /// their own arithmetic.
    fn stays_inside(&self) -> bool {
        let strides = self.fragments.saturating_sub(1).checked_mul(self.stride.max(1));
        strides.is_some_and(|last| last < self.slots)
    }

    /// Whether the slot of a fragment follows from its number alone (`fb_has_closed_form`).
    pub fn has_closed_form(&self) -> bool {
        let chosen = [b::FRAGBENCH_PATTERN_RANDOM, b::FRAGBENCH_PATTERN_HOLES];
        !self.sorted || !chosen.contains(&self.pattern)
    }
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
    Kernel { entry: Entry, task: Task },
    DriverCopy { source: u64, destination: u64, bytes: u64 },
}

/// What a kernel is handed, as it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// Of a kernel for fragments of one length.
    Uniform(fragment_task),
    /// Of a [varied](Entry::Varied) one.
    Varied(varied_task),
}

impl Task {
    /// Items that the kernel's threads share: units, pieces, or entries.
    pub(super) fn items(&self, entry: Entry) -> u64 {
        match (self, entry) {
            (Task::Uniform(task), _) if entry.walks_index() => task.fragments,
            (Task::Uniform(task), _) => task.units,
            (Task::Varied(task), Entry::Varied(entry)) => entry.items(task),
            (Task::Varied(task), _) => task.pieces,
        }
    }

    /// Where it adds its sum to.
    pub(super) fn sums(&self) -> u64 {
        match self {
            Task::Uniform(task) => task.sums,
            Task::Varied(task) => task.sums,
        }
    }
}

/// The address of a launch's operand, which has to have so many bytes (none: a length that overflows).
pub(super) fn address_of(
    entry: Entry,
    what: &str,
    span: Option<Span<'_>>,
    bytes: Option<u64>,
    alignment: u64,
) -> Result<u64, DeviceError> {
    let refused = |what: String| DeviceError::Refused { entry: entry.kind(), what };
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
        let refused = |what: String| DeviceError::Refused { entry: entry.kind(), what };
        if let Entry::Varied(_) = entry {
            return Err(refused("it takes extents and their table".to_owned()));
        }
        let need = |what: &str, span: Option<Span<'a>>, bytes: Option<u64>, alignment: u64| {
            address_of(entry, what, span, bytes, alignment)
        };
        let unit_bytes = u64::from(shape.unit_bytes);
        let entry_width = u64::from(shape.index_entry_bytes);
        if shape.unit_shift > 40
            || ![4, 8, 16].contains(&unit_bytes)
            || (entry.reads_index() && ![4, 8].contains(&entry_width))
        {
            return Err(refused("a fragment, unit or index has an impossible width".to_owned()));
        }
        if let Entry::Move(mover) = entry {
            let index = mover.index_entry_bytes;
            let follows = mover.movement.follows_index() && index != shape.index_entry_bytes;
            if follows || mover.unit_bytes != shape.unit_bytes {
                return Err(refused("the kernel has other widths than the layout".to_owned()));
            }
        }
        let items = if entry.walks_index() { shape.fragments } else { shape.units };
        if items == 0 {
            return Err(refused("there is nothing to do".to_owned()));
        }
        let index = shape.fragments.checked_mul(entry_width);
        let covered = shape.fragments.checked_mul(1 << shape.unit_shift);
        let has_slots = [entry.source(), entry.destination()].contains(&Extent::Slots);
        if has_slots && covered.is_none_or(|covered| covered < shape.units) {
            return Err(refused("the payload is longer than the fragments".to_owned()));
        }
        if has_slots && !entry.follows_index() && !shape.stays_inside() {
            return Err(refused("the fragments go beyond the footprint".to_owned()));
        }
        let extent = |extent: Extent| match extent {
            Extent::Slots => shape.slots.checked_mul(unit_bytes << shape.unit_shift),
            Extent::WindowTable => Some(WINDOW_TABLE_BYTES),
            _ => shape.units.checked_mul(unit_bytes),
        };
        let mut task = fragment_task {
            units: shape.units,
            fragments: shape.fragments,
            slots: shape.slots,
            stride: shape.stride,
            window: shape.window,
            origin: shape.origin,
            layout_key: shape.layout_key,
            data_key: shape.data_key,
            unit_shift: shape.unit_shift,
            index_entry_bytes: shape.index_entry_bytes,
            pattern: shape.pattern,
            sorted: u32::from(shape.sorted),
            unit_bytes: shape.unit_bytes,
            ..fragment_task::default()
        };
        if entry.source() != Extent::Nothing {
            task.source = need("source", spans.source, extent(entry.source()), unit_bytes)?;
        }
        if entry.destination() != Extent::Nothing {
            let bytes = extent(entry.destination());
            task.destination = need("destination", spans.destination, bytes, unit_bytes)?;
        }
        // Without a closed form the expectation goes through the index.
        if entry.reads_index() || !shape.has_closed_form() {
            task.index = need("index", spans.index, index, entry_width.max(1))?;
        }
        if entry.adds_to_sums() {
            task.sums = need("sums", spans.sums, Some(SUM_BYTES), 8)?;
        }
        Ok(Launch::of(Work::Kernel { entry, task: Task::Uniform(task) }))
    }

    /// A launch of work whose addresses were taken from spans of this lifetime.
    pub(super) fn of(work: Work) -> Launch<'a> {
        Launch { work, spans: std::marker::PhantomData }
    }

    /// Whether it writes to memory, sums apart.
    pub fn writes(&self) -> bool {
        match &self.work {
            Work::Kernel { entry: Entry::Move(mover), .. } => !mover.movement.is_read(),
            Work::Kernel { entry, .. } => *entry == Entry::Fill,
            Work::DriverCopy { .. } => true,
        }
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
        Ok(Launch::of(Work::DriverCopy { source, destination, bytes }))
    }
}
