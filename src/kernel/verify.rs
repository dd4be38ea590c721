//! Verification on the device, by routes that the measured kernels do not take.
//!
//! What a read has to sum and what a copy has to write is computed from the layout's closed form
//! and from the data's closed form, without following the index and without reading the source.
//! The index itself is checked entry by entry before a kernel follows it.

use super::access::Access;
use super::data::fill;
use crate::device::{
    Buffer, Device, DeviceError, Entry, Launch, SUM_BYTES, Shape, Span, Spans, bindings as b,
};
use crate::layout::UNIT_BYTES;

/// What a comparison found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Items compared: units of 16 B, index entries, or sums.
    pub compared: u64,
    /// Items that differed.
    pub mismatches: u64,
}

impl Outcome {
    fn of_sums(found: u64, expected: u64) -> Outcome {
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
        let sums = self.sums.span();
        self.zero(sums)?;
        let spans = Spans { sums: Some(sums), ..spans };
        self.device.launch(&Launch::kernel(entry, spans, shape)?)?;
        self.total(sums)
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

    /// Whether each entry of the access's index is what the layout's closed form says. A sorted
    /// random layout has no closed form: there the entries have to ascend inside the footprint, and
    /// to be the same multiset as the unsorted closed form.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn check_index(&self, access: &Access<'_>) -> Result<Outcome, DeviceError> {
        let differing = self.run(Entry::CheckIndex, access.spans, access.shape)?;
        let outcome = Outcome { compared: access.shape.fragments, mismatches: differing };
        if !access.shape.sorted || access.shape.pattern != b::FRAGBENCH_PATTERN_RANDOM {
            return Ok(outcome);
        }
        let found = self.run(Entry::SumIndex, access.spans, access.shape)?;
        let unsorted = Shape { sorted: false, ..access.shape };
        let expected = self.run(Entry::ExpectIndexSum, access.spans, unsorted)?;
        Ok(outcome.and(Outcome::of_sums(found, expected)))
    }

    /// The checksum that one launch of a read has to give.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn expected_checksum(&self, access: &Access<'_>) -> Result<u64, DeviceError> {
        self.run(Entry::ExpectChecksum, access.spans, access.shape)
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
        let sums = access.spans.sums.ok_or_else(|| DeviceError::Refused {
            entry: "check_read",
            what: "the access has no sums".to_owned(),
        })?;
        self.zero(sums)?;
        if let Some(launch) = launch {
            self.device.launch(launch)?;
        }
        Ok(Outcome::of_sums(self.total(sums)?, expected))
    }

    /// Poisons `destination` and the guard behind it, runs `launch` once (`None` launches nothing),
    /// and compares: the destination with what `access` says, the guard with the poison.
    ///
    /// `guarded` is the destination with the guard behind it; the key of the poison has to be fresh
    /// for each call, so that nothing stale is taken for written.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn check_copy(
        &self,
        access: &Access<'_>,
        launch: Option<&Launch<'_>>,
        guarded: Span<'_>,
        poison_key: u64,
    ) -> Result<(Outcome, Outcome), DeviceError> {
        self.poison(access, guarded, poison_key)?;
        if let Some(launch) = launch {
            self.device.launch(launch)?;
        }
        Ok((self.check_destination(access)?, self.check_guard(access, guarded, poison_key)?))
    }

    /// Fills the destination with bits that no launch writes, and its guard with the guard's own.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn poison(
        &self,
        access: &Access<'_>,
        guarded: Span<'_>,
        poison_key: u64,
    ) -> Result<(), DeviceError> {
        let payload = access.payload_bytes();
        fill(self.device, part(guarded, 0, payload)?, poison_key)?;
        let guard = part(guarded, payload, guarded.bytes() - payload)?;
        fill(self.device, guard, !poison_key)
    }

    /// Whether the destination holds what the access puts there.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn check_destination(&self, access: &Access<'_>) -> Result<Outcome, DeviceError> {
        let differing = self.run(Entry::CheckDestination, access.spans, access.shape)?;
        Ok(Outcome { compared: access.shape.units, mismatches: differing })
    }

    /// Whether the guard still holds its poison.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn check_guard(
        &self,
        access: &Access<'_>,
        guarded: Span<'_>,
        poison_key: u64,
    ) -> Result<Outcome, DeviceError> {
        let payload = access.payload_bytes();
        self.check_fill(part(guarded, payload, guarded.bytes() - payload)?, !poison_key)
    }
}

fn part(span: Span<'_>, offset: u64, bytes: u64) -> Result<Span<'_>, DeviceError> {
    span.slice(offset, bytes).ok_or_else(|| DeviceError::Refused {
        entry: "verify",
        what: format!("{bytes} bytes from {offset} on lie outside {}", span.bytes()),
    })
}
