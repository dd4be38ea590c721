//! What selftests of intervals, clocks and whole comparisons show.

use super::answer::subject;
use super::grid::Grid;
use super::markdown;
use super::table::aligned;
use super::text::wrapped;
use crate::record::{ClockTest, Coverage, Run};
use crate::summary::{ClockFigures, SameCount};

/// The widest line.
const WIDTH: usize = 110;
/// The widest cell of a text.
const CELL: usize = 40;

/// How often intervals held the truth, as plain text.
pub fn coverage_table(records: &[Coverage]) -> String {
    let lines = coverage_words(records).map(|line| wrapped(&line, WIDTH, "  "));
    format!("{}\n\n{}\n", aligned(&coverages(records), CELL), lines.join("\n"))
}

/// The same as a part of a page.
pub fn coverage_page(records: &[Coverage]) -> String {
    let words = markdown::bullets(coverage_words(records).into_iter());
    format!(
        "# fragbench selftest: intervals\n\n{words}\n\n{}\n",
        markdown::table(&coverages(records))
    )
}

fn coverage_words(records: &[Coverage]) -> [String; 2] {
    let replications = records.iter().map(|record| record.replications).max().unwrap_or(0);
    [
        format!(
            "Each procedure was simulated {replications} times, pilot, stopping and summary included. \
             Both arms are equally fast: a paired interval without 1 in it is a false alarm, and a \
             threshold at the truth would falsely be called reached where the interval lies above it, \
             and missed where it lies below."
        ),
        "Where the assumptions of an interval hold, it has to hold the truth in 93 to 97 % of cases, \
         and one of order statistics in at least 94 %. Elsewhere the flags are what counts."
            .to_owned(),
    ]
}

fn coverages(records: &[Coverage]) -> Grid {
    let body = records.iter().map(|record| {
        let of = |count: u64| {
            let share = 100.0 * count as f64 / record.replications.max(1) as f64;
            format!("{share:.1}")
        };
        let samples = record.samples as f64 / record.replications.max(1) as f64;
        vec![
            record.noise.to_string(),
            record.interval.to_string(),
            of(record.covered),
            of(record.above),
            of(record.below),
            format!("{samples:.0}"),
            of(record.autocorrelated),
            of(record.imprecise),
            of(record.drift),
            if record.assumptions_hold { "hold" } else { "do not hold" }.to_owned(),
        ]
    });
    let head = vec![
        "noise",
        "interval",
        "covered %",
        "above %",
        "below %",
        "samples",
        "autocorrelated %",
        "imprecise %",
        "drift %",
        "assumptions",
    ];
    Grid { head, texts: 2, body: body.collect() }
}

/// A device's timer in words.
pub fn clock_text(run: &Run, test: &ClockTest) -> String {
    clock_words(run, test).map(|line| wrapped(&line, WIDTH, "  ")).join("\n") + "\n"
}

/// The same as a part of a page.
pub fn clock_page(run: &Run, test: &ClockTest) -> String {
    let [subject, words @ ..] = clock_words(run, test);
    format!(
        "# fragbench selftest: the clock\n\n{subject}\n\n{}\n",
        markdown::bullets(words.into_iter())
    )
}

fn clock_words(run: &Run, test: &ClockTest) -> [String; 4] {
    let none = || "unknown".to_owned();
    let figures = ClockFigures::of(test);
    let step = figures.as_ref().and_then(|figures| figures.step_ns);
    let number = |value: Option<f64>| value.map_or_else(none, |value| format!("{value:.0} ns"));
    let short = figures.as_ref().map(|figures| (figures.short_ns.median, figures.host_ns.median));
    let (own, host) = short.unwrap_or_default();
    let agreement = figures.as_ref().and_then(|figures| {
        let (median, ends) = (figures.agreement.median?, figures.agreement.ci()?);
        Some(format!("{median:.5} [{:.5}, {:.5}]", ends.low, ends.high))
    });
    [
        format!("{}.", subject(run)),
        format!(
            "Steps of {}. The shortest launch takes {}; an interval has at least 1 ms.",
            step.map_or_else(none, |step| format!("{step} ns")),
            number(own)
        ),
        format!("The host pays {} for an interval, beside what is in it.", number(host)),
        format!(
            "Long intervals by the device's timer are {} of those by the host's clock.",
            agreement.unwrap_or_else(none)
        ),
    ]
}

/// What is wrong with a clock; none where nothing is. A host's timer is the clock that it would be held
/// against.
pub fn clock_complaint(run: &Run, test: &ClockTest) -> Option<String> {
    if run.device.is_host() {
        return None;
    }
    match ClockFigures::of(test) {
        Some(figures) => figures.complaint(),
        None => Some("the device's timer told nothing: its hold gave up each time".to_owned()),
    }
}

/// How often kernels were found to differ from themselves, as plain text.
pub fn same_table(run: &Run, counts: &[SameCount]) -> String {
    let words = wrapped(SAME_WORDS, WIDTH, "  ");
    format!("{}.\n\n{}\n\n{words}\n", subject(run), aligned(&sames(counts), CELL))
}

/// The same as a part of a page.
pub fn same_page(run: &Run, counts: &[SameCount]) -> String {
    let grid = markdown::table(&sames(counts));
    format!(
        "# fragbench selftest: kernels against themselves\n\n{}.\n\n{grid}\n\n{SAME_WORDS}\n",
        subject(run)
    )
}

const SAME_WORDS: &str = "Each comparison has all that a group of a run has: verification, pilot, fresh \
    rounds under a sentinel, and the interval of the paired ratio, which has to hold 1. Over the same \
    data the interval is that of the rounds; where each arm has data of its own, which are placed anew \
    five times, it is one between placements, and `rounds alone` tells what that of all rounds would \
    have called different.";

fn sames(counts: &[SameCount]) -> Grid {
    let body = counts.iter().map(|count| {
        let width =
            count.half_width.map_or_else(String::new, |width| format!("{:.3}", 100.0 * width));
        vec![
            count.kind.clone(),
            count.comparisons.to_string(),
            count.different.to_string(),
            count.allowed().to_string(),
            count.different_within.to_string(),
            width,
        ]
    });
    let head =
        vec!["data", "comparisons", "called different", "allowed", "rounds alone", "half-width %"];
    Grid { head, texts: 1, body: body.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{IntervalKind, Noise};
    use crate::summary::fixture;

    fn records() -> Vec<Coverage> {
        let record = |noise, interval, assumptions_hold, covered| Coverage {
            noise,
            interval,
            assumptions_hold,
            replications: 5000,
            covered,
            above: 110,
            below: 100,
            without: 0,
            samples: 600_000,
            autocorrelated: 51,
            imprecise: 3,
            drift: 0,
            extra: Default::default(),
        };
        vec![
            record(Noise::Normal, IntervalKind::Bandwidth, true, 4790),
            record(Noise::Drifting, IntervalKind::Paired, false, 3000),
        ]
    }

    fn clock() -> ClockTest {
        ClockTest {
            short_ns: vec![2_048, 2_080, 2_048, 2_144, 2_080, 2_048],
            short_host_ns: vec![12_048; 6],
            long_ns: vec![10_000_000; 8],
            long_host_ns: vec![10_010_000; 8],
            ..ClockTest::default()
        }
    }

    fn counts() -> Vec<SameCount> {
        let count = |kind: &str, different, different_within| SameCount {
            kind: kind.to_owned(),
            comparisons: 200,
            different,
            different_within,
            half_width: Some(0.001),
        };
        vec![count("moved", 9, 60), count("same", 11, 11)]
    }

    #[test]
    fn selftests_of_trust() {
        let run = fixture::gpu_run();
        insta::assert_snapshot!(
            [coverage_table(&records()), clock_text(&run, &clock()), same_table(&run, &counts()),]
                .join("\n---\n")
        );
        insta::assert_snapshot!(
            [coverage_page(&records()), clock_page(&run, &clock()), same_page(&run, &counts()),]
                .join("\n")
        );
    }

    #[test]
    fn a_clock_that_told_nothing_is_complained_of() {
        let run = fixture::gpu_run();
        assert_eq!(clock_complaint(&run, &clock()), None);
        let nothing = ClockTest::default();
        assert_eq!(clock_complaint(&fixture::host_run(), &nothing), None);
        assert!(clock_complaint(&run, &nothing).unwrap().contains("told nothing"));
        assert!(clock_text(&fixture::gpu_run(), &nothing).contains("unknown"));
    }
}
