//! The kernels of a layout: their index, their source, and what they do.

use super::cases::{self, Dice};
use super::ledger::{Expect, Ledger};
use super::rig::{Rig, Shift};
use super::trial::{Plant, Trial, Witness, flip};
use crate::device::{Device, DeviceError, Mover};
use crate::kernel::{Outcome, Verifier, host_checksum};
use crate::layout::LEAST_UNIT_BYTES;
use crate::record::{CheckKind, FaultKind};

/// Tests a kernel on its `n`-th layout.
pub fn test(
    device: &dyn Device,
    verifier: &Verifier<'_>,
    mover: Mover,
    n: u64,
    dice: &mut Dice,
    ledger: &mut Ledger,
) -> Result<(), DeviceError> {
    let case = cases::case(mover, n, dice)?;
    ledger.what = cases::describe(&case);
    let data_key = dice.next();
    let rig = Rig::new(device, verifier, mover, &case, data_key)?;
    let mut bench = Bench { rig: &rig, dice, ledger };
    bench.ledger.sound(CheckKind::Source, rig.check_fill(rig.arena.span())?);
    // What a wrong index leads to may lie anywhere: nothing follows it.
    if mover.movement.follows_index() && !bench.index()? {
        return Ok(());
    }
    if rig.scatters() {
        rig.fill_payload()?;
        bench.ledger.sound(CheckKind::Source, rig.check_fill(rig.payload.span())?);
    }
    let trial = rig.trial(bench.dice)?;
    bench.checksum_of_the_host(&trial, data_key);
    trial.sound(bench.ledger)?;
    trial.too_few_and_too_many(bench.ledger)?;
    for plant in bench.launches()? {
        trial.plant(bench.ledger, &plant)?;
    }
    if mover.movement.follows_index() {
        bench.followed_entries(&trial)?;
    }
    bench.bytes(&trial)?;
    bench.source(&trial)?;
    trial.sound(bench.ledger)
}

/// One layout's test.
pub struct Bench<'a> {
    pub rig: &'a Rig<'a>,
    pub dice: &'a mut Dice,
    pub ledger: &'a mut Ledger,
}

impl<'a> Bench<'a> {
    pub fn fragment_bytes(&self) -> u64 {
        self.rig.case.layout.fragment_bytes()
    }

    /// Mismatches of so many fragments in what was to be written.
    pub fn fragments(&self, count: u64) -> Expect {
        Expect::bytes(count * self.fragment_bytes(), self.rig.case.layout.unit_bytes())
    }

    /// Mismatches of so many fragments in what was to stay. Behind a contiguous destination the
    /// narrowest units are compared.
    pub fn strays(&self, count: u64) -> Expect {
        match self.rig.scatters() {
            true => self.fragments(count),
            false => Expect::bytes(count * self.fragment_bytes(), LEAST_UNIT_BYTES),
        }
    }

    /// Where the layout has a closed form, the device's expectation is the host's own sum.
    fn checksum_of_the_host(&mut self, trial: &Trial<'_>, data_key: u64) {
        let Witness::Checksum(sum) = trial.witness else { return };
        let case = self.rig.case;
        let fragments = case.layout.fragments();
        if let Some(own) = host_checksum(&case.layout, &case.order, fragments, data_key) {
            self.ledger.sound(CheckKind::Checksum, Outcome::of_sums(sum, own));
        }
    }

    /// Launches of something else.
    fn launches(&self) -> Result<Vec<Plant<'a>>, DeviceError> {
        let rig = self.rig;
        let (all, entries) = (rig.fragments(), &rig.entries[..]);
        let reads = rig.mover.movement.is_read();
        let mut plants = Vec::new();
        let mut plant = |kind, launched, destination, guard| {
            let (destination, guard) = (self.fragments(destination), self.strays(guard));
            plants.push(Plant { kind, launched: Some(launched), destination, guard });
        };
        // How many fragments differ from the one before them (or, shifted, from the one behind).
        let changes = |entries: &[u64]| entries.windows(2).filter(|two| two[0] != two[1]).count();

        let source = match rig.scatters() {
            true => Shift { payload: 1, ..Shift::default() },
            false => Shift { arena: 1, ..Shift::default() },
        };
        plant(FaultKind::SourceShifted, rig.access(source)?, all, 0);
        if rig.scatters() {
            let strays = entries[..all as usize].iter().filter(|slot| !rig.is_taken(**slot + 1));
            let shifted = rig.access(Shift { arena: 1, ..Shift::default() })?;
            plant(FaultKind::DestinationShifted, shifted, all, strays.count() as u64);
        } else if !reads {
            let moved = 1 + changes(&entries[..all as usize]) as u64;
            let shifted = rig.access(Shift { payload: 1, ..Shift::default() })?;
            plant(FaultKind::DestinationShifted, shifted, moved, 1);
        }
        if rig.mover.movement.follows_index() {
            let shifted = rig.access(Shift { index: 1, ..Shift::default() })?;
            match rig.scatters() {
                true => plant(FaultKind::IndexShifted, shifted, all, 1),
                false => plant(FaultKind::IndexShifted, shifted, changes(entries) as u64, 0),
            }
        }
        let sound = rig.access(Shift::default())?;
        if all > 1 {
            plant(FaultKind::TailDropped, sound.of_fragments(all - 1), 1, 0);
        }
        let added = sound.of_fragments(all + 1);
        // Without an index a launch beyond the footprint is refused.
        if rig.mover.movement.follows_index() || added.launch().is_ok() {
            plant(FaultKind::FragmentAdded, added, 0, 1);
        }
        Ok(plants)
    }

    /// Bytes that change in what was written and around it.
    fn bytes(&mut self, trial: &Trial<'_>) -> Result<(), DeviceError> {
        let rig = self.rig;
        let Witness::Memory(guarded) = trial.witness else { return Ok(()) };
        let fragment = self.fragment_bytes();
        let any = self.dice.below(fragment);
        let i = self.dice.below(rig.fragments());
        let (written, behind) = match rig.scatters() {
            true => (rig.offset_of(rig.entries[i as usize]) + any, rig.offset_of(rig.slots)),
            false => (i * fragment + any, rig.case.layout.payload_bytes()),
        };
        let mut places = vec![
            (FaultKind::DestinationByte, CheckKind::Destination, written),
            (FaultKind::BehindByte, CheckKind::Guard, behind),
            (FaultKind::BehindByte, CheckKind::Guard, guarded.bytes() - 1),
        ];
        if rig.scatters() {
            let begin = rig.offset_of(0);
            if begin > 0 {
                places.push((FaultKind::BeginByte, CheckKind::Guard, self.dice.below(begin)));
            }
            if let Some(gap) = rig.gap(self.dice) {
                places.push((FaultKind::GapByte, CheckKind::Guard, rig.offset_of(gap) + any));
            }
        }
        for (kind, check, offset) in places {
            trial.byte(self.ledger, kind, check, offset)?;
        }
        Ok(())
    }

    /// Bytes of the source that are wrong.
    fn source(&mut self, trial: &Trial<'_>) -> Result<(), DeviceError> {
        let rig = self.rig;
        let fragment = self.fragment_bytes();
        let any = self.dice.below(fragment);
        // The first or the last fragment: those are always copied back.
        let i = self.dice.below(2) * (rig.fragments() - 1);
        let slot = rig.entries[i as usize];
        let (span, at, copies) = match rig.scatters() {
            true => (rig.payload.span(), i * fragment, 1),
            false => {
                let all = &rig.entries[..rig.fragments() as usize];
                let copies = all.iter().filter(|own| **own == slot).count() as u64;
                (rig.arena.span(), rig.offset_of(slot), copies)
            }
        };
        flip(rig.device, span, at + any)?;
        let kind = FaultKind::SourceFragmentByte;
        let one = Expect::Exactly(1);
        self.ledger.fault(kind.clone(), CheckKind::Source, rig.check_fill(span)?, one);
        if rig.mover.movement.follows_index() && !rig.scatters() {
            let some = Expect::AtLeast(1);
            self.ledger.fault(kind.clone(), CheckKind::CopyBack, rig.copy_back()?, some);
        }
        let (launched, guard) = (Some(trial.expected), Expect::Exactly(0));
        let destination = Expect::Exactly(copies);
        trial.plant(self.ledger, &Plant { kind, launched, destination, guard })?;
        flip(rig.device, span, at + any)?;
        self.ledger.sound(CheckKind::Source, rig.check_fill(span)?);

        if !rig.scatters() {
            // What is not read disturbs nobody, but the data's own check.
            let gap = rig.gap(self.dice).unwrap_or(rig.slots);
            flip(rig.device, span, rig.offset_of(gap) + any)?;
            let kind = FaultKind::SourceGapByte;
            self.ledger.fault(kind, CheckKind::Source, rig.check_fill(span)?, one);
            trial.sound(self.ledger)?;
            flip(rig.device, span, rig.offset_of(gap) + any)?;
        }
        Ok(())
    }
}
