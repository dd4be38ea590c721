//! Wrong index entries: for the checks of the index, and for a kernel that follows them.

use super::fragments::Bench;
use super::ledger::Expect;
use super::rig::Shift;
use super::trial::{Plant, Trial};
use crate::device::DeviceError;
use crate::record::{CheckKind, FaultKind};

/// One index entry that names another slot, or two that have changed places.
struct Slip {
    kind: FaultKind,
    entries: Vec<(u64, u64)>,
    /// The slot that is named instead holds no fragment.
    into_gap: bool,
}

impl Bench<'_> {
    /// The index check and the host's own look, sound and with wrong entries. False where the index
    /// is not sound.
    pub fn index(&mut self) -> Result<bool, DeviceError> {
        let rig = self.rig;
        let expected = rig.access(Shift::default())?;
        let sound = rig.verifier.check_index(&expected)?;
        if !self.ledger.sound(CheckKind::Index, sound) {
            return Ok(false);
        }
        self.ledger.sound(CheckKind::CopyBack, rig.copy_back()?);
        let units = self.fragment_bytes() / rig.case.layout.unit_bytes();
        for slip in self.slips() {
            let wrong = slip.entries.len() as u64;
            self.set(&slip)?;
            let found = rig.verifier.check_index(&expected)?;
            // Without a closed form entries are held against their predecessors, and their sum.
            let expect = match rig.has_closed_form() {
                true => Expect::Exactly(wrong),
                false => Expect::AtLeast(1),
            };
            self.ledger.fault(slip.kind.clone(), CheckKind::Index, found, expect);
            let last = rig.fragments() - 1;
            // The first and the last fragment are always among those that are copied back: the
            // entry counts, and so do the units that came from elsewhere.
            if slip.entries.iter().all(|(i, _)| [0, last].contains(i)) {
                let expect = match wrong * (1 + units) {
                    all if units > 1_000 => Expect::Nearly(all),
                    all => Expect::Exactly(all),
                };
                self.ledger.fault(slip.kind.clone(), CheckKind::CopyBack, rig.copy_back()?, expect);
            }
            self.unset(&slip)?;
        }
        Ok(self.ledger.sound(CheckKind::Index, rig.verifier.check_index(&expected)?))
    }

    /// Wrong entries, all of slots that are there.
    fn slips(&mut self) -> Vec<Slip> {
        let rig = self.rig;
        let last = rig.fragments() - 1;
        let mut slips = Vec::new();
        let places = [
            (FaultKind::FirstEntryWrong, 0),
            (FaultKind::MiddleEntryWrong, last / 2),
            (FaultKind::LastEntryWrong, last),
        ];
        for (kind, i) in places {
            let right = rig.entries[i as usize];
            // Of a scatter a gap, so that what becomes of it does not hang on the order of threads;
            // else the next slot, so that entries in address order mostly still ascend.
            let gap = if rig.scatters() { rig.gap(self.dice) } else { None };
            let next = if right + 1 < rig.slots { Some(right + 1) } else { right.checked_sub(1) };
            if let Some(slot) = gap.or(next) {
                let into_gap = gap.is_some();
                slips.push(Slip { kind, entries: vec![(i, slot)], into_gap });
            }
        }
        let first = rig.entries[0];
        let other = (1..=last).rev().find(|i| rig.entries[*i as usize] != first);
        if let Some(other) = other {
            let entries = vec![(0, rig.entries[other as usize]), (other, first)];
            slips.push(Slip { kind: FaultKind::EntriesSwapped, entries, into_gap: false });
        }
        slips
    }

    fn set(&self, slip: &Slip) -> Result<(), DeviceError> {
        slip.entries.iter().try_for_each(|(i, slot)| self.rig.set_entry(*i, *slot))
    }

    fn unset(&self, slip: &Slip) -> Result<(), DeviceError> {
        let right = |i: u64| self.rig.entries[i as usize];
        slip.entries.iter().try_for_each(|(i, _)| self.rig.set_entry(*i, right(*i)))
    }

    /// Wrong entries that a kernel followed all the same.
    pub fn followed_entries(&mut self, trial: &Trial<'_>) -> Result<(), DeviceError> {
        let rig = self.rig;
        for slip in self.slips() {
            let wrong = slip.entries.len() as u64;
            let (mut destination, mut guard) = (self.fragments(wrong), Expect::Exactly(0));
            if slip.into_gap {
                guard = self.strays(wrong);
            } else if rig.scatters() && wrong == 1 {
                // Two fragments in one slot: which of them stays is left to the threads.
                destination = Expect::AtLeast(self.fragment_bytes() / trial.unit_bytes);
            }
            // Then what is expected goes through the same index.
            if !rig.has_closed_form() {
                destination = Expect::Anything;
            }
            let kind = slip.kind.clone();
            let plant = Plant { kind, launched: Some(trial.expected), destination, guard };
            self.set(&slip)?;
            trial.plant(self.ledger, &plant)?;
            self.unset(&slip)?;
        }
        Ok(())
    }
}
