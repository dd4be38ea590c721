//! No more than so many bytes.

use super::pass_through;
use crate::policy::{Block, Hole, HoleOrder, Policy, PolicyError, Usage};

/// An allocator that refuses what would take its live blocks past a limit.
///
/// The limit is on what live blocks take, their rounded bytes. How much the allocator inside will
/// round up is not known before it has served: the requested bytes are held against the limit before
/// it is asked, the rounded bytes afterwards, and a block that turns out too long is given back.
/// The allocator may keep what it took from its source for that.
///
/// ```
/// # use fragbench::policy::Policy;
/// use fragbench::policy::{Limited, PolicyError};
///
/// # fn fills(allocator: impl Policy) -> Result<(), PolicyError> {
/// let mut allocator = Limited::new(allocator, 1 << 20);
/// allocator.allocate(1 << 20)?;
/// assert!(matches!(allocator.allocate(1), Err(PolicyError::OutOfMemory { .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Limited<P> {
    inner: P,
    limit_bytes: u64,
}

impl<P: Policy> Limited<P> {
    /// The allocator with a limit. Blocks that it has handed out before count.
    pub fn new(inner: P, limit_bytes: u64) -> Self {
        Self { inner, limit_bytes }
    }

    /// What live blocks may take.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// The allocator inside.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// The allocator without the limit.
    pub fn into_inner(self) -> P {
        self.inner
    }

    /// Whether so much more is too much.
    fn is_past_limit(&self, live_bytes: u64, bytes: u64) -> bool {
        live_bytes.checked_add(bytes).is_none_or(|bytes| bytes > self.limit_bytes)
    }
}

impl<P: Policy> Policy for Limited<P> {
    pass_through!(name alignment_bytes free is_live usage holes release_unused);

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        let requested_bytes = bytes.max(1);
        let usage = self.inner.usage();
        if self.is_past_limit(usage.rounded_bytes, requested_bytes) {
            return Err(usage.out_of_memory(requested_bytes));
        }
        let block = self.inner.allocate(bytes)?;
        if self.is_past_limit(usage.rounded_bytes, block.rounded_bytes) {
            self.inner.free(block.address)?;
            return Err(self.inner.usage().out_of_memory(requested_bytes));
        }
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::tests::{arena, whole};
    use crate::policy::{BestFit, Buddy, Counted, Placement, PolicyName, SimulatedSource};

    fn out_of_memory(requested_bytes: u64, hole_bytes: u64) -> Result<Block, PolicyError> {
        Err(PolicyError::OutOfMemory { requested_bytes, hole_bytes })
    }

    #[test]
    fn the_limit_is_reached_and_not_passed() {
        let inner = BestFit::new(arena(), &whole()).unwrap();
        let mut policy = Limited::new(inner, 64 << 10);
        let block = policy.allocate(60 << 10).unwrap();
        let before = policy.usage();
        let holes = before.reserved_bytes - before.rounded_bytes;
        assert_eq!(policy.allocate((4 << 10) + 1), out_of_memory((4 << 10) + 1, holes));
        assert_eq!(policy.usage(), before);
        policy.allocate(4 << 10).unwrap();
        assert_eq!(policy.allocate(0), out_of_memory(1, holes - (4 << 10)));
        assert_eq!(policy.usage().rounded_bytes, policy.limit_bytes());
        policy.free(block.address).unwrap();
        assert_eq!(policy.allocate(60 << 10), Ok(block));
    }

    #[test]
    fn the_allocator_inside_is_not_asked_for_too_much() {
        let inner = Counted::new(BestFit::new(arena(), &whole()).unwrap());
        let mut policy = Limited::new(inner, 4096);
        for bytes in [4097, 1 << 40, u64::MAX] {
            assert_eq!(policy.allocate(bytes), out_of_memory(bytes, 0));
        }
        assert_eq!(policy.inner().counts(), Counted::new(policy.into_inner()).counts());
    }

    #[test]
    fn a_block_that_is_rounded_past_the_limit_is_given_back() {
        let inner = Counted::new(Buddy::new(arena(), &whole()).unwrap());
        let mut policy = Limited::new(inner, 40 << 10);
        // 33 KiB would take 64.
        let holes = 1 << 20;
        assert_eq!(policy.allocate(33 << 10), out_of_memory(33 << 10, holes));
        assert_eq!(policy.usage().live_blocks, 0);
        assert_eq!(policy.allocate(32 << 10).unwrap().rounded_bytes, 32 << 10);
        let counts = policy.inner().counts();
        assert_eq!((counts.allocations, counts.frees), (2, 1));
    }

    #[test]
    fn other_refusals_and_all_else_pass_through() {
        let inner = PolicyName::Slab.build(arena(), &whole()).unwrap();
        let mut policy = Limited::new(inner, 1 << 20);
        assert!(matches!(policy.allocate(100 << 10), Err(PolicyError::Size { .. })));
        assert_eq!((policy.name(), policy.alignment_bytes()), ("slab", 256));
        let block = policy.allocate(1).unwrap();
        assert!(policy.is_live(block.address));
        assert_eq!(policy.holes(HoleOrder::Address), policy.inner().holes(HoleOrder::Address));
        assert_eq!(policy.hole_lengths(), policy.inner().hole_lengths());
        policy.free(block.address).unwrap();
        assert_eq!(
            policy.free(block.address),
            Err(PolicyError::NotLive { address: block.address })
        );
        assert_eq!(policy.release_unused(), Ok(1 << 20));
    }

    proptest! {
        /// Whatever is asked of it, it holds no more, and refuses nothing that would have fitted.
        #[test]
        fn the_limit_holds(
            limit_bytes in 0..(1u64 << 20),
            requests in prop::collection::vec((0..(200u64 << 10), any::<bool>()), 1..60),
        ) {
            // So much longer than the limit that it is never out of memory itself.
            let memory = SimulatedSource::new(64 << 20, 4096, Placement::Contiguous).unwrap();
            let mut policy = Limited::new(Buddy::new(memory, &whole()).unwrap(), limit_bytes);
            let mut live = Vec::new();
            for (bytes, frees) in requests {
                let before = policy.usage();
                let takes_bytes = bytes.max(256).next_power_of_two();
                let is_within = before.rounded_bytes + takes_bytes <= limit_bytes;
                let block = policy.allocate(bytes);
                prop_assert_eq!(block.is_ok(), is_within);
                match block {
                    Ok(block) => live.push(block.address),
                    Err(_) => {
                        let reserved_bytes = policy.usage().reserved_bytes;
                        prop_assert_eq!(policy.usage(), Usage { reserved_bytes, ..before });
                    }
                }
                prop_assert!(policy.usage().rounded_bytes <= limit_bytes);
                if frees && let Some(address) = live.pop() {
                    policy.free(address).unwrap();
                }
            }
        }
    }
}
