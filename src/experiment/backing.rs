//! How physical memory lies under a range of addresses: chunks of one length, in an order.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::layout::{Permutation, draw};
use crate::record::size;

/// The order in which chunks lie under a range of addresses. Chunks are numbered as they were made;
/// that those made one after the other are neighbours in physical memory is assumed, not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Backing {
    /// As they were made.
    InOrder,
    /// The last first.
    Reversed,
    /// Every n-th chunk, then those behind them, and so on.
    Strided {
        /// How many chunks lie between neighbours.
        chunks: u32,
    },
    /// A random permutation.
    Shuffled {
        /// Which, from 1: several tell whether it is the one permutation that costs.
        turn: u32,
    },
    /// A random permutation of runs of chunks, each in order.
    Blocks {
        /// How long a run is, in bytes.
        bytes: u64,
    },
}

const FORM: &str = "in_order, reversed, strided.64, shuffled.1 or blocks.16MiB";

impl Backing {
    /// The chunk under each part of a range of `chunks` parts.
    pub fn order(self, chunks: u32, chunk_bytes: u64, seed: u64) -> Vec<u32> {
        let all = 0..chunks;
        match self {
            Backing::InOrder => all.collect(),
            Backing::Reversed => all.rev().collect(),
            Backing::Strided { chunks: stride } => {
                let of = |first: u32| (first..chunks).step_by(stride as usize);
                (0..stride.min(chunks)).flat_map(of).collect()
            }
            Backing::Shuffled { turn } => {
                let permutation = Permutation::new(draw(seed, turn.into()), chunks.into());
                all.map(|at| permutation.apply(at.into()) as u32).collect()
            }
            Backing::Blocks { bytes } => {
                let run = (bytes / chunk_bytes).clamp(1, chunks.into()) as u32;
                let runs = chunks / run;
                let permutation = Permutation::new(draw(seed, bytes), runs.into());
                let of = |at: u32| {
                    let first = permutation.apply(at.into()) as u32 * run;
                    first..first + run
                };
                // What is left over stays behind them.
                (0..runs).flat_map(of).chain(runs * run..chunks).collect()
            }
        }
    }
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Backing::InOrder => f.write_str("in_order"),
            Backing::Reversed => f.write_str("reversed"),
            Backing::Strided { chunks } => write!(f, "strided.{chunks}"),
            Backing::Shuffled { turn } => write!(f, "shuffled.{turn}"),
            Backing::Blocks { bytes } => write!(f, "blocks.{}", size::exact(bytes)),
        }
    }
}

impl FromStr for Backing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("backing={text} is none: write {FORM}");
        let number = |of: &str| of.parse().ok().filter(|number| *number > 0).ok_or_else(wrong);
        match text.split_once('.').map_or((text, None), |(name, of)| (name, Some(of))) {
            ("in_order", None) => Ok(Backing::InOrder),
            ("reversed", None) => Ok(Backing::Reversed),
            ("strided", Some(of)) => Ok(Backing::Strided { chunks: number(of)? }),
            ("shuffled", Some(of)) => Ok(Backing::Shuffled { turn: number(of)? }),
            ("blocks", Some(of)) => match size::parse(of) {
                Ok(bytes) if bytes > 0 => Ok(Backing::Blocks { bytes }),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Backing {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Backing> for String {
    fn from(backing: Backing) -> String {
        backing.to_string()
    }
}

/// An arena of physical chunks that are mapped under several ranges at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunked {
    /// How long a chunk is, in bytes.
    pub chunk_bytes: u64,
    /// The order under each range. The first is [`Backing::InOrder`], which the others are held
    /// against.
    pub backings: Vec<Backing>,
}

impl Chunked {
    /// Chunks that hold so many bytes.
    pub fn chunks(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.chunk_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn backings() -> impl Strategy<Value = Backing> {
        prop_oneof![
            Just(Backing::InOrder),
            Just(Backing::Reversed),
            (1..2000u32).prop_map(|chunks| Backing::Strided { chunks }),
            (1..9u32).prop_map(|turn| Backing::Shuffled { turn }),
            (0..12u32).prop_map(|log2| Backing::Blocks { bytes: (1 << 21) << log2 }),
        ]
    }

    proptest! {
        #[test]
        fn every_chunk_lies_under_one_part(
            backing in backings(), chunks in 1..1500u32, seed in any::<u64>()
        ) {
            let mut order = backing.order(chunks, 2 << 20, seed);
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..chunks));
            prop_assert_eq!(backing.to_string().parse(), Ok(backing));
        }
    }

    #[test]
    fn orders_are_what_their_names_say() {
        let order = |text: &str| text.parse::<Backing>().unwrap().order(7, 2 << 20, 1);
        assert_eq!(order("in_order"), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(order("reversed"), [6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(order("strided.3"), [0, 3, 6, 1, 4, 2, 5]);
        assert_ne!(order("shuffled.1"), order("shuffled.2"));
        let blocks = order("blocks.4MiB");
        assert!(blocks.chunks(2).take(3).all(|run| run[0] % 2 == 0 && run[1] == run[0] + 1));
        assert_eq!(blocks[6], 6);
        for wrong in ["", "shuffled", "shuffled.0", "strided.x", "blocks.0", "in_order.1"] {
            assert!(wrong.parse::<Backing>().unwrap_err().contains("blocks.16MiB"), "{wrong}");
        }
    }
}
