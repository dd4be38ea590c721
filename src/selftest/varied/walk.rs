//! Where a kernel goes that follows a table: worked out on the host, piece by piece.
//!
//! A planted fault must neither lead a kernel out of its buffers nor be harmless, and the checks have
//! to find exactly the mismatches that it makes. Both follow from the moves that it causes.

use std::collections::{HashMap, HashSet};

use super::super::ledger::Expect;
use crate::layout::{EntryForm, Extents, Table};

/// One unit that is moved: its place in the payload and its place in the arena.
pub type Move = (u64, u64);

/// A table as the host reads it back.
#[derive(Clone)]
pub struct HostTable {
    form: EntryForm,
    /// Of ragged entries lead and shift; of others the lead.
    pub entries: Vec<[u64; 2]>,
    /// Before and begins.
    pub ranks: Vec<[u32; 2]>,
}

/// How many pieces, entries or rows late a launch finds its operands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shift {
    pub arena: u64,
    pub payload: u64,
    pub entries: u64,
    pub ranks: u64,
}

/// Which rank says whose a piece is, where ranks contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// That of the piece's own row, as on a GPU.
    Rows,
    /// That of the row in which a run of pieces begins, as on the host; and runs begin anew after so
    /// many pieces.
    Runs(u64),
}

/// Bounds of the buffers, in units of the payload's width.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub arena: u64,
    pub payload: u64,
}

impl HostTable {
    /// The table of these extents, with rows behind its last that hold nothing.
    pub fn new(table: &Table, form: EntryForm, spare_rows: usize) -> HostTable {
        let number = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        let entry = |bytes: &[u8]| match form {
            EntryForm::Ragged => [number(&bytes[..8]), number(&bytes[8..])],
            _ => [number(bytes), 0],
        };
        let entries = table.entry_bytes().chunks_exact(form.bytes() as usize).map(entry).collect();
        let rank = |bytes: &[u8]| [number(&bytes[..4]) as u32, number(&bytes[4..]) as u32];
        let ranks = table.rank_bytes().chunks_exact(8).map(rank);
        let ranks = ranks.chain(std::iter::repeat_n([0; 2], spare_rows)).collect();
        HostTable { form, entries, ranks }
    }

    pub fn entry_as_bytes(&self, entry: [u64; 2]) -> Vec<u8> {
        let bytes: Vec<u8> = entry.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes[..self.form.bytes() as usize].to_vec()
    }

    fn begins(&self, piece: u64, shift: Shift) -> Option<bool> {
        let [_, begins] = self.ranks.get((piece / 32 + shift.ranks) as usize)?;
        Some(begins >> (piece % 32) & 1 == 1)
    }

    /// The moves of so many pieces; none where one of them would leave the bounds.
    pub fn walk(
        &self,
        pieces: u64,
        shift: Shift,
        reader: Reader,
        bounds: Bounds,
    ) -> Option<Vec<Move>> {
        let mut moves = Vec::new();
        let mut fragment = 0;
        for piece in 0..pieces {
            let is_first = self.begins(piece, shift)?;
            let asks = match reader {
                Reader::Rows => true,
                Reader::Runs(anew) => is_first || piece % anew == 0,
            };
            if asks {
                let [before, begins] = self.ranks[(piece / 32 + shift.ranks) as usize];
                let begun = (begins << (31 - piece % 32)).count_ones();
                fragment = before.wrapping_add(begun).wrapping_sub(1);
            }
            let [lead, words] =
                *self.entries.get(u64::from(fragment) as usize + shift.entries as usize)?;
            match self.form {
                EntryForm::Narrow => {
                    moves.push((piece, u64::from((lead as u32).wrapping_add(piece as u32))));
                }
                EntryForm::Wide => moves.push((piece, lead.wrapping_add(piece))),
                EntryForm::Ragged => {
                    let place = (lead >> 4).wrapping_add(piece) & (u64::MAX >> 4);
                    let is_last = self.begins(piece + 1, shift)?;
                    let head = if is_first { lead >> 2 & 3 } else { 0 };
                    let tail = if is_last { lead & 3 } else { 0 };
                    let word = piece.wrapping_mul(4).wrapping_add(words);
                    // Whole pieces are loaded, whatever is taken of them.
                    if head + tail >= 4 || place >= bounds.arena / 4 {
                        return None;
                    }
                    let word = |k: u64| (word.wrapping_add(k), 4 * place + k);
                    moves.extend((head..4 - tail).map(word));
                }
            }
        }
        let width = if self.form == EntryForm::Ragged { 4 } else { 1 };
        for (payload, arena) in &mut moves {
            // Up to the end of its piece.
            let end = (*arena / width).checked_add(1 + shift.arena)?.checked_mul(width)?;
            if *payload >= bounds.payload - width * shift.payload || end > bounds.arena {
                return None;
            }
            *payload += width * shift.payload;
            *arena += width * shift.arena;
        }
        Some(moves)
    }
}

/// The moves that the extents themselves say.
pub fn moves_of(extents: &Extents) -> Vec<Move> {
    let unit_bytes = u64::from(extents.entry_form().unit_bytes());
    let units = extents
        .fragments()
        .iter()
        .flat_map(|fragment| fragment.offset / unit_bytes..fragment.end() / unit_bytes);
    (0..).zip(units).collect()
}

/// The mismatches that a launch with such moves makes: in what was to be written, and in what was to
/// stay (of a gather's payload in words of 4 B).
pub fn mismatches(
    right: &[Move],
    made: &[Move],
    scatters: bool,
    unit_bytes: u64,
) -> (Expect, Expect) {
    // From where each unit of the destination comes; none where it comes from several.
    let turned = |one: &Move| if scatters { (one.1, one.0) } else { *one };
    let mut from: HashMap<u64, Option<u64>> = HashMap::new();
    for (to, source) in made.iter().map(turned) {
        from.entry(to)
            .and_modify(|own| *own = own.filter(|own| *own == source))
            .or_insert(Some(source));
    }
    let wanted: HashSet<u64> = right.iter().map(|one| turned(one).0).collect();
    let (mut certain, mut open) = (0, 0);
    for (to, source) in right.iter().map(turned) {
        match from.get(&to) {
            Some(None) => open += 1,
            Some(Some(own)) if *own == source => {}
            _ => certain += 1,
        }
    }
    let destination = match (certain, open) {
        (certain, 0) => Expect::bytes(certain * unit_bytes, unit_bytes),
        (0, _) => Expect::Anything,
        (certain, _) => Expect::AtLeast(certain - certain.min(1)),
    };
    let strays = from.keys().filter(|to| !wanted.contains(to)).count() as u64;
    let compared = if scatters { unit_bytes } else { 4 };
    (destination, Expect::bytes(strays * unit_bytes, compared))
}
