//! Wrong entries and ranks: for the checks of the table, and for a kernel that follows them.

use super::super::ledger::Expect;
use super::super::trial::{Plant, Trial};
use super::Bench;
use super::walk::{HostTable, Move, Reader, Shift, mismatches};
use crate::device::DeviceError;
use crate::device::bindings::FRAGBENCH_HOST_BLOCK_UNITS;
use crate::record::{CheckKind, FaultKind};

/// Something that is wrong in a table.
struct Slip {
    kind: FaultKind,
    entries: Vec<(usize, [u64; 2])>,
    rank: Option<(usize, [u32; 2])>,
}

impl Slip {
    fn of_entries(kind: FaultKind, entries: Vec<(usize, [u64; 2])>) -> Slip {
        Slip { kind, entries, rank: None }
    }

    fn of_rank(kind: FaultKind, row: usize, rank: [u32; 2]) -> Slip {
        Slip { kind, entries: Vec::new(), rank: Some((row, rank)) }
    }

    /// How much is wrong.
    fn wrong(&self) -> u64 {
        self.entries.len() as u64 + u64::from(self.rank.is_some())
    }

    fn table(&self, right: &HostTable) -> HostTable {
        let mut table = right.clone();
        for (i, entry) in &self.entries {
            table.entries[*i] = *entry;
        }
        if let Some((row, rank)) = self.rank {
            table.ranks[row] = rank;
        }
        table
    }
}

impl Bench<'_> {
    /// The check of the table and the host's own look, sound and with slips. False where the table is
    /// not sound.
    pub fn table(&mut self) -> Result<bool, DeviceError> {
        let rig = self.rig;
        let expected = rig.access(rig.own(), Shift::default())?;
        if !self.ledger.sound(CheckKind::Index, rig.verifier.check_index(&expected)?) {
            return Ok(false);
        }
        let outcome = rig.copy_back(self.dice.next())?;
        self.ledger.sound(CheckKind::CopyBack, outcome);
        for slip in self.slips() {
            let wrong = slip.wrong();
            self.set(&slip)?;
            let found = rig.verifier.check_index(&expected)?;
            self.ledger.fault(slip.kind.clone(), CheckKind::Index, found, Expect::Exactly(wrong));
            if let Some(made) = self.made(&slip) {
                let found = rig.copy_back(self.dice.next())?;
                let (units, _) = mismatches(&rig.right, &made[0], false, rig.unit_bytes());
                let expect = match (units, slip.rank) {
                    (Expect::Exactly(units), None) => Expect::Exactly(wrong + units),
                    (Expect::Nearly(units), None) => Expect::Nearly(wrong + units),
                    _ => Expect::AtLeast(wrong),
                };
                self.ledger.fault(slip.kind.clone(), CheckKind::CopyBack, found, expect);
            }
            self.unset(&slip)?;
        }
        Ok(self.ledger.sound(CheckKind::Index, rig.verifier.check_index(&expected)?))
    }

    /// Slips that a kernel followed all the same.
    pub fn followed_slips(&mut self, trial: &Trial<'_>) -> Result<(), DeviceError> {
        let rig = self.rig;
        for slip in self.slips() {
            let Some(made) = self.made(&slip) else { continue };
            let seen =
                |made: &Vec<Move>| mismatches(&rig.right, made, rig.scatters(), rig.unit_bytes());
            let (mut destination, mut guard) = seen(&made[0]);
            if slip.rank.is_some() {
                // How far it reaches depends on the target, and on where its threads begin.
                let always = made.iter().all(|made| seen(made).0.is_seen());
                destination = if always { Expect::AtLeast(1) } else { Expect::Anything };
                guard = Expect::Anything;
            }
            let kind = slip.kind.clone();
            let plant = Plant { kind, launched: Some(trial.expected), destination, guard };
            self.set(&slip)?;
            trial.plant(self.ledger, &plant)?;
            self.unset(&slip)?;
        }
        Ok(())
    }

    fn set(&self, slip: &Slip) -> Result<(), DeviceError> {
        slip.entries.iter().try_for_each(|(i, entry)| self.rig.set_entry(*i, *entry))?;
        slip.rank.map_or(Ok(()), |(row, rank)| self.rig.set_rank(row, rank))
    }

    fn unset(&self, slip: &Slip) -> Result<(), DeviceError> {
        let right = &self.rig.table;
        slip.entries.iter().try_for_each(|(i, _)| self.rig.set_entry(*i, right.entries[*i]))?;
        slip.rank.map_or(Ok(()), |(row, _)| self.rig.set_rank(row, right.ranks[row]))
    }

    /// What a kernel makes of it, for each way to read ranks that contradict each other: without such
    /// they all come to the same. None where a kernel would leave its buffers, or see nothing.
    fn made(&self, slip: &Slip) -> Option<[Vec<Move>; 3]> {
        let rig = self.rig;
        let table = slip.table(&rig.table);
        let walk = |reader| {
            let made = rig.walk(&table, rig.pieces(), Shift::default(), reader)?;
            (made != rig.right).then_some(made)
        };
        let block = u64::from(FRAGBENCH_HOST_BLOCK_UNITS);
        Some([walk(Reader::Rows)?, walk(Reader::Runs(u64::MAX))?, walk(Reader::Runs(block))?])
    }

    fn slips(&mut self) -> Vec<Slip> {
        let rig = self.rig;
        let last = rig.fragments() as usize - 1;
        let mut slips = Vec::new();
        for (kind, i) in [
            (FaultKind::FirstEntryWrong, 0),
            (FaultKind::MiddleEntryWrong, last / 2),
            (FaultKind::LastEntryWrong, last),
        ] {
            let wrong = self.wrong_entry(rig.table.entries[i]);
            slips.push(Slip::of_entries(kind, vec![(i, wrong)]));
        }
        slips.extend(self.swapped(last));
        let row = self.row_with_begin();
        let [before, begins] = rig.table.ranks[row];
        for before in [before.wrapping_add(1), before.wrapping_sub(1)] {
            slips.push(Slip::of_rank(FaultKind::RankWrong, row, [before, begins]));
        }
        let bits = rig.pieces().min(32 * (row as u64 + 1)) - 32 * row as u64;
        let any = 32 * row as u64 + self.dice.below(bits);
        // The last one tells where the last fragment ends.
        for piece in [any, rig.pieces()] {
            let row = (piece / 32) as usize;
            let [before, begins] = rig.table.ranks[row];
            let rank = [before, begins ^ 1 << (piece % 32)];
            slips.push(Slip::of_rank(FaultKind::RankBitWrong, row, rank));
        }
        slips
    }

    /// An entry that names another place: the piece behind the right one, the one before it, or of a
    /// ragged one any other part.
    fn wrong_entry(&mut self, [lead, shift]: [u64; 2]) -> [u64; 2] {
        use crate::layout::EntryForm::Ragged;
        match (self.rig.mover.form, self.dice.below(6)) {
            (Ragged, 0) => [lead ^ 1 << 2, shift],
            (Ragged, 1) => [lead ^ 1, shift],
            (Ragged, 2) => [lead, shift.wrapping_add(1)],
            (Ragged, 3) => [lead, shift.wrapping_sub(1)],
            (Ragged, 4) => [lead.wrapping_add(1 << 4), shift],
            (Ragged, _) => [lead.wrapping_sub(1 << 4), shift],
            (_, 0..3) => [lead.wrapping_add(1), shift],
            _ => [lead.wrapping_sub(1), shift],
        }
    }

    /// The first fragment and another one that have changed places.
    fn swapped(&mut self, last: usize) -> Option<Slip> {
        let rig = self.rig;
        let other = 1 + self.dice.below(last.max(1) as u64) as usize;
        if last == 0 {
            return None;
        }
        let first_piece = rig.own().tally_of(other as u64).pieces;
        let ([lead, shift], [other_lead, other_shift]) =
            (rig.table.entries[0], rig.table.entries[other]);
        // The place of the other one for the pieces of the first, and the other way round.
        let scale = if rig.mover.form.bytes() == 16 { 16 } else { 1 };
        let distance = first_piece.wrapping_mul(scale);
        let entries = vec![
            (0, [other_lead.wrapping_add(distance), shift]),
            (other, [lead.wrapping_sub(distance), other_shift]),
        ];
        Some(Slip::of_entries(FaultKind::EntriesSwapped, entries))
    }

    /// Some row in which a fragment begins.
    fn row_with_begin(&mut self) -> usize {
        let rows = self.rig.pieces().div_ceil(32);
        let from = self.dice.below(rows);
        let mut all = (from..rows).chain(0..from);
        let begins = |row: &u64| self.rig.table.ranks[*row as usize][1] != 0;
        all.find(begins).unwrap_or(0) as usize
    }
}
