//! What is different about the state that calls are timed in: one thing at a time around a base.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::harness::Distribution;
use crate::record::size;

/// The length of live blocks where the state does not say another, in bytes.
pub(super) const LIVE_BLOCK_BYTES: u64 = 2 << 20;

/// The heap that a program runs in, in bytes.
pub(super) const HEAP_BYTES: u64 = 2 << 30;

/// The one thing that is not as in the base. In the base nothing lives but the block of the sample,
/// the device is idle, all its memory is free, each block is freed before the next is allocated, and
/// one thread calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Factor {
    /// Nothing.
    Base,
    /// So many blocks of 2 MiB live, and there is no hole between them.
    Live {
        /// How many.
        blocks: u32,
    },
    /// So many blocks were freed at random between as many live ones; ample memory lies beyond.
    Holes {
        /// How long each is, in bytes.
        bytes: u64,
        /// How many.
        count: u32,
    },
    /// The same, and no memory lies beyond: ballast holds it.
    Tight {
        /// How long each is, in bytes.
        bytes: u64,
        /// How many.
        count: u32,
    },
    /// As many blocks were freed, all of them neighbours, and no memory lies beyond: what is tight about
    /// `tight` and is not its holes.
    Joined {
        /// How long each is, in bytes.
        bytes: u64,
        /// How many.
        count: u32,
    },
    /// A program of this distribution of sizes and lifetimes has run for a while, and its blocks live.
    Churn {
        /// The distribution.
        sizes: Distribution,
    },
    /// Blocks are allocated one after the other, and freed only at the end, the last first.
    Fill,
    /// 1 GiB is allocated and freed right before each allocation.
    LargeFree,
    /// Nothing is done for 20 ms before each call.
    Rest,
    /// The device is at work when the call is made, for about so long.
    Busy {
        /// How long, in microseconds.
        us: u32,
    },
    /// Each of the driver's calls that make a block is timed by itself: allocators of virtual memory
    /// alone.
    Steps,
    /// So many threads call at the same time, each for blocks of its own.
    Threads {
        /// How many.
        count: u32,
    },
}

const FORM: &str = "base, live.20000, holes.2MiB_x10000, tight.2MiB_x1000, \
                    joined.2MiB_x1000, churn.training_step, fill, large_free, rest, steps, \
                    busy.2000us or threads.8";

/// More is no state that a driver was seen to reach in minutes.
const MOST_BLOCKS: u32 = 60_000;

impl Factor {
    /// Whether nothing is left beyond the holes.
    pub(super) fn is_tight(self) -> bool {
        matches!(self, Factor::Tight { .. } | Factor::Joined { .. })
    }

    /// Blocks that are allocated to make the state.
    pub(super) fn blocks(self) -> u64 {
        match self {
            Factor::Live { blocks } => u64::from(blocks),
            Factor::Holes { count, .. }
            | Factor::Tight { count, .. }
            | Factor::Joined { count, .. } => 2 * u64::from(count),
            _ => 0,
        }
    }

    /// Memory that these blocks take, in bytes.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Factor::Holes { bytes, .. }
            | Factor::Tight { bytes, .. }
            | Factor::Joined { bytes, .. } => self.blocks() * bytes,
            Factor::Churn { .. } => HEAP_BYTES,
            _ => self.blocks() * LIVE_BLOCK_BYTES,
        }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Factor::Base => f.write_str("base"),
            Factor::Live { blocks } => write!(f, "live.{blocks}"),
            Factor::Holes { bytes, count } => {
                write!(f, "holes.{}_x{count}", size::exact(bytes))
            }
            Factor::Tight { bytes, count } => {
                write!(f, "tight.{}_x{count}", size::exact(bytes))
            }
            Factor::Joined { bytes, count } => {
                write!(f, "joined.{}_x{count}", size::exact(bytes))
            }
            Factor::Churn { sizes } => write!(f, "churn.{sizes}"),
            Factor::Fill => f.write_str("fill"),
            Factor::LargeFree => f.write_str("large_free"),
            Factor::Rest => f.write_str("rest"),
            Factor::Steps => f.write_str("steps"),
            Factor::Busy { us } => write!(f, "busy.{us}us"),
            Factor::Threads { count } => write!(f, "threads.{count}"),
        }
    }
}

impl FromStr for Factor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("state={text} is none: write {FORM}");
        let (name, of) = text.split_once('.').map_or((text, None), |(name, of)| (name, Some(of)));
        let number = |of: &str, range: std::ops::RangeInclusive<u32>| {
            of.parse().ok().filter(|number| range.contains(number)).ok_or_else(wrong)
        };
        let holes = |of: &str| {
            let (bytes, count) = of.split_once("_x").ok_or_else(wrong)?;
            let bytes = size::parse(bytes).map_err(|_| wrong())?;
            if bytes == 0 {
                return Err(wrong());
            }
            Ok((bytes, number(count, 1..=MOST_BLOCKS / 2)?))
        };
        match (name, of) {
            ("base", None) => Ok(Factor::Base),
            ("fill", None) => Ok(Factor::Fill),
            ("large_free", None) => Ok(Factor::LargeFree),
            ("rest", None) => Ok(Factor::Rest),
            ("steps", None) => Ok(Factor::Steps),
            ("live", Some(of)) => Ok(Factor::Live { blocks: number(of, 1..=MOST_BLOCKS)? }),
            ("holes", Some(of)) => holes(of).map(|(bytes, count)| Factor::Holes { bytes, count }),
            ("tight", Some(of)) => holes(of).map(|(bytes, count)| Factor::Tight { bytes, count }),
            ("joined", Some(of)) => holes(of).map(|(bytes, count)| Factor::Joined { bytes, count }),
            ("churn", Some(of)) => {
                let sizes = of.parse().map_err(|error| format!("state={text}: {error}"))?;
                Ok(Factor::Churn { sizes })
            }
            ("busy", Some(of)) => {
                let of = of.strip_suffix("us").ok_or_else(wrong)?;
                Ok(Factor::Busy { us: number(of, 1..=100_000)? })
            }
            ("threads", Some(of)) => Ok(Factor::Threads { count: number(of, 2..=64)? }),
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Factor {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Factor> for String {
    fn from(factor: Factor) -> String {
        factor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_are_written() {
        let texts = [
            "base",
            "live.20000",
            "holes.2MiB_x10000",
            "tight.64KiB_x1",
            "fill",
            "large_free",
            "rest",
            "steps",
            "busy.2000us",
            "threads.8",
            "joined.2MiB_x10",
            "churn.log_normal",
        ];
        for text in texts {
            assert_eq!(text.parse::<Factor>().unwrap().to_string(), text);
        }
        let wrong = [
            "",
            "bases",
            "live",
            "live.0",
            "live.60001",
            "holes.2MiB",
            "holes.0_x3",
            "busy.2ms",
            "threads.1",
            "threads.65",
            "rest.1",
            "holes.2MiB_x30001",
        ];
        for text in wrong {
            let error = text.parse::<Factor>().unwrap_err();
            assert!(error.contains("holes.2MiB_x10000"), "{error}");
        }
    }

    #[test]
    fn a_state_says_what_it_takes() {
        let of = |text: &str| {
            let factor: Factor = text.parse().unwrap();
            (factor.blocks(), factor.bytes())
        };
        assert_eq!(of("live.10"), (10, 20 << 20));
        assert_eq!(of("holes.1MiB_x10"), (20, 20 << 20));
        assert_eq!(of("busy.10us"), (0, 0));
    }
}
