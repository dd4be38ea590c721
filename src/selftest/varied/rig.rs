//! The buffers of a kernel for fragments of varying length.

use std::cell::Cell;

use super::super::cases::Dice;
use super::super::trial::{Trial, Witness, part, rest};
use super::cases::Case;
use super::walk::{Bounds, HostTable, Move, Reader, Shift, moves_of};
use crate::device::{Buffer, Device, DeviceError, Movement, SUM_BYTES, Span, VariedMover};
use crate::kernel::{
    Access, ExtentOperands, GUARD_BYTES, Outcome, TableSpans, Verifier, copy_back_extents, fill,
};
use crate::layout::{Extents, Places, RANK_ROWS, Table};

/// The operands of a kernel, and what the host knows of its extents.
pub struct Rig<'a> {
    pub device: &'a dyn Device,
    pub verifier: &'a Verifier<'a>,
    pub mover: VariedMover,
    pub case: &'a Case,
    /// The table of the extents with their spare fragment; its rows go on behind the last.
    pub table: HostTable,
    /// What a sound launch does.
    pub right: Vec<Move>,
    pub arena: Buffer,
    pub payload: Buffer,
    pub data_key: u64,
    entries: Buffer,
    ranks: Buffer,
    places: Buffer,
    ranges: Buffer,
    sums: Buffer,
}

impl<'a> Rig<'a> {
    pub fn new(
        device: &'a dyn Device,
        verifier: &'a Verifier<'a>,
        mover: VariedMover,
        case: &'a Case,
        data_key: u64,
    ) -> Result<Rig<'a>, DeviceError> {
        let refused = |what: String| DeviceError::Refused { entry: "table", what };
        let table = Table::new(&case.with_spare).map_err(|error| refused(error.to_string()))?;
        let table = HostTable::new(&table, mover.form, RANK_ROWS as usize);
        let bring = |bytes: &[u8]| -> Result<Buffer, DeviceError> {
            let buffer = device.allocate(bytes.len() as u64)?;
            device.upload(buffer.span(), bytes)?;
            Ok(buffer)
        };
        let entries = table.entries.iter().flat_map(|entry| table.entry_as_bytes(*entry));
        let ranks = table.ranks.iter().flatten().flat_map(|half| half.to_le_bytes());
        let places = Places::new(&case.own);
        let payload_bytes = case.with_spare.payload_bytes().next_multiple_of(16);
        let rig = Rig {
            device,
            verifier,
            mover,
            case,
            right: moves_of(&case.own),
            arena: device.allocate(case.with_spare.reach_bytes() + GUARD_BYTES)?,
            payload: device.allocate(payload_bytes + GUARD_BYTES)?,
            data_key,
            entries: bring(&entries.collect::<Vec<u8>>())?,
            ranks: bring(&ranks.collect::<Vec<u8>>())?,
            places: bring(places.visited_bytes())?,
            ranges: bring(places.ordered_bytes())?,
            sums: device.allocate(SUM_BYTES)?,
            table,
        };
        fill(device, rig.arena.span(), data_key)?;
        Ok(rig)
    }

    pub fn own(&self) -> &'a Extents {
        &self.case.own
    }

    pub fn fragments(&self) -> u64 {
        self.own().fragments().len() as u64
    }

    pub fn pieces(&self) -> u64 {
        self.own().tally().pieces
    }

    pub fn unit_bytes(&self) -> u64 {
        u64::from(self.mover.form.unit_bytes())
    }

    pub fn scatters(&self) -> bool {
        self.mover.movement == Movement::ScatterCopy
    }

    fn bounds(&self) -> Bounds {
        let units = |buffer: &Buffer| buffer.bytes() / self.unit_bytes();
        Bounds { arena: units(&self.arena), payload: units(&self.payload) }
    }

    /// What a launch makes of a table; none where it would leave its buffers.
    pub fn walk(
        &self,
        table: &HostTable,
        pieces: u64,
        shift: Shift,
        reader: Reader,
    ) -> Option<Vec<Move>> {
        table.walk(pieces, shift, reader, self.bounds())
    }

    /// The kernel on the extents, with or without the spare fragment.
    pub fn access(&self, extents: &'a Extents, shift: Shift) -> Result<Access<'_>, DeviceError> {
        let width = u64::from(self.mover.form.bytes());
        let operands = ExtentOperands {
            table: TableSpans {
                entries: rest(self.entries.span(), shift.entries * width)?,
                ranks: rest(self.ranks.span(), shift.ranks * 8)?,
                places: self.places.span(),
                ranges: self.ranges.span(),
            },
            payload: Some(rest(self.payload.span(), shift.payload * 16)?),
            sums: Some(self.sums.span()),
        };
        let arena = rest(self.arena.span(), shift.arena * 16)?;
        let movement = self.mover.movement;
        let access = Access::of_extents(movement, extents, arena, operands, self.data_key)?;
        Ok(access.by(self.mover.variant))
    }

    /// The sound launch and what tells whether it was.
    pub fn trial(&self, dice: &mut Dice) -> Result<Trial<'_>, DeviceError> {
        let expected = self.access(self.own(), Shift::default())?;
        let witness = match self.mover.movement {
            Movement::ScatterCopy => Witness::Memory(self.arena.span()),
            Movement::GatherRead => Witness::Checksum(self.verifier.expected_checksum(&expected)?),
            _ => Witness::Memory(self.payload.span()),
        };
        Ok(Trial {
            device: self.device,
            verifier: self.verifier,
            expected,
            witness,
            unit_bytes: self.unit_bytes(),
            poison_key: dice.next(),
            poisoned: Cell::new(0),
        })
    }

    /// Whether the memory that is read holds its data, to the last byte of its buffer.
    pub fn check_fill(&self, span: Span<'_>) -> Result<Outcome, DeviceError> {
        self.verifier.check_fill(span, self.data_key)
    }

    /// The host's own look, while the arena holds its data. It overwrites the payload, which held
    /// nothing of it before.
    pub fn copy_back(&self, poison_key: u64) -> Result<Outcome, DeviceError> {
        self.verifier.poison(self.payload.span(), poison_key)?;
        let table = TableSpans {
            entries: self.entries.span(),
            ranks: self.ranks.span(),
            places: self.places.span(),
            ranges: self.ranges.span(),
        };
        let spans = (self.arena.span(), self.payload.span());
        copy_back_extents(self.device, self.own(), table, spans, self.data_key)
    }

    /// Writes an entry of the device's table.
    pub fn set_entry(&self, i: usize, entry: [u64; 2]) -> Result<(), DeviceError> {
        let bytes = self.table.entry_as_bytes(entry);
        let width = bytes.len() as u64;
        self.device.upload(part(self.entries.span(), i as u64 * width, width)?, &bytes)
    }

    /// Writes a rank of it.
    pub fn set_rank(&self, row: usize, [before, begins]: [u32; 2]) -> Result<(), DeviceError> {
        let bytes = [before.to_le_bytes(), begins.to_le_bytes()].concat();
        self.device.upload(part(self.ranks.span(), row as u64 * 8, 8)?, &bytes)
    }
}
