//! What a group is measured with: its buffers, and its arms.

use super::Plan;
use super::arena::Range;
use super::backing::Backing;
use super::fragments::{Directory, Ends, Fragments};
use super::heap_cache::HeapCache;
use super::mitigations::{IN_REACH, Mitigations};
use super::plan::{COMPACTION, Subject};
use crate::device::{Buffer, Device, DeviceError, Launch, Movement, SUM_BYTES, Span, Variant};
use crate::kernel::{Access, GUARD_BYTES, Operands, WindowBuffers, fill};
use crate::layout::{Pattern, UNIT_BYTES, draw, mix};
use crate::record::{Duels, KernelName, Order, PatternName, Refined};
use crate::stats::Sharing;

/// What a group is measured on.
pub(super) struct Ground<'a> {
    pub device: &'a dyn Device,
    /// The footprint, filled with the data of `data_key`, with a guard behind it.
    pub arena: Span<'a>,
    /// All of the memory that the arena is the beginning of.
    pub whole: Span<'a>,
    /// The ranges in which the same physical chunks lie in other orders.
    pub ranges: Vec<Range<'a>>,
    /// Which multiprocessors share a TLB, where that was asked and there is an answer.
    pub tlb: Option<(&'a Duels, &'a Sharing)>,
    pub seed: u64,
    /// Which of a plan's repetitions and placements it is: 0 of most.
    pub turn: u64,
    pub data_key: u64,
    pub heaps: &'a HeapCache,
}

/// Buffers of a group; the arms borrow from them.
pub(super) struct Buffers {
    /// The payload's other end: what a gather writes and a scatter reads, with a guard behind it, or
    /// the staging for what is copied back.
    pub payload: Buffer,
    /// How kernels find the fragments of each order, where they follow a directory.
    pub directories: Vec<(Order, Directory)>,
    /// The sums of all arms. Each its own would not do: where sums lie moved an arm that reads by 0.06 %
    /// (a kernel compared with itself on an H200).
    pub sums: Buffer,
    /// What is done against the TLB's misses, where that is compared.
    pub mitigations: Option<Mitigations>,
    /// The same data as in the arena, where the second arm has its own, with a guard behind them.
    pub twin: Option<Buffer>,
}

/// One arm: its name, what it does, and how it is recorded.
pub(super) struct PlannedArm<'a> {
    pub name: String,
    pub pattern: Refined<PatternName>,
    pub order: Option<Order>,
    /// What its checksum is held against, for reads.
    pub reference: Reference<'a>,
    /// Touched bytes of the arena.
    pub arena_touched_bytes: u64,
    pub access: Access<'a>,
    pub launch: Launch<'a>,
    /// The checksum of one launch, for reads.
    pub expected: u64,
}

impl PlannedArm<'_> {
    /// The order of the chunks under what it reads, where that is made of chunks.
    pub fn backing(&self) -> Backing {
        match &self.reference {
            Reference::Range(range) => range.backing,
            _ => Backing::InOrder,
        }
    }
}

/// What tells the checksum of an arm that reads.
#[derive(Clone)]
pub(super) enum Reference<'a> {
    /// The layout's closed form, which the device evaluates.
    ClosedForm,
    /// The arena, where the range that the arm reads has its chunks in another order.
    Range(Range<'a>),
    /// The same reads by another kernel.
    Launch(Access<'a>),
}

/// Arms so far.
struct Arms<'g, 'a> {
    ground: &'g Ground<'a>,
    all: Vec<PlannedArm<'a>>,
}

/// The arm that was added last; none where the device has no such kernel.
struct Added<'s, 'a>(Option<&'s mut PlannedArm<'a>>);

impl<'a> Arms<'_, 'a> {
    /// Adds an arm that the closed form tells the checksum of, where the device has its kernel.
    fn push(
        &mut self,
        name: String,
        pattern: Refined<PatternName>,
        order: Option<Order>,
        arena_touched_bytes: u64,
        access: Access<'a>,
    ) -> Result<Added<'_, 'a>, DeviceError> {
        if access.entry().is_some_and(|entry| !self.ground.device.has(entry)) {
            return Ok(Added(None));
        }
        let (launch, reference) = (access.launch()?, Reference::ClosedForm);
        self.all.push(PlannedArm {
            name,
            pattern,
            order,
            reference,
            arena_touched_bytes,
            access,
            launch,
            expected: 0,
        });
        Ok(Added(self.all.last_mut()))
    }
}

impl<'a> Added<'_, 'a> {
    /// Has its checksum told by something else.
    fn by(self, reference: Reference<'a>) {
        if let Some(arm) = self.0 {
            arm.reference = reference;
        }
    }
}

impl Buffers {
    /// Allocates what the group needs beside its arena. A scatter's payload holds its data.
    pub fn allocate(
        ground: &Ground<'_>,
        plan: &Plan,
        fragments: Option<&Fragments>,
    ) -> Result<Buffers, DeviceError> {
        let payload_bytes = payload_bytes(plan, fragments);
        let written = match (plan.subject.writes(), fragments) {
            (false, Some(fragments)) => fragments.staging_bytes(),
            // What only reads one range has nothing to stage.
            (false, None) => UNIT_BYTES,
            (true, _) => payload_bytes + GUARD_BYTES,
        };
        let payload = ground.device.allocate(written)?;
        let follows = plan.subject.movement().is_some_and(Movement::follows_index);
        let mut directories = Vec::new();
        for order in plan.orders().iter().filter(|_| follows) {
            let Some(fragments) = fragments else { break };
            directories.push((order.clone(), fragments.directory(order, ground)?));
        }
        let sums = ground.device.allocate(SUM_BYTES)?;
        let twin = match plan.twin_bytes() {
            0 => None,
            bytes => Some(ground.device.allocate(bytes)?),
        };
        if let Some(twin) = &twin {
            fill(ground.device, twin.span(), ground.data_key)?;
        }
        let mitigations = match (plan.subject, fragments) {
            (Subject::Mitigations, Some(Fragments::Uniform(layout))) => {
                let of_scattered = directories.iter().find(|(order, _)| *order == Order::Scattered);
                match of_scattered {
                    Some((_, Directory::Index { on_host, .. })) => {
                        Some(Mitigations::make(ground, layout, on_host)?)
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        Ok(Buffers { payload, directories, sums, mitigations, twin })
    }

    /// Puts the data of a scatter's payload in place, once nothing else is staged there.
    pub fn fill_payload(&self, ground: &Ground<'_>, plan: &Plan) -> Result<(), DeviceError> {
        match plan.subject.movement() {
            Some(Movement::ScatterCopy) => {
                fill(ground.device, self.payload.span(), ground.data_key)
            }
            _ => Ok(()),
        }
    }

    /// How kernels find the fragments of an order.
    pub fn directory(&self, order: &Order) -> Option<&Directory> {
        self.directories.iter().find(|(own, _)| own == order).map(|(_, directory)| directory)
    }
}

/// Bytes of payload: those of the fragments, where there are any.
pub(super) fn payload_bytes(plan: &Plan, fragments: Option<&Fragments>) -> u64 {
    fragments.map_or(plan.scene.payload_bytes(), Fragments::payload_bytes)
}

/// The arms of a kernel that is compared with itself.
const TWINS: [&str; 2] = ["a", "b"];

/// The default, and where they are compared its competitors.
fn variants(subject: Subject) -> Vec<Variant> {
    let competitors = match subject {
        Subject::Variants(movement) => movement.competitors(),
        _ => &[],
    };
    std::iter::once(Variant::Default).chain(competitors.iter().copied()).collect()
}

/// The arms of a group. Competitors that the device does not have are left out.
pub(super) fn plan_arms<'a>(
    ground: &Ground<'a>,
    plan: &Plan,
    fragments: Option<&'a Fragments>,
    touched_bytes: u64,
    buffers: &'a Buffers,
) -> Result<Vec<PlannedArm<'a>>, DeviceError> {
    let outside = || DeviceError::Refused {
        entry: "arm",
        what: "the payload does not fit its buffer".to_owned(),
    };
    // A stream moves whole units.
    let bytes = payload_bytes(plan, fragments) / UNIT_BYTES * UNIT_BYTES;
    let whole = payload_bytes(plan, fragments);
    let key = ground.data_key;
    let sums = buffers.sums.span();
    let mut arms = Arms { ground, all: Vec::new() };
    let packed_arena = ground.arena.slice(0, bytes).ok_or_else(outside)?;
    // Of a gather that reads, the buffer is only staging.
    let payload = buffers.payload.slice(0, bytes);
    let contiguous = || Refined::from(PatternName::Contiguous);
    let stream = |movement: Movement| {
        let end = || payload.ok_or_else(outside);
        Ok::<_, DeviceError>(match movement {
            Movement::Write => Access::write(end()?, key),
            Movement::Copy | Movement::GatherCopy => Access::copy(packed_arena, end()?, key),
            Movement::ScatterCopy => Access::copy(end()?, packed_arena, key),
            _ => Access::read(packed_arena, sums, key),
        })
    };
    let arm_name = |base: &str, variant: Variant| match variant {
        Variant::Default => base.to_owned(),
        variant => format!("{base}.{variant}"),
    };
    match plan.subject {
        Subject::Ceiling => {
            for movement in [Movement::Read, Movement::Write, Movement::Copy] {
                let access = stream(movement)?;
                arms.push(movement.name().to_owned(), contiguous(), None, bytes, access)?;
            }
            let access = Access::driver_copy(packed_arena, payload.ok_or_else(outside)?, key);
            arms.push(KernelName::DriverCopy.to_string(), contiguous(), None, bytes, access)?;
        }
        Subject::Variants(movement) if !movement.has_layout() => {
            for variant in variants(plan.subject) {
                let access = stream(movement)?.by(variant);
                arms.push(arm_name(movement.name(), variant), contiguous(), None, bytes, access)?;
            }
        }
        Subject::Backings(movement) => {
            let ranges = ground.ranges.iter().copied().map(Some);
            for range in std::iter::once(None).chain(ranges) {
                let reference = || range.map_or(Reference::ClosedForm, Reference::Range);
                let backing = range.map_or(Backing::InOrder, |range| range.backing).to_string();
                let home = range.map_or(ground.arena, |range| range.span);
                let Some(fragments) = fragments else {
                    let source = home.slice(0, bytes).ok_or_else(outside)?;
                    let access = Access::read(source, sums, key);
                    arms.push(backing, contiguous(), None, bytes, access)?.by(reference());
                    continue;
                };
                for order in plan.orders() {
                    let ends = Ends {
                        arena: home.slice(0, plan.scene.arena_bytes()).ok_or_else(outside)?,
                        payload: None,
                        sums: Some(sums),
                    };
                    let directory = buffers.directory(order);
                    let access = fragments.access(movement, order, directory, ends, key)?;
                    let name = match order {
                        Order::Scattered => backing.clone(),
                        order => format!("{backing}.{order}"),
                    };
                    let pattern = plan.scene.pattern();
                    let order = Some(order.clone());
                    arms.push(name, pattern, order, touched_bytes, access)?.by(reference());
                }
            }
        }
        Subject::Same(movement) | Subject::Moved(movement) => {
            let fragments = fragments.ok_or_else(outside)?;
            let footprint = |span: Span<'a>| span.slice(0, plan.scene.arena_bytes());
            let twin = buffers.twin.as_ref().map_or(ground.arena, Buffer::span);
            // Which arm has the arena is drawn: what lies where must not favour one of them.
            let is_swapped = draw(mix(ground.seed), ground.turn) & 1 == 1;
            let homes = if is_swapped { [twin, ground.arena] } else { [ground.arena, twin] };
            for (name, home) in TWINS.into_iter().zip(homes) {
                let ends = Ends {
                    arena: footprint(home).ok_or_else(outside)?,
                    payload: buffers.payload.slice(0, whole).filter(|_| !movement.is_read()),
                    sums: movement.is_read().then_some(sums),
                };
                let order = Order::Scattered;
                let directory = buffers.directory(&order);
                let access = fragments.access(movement, &order, directory, ends, key)?;
                let pattern = plan.scene.pattern();
                arms.push(name.to_owned(), pattern, Some(order), touched_bytes, access)?;
            }
        }
        Subject::Mitigations => {
            let fragments = fragments.ok_or_else(outside)?;
            let arena = ground.arena.slice(0, plan.scene.arena_bytes()).ok_or_else(outside)?;
            let ends = Ends { arena, payload: None, sums: Some(sums) };
            let gather = Movement::GatherRead;
            for order in plan.orders() {
                let packed = *order == Order::Packed;
                let touched = if packed { fragments.packed_touched_bytes() } else { touched_bytes };
                let directory = buffers.directory(order);
                let access = fragments.access(gather, order, directory, ends, key)?;
                let pattern = if packed { contiguous() } else { plan.scene.pattern() };
                arms.push(order.to_string(), pattern, Some(order.clone()), touched, access)?;
            }
            let Some(mitigations) = &buffers.mitigations else { return Err(outside()) };
            let order = WindowBuffers::ORDER;
            if let Some((fragments, directory)) = &mitigations.in_reach {
                let access = fragments.access(gather, &order, Some(directory), ends, key)?;
                let pattern = plan.scene.pattern();
                let order = Some(order.clone());
                arms.push(IN_REACH.to_owned(), pattern, order, touched_bytes, access)?;
            }
            let Fragments::Uniform(layout) = fragments else { return Err(outside()) };
            for (name, windows) in &mitigations.windows {
                let operands =
                    |payload| Operands { index: Some(windows.index()), payload, sums: Some(sums) };
                let of = |payload| {
                    Access::of_layout(gather, layout, &order, arena, operands(payload), key)
                };
                let access = of(Some(windows.table()))?.by(Variant::Windows);
                let pattern = plan.scene.pattern();
                let order = Some(order.clone());
                // The default kernel, which is verified itself, through the same index.
                let reference = Reference::Launch(of(None)?);
                arms.push(name.clone(), pattern, order, touched_bytes, access)?.by(reference);
            }
        }
        Subject::Compaction => {
            let fragments = fragments.ok_or_else(outside)?;
            let arena = ground.arena.slice(0, plan.scene.arena_bytes()).ok_or_else(outside)?;
            let (gather, scattered) = (Movement::GatherRead, Order::Scattered);
            let reading = Ends { arena, payload: None, sums: Some(sums) };
            let copying = Ends { arena, payload: buffers.payload.slice(0, whole), sums: None };
            for (order, touched) in [
                (Order::Packed, fragments.packed_touched_bytes()),
                (Order::Scattered, touched_bytes),
            ] {
                let directory = buffers.directory(&order);
                let access = fragments.access(gather, &order, directory, reading, key)?;
                let is_packed = order == Order::Packed;
                let pattern = if is_packed { contiguous() } else { plan.scene.pattern() };
                arms.push(order.to_string(), pattern, Some(order), touched, access)?;
            }
            let directory = buffers.directory(&scattered);
            let copy = Movement::GatherCopy;
            let access = fragments.access(copy, &scattered, directory, copying, key)?;
            let (pattern, order) = (plan.scene.pattern(), Some(scattered));
            arms.push(COMPACTION.to_owned(), pattern, order, touched_bytes, access)?;
        }
        Subject::Layout(movement) | Subject::Variants(movement) => {
            let fragments = fragments.ok_or_else(outside)?;
            if let Subject::Layout(_) = plan.subject {
                arms.push("stream".to_owned(), contiguous(), None, bytes, stream(movement)?)?;
            }
            for order in plan.orders() {
                let packed = *order == Order::Packed;
                let touched = if packed { fragments.packed_touched_bytes() } else { touched_bytes };
                let pattern = match packed {
                    true => Pattern::Contiguous.refined(plan.scene.offset_bytes()),
                    false => plan.scene.pattern(),
                };
                for variant in variants(plan.subject) {
                    let reads = movement.is_read();
                    let arena = ground.arena.slice(0, plan.scene.arena_bytes());
                    let ends = Ends {
                        arena: arena.ok_or_else(outside)?,
                        payload: buffers.payload.slice(0, whole).filter(|_| !reads),
                        sums: reads.then_some(sums),
                    };
                    let directory = buffers.directory(order);
                    let mut access = fragments.access(movement, order, directory, ends, key)?;
                    if variant != Variant::Default {
                        access = access.by(variant);
                    }
                    let name = arm_name(order.as_str(), variant);
                    arms.push(name, pattern.clone(), Some(order.clone()), touched, access)?;
                }
            }
        }
    }
    Ok(arms.all)
}
