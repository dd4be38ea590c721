//! In what allocators differ.

/// What an allocator does, and how much it may be asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    /// Bytes that live blocks can take: more is refused.
    pub capacity_bytes: u64,
    /// Bytes that they take at least when the first of mixed requests is refused.
    pub least_taken_bytes: u64,
    /// What mixed requests stay below.
    pub most_bytes: u64,
    /// The request that fills it with blocks of one size; a fifth of those that the capacity would
    /// hold are served at least.
    pub block_bytes: u64,
    /// Longer requests may be refused as of no size that it hands out.
    pub largest_bytes: u64,
    /// What it tells of the memory that no live block takes.
    pub tells: Tells,
    /// What serves a request for certain.
    pub fit: Fit,
    /// When the same requests are served again after all was freed.
    pub refill: Refill,
    /// A block that is freed while all is taken is what the next request of its size gets.
    pub reuses_addresses: bool,
    /// Free neighbours are one hole.
    pub merges_neighbours: bool,
    /// What a request that is refused changes.
    pub refusal: Refusal,
    /// With nothing live all memory goes back.
    pub releases_all: bool,
    /// Of two, both do the same: the same calls get the same blocks.
    pub repeats: bool,
    /// Runs of random calls, and the most calls of each.
    pub runs: (u32, usize),
}

impl Traits {
    /// An allocator of which nothing is known, as a driver's: 64 MiB are taken of it at most. All
    /// checks together come to some thousand calls.
    pub(crate) const OPAQUE: Self = Self {
        capacity_bytes: 64 << 20,
        least_taken_bytes: 32 << 20,
        most_bytes: 4 << 20,
        block_bytes: 1 << 20,
        largest_bytes: 1 << 40,
        tells: Tells::Nothing,
        fit: Fit::Unknown,
        refill: Refill::Mixed,
        reuses_addresses: false,
        merges_neighbours: false,
        refusal: Refusal::ChangesNothing,
        releases_all: true,
        repeats: false,
        runs: (8, 60),
    };
}

/// What an allocator tells of the memory that no live block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tells {
    /// Nothing: reserved is what live blocks take.
    Nothing,
    /// How many bytes are reserved, but no holes.
    Reserved,
    /// Each hole: holes and live blocks are all that is reserved.
    Holes,
}

/// What serves a request for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// That is not known.
    Unknown,
    /// As much as the request, rounded up to the alignment.
    Aligned,
    /// A power of two.
    PowerOfTwo,
    /// A block of the one size there is.
    OneSize,
}

/// When the same requests are served again after all was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refill {
    /// Always.
    Mixed,
    /// Once unused memory went back: else regions keep the lengths that they had.
    AfterRelease,
    /// For certain only if all are of one size, as regions lie apart and keep their lengths.
    OneSize,
}

/// What a request that is refused changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Nothing.
    ChangesNothing,
    /// It gave back what it keeps, and holds less.
    GivesBack,
    /// It holds more or less: it took memory for a block that was past the limit.
    ChangesReserved,
}
