//! Free ranges by address, merged with their neighbours.

use super::Hole;
use super::tree::{Entry, Place, Tree};

/// Free ranges by address. Neighbours are one.
#[derive(Debug, Default)]
pub struct Holes(Tree);

/// A hole and where it stands, until holes change.
pub struct Found {
    pub(super) hole: Hole,
    place: Place,
}

impl Holes {
    /// The first hole of at least `bytes` bytes.
    pub(super) fn first(&self, bytes: u64) -> Option<Found> {
        self.0.first(bytes).map(|place| self.found(place))
    }

    /// The first hole of at least `bytes` bytes at `address` or behind it.
    pub(super) fn first_from(&self, address: u64, bytes: u64) -> Option<Found> {
        self.0.first_from(address, bytes).map(|place| self.found(place))
    }

    /// The hole that an address lies in.
    pub(super) fn around(&self, address: u64) -> Option<Found> {
        let found = self.found(self.0.last_to(address)?);
        (address < found.hole.end()).then_some(found)
    }

    /// Every hole, by address.
    pub(super) fn all(&self) -> Vec<Hole> {
        self.0.entries().into_iter().map(Hole::from).collect()
    }

    /// Lengths of all holes, in no order.
    pub(super) fn lengths(&self) -> Vec<u64> {
        self.0.lengths()
    }

    /// Takes the first `bytes` bytes out of a hole: what is left of it.
    pub(super) fn take(&mut self, Found { hole, place }: Found, bytes: u64) -> Option<Hole> {
        if hole.bytes == bytes {
            self.0.remove(&place);
            return None;
        }
        let rest = Hole { address: hole.address + bytes, bytes: hole.bytes - bytes };
        self.0.replace(&place, rest.into());
        Some(rest)
    }

    /// Takes a range out of the hole around it: what is left before and behind it.
    pub(super) fn cut(&mut self, around: Found, range: Hole) -> (Option<Hole>, Option<Hole>) {
        let Found { hole, place } = around;
        let part =
            |address, end: u64| (address < end).then(|| Hole { address, bytes: end - address });
        let before = part(hole.address, range.address);
        let after = part(range.end(), hole.end());
        match before.or(after) {
            Some(part) => self.0.replace(&place, part.into()),
            None => self.0.remove(&place),
        }
        if let (Some(_), Some(after)) = (before, after) {
            self.0.insert(after.into());
        }
        (before, after)
    }

    /// Adds a range that is free now, merged with the holes beside it: the hole that it is a part of.
    pub(super) fn give(&mut self, range: Hole) -> Hole {
        let beside = self.0.descend(range.address);
        let is_behind = self.0.is_to(&beside, range.address);
        let behind = if is_behind { self.0.next(beside.clone()) } else { self.0.first(1) };
        let before: Option<Hole> = is_behind.then(|| self.0.entry(&beside).into());
        let before = before.filter(|before| before.end() == range.address);
        let after = behind.filter(|place| self.0.entry(place).key == range.end());
        let address = before.map_or(range.address, |before| before.address);
        let end = after.as_ref().map_or(range.end(), |place| Hole::from(self.0.entry(place)).end());
        let hole = Hole { address, bytes: end - address };
        match (before, after) {
            (None, None) => self.0.insert_beside(&beside, hole.into()),
            (Some(_), None) => self.0.replace(&beside, hole.into()),
            (None, Some(after)) => self.0.replace(&after, hole.into()),
            (Some(_), Some(after)) => {
                // The earlier first: removing moves what is behind.
                self.0.replace(&beside, hole.into());
                self.0.remove(&after);
            }
        }
        hole
    }

    fn found(&self, place: Place) -> Found {
        Found { hole: self.0.entry(&place).into(), place }
    }
}

impl From<Hole> for Entry {
    fn from(Hole { address, bytes }: Hole) -> Self {
        Self { key: address, bytes }
    }
}

impl From<Entry> for Hole {
    fn from(Entry { key, bytes }: Entry) -> Self {
        Self { address: key, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn hole(address: u64, bytes: u64) -> Hole {
        Hole { address, bytes }
    }

    #[test]
    fn freed_ranges_merge_with_both_neighbours() {
        let mut holes = Holes::default();
        assert_eq!(holes.give(hole(100, 10)), hole(100, 10));
        assert_eq!(holes.give(hole(120, 10)), hole(120, 10));
        assert_eq!(holes.give(hole(130, 5)), hole(120, 15));
        assert_eq!(holes.give(hole(95, 5)), hole(95, 15));
        assert_eq!(holes.all(), [hole(95, 15), hole(120, 15)]);
        assert_eq!(holes.give(hole(110, 10)), hole(95, 40));
        assert_eq!(holes.all(), [hole(95, 40)]);
    }

    #[test]
    fn ranges_are_cut_out_anywhere() {
        let mut holes = Holes::default();
        holes.give(hole(100, 100));
        let mut cut = |address, bytes| {
            let around = holes.around(address).unwrap();
            holes.cut(around, hole(address, bytes))
        };
        assert_eq!(cut(120, 10), (Some(hole(100, 20)), Some(hole(130, 70))));
        assert_eq!(cut(130, 10), (None, Some(hole(140, 60))));
        assert_eq!(cut(190, 10), (Some(hole(140, 50)), None));
        assert_eq!(cut(100, 20), (None, None));
        assert_eq!(holes.all(), [hole(140, 50)]);
        assert!(holes.around(139).is_none() && holes.around(190).is_none());
        assert_eq!(holes.around(189).unwrap().hole, hole(140, 50));
    }
}
