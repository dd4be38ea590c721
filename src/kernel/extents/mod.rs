//! Accesses to fragments of varying length.

mod host;

pub use host::{copy_back_extents, extents_checksum, extents_staging_bytes};

use super::Access;
use super::table::TableSpans;
use crate::device::{
    DeviceError, Launch, Movement, Span, Variant, VariedEntry, VariedMover, VariedShape,
    VariedSpans,
};
use crate::layout::{Extents, ROW_PIECES, Table, Tally};

/// What an access to extents needs beside its arena.
#[derive(Clone, Copy, Debug)]
pub struct ExtentOperands<'a> {
    /// The table of these extents, and the places that it is checked against.
    pub table: TableSpans<'a>,
    /// Where a copy finds or leaves the payload: as long as that.
    pub payload: Option<Span<'a>>,
    /// The sums of a read.
    pub sums: Option<Span<'a>>,
}

/// Extents with the operands of an access to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Varied<'a> {
    extents: &'a Extents,
    pub shape: VariedShape,
    pub spans: VariedSpans<'a>,
}

impl<'a> Access<'a> {
    /// An access to the extents' fragments, in their order.
    ///
    /// `arena` begins where the fragments' offsets are counted from, and has to reach to the end of
    /// the [last piece](Extents::reach_bytes). A gather reads from it, a scatter writes to it.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] where no such kernel takes extents.
    pub fn of_extents(
        movement: Movement,
        extents: &'a Extents,
        arena: Span<'a>,
        operands: ExtentOperands<'a>,
        data_key: u64,
    ) -> Result<Access<'a>, DeviceError> {
        if !VariedMover::MOVEMENTS.contains(&movement) {
            let what = "it takes no fragments of varying length".to_owned();
            return Err(DeviceError::Refused { entry: movement.name(), what });
        }
        let ExtentOperands { table, payload, sums } = operands;
        let (source, destination) = match movement {
            Movement::ScatterCopy => (payload, Some(arena)),
            _ => (Some(arena), payload),
        };
        let spans = VariedSpans {
            source,
            destination,
            entries: Some(table.entries),
            ranks: Some(table.ranks),
            sums,
            places: Some(table.places),
            ranges: Some(table.ranges),
        };
        let shape = VariedShape {
            form: extents.entry_form(),
            reach_bytes: extents.reach_bytes(),
            fragments: 0,
            pieces: 0,
            units: 0,
            arena_units: 0,
            data_key,
        };
        let varied = Varied { extents, shape, spans }.of(extents.tally());
        Ok(Access::of_varied(movement, varied))
    }
}

impl<'a> Varied<'a> {
    /// The same over the first fragments, which come to this.
    fn of(self, tally: Tally) -> Varied<'a> {
        let Tally { fragments, pieces, payload_bytes } = tally;
        let units = payload_bytes / u64::from(self.shape.form.unit_bytes());
        Varied { shape: VariedShape { fragments, pieces, units, ..self.shape }, ..self }
    }

    pub fn of_fragments(self, fragments: u64) -> Varied<'a> {
        self.of(self.extents.tally_of(fragments))
    }

    /// Ranks that say something: of each row, and of the piece behind the last.
    pub fn ranks(&self) -> u64 {
        self.shape.pieces / ROW_PIECES + 1
    }

    /// Bytes of the table that one launch reads: an entry for each fragment, a rank for each row.
    pub fn index_bytes(&self) -> u64 {
        const RANK_BYTES: u64 = 8;
        let entries = self.shape.fragments * u64::from(self.shape.form.bytes());
        entries + Table::rows(self.shape.pieces) * RANK_BYTES
    }

    pub fn entry(&self, movement: Movement, variant: Variant) -> VariedEntry {
        VariedEntry::Move(VariedMover { movement, form: self.shape.form, variant })
    }

    pub fn launch(&self, entry: VariedEntry) -> Result<Launch<'a>, DeviceError> {
        Launch::varied(entry, self.spans, self.shape)
    }

    /// The same with these sums.
    pub fn summing(self, sums: Span<'a>) -> Varied<'a> {
        Varied { spans: VariedSpans { sums: Some(sums), ..self.spans }, ..self }
    }

    /// What the check of the gaps needs: all fragments, over poison.
    pub fn gaps(self, guarded: Span<'a>, poison_key: u64) -> Result<Varied<'a>, DeviceError> {
        let Varied { extents, shape, spans } = self;
        if shape.fragments != extents.fragments().len() as u64 {
            // The ranges are in address order: the first of them are not the first visited.
            let what = "gaps are between all fragments, not between some".to_owned();
            return Err(DeviceError::Refused { entry: "varied_check_gaps", what });
        }
        let arena_units = guarded.bytes() / u64::from(shape.form.unit_bytes());
        let shape = VariedShape { arena_units, data_key: poison_key, ..shape };
        let spans = VariedSpans { destination: Some(guarded), ..spans };
        Ok(Varied { extents, shape, spans })
    }
}
