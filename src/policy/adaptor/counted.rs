//! What was called, and how high it went.

use super::pass_through;
use crate::policy::{Block, Hole, HoleOrder, Policy, PolicyError, Usage};

/// What an allocator was asked for since it was [counted](Counted), and the most that it held.
///
/// The most is that after a call: what comes and goes within one is not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Allocations that were served.
    pub allocations: u64,
    /// Allocations that were refused, for whatever reason.
    pub refused_allocations: u64,
    /// Blocks that were freed.
    pub frees: u64,
    /// Frees that were refused.
    pub refused_frees: u64,
    /// Calls that gave unused memory back, also where there was none.
    pub releases: u64,
    /// The most live blocks.
    pub peak_live_blocks: u64,
    /// The most bytes that live blocks were requested with.
    pub peak_requested_bytes: u64,
    /// The most bytes that it held of its source.
    pub peak_reserved_bytes: u64,
}

impl Counts {
    fn raise_peaks(&mut self, usage: Usage) {
        self.peak_live_blocks = self.peak_live_blocks.max(usage.live_blocks);
        self.peak_requested_bytes = self.peak_requested_bytes.max(usage.requested_bytes);
        self.peak_reserved_bytes = self.peak_reserved_bytes.max(usage.reserved_bytes);
    }
}

/// An allocator whose calls are counted.
///
/// ```
/// # use fragbench::policy::{Policy, PolicyError};
/// use fragbench::policy::Counted;
///
/// # fn counts(allocator: impl Policy) -> Result<(), PolicyError> {
/// let mut allocator = Counted::new(allocator);
/// let block = allocator.allocate(1000)?;
/// allocator.free(block.address)?;
/// let counts = allocator.counts();
/// assert_eq!((counts.allocations, counts.frees, counts.peak_requested_bytes), (1, 1, 1000));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Counted<P> {
    inner: P,
    counts: Counts,
}

impl<P: Policy> Counted<P> {
    /// The allocator, counted from now on. The most that it holds begins at what it holds now.
    pub fn new(inner: P) -> Self {
        let mut counts = Counts::default();
        counts.raise_peaks(inner.usage());
        Self { inner, counts }
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The allocator inside.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// The allocator, counted no more.
    pub fn into_inner(self) -> P {
        self.inner
    }
}

fn count<T, E>(result: &Result<T, E>, served: &mut u64, refused: &mut u64) {
    *if result.is_ok() { served } else { refused } += 1;
}

impl<P: Policy> Policy for Counted<P> {
    pass_through!(name alignment_bytes is_live usage holes);

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        let result = self.inner.allocate(bytes);
        let counts = &mut self.counts;
        count(&result, &mut counts.allocations, &mut counts.refused_allocations);
        // A refused request may have taken memory too, in pages.
        counts.raise_peaks(self.inner.usage());
        result
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        let result = self.inner.free(address);
        count(&result, &mut self.counts.frees, &mut self.counts.refused_frees);
        result
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        let result = self.inner.release_unused();
        self.counts.releases += u64::from(result.is_ok());
        result
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::tests::{arena, whole};
    use crate::policy::{BestFit, Limited};

    #[test]
    fn every_call_is_counted_once() {
        let inner = BestFit::new(arena(), &whole()).unwrap();
        let mut policy = Counted::new(Limited::new(inner, 8192));
        assert_eq!(policy.counts(), Counts::default());
        let blocks = [3000, 5000].map(|bytes| policy.allocate(bytes).unwrap().address);
        // By the limit, which is inside.
        policy.allocate(1000).unwrap_err();
        policy.free(blocks[1]).unwrap();
        policy.free(blocks[1]).unwrap_err();
        assert_eq!(policy.release_unused(), Ok(0));
        policy.free(blocks[0]).unwrap();
        policy.release_unused().unwrap();
        let counts = Counts {
            allocations: 2,
            refused_allocations: 1,
            frees: 2,
            refused_frees: 1,
            releases: 2,
            peak_live_blocks: 2,
            peak_requested_bytes: 8000,
            peak_reserved_bytes: 1 << 20,
        };
        assert_eq!(policy.counts(), counts);
        assert_eq!(policy.into_inner().usage(), Usage::default());
    }

    #[test]
    fn peaks_begin_at_what_is_held() {
        let mut inner = BestFit::new(arena(), &whole()).unwrap();
        let block = inner.allocate(700).unwrap();
        let mut policy = Counted::new(inner);
        policy.free(block.address).unwrap();
        let counts = policy.counts();
        assert_eq!((counts.allocations, counts.frees), (0, 1));
        assert_eq!((counts.peak_live_blocks, counts.peak_requested_bytes), (1, 700));
        assert_eq!(counts.peak_reserved_bytes, 1 << 20);
    }

    proptest! {
        /// Live blocks are those served less those freed, and peaks the largest that was seen.
        #[test]
        fn counts_add_up(requests in prop::collection::vec((0..(300u64 << 10), 0..3u8), 1..80)) {
            let mut policy = Counted::new(BestFit::new(arena(), &whole()).unwrap());
            let (mut live, mut most) = (Vec::new(), Counts::default());
            for (bytes, kind) in &requests {
                if *kind > 0 {
                    live.extend(policy.allocate(*bytes).map(|block| block.address));
                } else if let Some(address) = live.pop() {
                    policy.free(address).unwrap();
                } else {
                    policy.free(*bytes).unwrap_err();
                }
                most.raise_peaks(policy.usage());
                let counts = policy.counts();
                prop_assert_eq!(counts.allocations - counts.frees, policy.usage().live_blocks);
            }
            let counts = policy.counts();
            let calls = counts.allocations + counts.refused_allocations;
            prop_assert_eq!(calls + counts.frees + counts.refused_frees, requests.len() as u64);
            let peaks = Counts {
                peak_live_blocks: counts.peak_live_blocks,
                peak_requested_bytes: counts.peak_requested_bytes,
                peak_reserved_bytes: counts.peak_reserved_bytes,
                ..Counts::default()
            };
            prop_assert_eq!(peaks, most);
        }
    }
}
