//! What a distribution is made of: classes of blocks that live alike, and bands of sizes.

use crate::layout::below;

/// How blocks of a class end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// Not at all: parameters, weights.
    Lasting,
    /// The newest first, as activations do in a backward pass: down to a random one, then the stack
    /// grows again.
    Reverse,
    /// With the others of their group, in any order of groups: a request's blocks, a step's
    /// gradients.
    Together {
        /// Blocks of the smallest group.
        least_blocks: u64,
        /// Blocks of the largest group.
        most_blocks: u64,
    },
    /// Each as likely as any other, however old: an exponential distribution of lifetimes.
    Memoryless,
}

/// A range of sizes, each multiple of the grain in it as likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Band {
    /// How often, against the other bands of its class.
    pub weight: u64,
    /// The smallest size in bytes.
    pub least_bytes: u64,
    /// The largest size in bytes.
    pub most_bytes: u64,
}

impl Band {
    /// The mean size in bytes.
    pub(super) fn middle_bytes(&self) -> u64 {
        (self.least_bytes + self.most_bytes) / 2
    }

    /// A size of the band from a random number.
    #[inline]
    pub(super) fn size(&self, random: u64, grain_bytes: u64) -> u64 {
        let steps = (self.most_bytes - self.least_bytes) / grain_bytes + 1;
        self.least_bytes + below(random, steps) * grain_bytes
    }
}

/// Blocks that live alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// How they end.
    pub lifetime: Lifetime,
    /// Their share of all live bytes, in percent.
    pub live_percent: u64,
    /// How often one is made, against the other classes.
    pub draws: u64,
    /// Their sizes.
    pub bands: &'static [Band],
}

impl Class {
    /// The sum of the weights of all bands.
    pub(super) fn weight(&self) -> u64 {
        self.bands.iter().map(|band| band.weight).sum()
    }

    /// The sum of all bands' middles, each times its weight.
    pub(super) fn weighted_bytes(&self) -> u64 {
        self.bands.iter().map(|band| band.weight * band.middle_bytes()).sum()
    }

    /// The mean size in bytes, rounded down.
    pub fn mean_bytes(&self) -> u64 {
        self.weighted_bytes() / self.weight()
    }
}
