//! Allocators around any allocator: each takes a [`Policy`] and is one, or is a
//! [`Source`](super::Source) for policies above it.
//!
//! They compose: `Counted<Limited<P>>` counts what the limit refused. What an adaptor does not speak
//! of passes through it unchanged.

mod as_source;
mod counted;
mod limited;
mod logged;

pub use as_source::{AsSource, GranuleError};
pub use counted::{Counted, Counts};
pub use limited::Limited;
pub use logged::Logged;

use super::{Block, Hole, HoleOrder, Policy, PolicyError, Usage};

/// A boxed allocator is one, so that adaptors take it.
impl<P: Policy + ?Sized> Policy for Box<P> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn alignment_bytes(&self) -> u64 {
        (**self).alignment_bytes()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        (**self).allocate(bytes)
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        (**self).free(address)
    }

    fn is_live(&self, address: u64) -> bool {
        (**self).is_live(address)
    }

    fn usage(&self) -> Usage {
        (**self).usage()
    }

    fn holes(&self, order: HoleOrder) -> Vec<Hole> {
        (**self).holes(order)
    }

    fn hole_lengths(&self) -> Vec<u64> {
        (**self).hole_lengths()
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        (**self).release_unused()
    }
}

/// What an adaptor with an `inner` allocator passes on.
macro_rules! pass_through {
    ($($call:ident)+) => {
        $(pass_through!(@ $call);)+
    };
    (@ name) => {
        fn name(&self) -> &'static str {
            self.inner.name()
        }
    };
    (@ alignment_bytes) => {
        fn alignment_bytes(&self) -> u64 {
            self.inner.alignment_bytes()
        }
    };
    (@ free) => {
        fn free(&mut self, address: u64) -> Result<(), PolicyError> {
            self.inner.free(address)
        }
    };
    (@ is_live) => {
        fn is_live(&self, address: u64) -> bool {
            self.inner.is_live(address)
        }
    };
    (@ usage) => {
        fn usage(&self) -> Usage {
            self.inner.usage()
        }
    };
    (@ holes) => {
        fn holes(&self, order: HoleOrder) -> Vec<Hole> {
            self.inner.holes(order)
        }

        fn hole_lengths(&self) -> Vec<u64> {
            self.inner.hole_lengths()
        }
    };
    (@ release_unused) => {
        fn release_unused(&mut self) -> Result<u64, PolicyError> {
            self.inner.release_unused()
        }
    };
}

use pass_through;
