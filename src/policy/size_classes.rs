//! Segregated size classes: runs of pages cut into blocks of one class.

use super::best_fit::BestFit;
use super::lists::Lists;
use super::spacing::{CLASSES, Class, PAGE_UNITS};
use super::{AddressMap, Block, Hole, HoleOrder, Params, ParamsError, Policy, PolicyError};
use super::{Source, Usage};

/// Size classes as jemalloc (Evans, "A scalable concurrent malloc implementation for FreeBSD",
/// BSDCan 2006) and tcmalloc have them: four to a doubling up to 3.5 pages of 256 units, a unit being
/// the alignment. A run of 1 to 7 pages holds blocks of one class; what is longer gets whole pages.
///
/// Pages come from a [`BestFit`]. A class takes from the run that was last to have a free block
/// again, and of its blocks the last freed; a run of which every block is free goes back to the
/// pages at once.
pub struct SizeClasses<S> {
    pages: BestFit<S>,
    runs: Vec<Run>,
    vacant: Vec<u32>,
    /// The runs of each class that have a free block.
    open: Lists,
    live: AddressMap<Live>,
    usage: Usage,
}

struct Run {
    address: u64,
    class: Class,
    live: u64,
    /// Blocks from here to the end were never used.
    fresh: u64,
    freed: Vec<u64>,
}

#[derive(Clone, Copy, Default)]
struct Live {
    requested_bytes: u64,
    /// The run, or [`PAGES`].
    run: u32,
}

/// Instead of a run: whole pages.
const PAGES: u32 = u32::MAX;

impl<S: Source + Send> SizeClasses<S> {
    /// A policy that holds nothing yet.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] says which parameter cannot be.
    pub fn new(source: S, params: &Params) -> Result<Self, ParamsError> {
        let page_bytes = params.alignment_bytes.saturating_mul(PAGE_UNITS);
        Ok(Self {
            pages: BestFit::with_unit(source, params, page_bytes)?,
            runs: Vec::new(),
            vacant: Vec::new(),
            open: Lists::new(CLASSES),
            live: AddressMap::default(),
            usage: Usage::default(),
        })
    }

    /// Where it takes its memory from.
    pub fn source(&self) -> &S {
        self.pages.source()
    }

    fn unit_bytes(&self) -> u64 {
        self.pages.alignment_bytes()
    }

    /// A free block of a class, and its run.
    fn block_of(&mut self, class: Class) -> Result<(u64, u32), PolicyError> {
        let run = match self.open.first(class.number) {
            Some(run) => run,
            None => self.open_run(class)?,
        };
        let bytes = class.units * self.unit_bytes();
        let this = &mut self.runs[run as usize];
        let address = this.freed.pop().unwrap_or_else(|| {
            this.fresh += 1;
            this.address + (this.fresh - 1) * bytes
        });
        this.live += 1;
        if this.live == class.run_blocks() {
            self.open.remove(class.number, run);
        }
        Ok((address, run))
    }

    fn open_run(&mut self, class: Class) -> Result<u32, PolicyError> {
        let bytes = class.run_pages() * PAGE_UNITS * self.unit_bytes();
        let address = self.pages.allocate(bytes)?.address;
        let number = self.vacant.pop().unwrap_or(self.runs.len() as u32);
        match self.runs.get_mut(number as usize) {
            // It keeps the memory of its list.
            Some(run) => (run.address, run.class, run.fresh) = (address, class, 0),
            None => {
                self.runs.push(Run { address, class, live: 0, fresh: 0, freed: Vec::new() });
            }
        }
        self.open.push(class.number, number);
        Ok(number)
    }

    /// Takes a freed block back into its run.
    fn put_back(&mut self, address: u64, number: u32) -> Result<(), PolicyError> {
        let run = &mut self.runs[number as usize];
        let was_full = run.live == run.class.run_blocks();
        run.live -= 1;
        run.freed.push(address);
        if run.live == 0 {
            if !was_full {
                self.open.remove(run.class.number, number);
            }
            run.freed.clear();
            self.vacant.push(number);
            return self.pages.free(run.address);
        }
        if was_full {
            self.open.push(run.class.number, number);
        }
        Ok(())
    }

    fn holes_of(&self, run: &Run) -> impl Iterator<Item = Hole> {
        let bytes = run.class.units * self.unit_bytes();
        let fresh = (run.fresh..run.class.run_blocks()).map(move |n| run.address + n * bytes);
        let addresses = run.freed.iter().rev().copied().chain(fresh);
        addresses.map(move |address| Hole { address, bytes })
    }
}

impl<S: Source + Send> Policy for SizeClasses<S> {
    fn name(&self) -> &'static str {
        "size_classes"
    }

    fn alignment_bytes(&self) -> u64 {
        self.pages.alignment_bytes()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        let requested_bytes = bytes.max(1);
        let unit_bytes = self.unit_bytes();
        let found = match Class::of(requested_bytes.div_ceil(unit_bytes)) {
            Some(class) => {
                let rounded_bytes = class.units * unit_bytes;
                self.block_of(class).map(|(address, run)| (address, run, rounded_bytes))
            }
            None => {
                let pages = self.pages.allocate(requested_bytes);
                pages.map(|pages| (pages.address, PAGES, pages.rounded_bytes))
            }
        };
        // The pages know neither the request nor the holes in runs.
        let (address, run, rounded_bytes) = found.map_err(|error| match error {
            PolicyError::OutOfMemory { .. } => self.usage().out_of_memory(requested_bytes),
            error => error,
        })?;
        self.live.insert(address, Live { requested_bytes, run });
        self.usage.add(requested_bytes, rounded_bytes);
        Ok(Block { address, requested_bytes, rounded_bytes })
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        let block = self.live.remove(address).ok_or(PolicyError::NotLive { address })?;
        let rounded_bytes = match self.runs.get(block.run as usize) {
            Some(run) => run.class.units * self.unit_bytes(),
            None => {
                let page_bytes = PAGE_UNITS * self.unit_bytes();
                block.requested_bytes.next_multiple_of(page_bytes)
            }
        };
        self.usage.remove(block.requested_bytes, rounded_bytes);
        match block.run {
            PAGES => self.pages.free(address),
            run => self.put_back(address, run),
        }
    }

    fn is_live(&self, address: u64) -> bool {
        self.live.get(address).is_some()
    }

    fn usage(&self) -> Usage {
        Usage { reserved_bytes: self.pages.usage().reserved_bytes, ..self.usage }
    }

    fn holes(&self, order: HoleOrder) -> Vec<Hole> {
        let runs = (0..CLASSES).flat_map(|class| self.open.nodes(class));
        let blocks = runs.flat_map(|run| self.holes_of(&self.runs[run as usize]));
        let mut holes: Vec<Hole> = blocks.chain(self.pages.holes(order)).collect();
        if order == HoleOrder::Address {
            holes.sort_unstable_by_key(|hole| hole.address);
        }
        holes
    }

    fn hole_lengths(&self) -> Vec<u64> {
        let mut lengths = self.pages.hole_lengths();
        for run in (0..CLASSES).flat_map(|class| self.open.nodes(class)) {
            let Run { class, fresh, freed, .. } = &self.runs[run as usize];
            let blocks = freed.len() + (class.run_blocks() - fresh) as usize;
            lengths.extend(std::iter::repeat_n(class.units * self.unit_bytes(), blocks));
        }
        lengths
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        self.pages.release_unused()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::{addresses, arena, whole};

    fn size_classes() -> SizeClasses<impl Source> {
        SizeClasses::new(arena(), &whole()).unwrap()
    }

    #[test]
    fn classes_have_runs_of_their_own() {
        let mut policy = size_classes();
        let sizes = [256, 300, 1300, 256, 1536, 900 << 10 >> 2];
        let blocks = sizes.map(|bytes| policy.allocate(bytes).unwrap());
        let rounded = blocks.map(|block| block.rounded_bytes);
        assert_eq!(rounded, [256, 512, 1536, 256, 1536, 4 << 16]);
        let [a, b, c, d, e, f] = blocks.map(|block| block.address);
        // A run of 256 B is a page, one of 1.5 KiB three.
        assert_eq!([b - a, c - a, d - a, e - a, f - a], [1 << 16, 2 << 16, 256, 0x20600, 5 << 16]);
    }

    #[test]
    fn holes_are_met_class_by_class_the_last_freed_first() {
        let mut policy = size_classes();
        // Runs of 4 blocks of 5 · 2^k units: two of the larger class.
        let large = [(); 8].map(|()| policy.allocate(320 * 256).unwrap().address);
        let small = [(); 3].map(|()| policy.allocate(160 * 256).unwrap().address);
        for address in [large[5], small[1], large[2], large[6]] {
            policy.free(address).unwrap();
        }
        let met = addresses(&policy.holes(HoleOrder::FreeList));
        let fresh = (3..8).map(|n| small[0] + n * 160 * 256);
        let small = [small[1]].into_iter().chain(fresh);
        let expected: Vec<u64> = small.chain([large[2], large[6], large[5]]).collect();
        assert_eq!(met[..expected.len()], expected);
    }

    #[test]
    fn an_empty_run_is_pages_again() {
        let mut policy = size_classes();
        let blocks = [(); 257].map(|()| policy.allocate(1).unwrap().address);
        assert_eq!(blocks[256] - blocks[0], 1 << 16);
        blocks.iter().for_each(|&block| policy.free(block).unwrap());
        assert_eq!(policy.holes(HoleOrder::FreeList).len(), 1);
        // A run's first block lies where its pages do; neither is live.
        assert_eq!(policy.free(blocks[0]), Err(PolicyError::NotLive { address: blocks[0] }));
        assert_eq!(policy.release_unused(), Ok(1 << 20));
    }
}
