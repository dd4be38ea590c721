//! How the times of calls are distributed: a bar for each bin.

use super::allocators::us;
use super::text::clean;
use crate::summary::{Histogram, Metric};

/// The longest bar, in characters.
const WIDTH: usize = 50;

/// From so many samples on a histogram shows more than its quantiles do.
const LEAST_SAMPLES: u64 = 1_000;

/// Those that are worth a look: of many samples, or with samples in several places.
pub fn distributions(histograms: &[Histogram]) -> Vec<String> {
    let count = |one: &Histogram| one.bins.iter().map(|(.., count)| count).sum::<u64>();
    let is_shown = |one: &&Histogram| count(one) >= LEAST_SAMPLES || one.heaps.len() > 1;
    histograms.iter().filter(is_shown).map(bars).collect()
}

fn bars(histogram: &Histogram) -> String {
    let call = match histogram.metric {
        Metric::FreeLatency => "free",
        _ => "allocate",
    };
    let process = match histogram.process {
        0 => String::new(),
        process => format!(", process {process}"),
    };
    let most = histogram.bins.iter().map(|(.., count)| *count).max().unwrap_or(1).max(1);
    let line = |&(low, high, count): &(f64, f64, u64)| {
        // A bin that holds anything is seen.
        let length = (count as usize * WIDTH).div_ceil(most as usize);
        format!("{:>8} .. {:>8} us {:>7} {}", us(low), us(high), count, "#".repeat(length))
    };
    let lines: Vec<String> = histogram.bins.iter().map(line).collect();
    let bars: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    format!("{}, {call}{process}\n{}\n", clean(&histogram.case), bars.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: &[u64]) -> Histogram {
        let bins = (0..)
            .zip(counts)
            .map(|(n, count)| (1000.0 * f64::from(n + 1), 1000.0 * f64::from(n + 2), *count));
        Histogram {
            case: "latency/allocator=cu_mem_alloc".to_owned(),
            process: 0,
            metric: Metric::FreeLatency,
            bins: bins.collect(),
            heaps: vec![1500.0],
        }
    }

    #[test]
    fn bars_are_as_long_as_their_counts() {
        let text = distributions(&[histogram(&[1000, 0, 1, 500])]).remove(0);
        let bars: Vec<usize> = text.lines().skip(1).map(|line| line.matches('#').count()).collect();
        assert_eq!(bars, [50, 0, 1, 25]);
        assert!(text.starts_with("latency/allocator=cu_mem_alloc, free\n"), "{text}");
    }

    #[test]
    fn few_samples_are_shown_only_where_they_heap_up_twice() {
        let few = histogram(&[10, 3]);
        assert!(distributions(std::slice::from_ref(&few)).is_empty());
        assert_eq!(distributions(&[Histogram { heaps: vec![1.0, 2.0], ..few }]).len(), 1);
    }
}
