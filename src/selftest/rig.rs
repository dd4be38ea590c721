//! The buffers of a layout kernel, each with room for one fragment more than the layout has.

use std::cell::Cell;

use super::cases::{Case, Dice};
use super::trial::{Trial, Witness, part, rest};
use crate::device::{Buffer, Device, DeviceError, Movement, Mover, SUM_BYTES, Span};
use crate::kernel::{Access, GUARD_BYTES, Operands, Outcome, Verifier, copy_back, fill};
use crate::layout::{Index, UNIT_BYTES};
use crate::record::Order;

/// How many fragments late a launch finds its operands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shift {
    pub arena: u64,
    pub payload: u64,
    pub index: u64,
}

/// The operands of a layout kernel, and what the host knows of the layout.
pub struct Rig<'a> {
    pub device: &'a dyn Device,
    pub verifier: &'a Verifier<'a>,
    pub mover: Mover,
    pub case: &'a Case,
    /// The slot of each fragment; last an entry that nothing should follow, which names the place
    /// behind the last slot.
    pub entries: Vec<u64>,
    /// Slots of the footprint, which are fewer where the fragments are packed.
    pub slots: u64,
    pub arena: Buffer,
    pub payload: Buffer,
    taken: Vec<bool>,
    on_host: Index,
    index: Buffer,
    sums: Buffer,
    data_key: u64,
}

impl<'a> Rig<'a> {
    pub fn new(
        device: &'a dyn Device,
        verifier: &'a Verifier<'a>,
        mover: Mover,
        case: &'a Case,
        data_key: u64,
    ) -> Result<Rig<'a>, DeviceError> {
        let Case { layout, order } = case;
        let on_host = layout
            .index(order)
            .map_err(|error| DeviceError::Refused { entry: "index", what: error.to_string() })?;
        let slots = if *order == Order::Packed { layout.fragments() } else { layout.slots() };
        let mut entries: Vec<u64> = (0..on_host.len()).filter_map(|i| on_host.get(i)).collect();
        let mut taken = vec![false; slots as usize];
        entries.iter().for_each(|slot| taken[*slot as usize] = true);
        entries.push(slots);
        let guard = GUARD_BYTES.max(2 * layout.fragment_bytes());
        let arena = layout.footprint_bytes().next_multiple_of(UNIT_BYTES) + guard;
        let width = u64::from(layout.index_entry_bytes());
        let rig = Rig {
            device,
            verifier,
            mover,
            case,
            slots,
            arena: device.allocate(arena)?,
            payload: device.allocate(layout.payload_bytes() + guard)?,
            taken,
            on_host,
            index: device.allocate(entries.len() as u64 * width)?,
            sums: device.allocate(SUM_BYTES)?,
            entries,
            data_key,
        };
        let bytes: Vec<u8> = rig.entries.iter().flat_map(|slot| rig.as_entry(*slot)).collect();
        device.upload(rig.index.span(), &bytes)?;
        fill(device, rig.arena.span(), data_key)?;
        Ok(rig)
    }

    /// A fragment's number and its successor's: as in the index, the spare entry last.
    pub fn fragments(&self) -> u64 {
        self.case.layout.fragments()
    }

    /// Whether the slot of each fragment has a closed form, without which the expectation goes
    /// through the index.
    pub fn has_closed_form(&self) -> bool {
        self.case.layout.slot(&self.case.order, 0).is_some()
    }

    pub fn scatters(&self) -> bool {
        self.mover.movement == Movement::ScatterCopy
    }

    /// Whether a fragment lies in the slot; none does behind the last.
    pub fn is_taken(&self, slot: u64) -> bool {
        self.taken.get(slot as usize).copied().unwrap_or(false)
    }

    /// Where a slot begins in the arena.
    pub fn offset_of(&self, slot: u64) -> u64 {
        self.case.layout.spec().offset_bytes + slot * self.case.layout.fragment_bytes()
    }

    /// Some slot without a fragment.
    pub fn gap(&self, dice: &mut Dice) -> Option<u64> {
        let from = dice.below(self.slots);
        (from..self.slots).chain(0..from).find(|slot| !self.is_taken(*slot))
    }

    /// The kernel with its operands, some of them begun late.
    pub fn access(&self, shift: Shift) -> Result<Access<'_>, DeviceError> {
        let Case { layout, order } = self.case;
        let fragment = layout.fragment_bytes();
        let index = shift.index * u64::from(layout.index_entry_bytes());
        let operands = Operands {
            index: Some(rest(self.index.span(), index)?),
            payload: Some(rest(self.payload.span(), shift.payload * fragment)?),
            sums: Some(self.sums.span()),
        };
        let arena = rest(self.arena.span(), shift.arena * fragment)?;
        let movement = self.mover.movement;
        let access = Access::of_layout(movement, layout, order, arena, operands, self.data_key)?;
        Ok(access.by(self.mover.variant))
    }

    /// The sound launch and what tells whether it was.
    pub fn trial(&self, dice: &mut Dice) -> Result<Trial<'_>, DeviceError> {
        let expected = self.access(Shift::default())?;
        let witness = match self.mover.movement {
            Movement::ScatterCopy => Witness::Memory(self.arena.span()),
            _ if expected.is_read() => {
                Witness::Checksum(self.verifier.expected_checksum(&expected)?)
            }
            _ => Witness::Memory(self.payload.span()),
        };
        Ok(Trial {
            device: self.device,
            verifier: self.verifier,
            expected,
            witness,
            unit_bytes: self.case.layout.unit_bytes(),
            poison_key: dice.next(),
            poisoned: Cell::new(0),
        })
    }

    /// Puts a scatter's payload in place.
    pub fn fill_payload(&self) -> Result<(), DeviceError> {
        fill(self.device, self.payload.span(), self.data_key)
    }

    /// Whether the memory that is read holds its data, to the last byte of its buffer.
    pub fn check_fill(&self, span: Span<'_>) -> Result<Outcome, DeviceError> {
        self.verifier.check_fill(span, self.data_key)
    }

    /// The host's own look, while the arena holds its data. It overwrites the payload.
    pub fn copy_back(&self) -> Result<Outcome, DeviceError> {
        let Case { layout, order } = self.case;
        let bytes = self.fragments() * u64::from(layout.index_entry_bytes());
        let index = part(self.index.span(), 0, bytes)?;
        let spans = (self.arena.span(), index, self.payload.span());
        copy_back(self.device, layout, order, &self.on_host, spans, self.data_key)
    }

    /// Writes an entry of the device's index.
    pub fn set_entry(&self, i: u64, slot: u64) -> Result<(), DeviceError> {
        let entry = self.as_entry(slot);
        let width = entry.len() as u64;
        self.device.upload(part(self.index.span(), i * width, width)?, &entry)
    }

    fn as_entry(&self, slot: u64) -> Vec<u8> {
        slot.to_le_bytes()[..self.case.layout.index_entry_bytes() as usize].to_vec()
    }
}
