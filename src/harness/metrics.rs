//! Metrics of fragmentation: pure functions of lengths in bytes, in any order.

/// The byte-weighted median of lengths: the smallest such that ranges no longer than it hold at
/// least half of all bytes. None without a byte.
///
/// Half of what is free lies in holes of at most that length, which a plain median, of numbers of
/// holes, would not tell: a thousand holes of 256 B weigh less than one of 1 MiB.
pub fn median_bytes(lengths: &[u64]) -> Option<u64> {
    let bins = bins(lengths);
    let total: u128 = bins.iter().sum();
    let half = total.div_ceil(2);
    let mut before = 0;
    let octave = bins.iter().position(|&bytes| {
        before += bytes;
        before >= half && before > 0
    })?;
    before -= bins[octave];
    let is_within = |length: &&u64| length.checked_ilog2() == Some(octave as u32);
    let mut within: Vec<u64> = lengths.iter().filter(is_within).copied().collect();
    within.sort_unstable();
    within.into_iter().find(|&length| {
        before += u128::from(length);
        before >= half
    })
}

/// The largest length; none of none.
pub fn largest_bytes(lengths: &[u64]) -> Option<u64> {
    lengths.iter().copied().max()
}

/// External fragmentation: 1 - largest / total of an allocator's free ranges, as XLA's BFC allocator
/// tells it (`GetFragmentation`). 0 where one range holds all; none where nothing is free.
pub fn external_fragmentation(free: &[u64]) -> Option<f64> {
    let largest = largest_bytes(free).filter(|&bytes| bytes > 0)?;
    Some(1.0 - largest as f64 / total_bytes(free) as f64)
}

/// The quadratic measure: the sum of squares of free ranges by the square of their sum, as PyTorch's
/// `MemoryViz.js` tells it. 1 where one range holds all, near 0 where many do; none where nothing is
/// free.
pub fn quadratic(free: &[u64]) -> Option<f64> {
    let total = total_bytes(free) as f64;
    let squares: f64 = free.iter().map(|&bytes| (bytes as f64).powi(2)).sum();
    (total > 0.0).then(|| squares / (total * total))
}

/// Internal fragmentation: the share of what live blocks take that was not requested. None without
/// a byte taken.
pub fn internal_fragmentation(requested_bytes: u64, rounded_bytes: u64) -> Option<f64> {
    let unused = rounded_bytes.saturating_sub(requested_bytes);
    (rounded_bytes > 0).then(|| unused as f64 / rounded_bytes as f64)
}

/// Ranges of one octave of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The least length, a power of two; the next power of two is no longer within.
    pub least_bytes: u64,
    /// How many ranges there are.
    pub ranges: u64,
    /// Bytes that they hold.
    pub bytes: u64,
}

/// How lengths are distributed over powers of two, from the shortest to the longest that occurs;
/// octaves between them without a range are there. Lengths of 0 are left out.
pub fn histogram(lengths: &[u64]) -> Vec<Bin> {
    let mut bins: Vec<Bin> =
        (0..u64::BITS).map(|log| Bin { least_bytes: 1 << log, ranges: 0, bytes: 0 }).collect();
    for &length in lengths.iter().filter(|length| **length > 0) {
        let bin = &mut bins[length.ilog2() as usize];
        bin.ranges += 1;
        bin.bytes = bin.bytes.saturating_add(length);
    }
    let occurs = |bin: &Bin| bin.ranges > 0;
    let end = bins.iter().rposition(occurs).map_or(0, |last| last + 1);
    let first = bins.iter().position(occurs).unwrap_or(0);
    bins[first..end].to_vec()
}

fn total_bytes(lengths: &[u64]) -> u128 {
    lengths.iter().map(|&bytes| u128::from(bytes)).sum()
}

/// Bytes by octave of length.
fn bins(lengths: &[u64]) -> [u128; u64::BITS as usize] {
    let mut bins = [0; u64::BITS as usize];
    for &length in lengths.iter().filter(|length| **length > 0) {
        bins[length.ilog2() as usize] += u128::from(length);
    }
    bins
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_median_weights_by_bytes() {
        assert_eq!(median_bytes(&[]), None);
        assert_eq!(median_bytes(&[0, 0]), None);
        assert_eq!(median_bytes(&[7]), Some(7));
        // A thousand short holes hold less than half beside a long one.
        let mut holes = vec![256; 1000];
        holes.push(1 << 20);
        assert_eq!(median_bytes(&holes), Some(1 << 20));
        holes.extend(vec![256; 4000]);
        assert_eq!(median_bytes(&holes), Some(256));
        // Exactly half is enough; lengths of one octave are told apart.
        assert_eq!(median_bytes(&[10, 11, 21]), Some(11));
        assert_eq!(median_bytes(&[15, 8, 9]), Some(9));
        assert_eq!(median_bytes(&[1, 2]), Some(2));
    }

    #[test]
    fn fragmentation_of_holes_that_can_be_counted_by_hand() {
        assert_eq!(external_fragmentation(&[25, 75]), Some(0.25));
        assert_eq!(external_fragmentation(&[64]), Some(0.0));
        assert_eq!(external_fragmentation(&[]), None);
        assert_eq!(external_fragmentation(&[0]), None);
        assert_eq!(quadratic(&[1, 1, 2]), Some(6.0 / 16.0));
        assert_eq!(quadratic(&[64]), Some(1.0));
        assert_eq!(quadratic(&[]), None);
        assert_eq!(internal_fragmentation(96, 128), Some(0.25));
        assert_eq!(internal_fragmentation(0, 0), None);
        assert_eq!(largest_bytes(&[3, 9, 4]), Some(9));
    }

    #[test]
    fn the_histogram_goes_from_the_shortest_to_the_longest() {
        let bin = |least_bytes, ranges, bytes| Bin { least_bytes, ranges, bytes };
        let expected = [bin(4, 2, 11), bin(8, 0, 0), bin(16, 1, 16)];
        assert_eq!(histogram(&[16, 0, 4, 7]), expected);
        assert_eq!(histogram(&[]), []);
        assert_eq!(histogram(&[u64::MAX]), [bin(1 << 63, 1, u64::MAX)]);
    }

    proptest! {
        #[test]
        fn half_of_the_bytes_lie_on_each_side(
            lengths in prop::collection::vec(0..100_000u64, 1..200),
        ) {
            let total: u64 = lengths.iter().sum();
            let within = |most: u64| lengths.iter().filter(|l| **l <= most).sum::<u64>();
            match median_bytes(&lengths) {
                Some(median) => {
                    prop_assert!(lengths.contains(&median));
                    prop_assert!(2 * within(median) >= total);
                    prop_assert!(2 * within(median - 1) < total);
                }
                None => prop_assert_eq!(total, 0),
            }
        }

        #[test]
        fn measures_stay_within_their_bounds(
            lengths in prop::collection::vec(1..1_000_000u64, 1..200),
        ) {
            let external = external_fragmentation(&lengths).unwrap();
            let quadratic = quadratic(&lengths).unwrap();
            prop_assert!((0.0..1.0).contains(&external));
            prop_assert!(quadratic > 0.0 && quadratic <= 1.0 + 1e-12);
            // One long range bounds the squares from above and from below.
            let largest = 1.0 - external;
            prop_assert!(quadratic <= largest + 1e-12 && quadratic + 1e-12 >= largest * largest);
            let bins = histogram(&lengths);
            prop_assert_eq!(bins.iter().map(|bin| bin.bytes).sum::<u64>(), lengths.iter().sum::<u64>());
            prop_assert_eq!(bins.iter().map(|bin| bin.ranges).sum::<u64>(), lengths.len() as u64);
        }
    }
}
