//! The books of addresses and of what is mapped under them. No CUDA.

use std::collections::BTreeMap;

use crate::policy::{Region, SourceError};

/// Parts that lie one behind the other, each `piece_bytes` long, the last what is left.
pub(super) fn pieces(whole: Region, piece_bytes: u64) -> impl Iterator<Item = Region> {
    let offsets = (0..whole.bytes).step_by(piece_bytes as usize);
    offsets.map(move |offset| Region {
        address: whole.address + offset,
        bytes: piece_bytes.min(whole.bytes - offset),
    })
}

/// What a range of addresses was handed out as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A region with its memory.
    Region,
    /// Addresses alone, to be mapped by parts.
    Addresses,
}

/// Ranges of addresses that are handed out, and the pieces that are mapped in them, each with the
/// handle of its memory.
pub(super) struct Ranges<H> {
    granule_bytes: u64,
    ranges: BTreeMap<u64, (u64, Kind)>,
    mapped: BTreeMap<u64, (u64, H)>,
}

impl<H: Copy> Ranges<H> {
    pub fn new(granule_bytes: u64) -> Self {
        Self { granule_bytes, ranges: BTreeMap::new(), mapped: BTreeMap::new() }
    }

    pub fn add(&mut self, region: Region, kind: Kind) {
        self.ranges.insert(region.address, (region.bytes, kind));
    }

    /// Adds pieces to what is mapped.
    pub fn map(&mut self, pieces: impl Iterator<Item = Region>, handles: &[H]) {
        for (piece, handle) in pieces.zip(handles) {
            self.mapped.insert(piece.address, (piece.bytes, *handle));
        }
    }

    /// Refuses a part that cannot be mapped: not whole granules of addresses that were reserved
    /// alone, or mapped in part.
    pub fn check_unmapped(&self, part: Region) -> Result<(), SourceError> {
        self.check_reserved(part)?;
        let before = self.mapped.range(..part.end()).next_back();
        match before {
            Some((address, (bytes, _))) if address + bytes > part.address => {
                Err(unknown(part, "wholly without memory"))
            }
            _ => Ok(()),
        }
    }

    /// The handles of the pieces that make up a part of reserved addresses exactly.
    pub fn mapped_in(&self, part: Region) -> Result<Vec<H>, SourceError> {
        self.check_reserved(part)?;
        self.pieces_of(part)
    }

    /// The handles under a region that was handed out as a whole.
    pub fn region(&self, region: Region) -> Result<Vec<H>, SourceError> {
        match self.ranges.get(&region.address) {
            Some((bytes, Kind::Region)) if *bytes == region.bytes => self.pieces_of(region),
            _ => Err(unknown(region, "a region that is handed out")),
        }
    }

    /// Refuses addresses that cannot go back: not reserved alone, or with something mapped.
    pub fn check_empty(&self, region: Region) -> Result<(), SourceError> {
        match self.ranges.get(&region.address) {
            Some((bytes, Kind::Addresses)) if *bytes == region.bytes => {}
            _ => return Err(unknown(region, "reserved addresses")),
        }
        match self.mapped.range(region.address..region.end()).next() {
            Some(_) => Err(unknown(region, "wholly without memory")),
            None => Ok(()),
        }
    }

    /// Forgets the pieces that are mapped in a part.
    pub fn unmap(&mut self, part: Region) {
        while let Some((&address, _)) = self.mapped.range(part.address..part.end()).next() {
            self.mapped.remove(&address);
        }
    }

    /// Forgets a range.
    pub fn remove(&mut self, region: Region) {
        self.ranges.remove(&region.address);
    }

    /// Takes out everything: what is mapped piece by piece, then the ranges.
    pub fn clear(&mut self) -> (Vec<(Region, H)>, Vec<Region>) {
        let region = |address, bytes| Region { address, bytes };
        let mapped = std::mem::take(&mut self.mapped).into_iter();
        let ranges = std::mem::take(&mut self.ranges).into_iter();
        (
            mapped.map(|(address, (bytes, handle))| (region(address, bytes), handle)).collect(),
            ranges.map(|(address, (bytes, _))| region(address, bytes)).collect(),
        )
    }

    fn check_reserved(&self, part: Region) -> Result<(), SourceError> {
        let is_whole = |bytes: u64| bytes.is_multiple_of(self.granule_bytes);
        let end = part.address.checked_add(part.bytes).filter(|_| part.bytes > 0);
        let around = self.ranges.range(..=part.address).next_back();
        match (end, around) {
            (Some(end), Some((address, (bytes, Kind::Addresses))))
                if end <= address + bytes && is_whole(part.address) && is_whole(part.bytes) =>
            {
                Ok(())
            }
            _ => Err(unknown(part, "whole granules of reserved addresses")),
        }
    }

    fn pieces_of(&self, part: Region) -> Result<Vec<H>, SourceError> {
        let mut handles = Vec::new();
        let mut end = part.address;
        for (address, (bytes, handle)) in self.mapped.range(part.address..part.end()) {
            if *address != end {
                break;
            }
            end += bytes;
            handles.push(*handle);
        }
        match end == part.end() {
            true => Ok(handles),
            false => Err(unknown(part, "whole mapped pieces")),
        }
    }
}

fn unknown(region: Region, what: &'static str) -> SourceError {
    SourceError::Unknown { address: region.address, bytes: region.bytes, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(address: u64, bytes: u64) -> Region {
        Region { address, bytes }
    }

    /// Addresses 100 to 200 with pieces 110 to 130 and 130 to 140, and a region of 20 at 200.
    fn ranges() -> Ranges<char> {
        let mut ranges = Ranges::new(10);
        ranges.add(part(100, 100), Kind::Addresses);
        ranges.add(part(200, 20), Kind::Region);
        ranges.map(pieces(part(110, 30), 20), &['a', 'b']);
        ranges.map(pieces(part(200, 20), 20), &['c']);
        ranges
    }

    #[test]
    fn pieces_are_equal_but_for_the_last() {
        let of = |bytes, piece_bytes| pieces(part(100, bytes), piece_bytes).collect::<Vec<_>>();
        assert_eq!(of(40, 20), [part(100, 20), part(120, 20)]);
        assert_eq!(of(30, 20), [part(100, 20), part(120, 10)]);
        assert_eq!(of(10, 20), [part(100, 10)]);
        assert_eq!(of(0, 20), []);
    }

    #[test]
    fn only_empty_granules_of_reserved_addresses_are_mapped() {
        let ranges = ranges();
        for free in [part(100, 10), part(140, 60), part(190, 10)] {
            assert_eq!(ranges.check_unmapped(free), Ok(()), "{free:?}");
        }
        for taken in [part(100, 20), part(120, 10), part(130, 20), part(100, 100)] {
            let refused = Err(unknown(taken, "wholly without memory"));
            assert_eq!(ranges.check_unmapped(taken), refused);
        }
        for not in [
            part(90, 10),
            part(145, 10),
            part(140, 5),
            part(140, 0),
            part(190, 20),
            part(200, 10),
            part(300, 10),
            part(u64::MAX - 5, 10),
        ] {
            let refused = Err(unknown(not, "whole granules of reserved addresses"));
            assert_eq!(ranges.check_unmapped(not), refused);
        }
    }

    #[test]
    fn whole_pieces_are_unmapped_and_no_parts_of_them() {
        let mut ranges = ranges();
        assert_eq!(ranges.mapped_in(part(110, 30)), Ok(vec!['a', 'b']));
        assert_eq!(ranges.mapped_in(part(130, 10)), Ok(vec!['b']));
        for not in [part(110, 10), part(120, 10), part(120, 20), part(110, 40), part(100, 40)] {
            assert_eq!(ranges.mapped_in(not), Err(unknown(not, "whole mapped pieces")));
        }
        assert!(ranges.mapped_in(part(200, 20)).is_err());
        ranges.unmap(part(110, 20));
        assert_eq!(ranges.mapped_in(part(130, 10)), Ok(vec!['b']));
        assert_eq!(ranges.check_unmapped(part(100, 30)), Ok(()));
        let whole = part(100, 100);
        assert_eq!(ranges.check_empty(whole), Err(unknown(whole, "wholly without memory")));
        ranges.unmap(part(130, 10));
        assert_eq!(ranges.check_empty(whole), Ok(()));
        for not in [part(100, 90), part(110, 90), part(200, 20)] {
            assert_eq!(ranges.check_empty(not), Err(unknown(not, "reserved addresses")));
        }
        ranges.remove(whole);
        assert!(ranges.check_empty(whole).is_err() && ranges.check_unmapped(whole).is_err());
    }

    #[test]
    fn regions_go_back_whole_and_once() {
        let mut ranges = ranges();
        assert_eq!(ranges.region(part(200, 20)), Ok(vec!['c']));
        for not in [part(200, 10), part(100, 100), part(210, 10)] {
            assert_eq!(ranges.region(not), Err(unknown(not, "a region that is handed out")));
        }
        ranges.unmap(part(200, 20));
        ranges.remove(part(200, 20));
        assert!(ranges.region(part(200, 20)).is_err());
        let (mapped, all) = ranges.clear();
        assert_eq!(mapped, [(part(110, 20), 'a'), (part(130, 10), 'b')]);
        assert_eq!(all, [part(100, 100)]);
        assert_eq!(ranges.clear(), (Vec::new(), Vec::new()));
    }
}
