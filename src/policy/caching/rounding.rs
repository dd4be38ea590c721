//! From a request to a block, and from a block to a segment.

use super::config::Config;

/// Every block is a multiple of so many bytes (`kMinBlockSize`).
pub const MIN_BLOCK_BYTES: u64 = 512;

/// The largest block of the small pool in bytes (`kSmallSize`).
pub const SMALL_BLOCK_BYTES: u64 = 1 << 20;

/// A segment of the small pool, and the page of its expandable ones, in bytes (`kSmallBuffer`).
pub const SMALL_SEGMENT_BYTES: u64 = 2 << 20;

/// From so many bytes on a block gets a segment of its own size (`kMinLargeAlloc`).
pub const MIN_LARGE_BYTES: u64 = 10 << 20;

/// Segments of the large pool that are made to measure are multiples of so many bytes
/// (`kRoundLarge`).
pub const ROUND_LARGE_BYTES: u64 = 2 << 20;

/// Requests of so many bytes and more are refused, as PyTorch refuses them.
pub const LIMIT_BYTES: u64 = 1 << 60;

/// For how many ranges of sizes `roundup_power2_divisions` has a number: a range for each power of
/// two from 1 MiB to 32 GiB.
pub const INTERVALS: usize = 16;

impl Config {
    /// Bytes of the block that a request of `bytes` gets (`round_size`).
    ///
    /// Defined below [`LIMIT_BYTES`].
    pub fn round_size(&self, bytes: u64) -> u64 {
        if bytes < MIN_BLOCK_BYTES {
            return MIN_BLOCK_BYTES;
        }
        let divisions = self.divisions(bytes);
        // With more divisions a step would be less than a block.
        if divisions > 1 && bytes.div_ceil(MIN_BLOCK_BYTES) > divisions {
            return round_to_division(bytes, divisions);
        }
        bytes.next_multiple_of(MIN_BLOCK_BYTES)
    }

    /// Bytes of the segment that is allocated for a block of `rounded_bytes`
    /// (`get_allocation_size`); segments that expand are mapped by the page instead.
    pub fn allocation_size(&self, rounded_bytes: u64) -> u64 {
        if rounded_bytes <= SMALL_BLOCK_BYTES {
            SMALL_SEGMENT_BYTES
        } else if rounded_bytes < MIN_LARGE_BYTES {
            self.large_segment_bytes
        } else {
            rounded_bytes.next_multiple_of(ROUND_LARGE_BYTES)
        }
    }

    fn divisions(&self, bytes: u64) -> u64 {
        let interval = bytes.ilog2().saturating_sub(SMALL_BLOCK_BYTES.ilog2()) as usize;
        self.roundup_power2_divisions[interval.min(INTERVALS - 1)]
    }
}

/// Up to the next of the `divisions` equal steps between the powers of two around it.
fn round_to_division(bytes: u64, divisions: u64) -> u64 {
    let floor = 1 << bytes.ilog2();
    bytes.next_multiple_of(floor >> divisions.ilog2())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn divided(divisions: u64) -> Config {
        Config { roundup_power2_divisions: [divisions; INTERVALS], ..Config::default() }
    }

    /// Request, block, and the segment that a new one gets.
    const SIZES: [(u64, u64, u64); 16] = [
        (0, 512, 2_097_152),
        (1, 512, 2_097_152),
        (511, 512, 2_097_152),
        (512, 512, 2_097_152),
        (513, 1_024, 2_097_152),
        (1_000, 1_024, 2_097_152),
        (1_048_064, 1_048_064, 2_097_152),
        (1_048_065, 1_048_576, 2_097_152),
        (1_048_576, 1_048_576, 2_097_152),
        (1_048_577, 1_049_088, 20_971_520),
        (10_485_248, 10_485_248, 20_971_520),
        (10_485_249, 10_485_760, 10_485_760),
        (10_485_760, 10_485_760, 10_485_760),
        (11_534_336, 11_534_336, 12_582_912),
        (20_971_521, 20_972_032, 23_068_672),
        (100_000_000, 100_000_256, 100_663_296),
    ];

    #[test]
    fn sizes_are_those_of_pytorch() {
        let config = Config::default();
        for (requested, rounded, segment) in SIZES {
            assert_eq!(config.round_size(requested), rounded, "{requested}");
            assert_eq!(config.allocation_size(rounded), segment, "{requested}");
        }
        assert_eq!(config.round_size(50_000_000), 50_000_384);
        assert_eq!(config.allocation_size(50_000_384), 50_331_648);
        let config: Config = "large_segment_size_mb:12".parse().unwrap();
        assert_eq!(config.allocation_size(1_049_088), 12 << 20);
        assert_eq!(config.allocation_size(1_048_576), 2 << 20);
    }

    #[test]
    fn divided_sizes_are_those_of_pytorch() {
        for (requested, rounded) in [
            (1_200, [1_536, 1_536, 1_536]),
            (3_000, [3_072, 3_072, 3_072]),
            (5_000, [6_144, 5_120, 5_120]),
            (1_200_000, [1_572_864, 1_310_720, 1_310_720]),
            (3_000_000, [3_145_728, 3_145_728, 3_145_728]),
            (100_000_000, [100_663_296, 100_663_296, 100_663_296]),
        ] {
            for (divisions, rounded) in [2, 4, 8].into_iter().zip(rounded) {
                assert_eq!(divided(divisions).round_size(requested), rounded, "{requested}");
            }
        }
        // The step alone, of which the whole rounding makes 1,536 where it is below a block.
        assert_eq!(round_to_division(1_200, 4), 1_280);
        assert_eq!(divided(1).round_size(100_000_000), 100_000_256);
    }

    #[test]
    fn each_interval_has_its_divisions() {
        let config: Config = "roundup_power2_divisions:[64:8,256:4,1024:2,>:1]".parse().unwrap();
        let odd = |mib: u64| (mib << 20) + 1;
        for (mib, rounded_mib) in [(32, 36), (64, 72), (256, 320), (512, 512), (1024, 1536)] {
            // 512 lies between two boundaries and divides nothing.
            let plain = u64::from(mib == 512) * 512;
            assert_eq!(config.round_size(odd(mib)), (rounded_mib << 20) + plain, "{mib} MiB");
        }
        assert_eq!(config.round_size(odd(2048)), odd(2048) + 511);
        // Requests above 64 GiB take the last interval.
        assert_eq!(divided(2).round_size((100 << 30) + 1), 128 << 30);
    }

    proptest! {
        #[test]
        fn blocks_hold_their_requests(
            shift in 0..60u32,
            more in any::<u64>(),
            divisions in prop::sample::select(vec![0u64, 1, 2, 4, 8, 1 << 20, 1 << 63]),
        ) {
            let requested = (1u64 << shift) + more % (1 << shift);
            let config = divided(divisions);
            let rounded = config.round_size(requested);
            prop_assert!(rounded >= requested);
            prop_assert!(rounded.is_multiple_of(MIN_BLOCK_BYTES));
            prop_assert!(rounded <= requested.next_power_of_two().max(MIN_BLOCK_BYTES));
            prop_assert_eq!(config.round_size(rounded), rounded);
            prop_assert!(config.allocation_size(rounded) >= rounded);
        }
    }
}
