//! What is left of memory after holes: whose free it is, what fits, and what a request takes.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use crate::device::DeviceError;
use crate::layout::Permutation;
use crate::policy::{Policy, PolicyError};
use crate::record::Quantity;

/// The grid of the search for the largest block: the pages of a CUDA driver, in bytes.
const PAGE_BYTES: u64 = 2 << 20;

/// A refusal at the edge is seen so often before it is believed.
const TIMES: usize = 3;

/// The most blocks: minutes of calls.
const MOST_BLOCKS: usize = 1 << 17;

/// The longest and the shortest request where any length will do.
const LONGEST_BYTES: u64 = 1 << 30;
const SHORTEST_BYTES: u64 = 512;

/// Memory that requests of every length are made in to see what they take.
const SPREAD_BYTES: u64 = 64 << 20;

/// How long free memory may take to come to rest.
const SETTLING: Duration = Duration::from_secs(5);

/// Which blocks are freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Freed {
    /// Every other one, in the order in which they were made.
    Alternate,
    /// A random half.
    Random,
}

impl Freed {
    /// Both.
    pub const ALL: [Freed; 2] = [Freed::Alternate, Freed::Random];

    /// The name in case ids.
    pub fn name(self) -> &'static str {
        match self {
            Freed::Alternate => "alternate",
            Freed::Random => "random",
        }
    }
}

/// An allocator and what its memory's keeper says is free.
pub(super) struct World<'a> {
    pub(super) allocator: &'a mut dyn Policy,
    /// The driver's free bytes; of simulated memory the source's.
    pub(super) free_bytes: &'a dyn Fn() -> Result<u64, DeviceError>,
    /// How long memory rests before a refusal is believed.
    pub(super) rest: Duration,
}

/// Free bytes, once they are the same twice in a row with a rest between: a driver scrubs what was
/// freed before it counts it.
pub(super) fn settled(
    free_bytes: &dyn Fn() -> Result<u64, DeviceError>,
    rest: Duration,
) -> Result<u64, Failure> {
    let begin = Instant::now();
    let mut free = free_bytes()?;
    loop {
        sleep(rest);
        let now = free_bytes()?;
        if now == free || begin.elapsed() > SETTLING {
            return Ok(now);
        }
        free = now;
    }
}

impl World<'_> {
    fn settled(&self) -> Result<u64, Failure> {
        settled(self.free_bytes, self.rest)
    }

    /// Allocates blocks of a length until one is refused, or there are so many.
    fn fill(&mut self, bytes: u64, most: usize) -> Result<Vec<u64>, Failure> {
        let mut blocks = Vec::new();
        while blocks.len() < most {
            match self.allocator.allocate(bytes) {
                Ok(block) => blocks.push(block.address),
                Err(PolicyError::OutOfMemory { .. } | PolicyError::Size { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(blocks)
    }

    fn free_all(&mut self, blocks: Vec<u64>) -> Result<(), Failure> {
        blocks.into_iter().rev().try_for_each(|address| Ok(self.allocator.free(address)?))
    }

    fn can_have(&mut self, bytes: u64) -> Result<bool, Failure> {
        match self.allocator.allocate(bytes) {
            Ok(block) => {
                self.allocator.free(block.address)?;
                Ok(true)
            }
            Err(PolicyError::OutOfMemory { .. } | PolicyError::Size { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The longest request of whole pages that is served, and each time of a few, while one page more
    /// is refused each time.
    fn largest(&mut self, at_most: u64) -> Result<u64, Failure> {
        let (mut low, mut high) = (0, at_most / PAGE_BYTES + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match self.can_have(middle * PAGE_BYTES)? {
                true => low = middle,
                false => high = middle,
            }
        }
        for _ in 0..TIMES {
            sleep(self.rest);
            let (below, above) = (low * PAGE_BYTES, high * PAGE_BYTES);
            let is_edge = (below == 0 || self.can_have(below)?) && !self.can_have(above)?;
            if !is_edge {
                return Err(Failure::Failed(format!(
                    "a block of {below} bytes could be had and one of {above} not, and the next time \
                     it was otherwise: other work changes what is free"
                )));
            }
        }
        Ok(low * PAGE_BYTES)
    }

    /// What requests of these lengths, the first as often as it goes, get together.
    fn refill(&mut self, lengths: impl Iterator<Item = u64>) -> Result<u64, Failure> {
        let (mut held, mut bytes) = (Vec::new(), 0);
        for length in lengths {
            let blocks = self.fill(length, MOST_BLOCKS)?;
            bytes += length * blocks.len() as u64;
            held.extend(blocks);
        }
        self.free_all(held)?;
        Ok(bytes)
    }
}

/// Fills what the allocator has with blocks of a length, frees half of them, and tells what that is
/// worth. Everything is freed afterwards.
pub(super) fn after_holes(
    world: &mut World<'_>,
    block_bytes: u64,
    freed: Freed,
    seed: u64,
) -> Result<Vec<Quantity>, Failure> {
    let blocks = world.fill(block_bytes, MOST_BLOCKS)?;
    if blocks.len() < 2 {
        return Err(Failure::Skipped(format!("{} blocks fit, and two are needed", blocks.len())));
    }
    let full = world.settled()?;
    let count = blocks.len();
    let order = Permutation::new(seed, count as u64);
    let is_freed = |at: usize| match freed {
        Freed::Alternate => at % 2 == 1,
        Freed::Random => order.apply(at as u64) < count as u64 / 2,
    };
    let (gone, kept): (Vec<_>, Vec<_>) =
        blocks.into_iter().enumerate().partition(|&(at, _)| is_freed(at));
    let addresses = |those: Vec<(usize, u64)>| those.into_iter().map(|(_, address)| address);
    let freed_bytes = block_bytes * gone.len() as u64;
    world.free_all(addresses(gone).collect())?;
    let free = world.settled()?;
    let of = |metric: &str, request_bytes, bytes| Quantity {
        metric: metric.to_owned(),
        request_bytes,
        blocks: None,
        bytes,
    };
    let mut found = vec![
        Quantity { blocks: Some(count as u64), ..of("free_full", Some(block_bytes), full) },
        of("freed", Some(block_bytes), freed_bytes),
        of("driver_free", Some(block_bytes), free),
    ];
    for length in [block_bytes / 2, block_bytes, 2 * block_bytes] {
        let bytes = world.refill([length.max(1)].into_iter())?;
        found.push(of("refillable", Some(length), bytes));
    }
    let any = std::iter::successors(Some(LONGEST_BYTES), |bytes| Some(bytes / 2));
    let any = any.take_while(|bytes| *bytes >= SHORTEST_BYTES);
    let bytes = world.refill(any)?;
    found.push(of("refillable", None, bytes));
    let largest = world.largest(free + freed_bytes)?;
    found.push(of("largest_allocatable", None, largest));
    found.push(of("driver_free_after", Some(block_bytes), world.settled()?));
    world.free_all(addresses(kept).collect())?;
    Ok(found)
}

/// Lengths around which a driver's unit may change.
pub(super) const REQUESTS_BYTES: [u64; 22] = [
    1,
    256,
    512,
    513,
    4 << 10,
    64 << 10,
    512 << 10,
    1 << 20,
    (1 << 20) + 1,
    2 << 20,
    (2 << 20) + 1,
    3 << 20,
    4 << 20,
    (4 << 20) + 1,
    8 << 20,
    (8 << 20) + 1,
    20 << 20,
    64 << 20,
    100 << 20,
    (100 << 20) + 1,
    512 << 20,
    1 << 30,
];

/// What requests of each length take of memory, many of them together, and how far apart in
/// addresses they come.
pub(super) fn granules(world: &mut World<'_>) -> Result<Vec<Quantity>, Failure> {
    let mut found = Vec::new();
    for request_bytes in REQUESTS_BYTES {
        let wanted = (SPREAD_BYTES / request_bytes).clamp(4, 1 << 14) as usize;
        let before = world.settled()?;
        let blocks = world.fill(request_bytes, wanted)?;
        let after = (world.free_bytes)()?;
        let count = blocks.len() as u64;
        let mut sorted = blocks.clone();
        world.free_all(blocks)?;
        world.allocator.release_unused()?;
        if count < 4 {
            continue;
        }
        sorted.sort_unstable();
        let mut steps: Vec<u64> = sorted.windows(2).map(|pair| pair[1] - pair[0]).collect();
        steps.sort_unstable();
        let quantity = |metric: &str, bytes| Quantity {
            metric: metric.to_owned(),
            request_bytes: Some(request_bytes),
            blocks: Some(count),
            bytes,
        };
        found.push(quantity("taken", before.saturating_sub(after)));
        found.push(quantity("address_step", steps[steps.len() / 2]));
    }
    match found.is_empty() {
        true => Err(Failure::Skipped("no request of any length was served".to_owned())),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{
        AsSource, FirstFit, Growth, Params, Placement, PolicyName, Shared, SimulatedSource, Source,
    };

    const WINDOW: u64 = 64 << 20;

    /// First fit over 64 MiB of simulated memory that it takes as one or in pages.
    fn with_world<T>(growth: Growth, run: impl FnOnce(&mut World<'_>) -> T) -> T {
        let source = SimulatedSource::new(WINDOW, PAGE_BYTES, Placement::Contiguous).unwrap();
        let source = Shared::new(source);
        let params = Params::default().with_growth(growth);
        let mut policy = FirstFit::new(source.clone(), &params).unwrap();
        let free_bytes = || Ok(source.lock().free_bytes());
        let rest = Duration::ZERO;
        run(&mut World { allocator: &mut policy, free_bytes: &free_bytes, rest })
    }

    fn bytes(found: &[Quantity], metric: &str, request_bytes: Option<u64>) -> u64 {
        let of = |one: &&Quantity| one.metric == metric && one.request_bytes == request_bytes;
        found.iter().find(of).unwrap().bytes
    }

    #[test]
    fn every_other_block_leaves_half_in_holes_that_only_short_requests_use() {
        let block = 1 << 20;
        with_world(Growth::Whole, |world| {
            let found = after_holes(world, block, Freed::Alternate, 1).unwrap();
            let half = WINDOW / 2;
            assert_eq!(bytes(&found, "freed", Some(block)), half);
            assert_eq!(bytes(&found, "refillable", Some(block / 2)), half);
            assert_eq!(bytes(&found, "refillable", Some(block)), half);
            assert_eq!(bytes(&found, "refillable", Some(2 * block)), 0);
            assert_eq!(bytes(&found, "refillable", None), half);
            // Not one whole page is free.
            assert_eq!(bytes(&found, "largest_allocatable", None), 0);
            assert_eq!(world.allocator.usage().live_blocks, 0);
        });
    }

    #[test]
    fn a_random_half_leaves_neighbours() {
        let block = 1 << 20;
        with_world(Growth::Whole, |world| {
            let found = after_holes(world, block, Freed::Random, 1).unwrap();
            let double = bytes(&found, "refillable", Some(2 * block));
            assert!(0 < double && double < WINDOW / 2, "{double}");
            assert!(bytes(&found, "largest_allocatable", None) >= PAGE_BYTES);
        });
    }

    #[test]
    fn what_a_request_takes_is_seen_in_pages() {
        // Each request is a region of its own, of whole pages.
        let source = SimulatedSource::new(8 << 30, PAGE_BYTES, Placement::Contiguous).unwrap();
        let source = Shared::new(source);
        let free_bytes = {
            let source = source.clone();
            move || Ok(source.lock().free_bytes())
        };
        let params = Params {
            alignment_bytes: PAGE_BYTES,
            growth: Growth::Regions { bytes: 1 },
            ..Params::default()
        };
        let mut policy = PolicyName::FirstFit.build(source, &params).unwrap();
        let rest = Duration::ZERO;
        let mut world = World { allocator: &mut *policy, free_bytes: &free_bytes, rest };
        let found = granules(&mut world).unwrap();
        for request_bytes in [1 << 20, 2 << 20, (2 << 20) + 1, 100 << 20, (100 << 20) + 1] {
            let of =
                |one: &&Quantity| one.metric == "taken" && one.request_bytes == Some(request_bytes);
            let taken = found.iter().find(of).unwrap();
            let pages = request_bytes.next_multiple_of(PAGE_BYTES);
            assert_eq!(taken.bytes, pages * taken.blocks.unwrap());
            assert_eq!(bytes(&found, "address_step", Some(request_bytes)), pages);
        }
    }

    #[test]
    fn one_block_is_no_state() {
        let source = SimulatedSource::new(WINDOW, PAGE_BYTES, Placement::Contiguous).unwrap();
        let below = FirstFit::new(source, &Params::default().with_growth(Growth::Whole)).unwrap();
        let source = AsSource::with_capacity(below, PAGE_BYTES, WINDOW).unwrap();
        let mut policy = FirstFit::new(source, &Params::default()).unwrap();
        let free_bytes = || Ok(0);
        let rest = Duration::ZERO;
        let mut world = World { allocator: &mut policy, free_bytes: &free_bytes, rest };
        let failure = after_holes(&mut world, WINDOW, Freed::Random, 1).unwrap_err();
        assert!(matches!(failure, Failure::Skipped(_)), "{failure:?}");
    }
}
