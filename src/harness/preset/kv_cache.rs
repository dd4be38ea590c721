//! A paged KV cache, as a decoding step reads it.

use super::PresetError;
use super::Situation;
use super::parameters::Parameter;
use super::pool::{Load, Sequence, serve};
use crate::layout::{Extents, Fragment, LEAST_UNIT_BYTES, draw};
use crate::record::{Mechanism, size};

/// The most blocks of all sequences together, so that they are served within seconds.
const MAX_SERVED_BLOCKS: u64 = 1 << 24;

/// A decoding step over the KV cache of a language model: of each layer, keys and values of every
/// sequence, block by block behind its block table.
///
/// The blocks come from a pool from which sequences were served for a while. Each layer has an array
/// of the keys of all blocks and one of the values, as vLLM keeps them for FlashAttention (Kwon et
/// al., "Efficient memory management for large language model serving with PagedAttention", SOSP
/// 2023). The default is Llama-3-8B with vLLM's 16 tokens a block: 32 layers, 8 KV heads of 128,
/// 2 B an element, so 32 KiB of keys a block and layer and as much of values; 16 sequences of 1,024
/// tokens on average, in a pool of 1,024 blocks: 2 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KvCache {
    /// Layers of the model.
    pub layers: u64,
    /// KV heads of a layer.
    pub heads: u64,
    /// Elements of a head.
    pub head: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Tokens of a block.
    pub block_tokens: u64,
    /// Blocks of the pool.
    pub blocks: u64,
    /// Sequences that are served at a time.
    pub sequences: u64,
    /// Mean length of a sequence, in tokens.
    pub mean_tokens: u64,
}

impl Default for KvCache {
    fn default() -> Self {
        Self {
            layers: 32,
            heads: 8,
            head: 128,
            element_bytes: 2,
            block_tokens: 16,
            blocks: 1024,
            sequences: 16,
            mean_tokens: 1024,
        }
    }
}

impl KvCache {
    pub(super) const NAME: &'static str = "kv_cache";

    pub(super) fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::count("layers", &mut self.layers, 1024),
            Parameter::count("heads", &mut self.heads, 1024),
            Parameter::count("head", &mut self.head, 4096),
            Parameter::count("element", &mut self.element_bytes, 8),
            Parameter::count("block", &mut self.block_tokens, 4096),
            Parameter::count("blocks", &mut self.blocks, 1 << 24),
            Parameter::count("sequences", &mut self.sequences, 4096),
            Parameter::count("tokens", &mut self.mean_tokens, 1 << 20),
        ]
    }

    /// Bytes of the keys of one token in one layer.
    fn token_bytes(&self) -> u64 {
        self.heads * self.head * self.element_bytes
    }

    /// Bytes of the keys of a block in one layer, and as many of its values.
    pub fn block_bytes(&self) -> u64 {
        self.block_tokens * self.token_bytes()
    }

    /// Keys and values of every layer, with as many blocks in use as there may be.
    pub(super) fn most_fragments(&self) -> u64 {
        2 * self.layers * self.blocks.min(self.sequences * self.load().most_blocks())
    }

    fn load(&self) -> Load {
        let KvCache { blocks, block_tokens, sequences, mean_tokens, .. } = *self;
        Load { blocks, block_tokens, sequences, mean_tokens }
    }

    pub(super) fn check(&self) -> Result<(), PresetError> {
        let token_bytes = self.token_bytes();
        if !token_bytes.is_multiple_of(LEAST_UNIT_BYTES) {
            return Err(PresetError::UnevenToken { token_bytes });
        }
        let most_blocks = self.load().most_blocks();
        if most_blocks > self.blocks {
            return Err(PresetError::PoolTooSmall { blocks: self.blocks, most_blocks });
        }
        let blocks = self.sequences * most_blocks;
        if blocks > MAX_SERVED_BLOCKS {
            return Err(PresetError::ServedTooLong { blocks, most: MAX_SERVED_BLOCKS });
        }
        Ok(())
    }

    pub(super) fn situation(&self, seed: u64) -> Result<Situation, PresetError> {
        let KvCache { layers, heads, head, block_tokens, blocks, .. } = *self;
        let shape = [blocks, block_tokens, self.sequences, self.mean_tokens];
        let key = shape.iter().fold(seed, |key, part| draw(key ^ part, 0));
        let sequences = serve(&self.load(), key);
        let array_bytes = blocks * self.block_bytes();
        let fragments: Vec<Fragment> = (0..layers)
            .flat_map(|layer| {
                let [keys, values] = [2 * layer, 2 * layer + 1].map(|array| array * array_bytes);
                sequences.iter().flat_map(move |sequence| self.visits(sequence, [keys, values]))
            })
            .collect();
        let used: usize = sequences.iter().map(|sequence| sequence.table.len()).sum();
        let words = format!(
            "a decoding step reads the paged KV cache of {} sequences: {layers} layers, {heads} KV \
             heads of {head}, {block_tokens} tokens a block, so {} of keys and of values each; \
             {used} of {blocks} blocks of the pool are in use",
            sequences.len(),
            size::exact(self.block_bytes())
        );
        Ok(Situation {
            extents: Extents::new(fragments, 2 * layers * array_bytes)?,
            mechanism: Mechanism::Paged,
            words,
        })
    }

    /// Blocks of a sequence in one layer: keys, then values, of each; of the last what is there.
    fn visits<'a>(
        &'a self,
        sequence: &'a Sequence,
        arrays: [u64; 2],
    ) -> impl Iterator<Item = Fragment> + 'a {
        sequence.table.iter().enumerate().flat_map(move |(number, block)| {
            let before = number as u64 * self.block_tokens;
            let tokens = (sequence.tokens - before).min(self.block_tokens);
            arrays.map(|array| Fragment {
                offset: array + block * self.block_bytes(),
                bytes: tokens * self.token_bytes(),
            })
        })
    }
}
