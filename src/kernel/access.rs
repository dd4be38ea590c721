//! The kernels that are measured, with their operands and the bytes that they move.

use crate::device::bindings as b;
use crate::device::{DeviceError, Entry, Launch, Shape, Span, Spans};
use crate::layout::{Layout, UNIT_BYTES};
use crate::record::{KernelName, Order, PatternName};

/// Bytes that one launch moves, kept apart by what they are good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Useful bytes read.
    pub read_bytes: u64,
    /// Useful bytes written.
    pub written_bytes: u64,
    /// Bytes of index read.
    pub index_bytes: u64,
}

/// One measured kernel with its operands.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    kernel: KernelKind,
    pub(super) shape: Shape,
    pub(super) spans: Spans<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KernelKind {
    Read,
    Copy,
    DriverCopy,
    GatherRead,
    GatherCopy,
}

impl<'a> Access<'a> {
    /// A read of `source` from end to end.
    pub fn read(source: Span<'a>, sums: Span<'a>, data_key: u64) -> Access<'a> {
        Access::contiguous(
            KernelKind::Read,
            source,
            Spans { sums: Some(sums), ..Spans::default() },
            data_key,
        )
    }

    /// A copy of `source` to `destination`, which has to be as long.
    pub fn copy(source: Span<'a>, destination: Span<'a>, data_key: u64) -> Access<'a> {
        let spans = Spans { destination: Some(destination), ..Spans::default() };
        Access::contiguous(KernelKind::Copy, source, spans, data_key)
    }

    /// The same by the driver's own copy.
    pub fn driver_copy(source: Span<'a>, destination: Span<'a>, data_key: u64) -> Access<'a> {
        let spans = Spans { destination: Some(destination), ..Spans::default() };
        Access::contiguous(KernelKind::DriverCopy, source, spans, data_key)
    }

    fn contiguous(
        kernel: KernelKind,
        source: Span<'a>,
        spans: Spans<'a>,
        data_key: u64,
    ) -> Access<'a> {
        let units = source.bytes() / UNIT_BYTES;
        let shape = Shape {
            units,
            fragments: units,
            slots: units,
            stride: 1,
            data_key,
            ..Shape::default()
        };
        Access { kernel, shape, spans: Spans { source: Some(source), ..spans } }
    }

    /// A gather read of the layout's fragments, in this order, out of `source`.
    pub fn gather_read(
        layout: &Layout,
        order: &Order,
        source: Span<'a>,
        index: Span<'a>,
        sums: Span<'a>,
        data_key: u64,
    ) -> Access<'a> {
        let spans =
            Spans { source: Some(source), index: Some(index), sums: Some(sums), destination: None };
        Access { kernel: KernelKind::GatherRead, shape: shape(layout, order, data_key), spans }
    }

    /// A gather copy of the layout's fragments, in this order, out of `source` into `destination`.
    pub fn gather_copy(
        layout: &Layout,
        order: &Order,
        source: Span<'a>,
        index: Span<'a>,
        destination: Span<'a>,
        data_key: u64,
    ) -> Access<'a> {
        let spans = Spans {
            source: Some(source),
            index: Some(index),
            destination: Some(destination),
            sums: None,
        };
        Access { kernel: KernelKind::GatherCopy, shape: shape(layout, order, data_key), spans }
    }

    /// The same access over its first `fragments` fragments.
    pub fn of_fragments(self, fragments: u64) -> Access<'a> {
        let units = fragments << self.shape.unit_shift;
        Access { shape: Shape { fragments, units, ..self.shape }, ..self }
    }

    /// The kernel's name.
    pub fn kernel(&self) -> KernelName {
        match self.kernel {
            KernelKind::Read => KernelName::Read,
            KernelKind::Copy => KernelName::Copy,
            KernelKind::DriverCopy => KernelName::DriverCopy,
            KernelKind::GatherRead => KernelName::GatherRead,
            KernelKind::GatherCopy => KernelName::GatherCopy,
        }
    }

    /// Whether the kernel reads into a checksum (else it writes a destination).
    pub fn is_read(&self) -> bool {
        matches!(self.kernel, KernelKind::Read | KernelKind::GatherRead)
    }

    /// Whether the kernel follows an index.
    pub fn is_gather(&self) -> bool {
        matches!(self.kernel, KernelKind::GatherRead | KernelKind::GatherCopy)
    }

    /// Bytes of payload.
    pub fn payload_bytes(&self) -> u64 {
        self.shape.units * UNIT_BYTES
    }

    /// Bytes that one launch moves.
    pub fn traffic(&self) -> Traffic {
        let payload = self.payload_bytes();
        let entry = u64::from(self.shape.index_entry_bytes);
        Traffic {
            read_bytes: payload,
            written_bytes: if self.is_read() { 0 } else { payload },
            index_bytes: if self.is_gather() { self.shape.fragments * entry } else { 0 },
        }
    }

    /// The launch, checked against its operands.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] names the operand that does not fit.
    pub fn launch(&self) -> Result<Launch<'a>, DeviceError> {
        let entry = match (self.kernel, self.shape.index_entry_bytes) {
            (KernelKind::Read, _) => Entry::Read,
            (KernelKind::Copy, _) => Entry::Copy,
            (KernelKind::GatherRead, 4) => Entry::GatherRead4,
            (KernelKind::GatherRead, _) => Entry::GatherRead8,
            (KernelKind::GatherCopy, 4) => Entry::GatherCopy4,
            (KernelKind::GatherCopy, _) => Entry::GatherCopy8,
            (KernelKind::DriverCopy, _) => {
                let missing = |what: &str| DeviceError::Refused {
                    entry: "driver_copy",
                    what: format!("the {what} is missing"),
                };
                let source = self.spans.source.ok_or_else(|| missing("source"))?;
                let destination = self.spans.destination.ok_or_else(|| missing("destination"))?;
                return Launch::driver_copy(source, destination);
            }
        };
        Launch::kernel(entry, self.spans, self.shape)
    }
}

/// The shape of a layout that is visited in this order.
pub(super) fn shape(layout: &Layout, order: &Order, data_key: u64) -> Shape {
    let shape = Shape {
        units: layout.payload_bytes() / UNIT_BYTES,
        fragments: layout.fragments(),
        slots: layout.slots(),
        stride: layout.stride(),
        layout_key: layout.key(),
        data_key,
        unit_shift: layout.unit_shift(),
        index_entry_bytes: layout.index_entry_bytes(),
        pattern: pattern_code(layout.pattern()),
        sorted: *order == Order::Sorted,
    };
    match order {
        Order::Packed => Shape {
            slots: shape.fragments,
            stride: 1,
            pattern: b::FRAGBENCH_PATTERN_CONTIGUOUS,
            ..shape
        },
        _ => shape,
    }
}

fn pattern_code(pattern: &PatternName) -> u32 {
    match pattern {
        PatternName::Strided => b::FRAGBENCH_PATTERN_STRIDED,
        PatternName::Shuffled => b::FRAGBENCH_PATTERN_SHUFFLED,
        PatternName::Random => b::FRAGBENCH_PATTERN_RANDOM,
        // `Layout::new` refuses patterns that it does not know.
        PatternName::Contiguous | PatternName::Other(_) => b::FRAGBENCH_PATTERN_CONTIGUOUS,
    }
}
