//! The tables of every distribution. Integers only: the same draws everywhere.

use super::{Band, Class, Lifetime};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const fn band(weight: u64, least_bytes: u64, most_bytes: u64) -> Band {
    Band { weight, least_bytes, most_bytes }
}

const fn fixed(weight: u64, bytes: u64) -> Band {
    band(weight, bytes, bytes)
}

/// A training step of a transformer in mixed precision, with the sizes of GPT-2 (width 768 to 1600;
/// Radford et al., "Language models are unsupervised multitask learners", 2019).
///
/// A layer has twelve parameters: eight vectors (biases, norms) and four matrices, so two of three
/// blocks are tiny and nearly all bytes lie in the others. Parameters and both moments of the
/// optimizer last. Activations, a few sizes for each layer beside statistics of norms and attention,
/// go in the reverse order of their making. Gradients have the sizes of parameters and go together
/// when the step ends. Temporaries and workspaces come and go.
pub(super) const TRAINING_STEP: &[Class] = &[
    Class {
        lifetime: Lifetime::Lasting,
        live_percent: 45,
        draws: 25,
        bands: &[
            band(66, 2 * KIB, 16 * KIB),
            band(20, MIB, 4 * MIB),
            band(13, 4 * MIB, 16 * MIB),
            band(1, 16 * MIB, 32 * MIB),
        ],
    },
    Class {
        lifetime: Lifetime::Reverse,
        live_percent: 40,
        draws: 30,
        bands: &[
            band(30, 16 * KIB, 256 * KIB),
            band(15, 256 * KIB, MIB),
            band(40, 2 * MIB, 8 * MIB),
            band(15, 8 * MIB, 32 * MIB),
        ],
    },
    Class {
        lifetime: Lifetime::Together { least_blocks: 12, most_blocks: 48 },
        live_percent: 10,
        draws: 20,
        bands: &[
            band(66, 2 * KIB, 16 * KIB),
            band(20, MIB, 4 * MIB),
            band(13, 4 * MIB, 16 * MIB),
            band(1, 16 * MIB, 32 * MIB),
        ],
    },
    Class {
        lifetime: Lifetime::Memoryless,
        live_percent: 5,
        draws: 25,
        bands: &[band(60, 512, 64 * KIB), band(30, 64 * KIB, 2 * MIB), band(10, 2 * MIB, 8 * MIB)],
    },
];

/// A server of a language model that takes the blocks of its KV cache from an allocator.
///
/// A block holds keys and values of 16 tokens in one layer of Llama-3-8B: 16 tokens x 8 KV heads x
/// 128 x 2 B x 2 = 64 KiB (16 tokens are vLLM's default). A request of 256 to 2,048 tokens has 16 to
/// 128 of them and buffers of its own, all freed together. Weights last. Activations of prefill and
/// decode and other short-lived buffers come and go.
pub(super) const INFERENCE_KV: &[Class] = &[
    Class {
        lifetime: Lifetime::Lasting,
        live_percent: 40,
        draws: 2,
        bands: &[
            fixed(20, 8 * KIB),
            band(50, 2 * MIB, 8 * MIB),
            band(25, 8 * MIB, 32 * MIB),
            band(5, 32 * MIB, 64 * MIB),
        ],
    },
    Class {
        lifetime: Lifetime::Together { least_blocks: 16, most_blocks: 128 },
        live_percent: 50,
        draws: 78,
        bands: &[fixed(95, 64 * KIB), band(4, 4 * KIB, 64 * KIB), band(1, 64 * KIB, 512 * KIB)],
    },
    Class {
        lifetime: Lifetime::Memoryless,
        live_percent: 10,
        draws: 20,
        bands: &[
            band(60, 4 * KIB, 256 * KIB),
            band(35, 256 * KIB, 4 * MIB),
            band(5, 4 * MIB, 16 * MIB),
        ],
    },
];

/// Columns of data frames, in the buffers of Apache Arrow's columnar format.
///
/// Batches of 2^10 to 2^22 rows, each of these twelve octaves as often. Of 100 buffers of a batch of
/// n rows 40 hold 4 B values (4n B), 35 hold 8 B values, 15 are validity masks (n/8 B), 10 are
/// characters of strings (16n B); string offsets count among the 4 B values. Added up by octave of
/// bytes, the five below 4 KiB, masks only, as one. Lifetimes are memoryless: intermediate frames of a query go in any order.
pub(super) const DATA_FRAMES: &[Class] = &[Class {
    lifetime: Lifetime::Memoryless,
    live_percent: 100,
    draws: 1,
    bands: &[
        band(75, 128, 4 * KIB),
        band(55, 4 * KIB, 8 * KIB),
        band(90, 8 * KIB, 16 * KIB),
        band(100, 16 * KIB, 32 * KIB),
        band(100, 32 * KIB, 64 * KIB),
        band(100, 64 * KIB, 128 * KIB),
        band(100, 128 * KIB, 256 * KIB),
        band(100, 256 * KIB, 512 * KIB),
        band(85, 512 * KIB, MIB),
        band(85, MIB, 2 * MIB),
        band(85, 2 * MIB, 4 * MIB),
        band(85, 4 * MIB, 8 * MIB),
        band(85, 8 * MIB, 16 * MIB),
        band(45, 16 * MIB, 32 * MIB),
        band(10, 32 * MIB, 64 * MIB),
    ],
}];

/// Every size of a range as often: the case of textbooks (Knuth, "The art of computer programming",
/// volume 1, section 2.5), with memoryless lifetimes.
pub(super) const UNIFORM: &[Class] = &[Class {
    lifetime: Lifetime::Memoryless,
    live_percent: 100,
    draws: 1,
    bands: &[band(1, 16, MIB)],
}];

/// A log-normal distribution with a median of 32 KiB and a standard deviation of two octaves, cut at
/// 3.5 deviations. Weights are the normal distribution's over each octave, of 65,538; within one,
/// sizes are uniform. Lifetimes are memoryless.
pub(super) const LOG_NORMAL: &[Class] = &[Class {
    lifetime: Lifetime::Memoryless,
    live_percent: 100,
    draws: 1,
    bands: &[
        band(73, 256, 512),
        band(319, 512, KIB),
        band(1_085, KIB, 2 * KIB),
        band(2_889, 2 * KIB, 4 * KIB),
        band(6_022, 4 * KIB, 8 * KIB),
        band(9_827, 8 * KIB, 16 * KIB),
        band(12_554, 16 * KIB, 32 * KIB),
        band(12_554, 32 * KIB, 64 * KIB),
        band(9_827, 64 * KIB, 128 * KIB),
        band(6_022, 128 * KIB, 256 * KIB),
        band(2_889, 256 * KIB, 512 * KIB),
        band(1_085, 512 * KIB, MIB),
        band(319, MIB, 2 * MIB),
        band(73, 2 * MIB, 4 * MIB),
    ],
}];

/// A power law with exponent 1 (a Pareto distribution): each octave from 256 B to 16 MiB half as
/// often as the one below, so that all hold as many bytes. Lifetimes are memoryless.
pub(super) const POWER_LAW: &[Class] = &[Class {
    lifetime: Lifetime::Memoryless,
    live_percent: 100,
    draws: 1,
    bands: &[
        band(32_768, 256, 512),
        band(16_384, 512, KIB),
        band(8_192, KIB, 2 * KIB),
        band(4_096, 2 * KIB, 4 * KIB),
        band(2_048, 4 * KIB, 8 * KIB),
        band(1_024, 8 * KIB, 16 * KIB),
        band(512, 16 * KIB, 32 * KIB),
        band(256, 32 * KIB, 64 * KIB),
        band(128, 64 * KIB, 128 * KIB),
        band(64, 128 * KIB, 256 * KIB),
        band(32, 256 * KIB, 512 * KIB),
        band(16, 512 * KIB, MIB),
        band(8, MIB, 2 * MIB),
        band(4, 2 * MIB, 4 * MIB),
        band(2, 4 * MIB, 8 * MIB),
        band(1, 8 * MIB, 16 * MIB),
    ],
}];
