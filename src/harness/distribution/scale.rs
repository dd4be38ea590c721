//! How sizes are fitted to a heap.

use super::{Band, Class, Distribution};

/// The most that sizes are shifted by, either way: far beyond what any heap calls for.
pub const MAX_SCALE_SHIFT: i32 = 20;

impl Distribution {
    /// Its largest size in bytes, scaled.
    pub fn largest_bytes(self, scale_shift: i32) -> u64 {
        let bands = self.classes().iter().flat_map(|class| class.bands);
        let most = bands.map(|band| band.most_bytes).max().unwrap_or(0);
        scaled(most, scale_shift, self.grain_bytes())
    }

    /// About the size, unscaled, up to which blocks hold half of all live bytes.
    pub fn typical_bytes(self) -> u64 {
        // Parts of a million of all live bytes.
        let parts = |class: &Class, band: &Band| {
            let within = u128::from(band.weight * band.middle_bytes()) * 10_000;
            class.live_percent * (within / u128::from(class.weighted_bytes())) as u64
        };
        let mut bands: Vec<(u64, u64)> = (self.classes().iter())
            .flat_map(|class| class.bands.iter().map(move |band| (band, parts(class, band))))
            .map(|(band, parts)| (band.middle_bytes(), parts))
            .collect();
        bands.sort_unstable();
        let half = bands.iter().map(|(_, parts)| parts).sum::<u64>() / 2;
        let mut before = 0;
        let holds_half = |(_, parts): &&(u64, u64)| {
            before += parts;
            before >= half
        };
        bands.iter().find(holds_half).map_or(0, |(middle_bytes, _)| *middle_bytes)
    }

    /// About how many live blocks hold so many bytes.
    pub fn expected_blocks(self, live_bytes: u64, scale_shift: i32) -> u64 {
        let blocks = |class: &Class| {
            let share_bytes = live_bytes / 100 * class.live_percent;
            share_bytes / scaled(class.mean_bytes(), scale_shift, self.grain_bytes())
        };
        self.classes().iter().map(blocks).sum()
    }

    /// The least shift, not below 0, with which `live_bytes` hold at least `blocks` blocks; or the
    /// largest that leaves them `least_mean_bytes` on average.
    pub fn shift_for_blocks(self, live_bytes: u64, blocks: u64, least_mean_bytes: u64) -> i32 {
        let most = self.most_shift(live_bytes, least_mean_bytes).max(0);
        let is_enough = |shift: &i32| self.expected_blocks(live_bytes, *shift) >= blocks;
        (0..most).find(is_enough).unwrap_or(most)
    }

    /// The shift that brings the [typical](Self::typical_bytes) size between `bytes` and twice as
    /// much; or the largest that leaves blocks `least_mean_bytes` on average.
    pub fn shift_for_typical(self, bytes: u64, live_bytes: u64, least_mean_bytes: u64) -> i32 {
        let log = |bytes: u64| bytes.max(1).ilog2() as i32;
        let shift = log(self.typical_bytes()) - log(bytes);
        let least = -MAX_SCALE_SHIFT;
        shift.clamp(least, self.most_shift(live_bytes, least_mean_bytes))
    }

    /// The largest shift with which a block has `least_mean_bytes` on average.
    fn most_shift(self, live_bytes: u64, least_mean_bytes: u64) -> i32 {
        let is_wide = |shift: &i32| {
            live_bytes / self.expected_blocks(live_bytes, *shift).max(1) >= least_mean_bytes
        };
        (-MAX_SCALE_SHIFT..=MAX_SCALE_SHIFT).rev().find(is_wide).unwrap_or(-MAX_SCALE_SHIFT)
    }
}

/// A size by 2^shift, rounded up to a whole grain.
#[inline]
pub(super) fn scaled(bytes: u64, shift: i32, grain_bytes: u64) -> u64 {
    let bytes = if shift < 0 { bytes << -shift } else { bytes >> shift };
    bytes.max(1).next_multiple_of(grain_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_scaled_until_a_heap_holds_enough_blocks() {
        for distribution in Distribution::ALL {
            for live_bytes in [256 << 20, 2 << 30, 64 << 30u64] {
                let shift = distribution.shift_for_blocks(live_bytes, 100_000, 1024);
                let blocks = distribution.expected_blocks(live_bytes, shift);
                assert!(blocks >= 100_000, "{distribution} {live_bytes}: {blocks}");
                let larger = distribution.expected_blocks(live_bytes, shift - 1);
                assert!(shift == 0 || larger < 100_000, "{distribution}: {larger}");
            }
            // Sizes do not fall to nothing where a heap is small.
            let shift = distribution.shift_for_blocks(1 << 20, 100_000, 1024);
            assert!((1 << 20) / distribution.expected_blocks(1 << 20, shift) >= 1024);
        }
        assert_eq!(Distribution::LogNormal.shift_for_blocks(512 << 30, 100_000, 1024), 0);
        assert_eq!([4, 0, -4].map(|shift| scaled(0x1234, shift, 16)), [0x130, 0x1240, 0x12340]);
        assert_eq!(scaled(16, 20, 4), 4);
    }

    #[test]
    fn typical_sizes_hold_half_of_the_bytes() {
        // Of a log-normal distribution e^(s^2) medians, s = 2 ln 2: 218 KiB, in the octave from 128.
        assert_eq!(Distribution::LogNormal.typical_bytes(), 192 << 10);
        assert_eq!(Distribution::PowerLaw.typical_bytes(), (32 << 10) * 3 / 2);
        for distribution in Distribution::ALL {
            for bytes in [4 << 10, 64 << 10, 2 << 20] {
                let shift = distribution.shift_for_typical(bytes, 64 << 30, 1024);
                let typical = scaled(distribution.typical_bytes(), shift, 16);
                // Small blocks may keep large ones from being made smaller.
                let is_least = distribution.most_shift(64 << 30, 1024) == shift;
                assert!(
                    (bytes..2 * bytes).contains(&typical) || is_least,
                    "{distribution} {typical}"
                );
            }
        }
    }
}
