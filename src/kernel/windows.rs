//! A gather by windows: its index sorted into parts of the arena, and a table that says which
//! multiprocessor reads which part.

use crate::device::bindings as b;
use crate::device::{Buffer, Device, DeviceError, Span, WINDOW_TABLE_BYTES};
use crate::layout::{Index, Layout};
use crate::record::Order;

/// The most windows.
pub const MOST_WINDOWS: usize = b::FRAGBENCH_MOST_WINDOWS as usize;

/// An index that is sorted into windows, and the table, on the device.
pub struct WindowBuffers {
    index: Buffer,
    table: Buffer,
}

impl WindowBuffers {
    /// Sorts a layout's index into as many windows as `dealt` names, each as long as its share of the
    /// multiprocessors, and uploads it. Within a window fragments keep their order. `dealt` holds the
    /// number of each multiprocessor, and its window.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] where there are more than [`MOST_WINDOWS`], a window has no
    /// multiprocessor, units are narrower than 16 B or too many for the table, or whatever else the device says.
    pub fn upload(
        device: &dyn Device,
        layout: &Layout,
        index: &Index,
        dealt: &[(u32, usize)],
    ) -> Result<WindowBuffers, DeviceError> {
        let refused = |what: &str| DeviceError::Refused { entry: "windows", what: what.to_owned() };
        if layout.unit_bytes() != u64::from(b::FRAGBENCH_UNIT_BYTES) {
            return Err(refused("units are narrower than 16 B"));
        }
        let shares = shares(dealt).ok_or_else(|| refused("a window has no multiprocessor"))?;
        let bounds = bounds(&shares, layout.slots());
        let (sorted, firsts) = sorted(index, &bounds);
        let table = table(&firsts, layout.unit_shift(), dealt)
            .ok_or_else(|| refused("the table has no room for them"))?;
        let upload = |bytes: &[u8]| {
            let buffer = device.allocate(bytes.len() as u64)?;
            device.upload(buffer.span(), bytes)?;
            Ok::<Buffer, DeviceError>(buffer)
        };
        Ok(WindowBuffers { index: upload(sorted.as_bytes())?, table: upload(&table)? })
    }

    /// The index.
    pub fn index(&self) -> Span<'_> {
        self.index.span()
    }

    /// The table.
    pub fn table(&self) -> Span<'_> {
        self.table.span()
    }

    /// Device memory that it takes for a layout, in bytes.
    pub fn bytes(index_bytes: u64) -> u64 {
        index_bytes + WINDOW_TABLE_BYTES
    }

    /// The order whose index it is.
    pub const ORDER: Order = Order::Scattered;
}

/// How many multiprocessors each window has; none where one has none, or there are no windows.
fn shares(dealt: &[(u32, usize)]) -> Option<Vec<u64>> {
    let windows = dealt.iter().map(|(_, window)| window + 1).max()?;
    let mut shares = vec![0; windows];
    dealt.iter().for_each(|(_, window)| shares[*window] += 1);
    (windows <= MOST_WINDOWS && shares.iter().all(|share| *share > 0)).then_some(shares)
}

/// The slot behind each window, by shares.
fn bounds(shares: &[u64], slots: u64) -> Vec<u64> {
    let all: u128 = shares.iter().map(|share| u128::from(*share)).sum();
    let mut before = 0u128;
    let bound = |share: &u64| {
        before += u128::from(*share);
        (u128::from(slots) * before / all) as u64
    };
    shares.iter().map(bound).collect()
}

/// The entries window by window, and the first of each, and behind the last.
fn sorted(index: &Index, bounds: &[u64]) -> (Index, Vec<u64>) {
    fn of<T: Copy + Default + Into<u64>>(entries: &[T], bounds: &[u64]) -> (Vec<T>, Vec<u64>) {
        let window = |slot: T| bounds.partition_point(|bound| *bound <= slot.into());
        let mut next = vec![0u64; bounds.len() + 2];
        entries.iter().for_each(|slot| next[window(*slot) + 1] += 1);
        for at in 1..next.len() {
            next[at] += next[at - 1];
        }
        let firsts = next[..=bounds.len()].to_vec();
        let mut all = vec![T::default(); entries.len()];
        for slot in entries {
            let place = &mut next[window(*slot)];
            all[*place as usize] = *slot;
            *place += 1;
        }
        (all, firsts)
    }
    match index {
        Index::U32(entries) => {
            let (all, firsts) = of(entries, bounds);
            (Index::U32(all), firsts)
        }
        Index::U64(entries) => {
            let (all, firsts) = of(entries, bounds);
            (Index::U64(all), firsts)
        }
    }
}

/// The table as it lies in memory; none where it has no room.
fn table(firsts: &[u64], unit_shift: u32, dealt: &[(u32, usize)]) -> Option<Vec<u8>> {
    let mut table = b::window_table::default();
    for (place, first) in firsts.iter().enumerate() {
        *table.first.get_mut(place)? = first << unit_shift;
    }
    for (multiprocessor, window) in dealt {
        *table.window_of.get_mut(*multiprocessor as usize)? = *window as u32;
    }
    // Counters of 32 bits: behind the end, warps still take a run each.
    let units = firsts.last()? << unit_shift;
    if units >> 32 > 0 {
        return None;
    }
    let words = [&table.first[..]].into_iter().flatten().flat_map(|word| word.to_ne_bytes());
    let rest = [&table.next[..], &table.window_of, &[table.ended, table.reserved]];
    let rest = rest.into_iter().flatten().flat_map(|word| word.to_ne_bytes());
    let bytes: Vec<u8> = words.chain(rest).collect();
    (bytes.len() as u64 == WINDOW_TABLE_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_fragment_is_in_the_window_of_its_slot_and_keeps_its_order(
            slots in prop::collection::vec(0..1000u32, 0..300),
            shares in prop::collection::vec(1..9u64, 1..6),
        ) {
            let bounds = bounds(&shares, 1000);
            prop_assert_eq!(bounds.last(), Some(&1000));
            let (all, firsts) = sorted(&Index::U32(slots.clone()), &bounds);
            prop_assert_eq!((firsts[0], *firsts.last().unwrap()), (0, slots.len() as u64));
            let mut begin = 0;
            for (window, end) in bounds.iter().enumerate() {
                let part = firsts[window]..firsts[window + 1];
                let own: Vec<u64> = part.map(|at| all.get(at as usize).unwrap()).collect();
                let is_own = |slot: &u32| (begin..*end).contains(&u64::from(*slot));
                let wanted: Vec<u64> =
                    slots.iter().filter(|slot| is_own(slot)).map(|slot| u64::from(*slot)).collect();
                prop_assert_eq!(own, wanted);
                begin = *end;
            }
        }
    }

    #[test]
    fn windows_are_as_long_as_their_share() {
        assert_eq!(shares(&[(0, 0), (1, 1), (2, 0)]), Some(vec![2, 1]));
        assert_eq!((shares(&[]), shares(&[(0, 1)])), (None, None));
        assert_eq!(bounds(&[48, 42, 42], 132), [48, 90, 132]);
        assert_eq!(bounds(&[1, 2], u64::MAX), [u64::MAX / 3, u64::MAX]);
    }

    #[test]
    fn the_table_lies_as_the_kernel_reads_it() {
        let bytes = table(&[0, 5, 9], 3, &[(0, 1), (131, 0), (7, 1)]).unwrap();
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let first = |at: usize| u64::from_ne_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
        assert_eq!([first(0), first(1), first(2), first(3)], [0, 40, 72, 0]);
        assert_eq!(std::mem::offset_of!(b::window_table, window_of), 200);
        assert_eq!([word(200), word(204), word(200 + 4 * 7), word(200 + 4 * 131)], [1, 0, 1, 0]);
        assert_eq!(word(std::mem::offset_of!(b::window_table, ended)), 0);
        assert_eq!(table(&[0; 18], 0, &[]), None);
        assert_eq!(table(&[0, 1], 0, &[(1024, 0)]), None);
        assert_eq!(table(&[0, 1 << 32], 0, &[]), None);
    }
}
