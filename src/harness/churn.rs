//! A program that runs on a policy.

use std::hint::black_box;

use super::HarnessError;
use super::distribution::{Class, Distribution, Lifetime};
use super::program::{Call, Live, Program};
use crate::policy::{Policy, PolicyError};

/// Calls that are worked out ahead of the policy, about.
const CALLS_AHEAD: usize = 64;

/// The address of a block that the policy refused: it lives elsewhere.
const ELSEWHERE: u64 = u64::MAX;

/// A program and the policy that serves it.
///
/// A block that the policy refuses lives elsewhere until it ends, as data that were spilled to a
/// host's memory: so sizes and lifetimes stay those of the distribution, and what the policy cannot
/// hold is missing from the heap. Without it large blocks would give way to small ones by and by.
pub(super) struct Churn<'a> {
    policy: &'a mut dyn Policy,
    distribution: Distribution,
    scale_shift: i32,
    program: Program,
    /// Those that the policy has not seen yet.
    calls: Vec<Call>,
    /// Calls of the policy, refused ones among them.
    pub(super) operations: u64,
    /// Allocations that the policy refused for want of memory.
    pub(super) refusals: u64,
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
        let program = Program::new(distribution, live_bytes, scale_shift, key);
        let calls = Vec::new();
        Self { policy, distribution, scale_shift, program, calls, operations: 0, refusals: 0 }
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
        let mut filling = self.program.filling(is_filled);
        while self.program.fill(&mut filling, &mut self.calls) {
            if self.calls.len() >= CALLS_AHEAD {
                self.serve()?;
            }
        }
        self.serve()
    }

    /// Goes on until the operations are at least so many, and ends with a whole step of the program.
    pub(super) fn run_to(&mut self, operations: u64) -> Result<(), HarnessError> {
        while self.operations < operations {
            // No step is worked out that would not be run: a call is one operation, or none where
            // the block lives elsewhere.
            let left = usize::try_from(operations - self.operations).unwrap_or(usize::MAX);
            while self.calls.len() < left.min(CALLS_AHEAD) {
                self.program.step(&mut self.calls);
            }
            self.serve()?;
        }
        Ok(())
    }

    /// Has the policy serve all calls that are worked out.
    fn serve(&mut self) -> Result<(), HarnessError> {
        let calls = std::mem::take(&mut self.calls);
        // Looks at the blocks that will be freed, whose books are anywhere: memory is waited for once
        // and not for one after the other.
        for call in &calls {
            if let &Call::Free { slot } = call {
                black_box(self.policy.is_live(self.program.address(slot)));
            }
        }
        for &call in &calls {
            match call {
                Call::Allocate { slot, bytes } => {
                    let address = self.allocate(bytes)?;
                    self.program.set_address(slot, address);
                }
                Call::Free { slot } => self.free(self.program.address(slot))?,
            }
        }
        self.calls = calls;
        self.calls.clear();
        Ok(())
    }

    fn allocate(&mut self, bytes: u64) -> Result<u64, HarnessError> {
        self.operations += 1;
        match self.policy.allocate(bytes) {
            Ok(block) => Ok(block.address),
            Err(PolicyError::OutOfMemory { .. }) => {
                self.refusals += 1;
                Ok(ELSEWHERE)
            }
            Err(refusal @ PolicyError::Size { .. }) => Err(HarnessError::Sizes {
                policy: self.policy.name(),
                distribution: self.distribution.name(),
                largest_bytes: self.distribution.largest_bytes(self.scale_shift),
                refusal,
            }),
            Err(failure) => Err(self.failed(failure)),
        }
    }

    fn free(&mut self, address: u64) -> Result<(), HarnessError> {
        if address == ELSEWHERE {
            return Ok(());
        }
        self.operations += 1;
        self.policy.free(address).map_err(|failure| self.failed(failure))
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
        let mut live = self.program.into_live();
        live.retain(|live| live.address != ELSEWHERE);
        live
    }
}

#[cfg(test)]
mod tests {
    use super::super::lives::{Blocks, Slot};
    use super::super::program::Books;
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
                let slots = |books: &Books| match &books.blocks {
                    Blocks::Lasting(blocks) => blocks.iter().map(|held| held.slot).collect(),
                    _ => Vec::new(),
                };
                churn.program.classes.iter().flat_map(slots).collect::<Vec<Slot>>()
            };
            let parameters = lasting(&churn);
            for _ in 0..5 {
                churn.run_to(churn.operations + 4000).unwrap();
                churn.refill().unwrap();
                for books in &churn.program.classes {
                    // Short of its share by a block that no longer fitted.
                    let share = books.live_bytes as f64 / books.budget_bytes as f64;
                    assert!((0.95..=1.0).contains(&share), "{distribution}: {share}");
                }
                let live: u64 = churn.program.classes.iter().map(|books| books.live_bytes).sum();
                assert_eq!(churn.policy.usage().requested_bytes, live);
            }
            assert_eq!(lasting(&churn), parameters);
        }
    }
}
