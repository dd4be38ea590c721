//! A pool of blocks from which sequences of a language model's server are given theirs.

use std::collections::VecDeque;

use crate::layout::{below, draw};

/// Rounds of decoding, in mean lengths of a sequence: each place has seen some sixteen sequences.
const MEAN_LENGTHS: u64 = 8;

/// A sequence that is being decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    /// Tokens that it has: they fill all its blocks but for a rest of the last.
    pub(super) tokens: u64,
    /// Its blocks by their numbers in the pool, in the order of its tokens: its block table.
    pub(super) table: Vec<u64>,
}

/// What a server is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Blocks of the pool.
    pub(super) blocks: u64,
    /// Tokens of a block.
    pub(super) block_tokens: u64,
    /// Sequences served at a time.
    pub(super) sequences: u64,
    /// Mean length of a sequence in tokens: each is half to one and a half times as long.
    pub(super) mean_tokens: u64,
}

impl Load {
    /// Blocks of the longest sequence.
    pub(super) fn most_blocks(&self) -> u64 {
        (self.mean_tokens + self.mean_tokens / 2).div_ceil(self.block_tokens)
    }
}

/// One of the places for sequences.
struct Place {
    /// Blocks that its sequence will have when it ends.
    wanted: u64,
    /// When it was admitted, counted in admissions; what waits has no blocks.
    admitted: u64,
    table: Vec<u64>,
}

/// Sequences after a while of serving, and their blocks.
///
/// Free blocks are a queue, as in vLLM: they are taken from its head; a sequence that ends puts its
/// own back at the tail, the last one first. A sequence is admitted with the first half of its blocks
/// (its prompt) once they are there, and takes one more in each round. Where none is free, the
/// sequence admitted last gives all of its blocks back and waits.
pub(super) fn serve(load: &Load, key: u64) -> Vec<Sequence> {
    let mut server = Server::new(load, key);
    let rounds = (MEAN_LENGTHS * load.mean_tokens).div_ceil(load.block_tokens);
    (0..rounds).for_each(|_| server.round());
    server.into_sequences()
}

struct Server {
    free: VecDeque<u64>,
    places: Vec<Place>,
    load: Load,
    key: u64,
    drawn: u64,
    admitted: u64,
}

impl Server {
    fn new(load: &Load, key: u64) -> Self {
        let free = (0..load.blocks).collect();
        let mut server =
            Server { free, places: Vec::new(), load: *load, key, drawn: 0, admitted: 0 };
        for _ in 0..load.sequences {
            let wanted = server.length();
            server.places.push(Place { wanted, admitted: 0, table: Vec::new() });
        }
        server
    }

    /// One round of all places.
    fn round(&mut self) {
        (0..self.places.len()).for_each(|place| self.advance(place));
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        below(draw(self.key, self.drawn), bound)
    }

    /// Blocks of a sequence that arrives.
    fn length(&mut self) -> u64 {
        let mean = self.load.mean_tokens;
        (mean - mean / 2 + self.below(2 * (mean / 2) + 1)).div_ceil(self.load.block_tokens)
    }

    /// One round of one place.
    fn advance(&mut self, place: usize) {
        let held = self.places[place].table.len() as u64;
        if held == 0 {
            self.admit(place);
        } else if held < self.places[place].wanted {
            self.grow(place);
        } else {
            self.give_back(place);
            self.places[place].wanted = self.length();
            self.admit(place);
        }
    }

    fn admit(&mut self, place: usize) {
        let prompt = self.places[place].wanted.div_ceil(2) as usize;
        if prompt <= self.free.len() {
            self.admitted += 1;
            let taken = self.free.drain(..prompt);
            self.places[place].table.extend(taken);
            self.places[place].admitted = self.admitted;
        }
    }

    fn grow(&mut self, place: usize) {
        if self.free.is_empty() {
            let running = self.places.iter().enumerate().filter(|(_, p)| !p.table.is_empty());
            let last = running.max_by_key(|(_, p)| p.admitted).map_or(place, |(last, _)| last);
            self.give_back(last);
            if last == place {
                return;
            }
        }
        self.places[place].table.extend(self.free.pop_front());
    }

    fn give_back(&mut self, place: usize) {
        self.free.extend(self.places[place].table.drain(..).rev());
    }

    fn into_sequences(mut self) -> Vec<Sequence> {
        let places = std::mem::take(&mut self.places);
        let running = places.into_iter().filter(|place| !place.table.is_empty());
        running
            .map(|place| {
                let rest = self.below(self.load.block_tokens);
                let tokens = place.table.len() as u64 * self.load.block_tokens - rest;
                Sequence { tokens, table: place.table }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pool_that_is_used_for_a_while_hands_out_scattered_blocks() {
        let load = Load { blocks: 1024, block_tokens: 16, sequences: 16, mean_tokens: 1024 };
        let sequences = serve(&load, 1);
        assert_eq!(sequences.len(), 16);
        let follows = |two: &[u64]| two[0] + 1 == two[1];
        let tables = || sequences.iter().flat_map(|sequence| sequence.table.windows(2));
        let neighbours = tables().filter(|two| follows(two)).count();
        assert!(neighbours * 4 < tables().count(), "{neighbours} of {}", tables().count());
    }

    #[test]
    fn what_is_short_of_blocks_waits_until_its_prompt_is_there() {
        // Blocks for two of four.
        let load = Load { blocks: 150, block_tokens: 16, sequences: 4, mean_tokens: 1024 };
        let mut server = Server::new(&load, 7);
        let mut waited = 0;
        for _ in 0..500 {
            server.round();
            let held: usize = server.places.iter().map(|place| place.table.len()).sum();
            assert_eq!(held + server.free.len(), 150);
            for place in &server.places {
                let blocks = place.table.len() as u64;
                waited += u32::from(blocks == 0);
                let is_running = place.wanted.div_ceil(2) <= blocks && blocks <= place.wanted;
                assert!(blocks == 0 || is_running, "{blocks} of {}", place.wanted);
            }
        }
        assert!(waited > 0);
    }

    proptest! {
        #[test]
        fn no_block_is_in_two_tables(
            (blocks, block_tokens) in (1..300u64, 1..40u64),
            (sequences, mean_tokens, key) in (1..20u64, 1..400u64, any::<u64>()),
        ) {
            let load = Load { blocks, block_tokens, sequences, mean_tokens };
            prop_assume!(load.most_blocks() <= blocks);
            let served = serve(&load, key);
            prop_assert!(!served.is_empty() && served.len() as u64 <= sequences);
            let mut all: Vec<u64> =
                served.iter().flat_map(|sequence| sequence.table.iter().copied()).collect();
            prop_assert!(all.iter().all(|&block| block < blocks));
            all.sort_unstable();
            prop_assert!(all.windows(2).all(|two| two[0] < two[1]));
            for sequence in served {
                prop_assert_eq!(
                    sequence.tokens.div_ceil(block_tokens),
                    sequence.table.len() as u64
                );
                prop_assert!(sequence.table.len() as u64 <= load.most_blocks());
            }
        }
    }
}
