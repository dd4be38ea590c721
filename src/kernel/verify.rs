//! Verification on the device, by routes that the measured kernels do not take.
//!
//! What a read has to sum and what a copy has to write is computed from the layout's closed form
//! and from the data's closed form, without following the index and without reading the source. Of
//! a scatter the arena is checked in two parts: each unit of payload at the place where it belongs,
//! and everything between and behind the fragments, which has to be what it was.
//! The index itself is checked entry by entry before a kernel follows it.

use super::access::{Access, Target};
use super::data::fill;
use super::extents::Varied;
use crate::device::{
    Buffer, Device, DeviceError, Entry, Launch, Movement, SUM_BYTES, Shape, Span, Spans,
    VariedEntry,
};
use crate::layout::{LEAST_UNIT_BYTES, UNIT_BYTES};

/// What a comparison found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Items compared: units, index entries, or sums.
    pub compared: u64,
    /// Items that differed.
    pub mismatches: u64,
}

impl Outcome {
    /// One sum against what it should be.
    pub fn of_sums(found: u64, expected: u64) -> Outcome {
        Outcome { compared: 1, mismatches: u64::from(found != expected) }
    }

    /// Both together.
    pub fn and(self, other: Outcome) -> Outcome {
        Outcome {
            compared: self.compared + other.compared,
            mismatches: self.mismatches + other.mismatches,
        }
    }
}

/// Checks what kernels did, with sums of its own.
pub struct Verifier<'d> {
    device: &'d dyn Device,
    sums: Buffer,
}

impl<'d> Verifier<'d> {
    /// A verifier on this device.
    ///
    /// # Errors
    ///
    /// Where its sums cannot be allocated.
    pub fn new(device: &'d dyn Device) -> Result<Verifier<'d>, DeviceError> {
        Ok(Verifier { device, sums: device.allocate(SUM_BYTES)? })
    }

    /// Sets sums to zero.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn zero(&self, sums: Span<'_>) -> Result<(), DeviceError> {
        self.device.upload(sums, &vec![0; sums.bytes() as usize])
    }

    /// The sum of sums, modulo 2^64, after everything that is queued.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn total(&self, sums: Span<'_>) -> Result<u64, DeviceError> {
        let mut bytes = vec![0; sums.bytes() as usize];
        self.device.download(sums, &mut bytes)?;
        let words = bytes.as_chunks::<8>().0;
        Ok(words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word))))
    }

    /// Launches a checking kernel, and returns its result.
    fn run(&self, entry: Entry, spans: Spans<'_>, shape: Shape) -> Result<u64, DeviceError> {
        let spans = Spans { sums: Some(self.sums.span()), ..spans };
        self.result(|| Launch::kernel(entry, spans, shape))
    }

    /// The same for fragments of varying length.
    fn run_varied(&self, entry: VariedEntry, varied: Varied<'_>) -> Result<u64, DeviceError> {
        self.result(|| varied.summing(self.sums.span()).launch(entry))
    }

    fn result<'a>(
        &self,
        launch: impl FnOnce() -> Result<Launch<'a>, DeviceError>,
    ) -> Result<u64, DeviceError> {
        self.zero(self.sums.span())?;
        self.device.launch(&launch()?)?;
        self.total(self.sums.span())
    }

    /// Whether the span still holds the random bits of its positions, gaps and all.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn check_fill(&self, span: Span<'_>, data_key: u64) -> Result<Outcome, DeviceError> {
        let units = span.bytes() / UNIT_BYTES;
        let spans = Spans { source: Some(span), ..Spans::default() };
        let shape = Shape { units, data_key, ..Shape::default() };
        Ok(Outcome { compared: units, mismatches: self.run(Entry::CheckFill, spans, shape)? })
    }

    /// Whether each entry of the access's index is what the layout's closed form says. Random
    /// choices have no closed form in address order: there the entries have to ascend inside the
    /// footprint, and to be the same multiset as the unsorted closed form. Of extents each entry and
    /// each rank of their table has to be what the fragments say.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn check_index(&self, access: &Access<'_>) -> Result<Outcome, DeviceError> {
        let (shape, spans) = match access.target {
            Target::Uniform(shape, spans) => (shape, spans),
            Target::Varied(varied) => return self.check_table(varied),
        };
        let differing = self.run(Entry::CheckIndex, spans, shape)?;
        let outcome = Outcome { compared: shape.fragments, mismatches: differing };
        if shape.has_closed_form() {
            return Ok(outcome);
        }
        let found = self.run(Entry::SumIndex, spans, shape)?;
        let unsorted = Shape { sorted: false, ..shape };
        let expected = self.run(Entry::ExpectIndexSum, spans, unsorted)?;
        Ok(outcome.and(Outcome::of_sums(found, expected)))
    }

    /// Whether every entry and every rank is what the fragments themselves say.
    fn check_table(&self, varied: Varied<'_>) -> Result<Outcome, DeviceError> {
        let entries = self.run_varied(VariedEntry::CheckEntries, varied)?;
        let ranks = self.run_varied(VariedEntry::CheckRanks, varied)?;
        Ok(Outcome {
            compared: varied.shape.fragments + varied.ranks(),
            mismatches: entries + ranks,
        })
    }

    /// The checksum that one launch of a read has to give.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn expected_checksum(&self, access: &Access<'_>) -> Result<u64, DeviceError> {
        match access.target {
            Target::Uniform(shape, spans) => self.run(Entry::ExpectChecksum, spans, shape),
            Target::Varied(varied) => self.run_varied(VariedEntry::ExpectChecksum, varied),
        }
    }

    /// The checksum that one launch of a read gives: what another way to read the same is held against.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn found_checksum(
        &self,
        access: &Access<'_>,
        launch: &Launch<'_>,
    ) -> Result<u64, DeviceError> {
        let sums = access.sums().ok_or_else(|| DeviceError::Refused {
            entry: "found_checksum",
            what: "the access has no sums".to_owned(),
        })?;
        self.zero(sums)?;
        self.device.launch(launch)?;
        self.total(sums)
    }

    /// Runs `launch` (which has to do what `access` says) once on zeroed sums, and compares its
    /// checksum with the expected one. `None` launches nothing.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn check_read(
        &self,
        access: &Access<'_>,
        launch: Option<&Launch<'_>>,
        expected: u64,
    ) -> Result<Outcome, DeviceError> {
        let sums = access.sums().ok_or_else(|| DeviceError::Refused {
            entry: "check_read",
            what: "the access has no sums".to_owned(),
        })?;
        self.zero(sums)?;
        if let Some(launch) = launch {
            self.device.launch(launch)?;
        }
        Ok(Outcome::of_sums(self.total(sums)?, expected))
    }

    /// Poisons what the access writes and everything around it, runs `launch` once (`None` launches
    /// nothing), and compares: what was to be written, and what was to stay.
    ///
    /// `guarded` is all that may change in error: the destination with a guard behind it, or of a
    /// scatter the arena with one. The key of the poison has to be fresh for each call, so that
    /// nothing stale is taken for written.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn check_writes(
        &self,
        access: &Access<'_>,
        launch: Option<&Launch<'_>>,
        guarded: Span<'_>,
        poison_key: u64,
    ) -> Result<(Outcome, Outcome), DeviceError> {
        self.poison(guarded, poison_key)?;
        if let Some(launch) = launch {
            self.device.launch(launch)?;
        }
        Ok((self.check_written(access)?, self.check_untouched(access, guarded, poison_key)?))
    }

    /// Fills all that a launch may change with bits that no launch writes.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn poison(&self, guarded: Span<'_>, poison_key: u64) -> Result<(), DeviceError> {
        fill(self.device, guarded, poison_key)
    }

    /// Whether the access's payload is where it has to be, as it has to be.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn check_written(&self, access: &Access<'_>) -> Result<Outcome, DeviceError> {
        let mismatches = match access.target {
            Target::Uniform(shape, spans) => {
                let entry = match access.movement() {
                    Some(Movement::Write) => Entry::CheckWritten,
                    Some(Movement::ScatterCopy) => Entry::CheckScattered,
                    _ => Entry::CheckGathered,
                };
                self.run(entry, spans, shape)?
            }
            Target::Varied(varied) => {
                let entry = match access.movement() {
                    Some(Movement::ScatterCopy) => VariedEntry::CheckScattered,
                    _ => VariedEntry::CheckGathered,
                };
                self.run_varied(entry, varied)?
            }
        };
        Ok(Outcome { compared: access.units(), mismatches })
    }

    /// Whether everything else still holds its poison: the bytes behind the destination, and of a
    /// scatter those before, between and behind the fragments.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn check_untouched(
        &self,
        access: &Access<'_>,
        guarded: Span<'_>,
        poison_key: u64,
    ) -> Result<Outcome, DeviceError> {
        if access.movement() != Some(Movement::ScatterCopy) {
            return self.check_behind(access.payload_bytes(), guarded, poison_key);
        }
        match access.target {
            Target::Uniform(shape, _) => self.check_gaps(shape, shape.units, guarded, poison_key),
            Target::Varied(varied) => {
                let gaps = varied.gaps(guarded, poison_key)?;
                let mismatches = self.run_varied(VariedEntry::CheckGaps, gaps)?;
                let compared = gaps.shape.arena_units.saturating_sub(gaps.shape.units);
                Ok(Outcome { compared, mismatches })
            }
        }
    }

    /// Whether the bytes from `extent_bytes` on still hold their poison.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn check_behind(
        &self,
        extent_bytes: u64,
        guarded: Span<'_>,
        poison_key: u64,
    ) -> Result<Outcome, DeviceError> {
        // As gaps of a layout that is one fragment: everything before the extent's end.
        let unit_bytes = LEAST_UNIT_BYTES as u32;
        let units = extent_bytes / LEAST_UNIT_BYTES;
        let shape =
            Shape { fragments: units, slots: units, stride: 1, unit_bytes, ..Shape::default() };
        self.check_gaps(shape, units, guarded, poison_key)
    }

    fn check_gaps(
        &self,
        shape: Shape,
        taken_units: u64,
        guarded: Span<'_>,
        poison_key: u64,
    ) -> Result<Outcome, DeviceError> {
        let units = guarded.bytes() / u64::from(shape.unit_bytes);
        let spans = Spans { destination: Some(guarded), ..Spans::default() };
        // Membership has a closed form even where the order has none.
        let shape = Shape { units, data_key: poison_key, sorted: false, ..shape };
        let mismatches = self.run(Entry::CheckGaps, spans, shape)?;
        Ok(Outcome { compared: units.saturating_sub(taken_units), mismatches })
    }
}
