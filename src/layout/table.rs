//! The table: how kernels find the fragment that a piece belongs to, and where it lies.

use rayon::prelude::*;

use super::extents::Tally;
use super::index::{GRAIN, exactly};
use super::{EntryForm, Extents, Fragment, LEAST_UNIT_BYTES, LayoutError, UNIT_BYTES};

/// Pieces of a row: one load of a warp.
pub const ROW_PIECES: u64 = 32;

/// Rows that a warp may read at once, and may read beyond the last.
pub const RANK_ROWS: u64 = 16;

/// An entry for each fragment, and a directory of ranks with a pair for each row of 32 pieces.
///
/// Pieces are numbered over all fragments in the order of the visits. A pair holds how many fragments
/// begin before its row, and a bit for each piece of the row that is the first of a fragment: the
/// fragment of a piece is found by counting bits (the rank of a bit vector: Jacobson, "Space-efficient
/// static trees and graphs", FOCS 1989). Behind the last piece begins a fragment that is not there, so
/// that every fragment ends where another one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    entries: Entries,
    ranks: Vec<[u32; 2]>,
}

/// For each fragment the arena's piece at which it begins, less the number of its first piece:
/// what has to be added to the number of a piece, modulo 2^32 or 2^64.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entries {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
    /// The same modulo 2^60, then two bits each for the words of the first piece before the fragment
    /// and of the last piece behind it; and what has to be added to four times the number of a piece
    /// for the payload's word at which the piece begins, modulo 2^64.
    Ragged(Vec<[u64; 2]>),
}

impl Table {
    /// The table of these extents, made in parallel: tens of millions of fragments a second.
    ///
    /// # Errors
    ///
    /// [`LayoutError::OutOfMemory`].
    pub fn new(extents: &Extents) -> Result<Table, LayoutError> {
        let begins = begins(extents.fragments());
        let entries = match extents.entry_form() {
            EntryForm::Narrow => {
                each(extents, &begins, |lead, _, _| lead as u32).map(Entries::Narrow)
            }
            EntryForm::Wide => each(extents, &begins, |lead, _, _| lead).map(Entries::Wide),
            EntryForm::Ragged => each(extents, &begins, ragged).map(Entries::Ragged),
        };
        let out_of_memory = || LayoutError::OutOfMemory {
            fragments: extents.fragments().len() as u64,
            entry_bytes: extents.entry_form().bytes(),
        };
        let entries = entries.ok_or_else(out_of_memory)?;
        let ranks = ranks(extents.fragments(), &begins).ok_or_else(out_of_memory)?;
        Ok(Table { entries, ranks })
    }

    /// The entries as they lie in memory, in the byte order of the host.
    pub fn entry_bytes(&self) -> &[u8] {
        match &self.entries {
            Entries::Narrow(entries) => bytemuck::cast_slice(entries),
            Entries::Wide(entries) => bytemuck::cast_slice(entries),
            Entries::Ragged(entries) => bytemuck::cast_slice(entries),
        }
    }

    /// The pairs likewise, those behind the last row included.
    pub fn rank_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.ranks)
    }

    /// Rows of so many pieces.
    pub fn rows(pieces: u64) -> u64 {
        pieces.div_ceil(ROW_PIECES)
    }

    /// Pairs that the directory of so many pieces has: kernels read beyond the last row.
    pub fn ranks(pieces: u64) -> u64 {
        Table::rows(pieces).next_multiple_of(RANK_ROWS) + RANK_ROWS
    }
}

/// What the fragments before each chunk come to, and last all of them.
fn begins(fragments: &[Fragment]) -> Vec<Tally> {
    let sum =
        |chunk: &[Fragment]| chunk.iter().map(Fragment::tally).fold(Tally::default(), Tally::and);
    let sums: Vec<Tally> = fragments.par_chunks(GRAIN).map(sum).collect();
    let mut before = vec![Tally::default()];
    for sum in sums {
        before.push(before[before.len() - 1].and(sum));
    }
    before
}

/// What `entry` makes of each fragment, of its lead and of what comes before it.
fn each<T: Clone + Default + Send>(
    extents: &Extents,
    begins: &[Tally],
    entry: impl Fn(u64, &Fragment, Tally) -> T + Sync,
) -> Option<Vec<T>> {
    let fragments = extents.fragments();
    let mut entries = exactly(fragments.len() as u64, |_| T::default())?;
    entries.par_chunks_mut(GRAIN).zip(fragments.par_chunks(GRAIN)).zip(begins).for_each(
        |((entries, fragments), before)| {
            let mut before = *before;
            for (own, fragment) in entries.iter_mut().zip(fragments) {
                let lead = fragment.first_piece().wrapping_sub(before.pieces);
                *own = entry(lead, fragment, before);
                before = before.and(fragment.tally());
            }
        },
    );
    Some(entries)
}

fn ragged(lead: u64, fragment: &Fragment, before: Tally) -> [u64; 2] {
    let words = UNIT_BYTES / LEAST_UNIT_BYTES;
    let head = fragment.offset / LEAST_UNIT_BYTES % words;
    let tail = (words - fragment.end() / LEAST_UNIT_BYTES % words) % words;
    let word = before.payload_bytes / LEAST_UNIT_BYTES;
    let shift = word.wrapping_sub(head).wrapping_sub(words.wrapping_mul(before.pieces));
    [lead << 4 | head << 2 | tail, shift]
}

fn ranks(fragments: &[Fragment], begins: &[Tally]) -> Option<Vec<[u32; 2]>> {
    let pieces = begins[begins.len() - 1].pieces;
    let mut ranks = exactly(Table::ranks(pieces), |_| [0; 2])?;
    // A row belongs to the chunk in which its first piece lies; the rows behind to the last chunk.
    let mut rest = &mut ranks[..];
    let mut shares = Vec::with_capacity(begins.len());
    for chunk in 0..begins.len() - 1 {
        let first = Table::rows(begins[chunk].pieces);
        let end = match chunk + 2 == begins.len() {
            true => first + rest.len() as u64,
            false => Table::rows(begins[chunk + 1].pieces),
        };
        let (own, others) = rest.split_at_mut((end - first) as usize);
        shares.push((chunk, first, own));
        rest = others;
    }
    shares.into_par_iter().for_each(|(chunk, first_row, own)| {
        let end = first_row + own.len() as u64;
        let first = chunk * GRAIN;
        let mut piece = begins[chunk].pieces;
        // Fragments begun before the row, as a number of 32 bits: the kernels calculate modulo 2^32.
        let mut filled = 0;
        let mut begin = |number: usize, piece: u64| {
            let row = piece / ROW_PIECES;
            // It begins before the chunk's own rows.
            let Some(at) = row.checked_sub(first_row) else { return true };
            if row >= end {
                return false;
            }
            for pair in &mut own[filled..=at as usize] {
                pair[0] = number as u32;
            }
            filled = filled.max(at as usize + 1);
            own[at as usize][1] |= 1 << (piece % ROW_PIECES);
            true
        };
        let mut number = first;
        for fragment in &fragments[first..] {
            if !begin(number, piece) {
                break;
            }
            number += 1;
            piece += fragment.tally().pieces;
        }
        // The fragment behind the last one; or the one at which the walk ended, of other rows.
        if begin(number, piece) {
            number += 1;
        }
        for pair in &mut own[filled..] {
            pair[0] = number as u32;
        }
    });
    Some(ranks)
}
