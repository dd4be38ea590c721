//! Extents: fragments of varying length, as an aged heap leaves them.

use rayon::prelude::*;

use super::facts::{BLOCK_BYTES, LINE_BYTES, SECTOR_BYTES};
use super::index::GRAIN;
use super::{
    EntryForm, Fragment, LEAST_UNIT_BYTES, LayoutError, MAX_FOOTPRINT_BYTES, UNIT_BYTES, draw,
};
use crate::record::LayoutFacts;

/// The most fragments: the directory of a [table](super::Table) counts them in 32 bits.
pub const MAX_FRAGMENTS: u64 = 1 << 32;

/// Fragments of any lengths in the order of the visits, none of which overlaps another.
///
/// The payload is their bytes end to end in that order, with nothing between them. Work on it is
/// counted in *pieces*: aligned 16 B of the arena that a fragment touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents {
    fragments: Vec<Fragment>,
    footprint_bytes: u64,
    payload_bytes: u64,
    reach_bytes: u64,
    alignment_bytes: u64,
    form: EntryForm,
}

/// What the first fragments of extents come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Fragments.
    pub fragments: u64,
    /// Pieces: aligned 16 B of the arena that a fragment touches, each fragment for itself.
    pub pieces: u64,
    /// Bytes of payload.
    pub payload_bytes: u64,
}

impl Tally {
    pub(super) const fn and(self, other: Tally) -> Tally {
        Tally {
            fragments: self.fragments + other.fragments,
            pieces: self.pieces + other.pieces,
            payload_bytes: self.payload_bytes + other.payload_bytes,
        }
    }
}

impl Fragment {
    /// Where it ends: the offset of the first byte behind it.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }

    /// The piece of the arena, from 0, that holds its first byte.
    pub(super) fn first_piece(&self) -> u64 {
        self.offset / UNIT_BYTES
    }

    pub(super) fn tally(&self) -> Tally {
        let pieces = self.end().div_ceil(UNIT_BYTES) - self.first_piece();
        Tally { fragments: 1, pieces, payload_bytes: self.bytes }
    }
}

impl Extents {
    /// These fragments, in the order of the visits, within so many bytes.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] names the first fragment that is empty, not made of 4 B words, outside of the
    /// footprint or on another one; or says that there are none, or more than [`MAX_FRAGMENTS`].
    pub fn new(fragments: Vec<Fragment>, footprint_bytes: u64) -> Result<Extents, LayoutError> {
        if fragments.is_empty() {
            return Err(LayoutError::NoFragments);
        }
        if fragments.len() as u64 > MAX_FRAGMENTS {
            return Err(LayoutError::TooManyFragments { fragments: fragments.len() as u64 });
        }
        if footprint_bytes > MAX_FOOTPRINT_BYTES {
            return Err(LayoutError::FootprintTooLarge { footprint_bytes });
        }
        let refusal = |(number, fragment)| refusal(number, fragment, footprint_bytes);
        if let Some(error) = fragments.par_iter().enumerate().find_map_first(refusal) {
            return Err(error);
        }
        let sorted = by_address(&fragments);
        let overlap = sorted.windows(2).find(|two| two[0].end() > two[1].offset);
        if let Some([first, second]) = overlap {
            return Err(LayoutError::Overlap { first: *first, second: *second });
        }
        Ok(Extents::checked(fragments, footprint_bytes))
    }

    /// What is known of fragments that were checked.
    fn checked(fragments: Vec<Fragment>, footprint_bytes: u64) -> Extents {
        let fold = |(bytes, reach, bits): (u64, u64, u64), fragment: &Fragment| {
            let bits = bits | fragment.offset | fragment.bytes;
            (bytes + fragment.bytes, reach.max(fragment.end()), bits)
        };
        let (payload_bytes, end, bits) = fragments
            .par_chunks(GRAIN)
            .map(|chunk| chunk.iter().fold((0, 0, 0), fold))
            .reduce(|| (0, 0, 0), |a, b| (a.0 + b.0, a.1.max(b.1), a.2 | b.2));
        let reach_bytes = end.next_multiple_of(UNIT_BYTES);
        let alignment_bytes = 1 << bits.trailing_zeros().min(63);
        let form = EntryForm::least(alignment_bytes, reach_bytes);
        Extents { fragments, footprint_bytes, payload_bytes, reach_bytes, alignment_bytes, form }
    }

    /// The same behind a table whose entries have at least this form: all arms of a group have to
    /// use the same one, and one of them may need more than another.
    pub fn with_entries_at_least(self, form: EntryForm) -> Extents {
        Extents { form: form.max(self.form), ..self }
    }

    /// The same fragments in address order.
    pub fn sorted(&self) -> Extents {
        Extents { fragments: by_address(&self.fragments), ..self.clone_without_fragments() }
    }

    /// Fragments of the same lengths in the same order, end to end but that each begins at a
    /// multiple of 16 B. Its footprint ends with the last of them: where many lengths are no
    /// multiples of 16 B it may be longer than the one that it was packed from.
    pub fn packed(&self) -> Extents {
        let mut end: u64 = 0;
        let place = |fragment: &Fragment| {
            let offset = end.next_multiple_of(UNIT_BYTES);
            end = offset + fragment.bytes;
            Fragment { offset, bytes: fragment.bytes }
        };
        let fragments: Vec<Fragment> = self.fragments.iter().map(place).collect();
        Extents::checked(fragments, end).with_entries_at_least(self.form)
    }

    fn clone_without_fragments(&self) -> Extents {
        Extents { fragments: Vec::new(), ..*self }
    }

    /// The fragments, in the order of the visits.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// Bytes from the first to the last that the fragments may use.
    pub fn footprint_bytes(&self) -> u64 {
        self.footprint_bytes
    }

    /// Bytes held by the fragments.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// From the arena's begin to the end of the last piece: what the kernels address of it. Above
    /// the footprint by up to 12 B where that is no multiple of 16 B.
    pub fn reach_bytes(&self) -> u64 {
        self.reach_bytes
    }

    /// The largest power of two that every offset and every length is a multiple of, in bytes.
    pub fn alignment_bytes(&self) -> u64 {
        self.alignment_bytes
    }

    /// The form of the entries in its [table](super::Table): what its kernels are compiled for.
    pub fn entry_form(&self) -> EntryForm {
        self.form
    }

    /// What all fragments come to.
    pub fn tally(&self) -> Tally {
        self.tally_of(self.fragments.len() as u64)
    }

    /// What the first `count` fragments come to; all of them where there are no more.
    pub fn tally_of(&self, count: u64) -> Tally {
        let count = self.fragments.len().min(usize::try_from(count).unwrap_or(usize::MAX));
        let sum = |chunk: &[Fragment]| {
            chunk.iter().map(Fragment::tally).fold(Tally::default(), Tally::and)
        };
        self.fragments[..count].par_chunks(GRAIN).map(sum).reduce(Tally::default, Tally::and)
    }

    /// A number for these fragments in this order and footprint: the same on every machine.
    pub fn hash(&self) -> u64 {
        let parts = self.fragments.iter().flat_map(|fragment| [fragment.offset, fragment.bytes]);
        parts.fold(draw(self.footprint_bytes, 0), |hash, part| draw(hash ^ part, 0))
    }

    /// Distinct 128 B lines under the fragments, x 128.
    pub fn touched_bytes(&self) -> u64 {
        distinct_blocks(&by_address(&self.fragments), LINE_BYTES) * LINE_BYTES
    }

    /// The metrics of these fragments in this order.
    pub fn facts(&self) -> LayoutFacts {
        let sorted = by_address(&self.fragments);
        let [sectors, lines, pages] = BLOCK_BYTES.map(|bytes| distinct_blocks(&sorted, bytes));
        let pairs = self.fragments.windows(2);
        LayoutFacts {
            fragments: self.fragments.len() as u64,
            footprint_bytes: self.footprint_bytes,
            payload_bytes: self.payload_bytes,
            sector_bytes: sectors * SECTOR_BYTES,
            touched_bytes: lines * LINE_BYTES,
            pages_2mib: pages,
            jumps: pairs.filter(|two| two[0].end() != two[1].offset).count() as u64,
            index_entry_bytes: self.form.bytes(),
        }
    }
}

/// Why a fragment cannot be; none where it can.
fn refusal(number: usize, fragment: &Fragment, footprint_bytes: u64) -> Option<LayoutError> {
    let (number, fragment) = (number as u64, *fragment);
    let Fragment { offset, bytes } = fragment;
    if bytes == 0 || !(offset | bytes).is_multiple_of(LEAST_UNIT_BYTES) {
        return Some(LayoutError::NoWords { number, fragment });
    }
    let end = offset.checked_add(bytes);
    if end.is_none_or(|end| end > footprint_bytes) {
        return Some(LayoutError::OutsideFootprint { number, fragment, footprint_bytes });
    }
    None
}

fn by_address(fragments: &[Fragment]) -> Vec<Fragment> {
    let mut sorted = fragments.to_vec();
    if !sorted.is_sorted_by_key(|fragment| fragment.offset) {
        sorted.par_sort_unstable_by_key(|fragment| fragment.offset);
    }
    sorted
}

/// Distinct blocks under fragments in address order.
fn distinct_blocks(sorted: &[Fragment], block_bytes: u64) -> u64 {
    let mut reached = None;
    let added = |fragment: &Fragment| {
        let (first, last) = (fragment.offset / block_bytes, (fragment.end() - 1) / block_bytes);
        let first = reached.map_or(first, |reached| first.max(reached + 1));
        reached = Some(last);
        last + 1 - first
    };
    sorted.iter().map(added).sum()
}
