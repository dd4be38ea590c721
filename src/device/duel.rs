//! Duels: which multiprocessors share what is between them and the memory.

use super::bindings::{self as b, duel_task};
use super::{DeviceError, Span};

/// Bytes of a page of a duel.
pub const DUEL_PAGE_BYTES: u64 = b::FRAGBENCH_DUEL_PAGE_BYTES as u64;

/// Bytes that a duel needs for its results.
pub const DUEL_SCRATCH_BYTES: u64 = WORDS_BYTES + RESULT_BYTES * MULTIPROCESSORS as u64;

/// The most multiprocessors that a device may have.
const MULTIPROCESSORS: usize = b::FRAGBENCH_MOST_MULTIPROCESSORS as usize;

/// Four words of 32 bits, and room to the next line.
const WORDS_BYTES: u64 = 128;

/// Cycles and nanoseconds.
const RESULT_BYTES: u64 = 16;

/// A duel: one block on each multiprocessor follows dependent reads of random lines, each begun when the
/// one before it is over, while one, the aggressor, floods other pages with reads.
#[derive(Clone, Copy, Debug)]
pub struct Duel<'a> {
    /// The memory that is read.
    pub arena: Span<'a>,
    /// [`DUEL_SCRATCH_BYTES`] for its results.
    pub scratch: Span<'a>,
    /// Pages from the arena's beginning on that are followed through.
    pub pages: u64,
    /// The first page that is flooded, and how many.
    pub flood: (u64, u64),
    /// The multiprocessor that floods; nobody does without.
    pub aggressor: Option<u32>,
    /// The only one that follows reads; all do without.
    pub only: Option<u32>,
    /// Dependent reads of each.
    pub reads: u32,
    /// Whether each touches all of its pages once before.
    pub warms: bool,
    /// The key of the lines: has to be a fresh one, for what was read before lies in a cache.
    pub key: u64,
}

/// What following its reads took a multiprocessor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// In cycles of its clock.
    pub cycles: u64,
    /// In nanoseconds of the device's timer, which has steps.
    pub ns: u64,
}

impl Duel<'_> {
    /// What the kernel is handed, checked.
    pub(super) fn task(&self) -> Result<duel_task, DeviceError> {
        let refused = |what: &str| DeviceError::Refused { entry: "duel", what: what.to_owned() };
        let pages = self.arena.bytes() / DUEL_PAGE_BYTES;
        let (first, count) = self.flood;
        let behind = first.checked_add(count).filter(|behind| *behind <= pages);
        if self.pages == 0 || self.pages > pages || behind.is_none() {
            return Err(refused("its pages lie behind the arena"));
        }
        if self.aggressor.is_some() && count == 0 {
            return Err(refused("there is nothing to flood"));
        }
        if self.reads == 0 {
            return Err(refused("there is nothing to do"));
        }
        if self.scratch.bytes() < DUEL_SCRATCH_BYTES {
            return Err(refused("the scratch memory is too short"));
        }
        let nobody = b::FRAGBENCH_NOBODY;
        Ok(duel_task {
            arena: self.arena.address(),
            pages: self.pages,
            flood_first: first,
            flood_pages: count,
            key: self.key,
            words: self.scratch.address(),
            results: self.scratch.address() + WORDS_BYTES,
            aggressor: self.aggressor.unwrap_or(nobody),
            only: self.only.unwrap_or(nobody),
            reads: self.reads,
            warms: u32::from(self.warms),
        })
    }

    /// What the scratch memory says afterwards: the walk of each multiprocessor, by its number.
    pub(super) fn walks(words: &[u64]) -> Result<Vec<Option<Walk>>, DeviceError> {
        let (head, results) = words.split_at(words.len().min(WORDS_BYTES as usize / 8));
        let gave_up = head.get(1).is_none_or(|words| words >> 32 != 0);
        if gave_up {
            return Err(DeviceError::Refused {
                entry: "duel",
                what: "its blocks were not all on the device at once".to_owned(),
            });
        }
        let walk = |result: &[u64]| match *result {
            [cycles, ns] if cycles > 0 => Some(Walk { cycles, ns }),
            _ => None,
        };
        let mut walks: Vec<Option<Walk>> = results.chunks_exact(2).map(walk).collect();
        let behind = walks.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        walks.truncate(behind);
        Ok(walks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::device::scripted::{Scripted, at_rate};

    #[test]
    fn what_lies_behind_the_arena_is_refused() {
        let device = Scripted::new(1 << 30, |timed| at_rate(timed, 1.0));
        let [arena, scratch] = [64 << 20, DUEL_SCRATCH_BYTES].map(|b| device.allocate(b).unwrap());
        let duel = Duel {
            arena: arena.span(),
            scratch: scratch.span(),
            pages: 16,
            flood: (16, 16),
            aggressor: Some(3),
            only: None,
            reads: 64,
            warms: true,
            key: 7,
        };
        let task = duel.task().unwrap();
        assert_eq!((task.aggressor, task.only, task.warms), (3, u32::MAX, 1));
        assert_eq!(task.results, task.words + 128);
        let wrong = [
            Duel { pages: 33, ..duel },
            Duel { pages: 0, ..duel },
            Duel { flood: (17, 16), ..duel },
            Duel { flood: (u64::MAX, 2), ..duel },
            Duel { flood: (0, 0), ..duel },
            Duel { reads: 0, ..duel },
            Duel { scratch: scratch.slice(0, 64).unwrap(), ..duel },
        ];
        for duel in wrong {
            assert!(matches!(duel.task(), Err(DeviceError::Refused { .. })), "{duel:?}");
        }
    }

    #[test]
    fn walks_are_found_by_their_multiprocessor() {
        let mut words = vec![0u64; DUEL_SCRATCH_BYTES as usize / 8];
        words[16 + 2 * 5..][..2].copy_from_slice(&[900, 500]);
        let walks = Duel::walks(&words).unwrap();
        assert_eq!(walks.len(), 6);
        assert_eq!(walks[5], Some(Walk { cycles: 900, ns: 500 }));
        assert!(walks[..5].iter().all(Option::is_none));
        words[1] = 1 << 32;
        assert!(matches!(Duel::walks(&words), Err(DeviceError::Refused { .. })));
        assert!(Duel::walks(&[]).is_err());
    }
}
