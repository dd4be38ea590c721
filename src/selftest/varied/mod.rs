//! The kernels for fragments of varying length: their table, their source, and what they do.

mod cases;
mod rig;
mod slips;
mod walk;

use std::collections::HashSet;

use super::cases::Dice;
use super::ledger::{Expect, Ledger};
use super::trial::{Plant, Trial, Witness, flip};
use crate::device::{Device, DeviceError, VariedMover};
use crate::kernel::{Access, Outcome, Verifier, extents_checksum, fill};
use crate::record::{CheckKind, FaultKind};
use rig::Rig;
use walk::{Reader, Shift, mismatches};

/// Tests a kernel on its `n`-th extents.
pub fn test(
    device: &dyn Device,
    verifier: &Verifier<'_>,
    mover: VariedMover,
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
    if !bench.table()? {
        return Ok(());
    }
    if rig.scatters() {
        fill(device, rig.payload.span(), data_key)?;
        bench.ledger.sound(CheckKind::Source, rig.check_fill(rig.payload.span())?);
    }
    let trial = rig.trial(bench.dice)?;
    if let Witness::Checksum(sum) = trial.witness {
        let own = extents_checksum(&case.own, u64::MAX, data_key);
        bench.ledger.sound(CheckKind::Checksum, Outcome::of_sums(sum, own));
    }
    trial.sound(bench.ledger)?;
    trial.too_few_and_too_many(bench.ledger)?;
    for plant in bench.launches()? {
        trial.plant(bench.ledger, &plant)?;
    }
    bench.followed_slips(&trial)?;
    bench.bytes(&trial)?;
    bench.source(&trial)?;
    trial.sound(bench.ledger)
}

/// The test on one set of extents.
struct Bench<'a> {
    rig: &'a Rig<'a>,
    dice: &'a mut Dice,
    ledger: &'a mut Ledger,
}

impl<'a> Bench<'a> {
    /// Launches of something else. Those that would leave their buffers are left out.
    fn launches(&self) -> Result<Vec<Plant<'a>>, DeviceError> {
        let rig = self.rig;
        let (own, with_spare) = (&rig.case.own, &rig.case.with_spare);
        let mut plants = Vec::new();
        let mut plant = |kind, launched: Access<'a>, pieces, shift| {
            if let Some(made) = rig.walk(&rig.table, pieces, shift, Reader::Rows) {
                let (destination, guard) =
                    mismatches(&rig.right, &made, rig.scatters(), rig.unit_bytes());
                plants.push(Plant { kind, launched: Some(launched), destination, guard });
            }
        };
        let none = Shift::default();
        let (arena, payload) = (Shift { arena: 1, ..none }, Shift { payload: 1, ..none });
        let (source, destination) =
            if rig.scatters() { (payload, arena) } else { (arena, payload) };
        let mut shifted = vec![
            (FaultKind::SourceShifted, source),
            (FaultKind::IndexShifted, Shift { entries: 1, ..none }),
            (FaultKind::IndexShifted, Shift { ranks: 2, ..none }),
        ];
        if !rig.mover.movement.is_read() {
            shifted.push((FaultKind::DestinationShifted, destination));
        }
        for (kind, shift) in shifted {
            plant(kind, rig.access(own, shift)?, rig.pieces(), shift);
        }
        let sound = rig.access(own, none)?;
        let all = rig.fragments();
        if all > 1 {
            let pieces = own.tally_of(all - 1).pieces;
            plant(FaultKind::TailDropped, sound.of_fragments(all - 1), pieces, none);
        }
        let pieces = with_spare.tally().pieces;
        plant(FaultKind::FragmentAdded, rig.access(with_spare, none)?, pieces, none);
        Ok(plants)
    }

    /// Units of the arena in which no fragment lies, up to a row behind the last fragment: any, and
    /// where there are some right beside a fragment.
    fn gaps(&mut self) -> Vec<u64> {
        let rig = self.rig;
        let taken: HashSet<u64> = rig.right.iter().map(|(_, unit)| *unit).collect();
        let first = rig.right.iter().map(|(_, unit)| *unit).min().unwrap_or(0);
        let end = rig.own().reach_bytes() / rig.unit_bytes();
        let free: Vec<u64> = (first..end).filter(|unit| !taken.contains(unit)).collect();
        let beside: Vec<u64> =
            free.iter().copied().filter(|unit| taken.contains(&(unit - 1))).collect();
        let lists = [free, beside].into_iter().filter(|list| !list.is_empty());
        lists.map(|list| list[self.dice.below(list.len() as u64) as usize]).collect()
    }

    /// Bytes that change in what was written and around it.
    fn bytes(&mut self, trial: &Trial<'_>) -> Result<(), DeviceError> {
        let rig = self.rig;
        let Witness::Memory(guarded) = trial.witness else { return Ok(()) };
        let unit = rig.unit_bytes();
        let any = self.dice.below(unit);
        let place = |(payload, arena)| unit * if rig.scatters() { arena } else { payload } + any;
        let written = [
            rig.right[self.dice.below(rig.right.len() as u64) as usize],
            rig.right[rig.right.len() - 1],
        ];
        let mut places: Vec<_> = written
            .map(|one| (FaultKind::DestinationByte, CheckKind::Destination, place(one)))
            .into();
        let behind = match rig.scatters() {
            true => rig.own().reach_bytes(),
            false => rig.own().payload_bytes(),
        };
        for offset in [behind, guarded.bytes() - 1] {
            places.push((FaultKind::BehindByte, CheckKind::Guard, offset));
        }
        if rig.scatters() {
            let begin = rig.right.iter().map(|(_, unit)| *unit).min().unwrap_or(0) * unit;
            if begin > 0 {
                places.push((FaultKind::BeginByte, CheckKind::Guard, self.dice.below(begin)));
            }
            for gap in self.gaps() {
                places.push((FaultKind::GapByte, CheckKind::Guard, gap * unit + any));
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
        let unit = rig.unit_bytes();
        let any = self.dice.below(unit);
        let (payload, arena) = rig.right[self.dice.below(rig.right.len() as u64) as usize];
        let (span, at) = match rig.scatters() {
            true => (rig.payload.span(), payload * unit + any),
            false => (rig.arena.span(), arena * unit + any),
        };
        flip(rig.device, span, at)?;
        let kind = FaultKind::SourceFragmentByte;
        let one = Expect::Exactly(1);
        self.ledger.fault(kind.clone(), CheckKind::Source, rig.check_fill(span)?, one);
        if !rig.scatters() {
            let outcome = rig.copy_back(self.dice.next())?;
            self.ledger.fault(kind.clone(), CheckKind::CopyBack, outcome, one);
        }
        let (launched, guard) = (Some(trial.expected), Expect::Exactly(0));
        trial.plant(self.ledger, &Plant { kind, launched, destination: one, guard })?;
        flip(rig.device, span, at)?;
        self.ledger.sound(CheckKind::Source, rig.check_fill(span)?);

        if !rig.scatters() {
            // What is not read, or is read and not taken, disturbs nobody, but the data's own check.
            let behind = rig.own().reach_bytes() / unit;
            for gap in self.gaps().into_iter().chain([behind]) {
                flip(rig.device, span, gap * unit + any)?;
                let kind = FaultKind::SourceGapByte;
                self.ledger.fault(kind, CheckKind::Source, rig.check_fill(span)?, one);
                trial.sound(self.ledger)?;
                flip(rig.device, span, gap * unit + any)?;
            }
        }
        Ok(())
    }
}
