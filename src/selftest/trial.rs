//! One kernel on one set of operands: sound runs and faulty launches.

use std::cell::Cell;

use super::ledger::{Expect, Ledger};
use crate::device::{Device, DeviceError, Span};
use crate::kernel::{Access, Outcome, Verifier};
use crate::layout::draw;
use crate::record::{CheckKind, FaultKind};

/// What tells whether a launch was right.
#[derive(Clone, Copy, Debug)]
pub enum Witness<'a> {
    /// Its checksum.
    Checksum(u64),
    /// What it wrote, and everything around it.
    Memory(Span<'a>),
}

/// A launch of something else than what is expected.
#[derive(Clone, Debug)]
pub struct Plant<'a> {
    pub kind: FaultKind,
    pub launched: Option<Access<'a>>,
    /// Mismatches in what was to be written. A checksum is only ever right or wrong.
    pub destination: Expect,
    /// Mismatches in what was to stay.
    pub guard: Expect,
}

/// One kernel on one set of operands.
pub struct Trial<'a> {
    pub device: &'a dyn Device,
    pub verifier: &'a Verifier<'a>,
    pub expected: Access<'a>,
    pub witness: Witness<'a>,
    /// Width of the units that are compared where something is written.
    pub unit_bytes: u64,
    /// Keys of poison, a fresh one each time.
    pub poison_key: u64,
    pub poisoned: Cell<u64>,
}

impl Trial<'_> {
    fn poison(&self) -> u64 {
        self.poisoned.set(self.poisoned.get() + 1);
        draw(self.poison_key, self.poisoned.get())
    }

    /// A sound run passes.
    pub fn sound(&self, ledger: &mut Ledger) -> Result<(), DeviceError> {
        let launch = self.expected.launch()?;
        match self.witness {
            Witness::Checksum(sum) => {
                let outcome = self.verifier.check_read(&self.expected, Some(&launch), sum)?;
                ledger.sound(CheckKind::Checksum, outcome);
            }
            Witness::Memory(guarded) => {
                let (written, untouched) = self.verifier.check_writes(
                    &self.expected,
                    Some(&launch),
                    guarded,
                    self.poison(),
                )?;
                ledger.sound(CheckKind::Destination, written);
                ledger.sound(CheckKind::Guard, untouched);
            }
        }
        Ok(())
    }

    /// A faulty launch is seen.
    pub fn plant(&self, ledger: &mut Ledger, plant: &Plant<'_>) -> Result<(), DeviceError> {
        let launch = plant.launched.map(|access| access.launch()).transpose()?;
        let kind = &plant.kind;
        match self.witness {
            Witness::Checksum(sum) => {
                let outcome = self.verifier.check_read(&self.expected, launch.as_ref(), sum)?;
                ledger.fault(kind.clone(), CheckKind::Checksum, outcome, Expect::Exactly(1));
            }
            Witness::Memory(guarded) => {
                let (written, untouched) = self.verifier.check_writes(
                    &self.expected,
                    launch.as_ref(),
                    guarded,
                    self.poison(),
                )?;
                ledger.fault(kind.clone(), CheckKind::Destination, written, plant.destination);
                ledger.fault(kind.clone(), CheckKind::Guard, untouched, plant.guard);
            }
        }
        Ok(())
    }

    /// Nothing is launched; a read is launched twice.
    pub fn too_few_and_too_many(&self, ledger: &mut Ledger) -> Result<(), DeviceError> {
        // A moment ago everything was right: what is stale must not count.
        let nothing = Plant {
            kind: FaultKind::NothingLaunched,
            launched: None,
            destination: Expect::bytes(self.expected.payload_bytes(), self.unit_bytes),
            guard: Expect::Exactly(0),
        };
        self.plant(ledger, &nothing)?;
        if let (Witness::Checksum(expected), Some(sums)) = (self.witness, self.expected.sums()) {
            self.verifier.zero(sums)?;
            let launch = self.expected.launch()?;
            self.device.launch(&launch)?;
            self.device.launch(&launch)?;
            let outcome = Outcome::of_sums(self.verifier.total(sums)?, expected);
            let kind = FaultKind::LaunchedTwice;
            ledger.fault(kind, CheckKind::Checksum, outcome, Expect::Exactly(1));
        }
        Ok(())
    }

    /// A byte that changes after a sound launch, at this offset of what is guarded, is seen by the
    /// check that looks there, and by no other.
    pub fn byte(
        &self,
        ledger: &mut Ledger,
        kind: FaultKind,
        check: CheckKind,
        offset: u64,
    ) -> Result<(), DeviceError> {
        let Witness::Memory(guarded) = self.witness else { return Ok(()) };
        let key = self.poison();
        self.verifier.poison(guarded, key)?;
        self.device.launch(&self.expected.launch()?)?;
        flip(self.device, guarded, offset)?;
        let written = self.verifier.check_written(&self.expected)?;
        let untouched = self.verifier.check_untouched(&self.expected, guarded, key)?;
        for (own, outcome) in [(CheckKind::Destination, written), (CheckKind::Guard, untouched)] {
            let expect = Expect::Exactly(u64::from(own == check));
            ledger.fault(kind.clone(), own, outcome, expect);
        }
        Ok(())
    }
}

/// Changes one byte of a device's memory.
pub fn flip(device: &dyn Device, span: Span<'_>, offset: u64) -> Result<(), DeviceError> {
    let byte = part(span, offset, 1)?;
    let mut value = [0];
    device.download(byte, &mut value)?;
    device.upload(byte, &[value[0] ^ 0x10])
}

/// A piece of a span.
pub fn part(span: Span<'_>, offset: u64, bytes: u64) -> Result<Span<'_>, DeviceError> {
    span.slice(offset, bytes).ok_or_else(|| DeviceError::Refused {
        entry: "selftest",
        what: format!("{bytes} bytes from {offset} on lie outside {}", span.bytes()),
    })
}

/// Everything of a span from here on.
pub fn rest(span: Span<'_>, offset: u64) -> Result<Span<'_>, DeviceError> {
    part(span, offset, span.bytes().saturating_sub(offset))
}
