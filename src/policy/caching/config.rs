//! The settings of the caching allocator, as `PYTORCH_ALLOC_CONF` gives them.

mod error;
mod parse;
#[cfg(test)]
mod tests;

pub use error::ConfigError;

use std::fmt;

use super::rounding::INTERVALS;

const MIB: u64 = 1 << 20;

/// A part of a whole, from 0 to 1, in billionths: what depends on it is worked out in
/// integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    const WHOLE: u32 = 1_000_000_000;

    /// The share nearest to `value`; `None` unless it lies in 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        let whole = f64::from(Self::WHOLE);
        (0.0..=1.0).contains(&value).then(|| Self((value * whole).round() as u32))
    }

    /// This share of `bytes`, rounded down.
    pub fn of(self, bytes: u64) -> u64 {
        (u128::from(bytes) * u128::from(self.0) / u128::from(Self::WHOLE)) as u64
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nine digits are exact in a double, and its shortest form has no trailing zeros.
        write!(f, "{}", f64::from(self.0) / f64::from(Self::WHOLE))
    }
}

/// How many addresses an expandable segment reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// A share of the device's memory.
    Share(Share),
    /// So many bytes.
    Bytes(u64),
}

impl fmt::Display for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => write!(f, "{share}"),
            Self::Bytes(bytes) => write!(f, "{}G", *bytes as f64 / (1u64 << 30) as f64),
        }
    }
}

/// A setting that changes nothing here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithoutEffect {
    /// Its key.
    pub key: &'static str,
    /// Why it changes nothing.
    pub reason: &'static str,
}

/// The settings of PyTorch's caching allocator (2.15): read from the text of `PYTORCH_ALLOC_CONF`
/// or `PYTORCH_CUDA_ALLOC_CONF` with [`parse`](str::parse), printed as a text that reads the same.
/// [`releases_cache_on_failure`](Self::releases_cache_on_failure) is none of PyTorch's, and in no
/// text.
///
/// ```
/// use fragbench::policy::caching::Config;
///
/// let config: Config = "max_split_size_mb:128, expandable_segments:False".parse().unwrap();
/// assert_eq!(config.max_split_bytes, Some(128 << 20));
/// assert_eq!(
///     config.to_string(),
///     "large_segment_size_mb:20,max_split_size_mb:128,expandable_segments:False"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `large_segment_size_mb`: a segment for blocks above 1 MiB and below 10 MiB, and the page of
    /// an expandable segment of the large pool, in bytes.
    pub large_segment_bytes: u64,
    /// `max_split_size_mb`: blocks of so many bytes and more are not split; `None` splits all.
    pub max_split_bytes: Option<u64>,
    /// `max_non_split_rounding_mb`: how many bytes larger than its request a block may be that is
    /// not split. Acts from [`max_split_bytes`](Self::max_split_bytes) on.
    pub max_non_split_rounding_bytes: u64,
    /// `garbage_collection_threshold`: the share of the allowed memory from which unused segments
    /// go back before more is taken.
    pub garbage_collection_threshold: Option<Share>,
    /// `roundup_power2_divisions`: into how many steps a power of two is divided, for requests from
    /// 1 MiB, 2 MiB, 4 MiB, ..., 32 GiB on; 0 and 1 round to 512 B alone. Smaller and larger
    /// requests take the first and the last.
    pub roundup_power2_divisions: [u64; INTERVALS],
    /// `expandable_segments`: segments grow page by page instead of being allocated whole.
    pub expandable_segments: bool,
    /// `expandable_segments_reserve`: addresses that an expandable segment reserves; 9/8 of the
    /// device's memory where it is `None`, and never more.
    pub expandable_segments_reserve: Option<Reserve>,
    /// `per_process_memory_fraction`: the share of the device's memory that may be taken; `None`
    /// allows all.
    pub memory_fraction: Option<Share>,
    /// Whether the cache goes back to the source, and the source is asked once more, before a
    /// request fails. PyTorch does so. Without it a request that neither the cache nor the source
    /// can serve fails at once, and what is cached stays: what fragmentation alone costs.
    pub releases_cache_on_failure: bool,
    /// Settings that were given and change nothing in any configuration;
    /// [`without_effect`](Self::without_effect) tells these and others.
    pub inert: Vec<WithoutEffect>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            large_segment_bytes: 20 * MIB,
            max_split_bytes: None,
            max_non_split_rounding_bytes: Self::DEFAULT_ROUNDING_BYTES,
            garbage_collection_threshold: None,
            roundup_power2_divisions: [0; INTERVALS],
            expandable_segments: false,
            expandable_segments_reserve: None,
            memory_fraction: None,
            releases_cache_on_failure: true,
            inert: Vec::new(),
        }
    }
}

impl Config {
    const DEFAULT_ROUNDING_BYTES: u64 = 20 * MIB;

    /// Settings that were given and change nothing, with the reason: those of other allocators, and
    /// those that need another setting to act.
    pub fn without_effect(&self) -> Vec<WithoutEffect> {
        let mut all = self.inert.clone();
        let mut note = |idle: bool, key, reason| {
            if idle {
                all.push(WithoutEffect { key, reason });
            }
        };
        note(
            self.garbage_collection_threshold.is_some() && self.memory_fraction.is_none(),
            "garbage_collection_threshold",
            "it acts only with a per_process_memory_fraction below 1",
        );
        note(
            self.max_non_split_rounding_bytes != Self::DEFAULT_ROUNDING_BYTES
                && self.max_split_bytes.is_none(),
            "max_non_split_rounding_mb",
            "it acts only with max_split_size_mb",
        );
        note(
            self.expandable_segments_reserve.is_some() && !self.expandable_segments,
            "expandable_segments_reserve",
            "it acts only with expandable_segments:True",
        );
        all
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "large_segment_size_mb:{}", self.large_segment_bytes / MIB)?;
        if let Some(bytes) = self.max_split_bytes {
            write!(f, ",max_split_size_mb:{}", bytes / MIB)?;
        }
        if self.max_non_split_rounding_bytes != Self::DEFAULT_ROUNDING_BYTES {
            write!(f, ",max_non_split_rounding_mb:{}", self.max_non_split_rounding_bytes / MIB)?;
        }
        if let Some(threshold) = self.garbage_collection_threshold {
            write!(f, ",garbage_collection_threshold:{threshold}")?;
        }
        if self.roundup_power2_divisions != [0; INTERVALS] {
            f.write_str(",roundup_power2_divisions:")?;
            write_divisions(f, &self.roundup_power2_divisions)?;
        }
        let expandable = if self.expandable_segments { "True" } else { "False" };
        write!(f, ",expandable_segments:{expandable}")?;
        if let Some(reserve) = self.expandable_segments_reserve {
            write!(f, ",expandable_segments_reserve:{reserve}")?;
        }
        if let Some(fraction) = self.memory_fraction {
            write!(f, ",per_process_memory_fraction:{fraction}")?;
        }
        Ok(())
    }
}

/// One number where all are the same; else a list whose first entry also stands for those below
/// it, and whose `>` for those above the one before it.
fn write_divisions(f: &mut fmt::Formatter<'_>, divisions: &[u64; INTERVALS]) -> fmt::Result {
    let first = divisions[0];
    let run = divisions.iter().take_while(|&&of| of == first).count();
    if run == INTERVALS {
        return write!(f, "{first}");
    }
    let last = divisions[INTERVALS - 1];
    let tail = divisions.iter().rev().take_while(|&&of| of == last).count();
    f.write_str("[")?;
    for (index, of) in divisions.iter().enumerate().take(INTERVALS - tail).skip(run - 1) {
        write!(f, "{}:{of},", 1u64 << index)?;
    }
    write!(f, ">:{last}]")
}
