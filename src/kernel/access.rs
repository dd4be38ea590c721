//! The kernels that are measured, with their operands and the bytes that they move.

use super::extents::Varied;
use crate::device::bindings as b;
use crate::device::{DeviceError, Entry, Launch, Movement, Mover, Shape, Span, Spans, Variant};
use crate::layout::{Layout, Pattern, UNIT_BYTES};
use crate::record::{KernelName, Order, Refined};

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
    kernel: Kernel,
    variant: Variant,
    pub(super) target: Target<'a>,
}

/// What it is done to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    /// A contiguous range, or fragments of one length.
    Uniform(Shape, Spans<'a>),
    /// Fragments of varying length.
    Varied(Varied<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kernel {
    Own(Movement),
    DriverCopy,
}

/// What an access to a layout needs beside its arena.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// The slot of each fragment; not read by a strided gather.
    pub index: Option<Span<'a>>,
    /// Where a copy finds or leaves the payload: as long as that.
    pub payload: Option<Span<'a>>,
    /// The sums of a read.
    pub sums: Option<Span<'a>>,
}

impl<'a> Access<'a> {
    /// A read of `source` from end to end.
    pub fn read(source: Span<'a>, sums: Span<'a>, data_key: u64) -> Access<'a> {
        let spans = Spans { source: Some(source), sums: Some(sums), ..Spans::default() };
        Access::contiguous(Kernel::Own(Movement::Read), source.bytes(), spans, data_key)
    }

    /// A write of `destination` from end to end.
    pub fn write(destination: Span<'a>, data_key: u64) -> Access<'a> {
        let spans = Spans { destination: Some(destination), ..Spans::default() };
        Access::contiguous(Kernel::Own(Movement::Write), destination.bytes(), spans, data_key)
    }

    /// A copy of `source` to `destination`, which has to be as long.
    pub fn copy(source: Span<'a>, destination: Span<'a>, data_key: u64) -> Access<'a> {
        let spans = both(source, destination);
        Access::contiguous(Kernel::Own(Movement::Copy), source.bytes(), spans, data_key)
    }

    /// The same by the driver's own copy.
    pub fn driver_copy(source: Span<'a>, destination: Span<'a>, data_key: u64) -> Access<'a> {
        let spans = both(source, destination);
        Access::contiguous(Kernel::DriverCopy, source.bytes(), spans, data_key)
    }

    fn contiguous(kernel: Kernel, bytes: u64, spans: Spans<'a>, data_key: u64) -> Access<'a> {
        let units = bytes / UNIT_BYTES;
        let shape = Shape {
            units,
            fragments: units,
            slots: units,
            stride: 1,
            data_key,
            ..Shape::default()
        };
        Access::new(kernel, Target::Uniform(shape, spans))
    }

    fn new(kernel: Kernel, target: Target<'a>) -> Access<'a> {
        Access { kernel, variant: Variant::Default, target }
    }

    pub(super) fn of_varied(movement: Movement, varied: Varied<'a>) -> Access<'a> {
        Access::new(Kernel::Own(movement), Target::Varied(varied))
    }

    /// An access to the layout's fragments, in this order.
    ///
    /// `arena` begins where the arena's data begin; the layout's offset is counted from there. A
    /// gather reads from it, a scatter writes to it.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] where the arena is shorter than the offset, the movement has no
    /// layout, or it does not take this one: a strided gather needs a constant stride, a scatter a
    /// slot for each fragment.
    pub fn of_layout(
        movement: Movement,
        layout: &Layout,
        order: &Order,
        arena: Span<'a>,
        operands: Operands<'a>,
        data_key: u64,
    ) -> Result<Access<'a>, DeviceError> {
        let refused =
            |what: &str| DeviceError::Refused { entry: movement.name(), what: what.to_owned() };
        if !movement.has_layout() {
            return Err(refused("it has no layout"));
        }
        let offset = layout.spec().offset_bytes;
        let slots = arena.bytes().checked_sub(offset).and_then(|rest| arena.slice(offset, rest));
        let slots = Some(slots.ok_or_else(|| refused("the arena is shorter than the offset"))?);
        let Operands { index, payload, sums } = operands;
        let spans = match movement {
            Movement::ScatterCopy => Spans { source: payload, destination: slots, index, sums },
            _ => Spans { source: slots, destination: payload, index, sums },
        };
        let shape = shape(layout, order, data_key);
        let follows_rule = [b::FRAGBENCH_PATTERN_CONTIGUOUS, b::FRAGBENCH_PATTERN_STRIDED]
            .contains(&shape.pattern);
        if movement == Movement::StridedGather && !follows_rule {
            return Err(refused("its fragments lie at no constant stride"));
        }
        if movement == Movement::ScatterCopy && shape.pattern == b::FRAGBENCH_PATTERN_RANDOM {
            return Err(refused("fragments may lie in the same slot"));
        }
        Ok(Access::new(Kernel::Own(movement), Target::Uniform(shape, spans)))
    }

    /// The same access by a competing variant.
    pub fn by(self, variant: Variant) -> Access<'a> {
        Access { variant, ..self }
    }

    /// The same access over its first `fragments` fragments. Of extents there are no more than those
    /// that it has.
    pub fn of_fragments(self, fragments: u64) -> Access<'a> {
        let target = match self.target {
            Target::Uniform(shape, spans) => {
                let units = fragments << shape.unit_shift;
                Target::Uniform(Shape { fragments, units, ..shape }, spans)
            }
            Target::Varied(varied) => Target::Varied(varied.of_fragments(fragments)),
        };
        Access { target, ..self }
    }

    /// The kernel's name; refined by `varied` where it takes fragments of varying length, and by the
    /// variant unless that is the default.
    pub fn kernel(&self) -> Refined<KernelName> {
        let base = match self.kernel {
            Kernel::DriverCopy => KernelName::DriverCopy,
            Kernel::Own(movement) => movement.into(),
        };
        let varied = match self.target {
            Target::Uniform(..) => None,
            Target::Varied(_) => Some("varied".to_owned()),
        };
        let variant = match self.variant {
            Variant::Default => None,
            variant => Some(variant.to_string()),
        };
        let parts: Vec<String> = varied.into_iter().chain(variant).collect();
        let refinement = (!parts.is_empty()).then(|| parts.join("."));
        Refined { base, refinement }
    }

    /// What the kernel does; none for the driver's own.
    pub fn movement(&self) -> Option<Movement> {
        match self.kernel {
            Kernel::Own(movement) => Some(movement),
            Kernel::DriverCopy => None,
        }
    }

    /// Whether the kernel reads into a checksum (else it writes a destination).
    pub fn is_read(&self) -> bool {
        self.movement().is_some_and(Movement::is_read)
    }

    /// The sums that it reads into; none where it writes.
    pub fn sums(&self) -> Option<Span<'a>> {
        let sums = match self.target {
            Target::Uniform(_, spans) => spans.sums,
            Target::Varied(varied) => varied.spans.sums,
        };
        sums.filter(|_| self.is_read())
    }

    /// Bytes of payload.
    pub fn payload_bytes(&self) -> u64 {
        self.units() * u64::from(self.unit_bytes())
    }

    /// Units of payload: what is compared, and weighted in a checksum.
    pub(super) fn units(&self) -> u64 {
        match self.target {
            Target::Uniform(shape, _) => shape.units,
            Target::Varied(varied) => varied.shape.units,
        }
    }

    /// Length of a unit in bytes: 4, 8 or 16.
    pub fn unit_bytes(&self) -> u32 {
        match self.target {
            Target::Uniform(shape, _) => shape.unit_bytes,
            Target::Varied(varied) => varied.shape.form.unit_bytes(),
        }
    }

    /// Bytes that one launch moves.
    pub fn traffic(&self) -> Traffic {
        let payload = self.payload_bytes();
        let movement = self.movement();
        let follows = movement.is_some_and(Movement::follows_index);
        let index_bytes = match self.target {
            Target::Varied(varied) => varied.index_bytes(),
            Target::Uniform(shape, _) if follows => {
                shape.fragments * u64::from(shape.index_entry_bytes)
            }
            Target::Uniform(..) => 0,
        };
        Traffic {
            read_bytes: if movement == Some(Movement::Write) { 0 } else { payload },
            written_bytes: if self.is_read() { 0 } else { payload },
            index_bytes,
        }
    }

    /// The entry point; none for the driver's own copy.
    pub fn entry(&self) -> Option<Entry> {
        let movement = self.movement()?;
        let variant = self.variant;
        Some(match self.target {
            Target::Varied(varied) => Entry::Varied(varied.entry(movement, variant)),
            Target::Uniform(shape, _) => {
                let index_entry_bytes =
                    if movement.follows_index() { shape.index_entry_bytes } else { 0 };
                let unit_bytes = shape.unit_bytes;
                Entry::Move(Mover { movement, index_entry_bytes, unit_bytes, variant })
            }
        })
    }

    /// The launch, checked against its operands.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] names the operand that does not fit.
    pub fn launch(&self) -> Result<Launch<'a>, DeviceError> {
        let (shape, spans) = match (self.target, self.movement()) {
            (Target::Varied(varied), Some(movement)) => {
                return varied.launch(varied.entry(movement, self.variant));
            }
            (Target::Varied(_), None) => return Err(missing("contiguous range")),
            (Target::Uniform(shape, spans), _) => (shape, spans),
        };
        if let Some(entry) = self.entry() {
            return Launch::kernel(entry, spans, shape);
        }
        let source = spans.source.ok_or_else(|| missing("source"))?;
        let destination = spans.destination.ok_or_else(|| missing("destination"))?;
        Launch::driver_copy(source, destination)
    }
}

fn missing(what: &str) -> DeviceError {
    DeviceError::Refused { entry: "driver_copy", what: format!("the {what} is missing") }
}

fn both<'a>(source: Span<'a>, destination: Span<'a>) -> Spans<'a> {
    Spans { source: Some(source), destination: Some(destination), ..Spans::default() }
}

impl From<Movement> for KernelName {
    fn from(movement: Movement) -> KernelName {
        movement.name().to_owned().into()
    }
}

/// The shape of a layout that is visited in this order.
fn shape(layout: &Layout, order: &Order, data_key: u64) -> Shape {
    let unit_bytes = layout.unit_bytes();
    let shape = Shape {
        units: layout.payload_bytes() / unit_bytes,
        fragments: layout.fragments(),
        slots: layout.slots(),
        // Nothing is left between contiguous fragments, however large the footprint.
        stride: if layout.pattern() == Pattern::Contiguous { 1 } else { layout.stride() },
        window: layout.window().unwrap_or(0),
        origin: layout.spec().offset_bytes / unit_bytes,
        layout_key: layout.key(),
        data_key,
        unit_shift: layout.unit_shift(),
        index_entry_bytes: layout.index_entry_bytes(),
        pattern: pattern_code(layout.pattern()),
        sorted: *order == Order::Sorted,
        unit_bytes: unit_bytes as u32,
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

fn pattern_code(pattern: Pattern) -> u32 {
    match pattern {
        Pattern::Contiguous => b::FRAGBENCH_PATTERN_CONTIGUOUS,
        Pattern::Strided { .. } => b::FRAGBENCH_PATTERN_STRIDED,
        Pattern::Shuffled { .. } => b::FRAGBENCH_PATTERN_SHUFFLED,
        Pattern::Random => b::FRAGBENCH_PATTERN_RANDOM,
        Pattern::Checkerboard => b::FRAGBENCH_PATTERN_CHECKERBOARD,
        Pattern::Holes { .. } => b::FRAGBENCH_PATTERN_HOLES,
    }
}
