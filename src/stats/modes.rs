//! Where values heap up: a distribution with two heaps is badly told by its median.

/// Bins of a doubling.
const BINS: f64 = 8.0;

/// Fewer values make no heap.
const LEAST_VALUES: usize = 60;

/// A heap holds at least this share of all values.
const LEAST_SHARE: f64 = 0.05;

/// Between two heaps the histogram falls to at most this share of the lower one's height.
const VALLEY: f64 = 0.5;

/// The heaps of positive values, lowest first, each by the median of what lies in it: one where they
/// lie around one place, none where too few are there to say.
///
/// Values are counted in bins of an eighth of a doubling, smoothed over neighbours (1, 2, 1). Two peaks
/// are two heaps where a valley lies between them, at most half as high as the lower, and each side of
/// it holds 5 % of all values. What is less apart, or rarer, is not told: it is no test.
pub fn modes(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| *value > 0.0).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let (Some(&first), true) = (sorted.first(), sorted.len() >= LEAST_VALUES) else {
        return Vec::new();
    };
    let bin = |value: f64| ((value / first).log2() * BINS) as usize;
    let bins = bin(sorted[sorted.len() - 1]) + 1;
    let mut counts = vec![0.0; bins + 2];
    for &value in &sorted {
        // One empty bin before the first, and one behind the last.
        counts[bin(value) + 1] += 1.0;
    }
    let at = |i: usize| counts.get(i).copied().unwrap_or(0.0);
    let smooth: Vec<f64> =
        (0..counts.len()).map(|i| at(i.wrapping_sub(1)) + 2.0 * at(i) + at(i + 1)).collect();
    let least = (LEAST_SHARE * sorted.len() as f64) as usize;
    let (mut heaps, mut rest, mut from) = (Vec::new(), &sorted[..], 0);
    while let Some(cut) = valley(&smooth, from) {
        from = cut + 1;
        let (heap, behind) = rest.split_at(rest.partition_point(|&value| bin(value) < cut));
        if heap.len() >= least && behind.len() >= least {
            heaps.push(heap);
            rest = behind;
        }
    }
    heaps.push(rest);
    heaps.into_iter().map(|heap| heap[heap.len() / 2]).collect()
}

/// The lowest bin of the first valley from a bin on: behind a peak, and before one as high as it
/// counts.
fn valley(smooth: &[f64], from: usize) -> Option<usize> {
    let (mut peak, mut lowest, mut cut) = (0.0_f64, f64::INFINITY, from);
    for (i, &height) in smooth.iter().enumerate().skip(from) {
        if lowest <= VALLEY * peak.min(height) && height > 0.0 {
            return Some(cut);
        }
        if height > peak {
            (peak, lowest, cut) = (height, f64::INFINITY, i);
        } else if height < lowest {
            (lowest, cut) = (height, i);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::simulate::Generator;

    /// Log-normal values around a median.
    fn around(median: f64, spread: f64, count: u64, seed: u64) -> Vec<f64> {
        let mut generator = Generator::new(seed);
        (0..count).map(|_| median * (spread * generator.normal()).exp()).collect()
    }

    #[test]
    fn one_heap_is_one_whatever_its_width() {
        for (seed, spread) in (0..20).flat_map(|seed| [0.01, 0.05, 0.2].map(|s| (seed, s))) {
            for count in [100, 400, 10_000] {
                let found = modes(&around(50_000.0, spread, count, seed));
                assert_eq!(found.len(), 1, "{spread} {count} {seed}: {found:?}");
                assert!((found[0] / 50_000.0 - 1.0).abs() < 0.1);
            }
        }
    }

    #[test]
    fn two_heaps_are_two_and_a_rare_one_is_none() {
        for seed in 0..20 {
            let two = [around(50.0, 0.05, 300, seed), around(150.0, 0.05, 100, seed + 50)].concat();
            let found = modes(&two);
            assert_eq!(found.len(), 2, "{found:?}");
            assert!((found[0] / 50.0 - 1.0).abs() < 0.05 && (found[1] / 150.0 - 1.0).abs() < 0.05);
            let rare = [around(50.0, 0.05, 400, seed), around(500.0, 0.05, 10, seed + 50)].concat();
            assert_eq!(modes(&rare).len(), 1);
        }
        let three = [30.0, 90.0, 400.0].map(|median| around(median, 0.05, 200, median as u64));
        assert_eq!(modes(&three.concat()).len(), 3);
    }

    #[test]
    fn few_values_and_odd_ones_say_nothing() {
        assert!(modes(&around(50.0, 0.05, 59, 1)).is_empty());
        assert!(modes(&[]).is_empty());
        assert!(modes(&[0.0; 100]).is_empty());
        assert_eq!(modes(&[7.0; 100]), [7.0]);
    }
}
