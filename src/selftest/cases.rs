//! Random small layouts, every pattern and order in its turn.

use crate::device::{DeviceError, Movement, Mover};
use crate::layout::{Layout, Pattern, Spec, UNIT_BYTES, below, draw, mix};
use crate::record::{Order, size};

/// Random numbers from a seed and a name.
#[derive(Debug)]
pub struct Dice {
    key: u64,
    drawn: u64,
}

impl Dice {
    /// Dice of their own for each name.
    pub fn new(seed: u64, name: &str) -> Dice {
        let key = name.bytes().fold(mix(seed), |key, byte| draw(key ^ u64::from(byte), 0));
        Dice { key, drawn: 0 }
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.drawn += 1;
        draw(self.key, self.drawn)
    }

    /// A number below `bound`, which is above 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        below(self.next(), bound)
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    /// From 1 to `most`, small numbers as often as large ones.
    pub fn up_to(&mut self, most: u64) -> u64 {
        let most = most >> self.below(u64::from(most.ilog2()) + 1);
        1 + self.below(most)
    }
}

/// A layout, and the order in which it is visited.
pub struct Case {
    pub layout: Layout,
    pub order: Order,
}

/// Units of a payload, more or less, at most: a few tiles of every kernel.
const UNITS: u64 = 12_000;

/// The longest of the usual fragments.
const LONG: u64 = 64 << 10;

/// The layout's own first: few layouts are best spent on it.
const ORDERS: [Order; 3] = [Order::Scattered, Order::Sorted, Order::Packed];

/// What a kernel is tested on, what is left open to be filled in.
fn patterns(movement: Movement) -> &'static [Pattern] {
    const STRIDED: &[Pattern] =
        &[Pattern::STRIDED, Pattern::Strided { stride: Some(1) }, Pattern::Contiguous];
    // Random layouts come last: a scatter takes no slot twice.
    const ALL: &[Pattern] = &[
        Pattern::SHUFFLED,
        Pattern::Holes { occupancy_percent: 50 },
        Pattern::Shuffled { window_bytes: Some(0) },
        Pattern::Checkerboard,
        Pattern::STRIDED,
        Pattern::Holes { occupancy_percent: 90 },
        Pattern::Strided { stride: Some(1) },
        Pattern::Contiguous,
        Pattern::Holes { occupancy_percent: 0 },
        Pattern::Random,
    ];
    match movement {
        Movement::StridedGather => STRIDED,
        Movement::ScatterCopy => &ALL[..ALL.len() - 1],
        _ => ALL,
    }
}

/// The `n`-th layout of a kernel.
pub fn case(mover: Mover, n: u64, dice: &mut Dice) -> Result<Case, DeviceError> {
    let patterns = patterns(mover.movement);
    let (turn, at) = (n / patterns.len() as u64, n % patterns.len() as u64);
    let order = ORDERS[(turn % 3) as usize].clone();
    let spec = spec(patterns[at as usize], u64::from(mover.unit_bytes), dice);
    let layout = Layout::new(spec, dice.next())
        .map_err(|error| DeviceError::Refused { entry: "selftest", what: error.to_string() })?;
    let layout = if mover.index_entry_bytes == 8 { layout.with_wide_index() } else { layout };
    Ok(Case { layout, order })
}

/// A layout with units of this width.
fn spec(pattern: Pattern, unit_bytes: u64, dice: &mut Dice) -> Spec {
    let fragment_bytes = match dice.below(8) {
        0 => LONG << (1 + dice.below(3)),
        1..=3 => unit_bytes,
        _ => unit_bytes << dice.below(u64::from((LONG / unit_bytes).ilog2()) + 1),
    };
    let is_long = fragment_bytes > LONG;
    // Of these the ones that leave units of the width that is asked for.
    let offsets = [0, 4, 8, 16, 32, 64];
    let fits = |offset: &u64| {
        let width = 1 << (fragment_bytes | offset).trailing_zeros();
        UNIT_BYTES.min(width) == unit_bytes
    };
    let offset_bytes = dice.one_of(&offsets.into_iter().filter(fits).collect::<Vec<_>>());
    // Whole units of 16 B, however short the fragment.
    let granule = (UNIT_BYTES / fragment_bytes).max(1);
    let most = (UNITS * unit_bytes / fragment_bytes).max(3);
    let fragments = dice.up_to(most).next_multiple_of(granule);
    let gaps = dice.below(if is_long { 100 } else { 400 });
    let slots = fragments + fragments * gaps / 100;
    let (pattern, slots) = complete(pattern, fragments, slots, fragment_bytes, dice);
    let slots = match pattern.fills_its_capacity() {
        true => (slots..).find(|slots| {
            let held = pattern.capacity(*slots);
            held > 0 && held.is_multiple_of(granule)
        }),
        false => None,
    }
    .unwrap_or(slots);
    let fragments = if pattern.fills_its_capacity() { pattern.capacity(slots) } else { fragments };
    // Behind an offset the footprint need not be whole.
    let rest = if offset_bytes > 0 { 4 * dice.below(fragment_bytes / 4) } else { 0 };
    Spec {
        pattern,
        fragment_bytes,
        offset_bytes,
        footprint_bytes: offset_bytes + slots * fragment_bytes + rest,
        payload_bytes: fragments * fragment_bytes,
    }
}

/// The pattern with what it leaves open, and the slots that it takes.
fn complete(
    pattern: Pattern,
    fragments: u64,
    slots: u64,
    fragment_bytes: u64,
    dice: &mut Dice,
) -> (Pattern, u64) {
    match pattern {
        Pattern::Strided { stride: Some(_) } => {
            let stride = 1 + dice.below(if fragment_bytes > LONG { 2 } else { 6 });
            let slots = fragments * stride + dice.below(fragments * stride + 1);
            (Pattern::Strided { stride: Some(stride) }, slots)
        }
        Pattern::Shuffled { window_bytes: Some(_) } => {
            let stride_bytes = slots / fragments * fragment_bytes;
            let window = 2 + dice.below(fragments + 1);
            let window_bytes = Some(window * stride_bytes + dice.below(stride_bytes));
            (Pattern::Shuffled { window_bytes }, slots)
        }
        Pattern::Holes { .. } if fragment_bytes > LONG => {
            (Pattern::Holes { occupancy_percent: 50 }, slots)
        }
        Pattern::Holes { occupancy_percent: 0 } => {
            (Pattern::Holes { occupancy_percent: 1 + dice.below(99) as u32 }, slots)
        }
        _ => (pattern, slots),
    }
}

/// The layout in words.
pub fn describe(case: &Case) -> String {
    let spec = case.layout.spec();
    format!(
        "{} in {} order, {} fragments of {} in {} slots, index entries of {} B",
        spec.pattern.refined(spec.offset_bytes),
        case.order,
        case.layout.fragments(),
        size::exact(spec.fragment_bytes),
        case.layout.slots(),
        case.layout.index_entry_bytes(),
    )
}

/// A contiguous payload: length of a piece, which stands for a fragment, and how many there are.
pub fn pieces(dice: &mut Dice) -> (u64, u64) {
    let piece = match dice.below(8) {
        0 => LONG << (1 + dice.below(3)),
        1..=3 => UNIT_BYTES,
        _ => UNIT_BYTES << dice.below(13),
    };
    (piece, dice.up_to((UNITS * UNIT_BYTES / piece).max(3)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::selftest::{LAYOUTS, Subject};

    #[test]
    fn every_pattern_order_and_offset_has_its_turn() {
        let mut seen = BTreeSet::new();
        for mover in Mover::all().into_iter().filter(|mover| mover.movement.has_layout()) {
            let mut dice = Dice::new(1, "cases");
            for n in 0..LAYOUTS {
                let case = case(mover, n, &mut dice).unwrap();
                let spec = case.layout.spec();
                assert_eq!(case.layout.unit_bytes(), u64::from(mover.unit_bytes));
                assert!(!(mover.movement == Movement::ScatterCopy && spec.pattern.repeats()));
                seen.insert(format!("{} {}", spec.pattern.name(), case.order));
                seen.insert(format!("offset {} {}", spec.offset_bytes, mover.unit_bytes));
                seen.insert(format!("fragment {}", spec.fragment_bytes));
            }
        }
        for pattern in ["contiguous", "strided", "shuffled", "random", "checkerboard", "holes"] {
            for order in &ORDERS {
                assert!(seen.contains(&format!("{pattern} {order}")), "{pattern} {order}");
            }
        }
        for offset in ["0 4", "4 4", "8 8", "0 16", "16 16", "32 16", "64 16"] {
            assert!(seen.contains(&format!("offset {offset}")), "{offset}");
        }
        for shift in 2..20 {
            assert!(seen.contains(&format!("fragment {}", 1 << shift)), "1 << {shift}");
        }
    }

    #[test]
    fn any_seed_makes_layouts() {
        for mover in Mover::all().into_iter().filter(|mover| mover.movement.has_layout()) {
            let mut dice = Dice::new(u64::MAX, &Subject::Kernel(mover).name());
            for n in 0..40 {
                let case = case(mover, n, &mut dice).unwrap();
                assert!(case.layout.footprint_bytes() < 32 << 20, "{}", describe(&case));
            }
        }
    }
}
