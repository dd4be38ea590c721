//! Why a text holds no settings.

use thiserror::Error;

use crate::policy::caching::rounding::MIN_BLOCK_BYTES;
use crate::record::size;

/// Why a text holds no settings of the caching allocator, or settings that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A key that the allocator does not have.
    #[error("`{key}` is no setting of the caching allocator; did you mean `{nearest}`?")]
    UnknownKey {
        /// The key.
        key: String,
        /// The key that is most like it.
        nearest: &'static str,
    },
    /// Something between keys and values that is not what stands there.
    #[error("{place} stands {found}: write {takes}")]
    Syntax {
        /// After what it stands.
        place: String,
        /// What stands there.
        found: String,
        /// What would work.
        takes: &'static str,
    },
    /// A value that its key does not take.
    #[error("`{key}:{value}` cannot be: it takes {takes}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// What would work.
        takes: String,
    },
    /// Another allocator.
    #[error(
        "`backend:cudaMallocAsync` leaves all blocks to the driver's pool, where no setting of \
         the caching allocator acts: write backend:native"
    )]
    Backend,
    /// Memory in units that are too small.
    #[error(
        "the caching allocator needs memory in units of at least {MIN_BLOCK_BYTES} B, and the \
         source gives units of {granule_bytes} B"
    )]
    Granule {
        /// The source's granule in bytes.
        granule_bytes: u64,
    },
    /// Pages that the source of memory cannot map.
    #[error(
        "`expandable_segments:True` cannot be: pages of {} are no multiple of the {} that the \
         device maps at least; take another large_segment_size_mb, or expandable_segments:False",
        size::exact(*.page_bytes),
        size::exact(*.granule_bytes)
    )]
    Page {
        /// The page in bytes.
        page_bytes: u64,
        /// The source's granule in bytes.
        granule_bytes: u64,
    },
}
