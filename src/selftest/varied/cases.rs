//! Random extents, every shape and order in its turn.

use super::super::cases::Dice;
use crate::device::{DeviceError, VariedMover};
use crate::layout::{EntryForm, Extents, Fragment, LayoutError, Permutation, UNIT_BYTES};
use crate::record::size;

/// Extents, and the same with one fragment more, which is visited last and lies behind all others.
pub struct Case {
    pub own: Extents,
    pub with_spare: Extents,
    what: &'static str,
}

/// Granules of a payload, more or less, at most: a few tiles of every kernel.
const GRANULES: u64 = 6_000;

/// Pieces of the spare fragment: more than the rows that a launch begins late by.
const SPARE_PIECES: u64 = 100;

/// How lengths are drawn.
#[derive(Clone, Copy)]
enum Lengths {
    /// Up to half a row.
    Short,
    /// Anything.
    Any,
    /// Short but for one that is longer than all others together.
    OneLong,
}

const LENGTHS: [Lengths; 3] = [Lengths::Any, Lengths::Short, Lengths::OneLong];

/// How they are visited.
const ORDERS: [&str; 4] = ["random", "address", "packed", "windowed"];

/// The `n`-th extents of a kernel.
pub fn case(mover: VariedMover, n: u64, dice: &mut Dice) -> Result<Case, DeviceError> {
    let lengths = LENGTHS[(n % 3) as usize];
    let order = ORDERS[(n / 3 % 4) as usize];
    let refused =
        |error: LayoutError| DeviceError::Refused { entry: "selftest", what: error.to_string() };
    build(mover.form, lengths, order, dice).map_err(refused)
}

fn build(
    form: EntryForm,
    lengths: Lengths,
    order: &'static str,
    dice: &mut Dice,
) -> Result<Case, LayoutError> {
    // Of ragged fragments some begin where an allocator begins them, and some are whole by chance.
    let (places, words) = match (form, dice.below(6)) {
        (EntryForm::Ragged, 0) => (UNIT_BYTES, UNIT_BYTES),
        (EntryForm::Ragged, 1 | 2) => (UNIT_BYTES, 4),
        (EntryForm::Ragged, _) => (4, 4),
        _ => (UNIT_BYTES, UNIT_BYTES),
    };
    let count = dice.up_to(400);
    let most_gap = [0, 8, 300][dice.below(3) as usize];
    let long_at = dice.below(count);
    let mut end = match dice.below(3) {
        0 => 0,
        _ => 1024 + places * dice.below(4096),
    };
    let mut placed = Vec::new();
    for i in 0..count {
        let granules = match lengths {
            Lengths::OneLong if i == long_at => 2048 + dice.below(6_000),
            Lengths::Any => dice.up_to(2 * GRANULES / count + 2),
            _ => 1 + dice.below(16),
        };
        let offset: u64 = (end + places * dice.below(most_gap + 1)).next_multiple_of(places);
        end = offset + words * granules;
        placed.push(Fragment { offset, bytes: end - offset });
    }
    let footprint = end + 4 * dice.below(64);
    let visited = visit(&placed, order, dice);
    let mut own = Extents::new(visited, footprint)?.with_entries_at_least(form);
    if order == "packed" {
        own = own.packed();
    }
    let mut fragments = own.fragments().to_vec();
    let offset = (own.reach_bytes().max(footprint) + 64).next_multiple_of(UNIT_BYTES);
    fragments.push(Fragment { offset, bytes: SPARE_PIECES * UNIT_BYTES });
    let end = offset + SPARE_PIECES * UNIT_BYTES;
    let with_spare = Extents::new(fragments, end)?.with_entries_at_least(form);
    Ok(Case { own, with_spare, what: order })
}

fn visit(placed: &[Fragment], order: &str, dice: &mut Dice) -> Vec<Fragment> {
    let window = match order {
        "address" => return placed.to_vec(),
        "windowed" => 2 + dice.below(40) as usize,
        _ => placed.len(),
    };
    let shuffled = placed.chunks(window).flat_map(|chunk| {
        let turn = Permutation::new(dice.next(), chunk.len() as u64);
        (0..chunk.len()).map(move |i| chunk[turn.apply(i as u64) as usize])
    });
    shuffled.collect()
}

/// The extents in words.
pub fn describe(case: &Case) -> String {
    let lengths = case.own.fragments().iter().map(|fragment| fragment.bytes);
    let (least, most) = lengths.fold((u64::MAX, 0), |(a, b), bytes| (a.min(bytes), b.max(bytes)));
    format!(
        "{} fragments of {} to {} in {}, in {} order, entries of {} B",
        case.own.fragments().len(),
        size::exact(least),
        size::exact(most),
        size::exact(case.own.footprint_bytes()),
        case.what,
        case.own.entry_form().bytes(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::LAYOUTS;

    #[test]
    fn every_kernel_has_extents_of_its_form_and_of_every_shape() {
        let (mut touching, mut long, mut single_piece, mut coaligned) = (0, 0, 0, 0);
        for mover in VariedMover::all() {
            let mut dice = Dice::new(1, "cases");
            for n in 0..LAYOUTS {
                let case = case(mover, n, &mut dice).unwrap();
                assert_eq!(case.own.entry_form(), mover.form);
                assert_eq!(case.with_spare.entry_form(), mover.form);
                let tally = case.own.tally();
                assert!(tally.pieces < 40_000, "{}", describe(&case));
                let spare = case.with_spare.tally().pieces - tally.pieces;
                assert_eq!(spare, SPARE_PIECES);
                let all = case.own.fragments();
                touching += u32::from(all.windows(2).any(|two| two[0].end() == two[1].offset));
                long += u32::from(all.iter().any(|one| one.bytes > 16 << 10));
                let whole = |place: u64| place.is_multiple_of(16);
                let ragged = |one: &Fragment| !whole(one.offset) && !whole(one.end());
                single_piece += u32::from(all.iter().any(|one| one.bytes < 8 && ragged(one)));
                coaligned += u32::from(all.iter().all(|one| whole(one.offset)));
            }
        }
        assert!(touching.min(long).min(single_piece).min(coaligned) > 20);
    }
}
