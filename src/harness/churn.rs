//! The program that ages a heap: it allocates and frees, and knows what lives.

use super::HarnessError;
use super::distribution::{Class, Distribution, Lifetime, Sampler};
use super::lives::{Blocks, Live};
use crate::policy::{Policy, PolicyError};

/// Sizes in a row that do not fit what is left of a class's share, after which it counts as full.
const MISFITS_IN_A_ROW: u32 = 8;

/// The address of a block that the policy refused: it lives elsewhere.
const ELSEWHERE: u64 = u64::MAX;

/// A program: what of it lives, how it goes on. Every step is O(1), whatever lives.
///
/// A block that the policy refuses lives elsewhere until it ends, as data that were spilled to a
/// host's memory: so sizes and lifetimes stay those of the distribution, and what the policy cannot
/// hold is missing from the heap. Without it large blocks would give way to small ones by and by.
pub(super) struct Churn<'a> {
    policy: &'a mut dyn Policy,
    distribution: Distribution,
    scale_shift: i32,
    sampler: Sampler,
    /// Draws of the classes whose blocks end.
    draws: Vec<u64>,
    classes: Vec<Books>,
    ended: Vec<Live>,
    made: u64,
    /// Calls of the policy, refused ones among them.
    pub(super) operations: u64,
    /// Allocations that the policy refused for want of memory.
    pub(super) refusals: u64,
}

/// What lives of one class.
struct Books {
    budget_bytes: u64,
    live_bytes: u64,
    blocks: Blocks,
}

impl<'a> Churn<'a> {
    /// A program that keeps `live_bytes` of requested bytes alive, once it is [filled](Self::fill).
    pub(super) fn new(
        policy: &'a mut dyn Policy,
        distribution: Distribution,
        live_bytes: u64,
        scale_shift: i32,
        key: u64,
    ) -> Self {
        let sampler = Sampler::new(distribution, scale_shift, key);
        let draws = sampler.draws(|_, class| class.lifetime != Lifetime::Lasting);
        let books = |class: &Class| Books {
            budget_bytes: (u128::from(live_bytes) * u128::from(class.live_percent) / 100) as u64,
            live_bytes: 0,
            blocks: Blocks::new(class.lifetime),
        };
        let classes = distribution.classes().iter().map(books).collect();
        Self {
            policy,
            distribution,
            scale_shift,
            sampler,
            draws,
            classes,
            ended: Vec::new(),
            made: 0,
            operations: 0,
            refusals: 0,
        }
    }

    /// Allocates until every class has its share.
    pub(super) fn fill(&mut self) -> Result<(), HarnessError> {
        self.fill_those(|_| true)
    }

    /// Allocates until the classes have their share again that may be far from it: stacks. All others
    /// are short of it by less than a block, at any time.
    pub(super) fn refill(&mut self) -> Result<(), HarnessError> {
        self.fill_those(|class| class.lifetime == Lifetime::Reverse)
    }

    fn fill_those(&mut self, is_filled: impl Fn(&Class) -> bool) -> Result<(), HarnessError> {
        let mut misfits = vec![0; self.classes.len()];
        let mut draws = self.sampler.draws(|_, class| is_filled(class));
        while let Some(class) = self.sampler.class(&draws) {
            let bytes = self.sampler.size(class);
            let books = &self.classes[class];
            if books.live_bytes + bytes <= books.budget_bytes {
                misfits[class] = 0;
                self.allocate(class, bytes)?;
                continue;
            }
            misfits[class] += 1;
            if misfits[class] == MISFITS_IN_A_ROW {
                draws = self
                    .sampler
                    .draws(|number, class| is_filled(class) && misfits[number] < MISFITS_IN_A_ROW);
            }
        }
        Ok(())
    }

    /// Allocates one block, after freeing of its class what has to go for it.
    pub(super) fn step(&mut self) -> Result<(), HarnessError> {
        let Some(class) = self.sampler.class(&self.draws) else { return Ok(()) };
        let bytes = self.sampler.size(class);
        while self.classes[class].is_full_for(bytes) {
            self.classes[class].blocks.end_some(&mut self.sampler, &mut self.ended);
            self.free_ended(class)?;
        }
        self.allocate(class, bytes)
    }

    fn allocate(&mut self, class: usize, bytes: u64) -> Result<(), HarnessError> {
        self.operations += 1;
        let address = match self.policy.allocate(bytes) {
            Ok(block) => block.address,
            Err(PolicyError::OutOfMemory { .. }) => {
                self.refusals += 1;
                ELSEWHERE
            }
            Err(refusal @ PolicyError::Size { .. }) => {
                return Err(HarnessError::Sizes {
                    policy: self.policy.name(),
                    distribution: self.distribution.name(),
                    largest_bytes: self.distribution.largest_bytes(self.scale_shift),
                    refusal,
                });
            }
            Err(failure) => return Err(self.failed(failure)),
        };
        let live = Live { address, requested_bytes: bytes, made: self.made };
        self.made += 1;
        let books = &mut self.classes[class];
        books.live_bytes += bytes;
        books.blocks.add(live, &mut self.sampler);
        Ok(())
    }

    fn free_ended(&mut self, class: usize) -> Result<(), HarnessError> {
        while let Some(live) = self.ended.pop() {
            self.classes[class].live_bytes -= live.requested_bytes;
            if live.address != ELSEWHERE {
                self.operations += 1;
                self.policy.free(live.address).map_err(|failure| self.failed(failure))?;
            }
        }
        Ok(())
    }

    fn failed(&self, failure: PolicyError) -> HarnessError {
        HarnessError::Policy { policy: self.policy.name(), failure }
    }

    /// The policy that is aged.
    pub(super) fn policy(&self) -> &dyn Policy {
        self.policy
    }

    /// All live blocks of the policy in the order in which they were made.
    pub(super) fn into_live(self) -> Vec<Live> {
        let all = self.classes.into_iter().flat_map(|books| books.blocks.into_all());
        let mut live: Vec<Live> = all.filter(|live| live.address != ELSEWHERE).collect();
        live.sort_unstable_by_key(|live| live.made);
        live
    }
}

impl Books {
    /// Whether a block has to wait until another ends; a block beyond the whole share does not.
    #[inline]
    fn is_full_for(&self, bytes: u64) -> bool {
        self.live_bytes > 0 && self.live_bytes + bytes > self.budget_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{FirstFit, Growth, Params, Placement, SimulatedSource};

    #[test]
    fn every_class_keeps_its_share() {
        for distribution in Distribution::ALL {
            let heap_bytes = 64 << 20;
            let source = SimulatedSource::new(heap_bytes, 1 << 20, Placement::Contiguous).unwrap();
            let params = Params::default().with_growth(Growth::Whole);
            let mut policy = FirstFit::new(source, &params).unwrap();
            let live_bytes = heap_bytes / 2;
            let shift = distribution.shift_for_blocks(live_bytes, 10_000, 1024);
            let mut churn = Churn::new(&mut policy, distribution, live_bytes, shift, 3);
            churn.fill().unwrap();
            let lasting = |churn: &Churn<'_>| {
                let made = |books: &Books| match &books.blocks {
                    Blocks::Lasting(blocks) => blocks.iter().map(|live| live.made).collect(),
                    _ => Vec::new(),
                };
                churn.classes.iter().flat_map(made).collect::<Vec<u64>>()
            };
            let parameters = lasting(&churn);
            for _ in 0..5 {
                (0..2000).for_each(|_| churn.step().unwrap());
                churn.refill().unwrap();
                for books in &churn.classes {
                    // Short of its share by a block that no longer fitted.
                    let share = books.live_bytes as f64 / books.budget_bytes as f64;
                    assert!((0.95..=1.0).contains(&share), "{distribution}: {share}");
                }
                let live: u64 = churn.classes.iter().map(|books| books.live_bytes).sum();
                assert_eq!(churn.policy.usage().requested_bytes, live);
            }
            assert_eq!(lasting(&churn), parameters);
        }
    }
}
