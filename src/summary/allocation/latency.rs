//! How long calls take, and how many times as long as in the base state.

use super::{Source, with_parameters};
use crate::record::{Allocation, Run};
use crate::stats::{self, CONFIDENCE};
use crate::summary::{Figure, Metric, Row, group_flags};

/// The state that others are held against.
const BASE: &str = "base";

/// Each call, its metric and that of its ratio.
pub(super) const CALLS: [(&str, Metric, Metric); 2] = [
    ("allocate", Metric::AllocLatency, Metric::AllocLatencyRatio),
    ("free", Metric::FreeLatency, Metric::FreeLatencyRatio),
];

/// The calls of the driver that together make a block.
const STEPS: [&str; 3] = ["cu_mem_create", "cu_mem_map", "cu_mem_set_access"];

pub(super) fn rows(source: &Source<'_>) -> Vec<Row> {
    let of_call = |(call, arm, metric): (&str, Option<&str>, Metric)| {
        let values = values(source.allocation, call)?;
        let figure = Figure::within(&values)?;
        let heaps: Vec<String> =
            stats::modes(&values).iter().map(|ns| format!("{ns:.0}")).collect();
        let heaps = (heaps.len() > 1).then(|| heaps.join(","));
        let mut row = with_parameters(described(source, metric, arm), [("heaps_ns", heaps)]);
        row.flags.extend(group_flags::of_figure(&figure, None));
        row.figure = figure;
        Some(row)
    };
    let whole = CALLS.into_iter().map(|(call, metric, _)| (call, None, metric));
    let steps = STEPS.into_iter().map(|call| (call, Some(call), Metric::MapTime));
    whole.chain(steps).filter_map(of_call).collect()
}

fn described(source: &Source<'_>, metric: Metric, arm: Option<&str>) -> Row {
    let state = source.allocation.state.as_ref();
    let number = |of: fn(&crate::record::State) -> u64| state.map(|state| of(state).to_string());
    let more = [
        ("timer_ns", number(|state| state.timer_ns)),
        ("churn_calls", number(|state| state.churn_calls).filter(|calls| calls != "0")),
        ("churn_ns", number(|state| state.churn_ns).filter(|ns| ns != "0")),
        ("holes", number(|state| state.holes)),
        ("hole_bytes", number(|state| state.hole_bytes)),
        ("free_bytes", state.and_then(|state| state.free_bytes).map(|bytes| bytes.to_string())),
    ];
    with_parameters(source.row(metric, arm), more)
}

/// The samples of a call, without what reading the clock takes.
pub(super) fn values(allocation: &Allocation, call: &str) -> Option<Vec<f64>> {
    let timer_ns = allocation.state.as_ref().map_or(0, |state| state.timer_ns);
    let calls = allocation.calls.iter().find(|calls| calls.call == call)?;
    Some(calls.ns.iter().map(|ns| ns.saturating_sub(timer_ns) as f64).collect())
}

/// For each case in another state than the base, of which the base was measured too: how many times
/// as long its calls take. Each with the process that measured it.
pub fn ratios(run_id: &str, run: &Run, allocations: &[Allocation]) -> Vec<(u32, Row)> {
    let is_base = |one: &&Allocation| one.asked_state.as_deref() == Some(BASE);
    let base_of = |of: &Allocation| {
        let alike = |one: &&Allocation| {
            one.allocator == of.allocator
                && one.request_bytes == of.request_bytes
                && one.process == of.process
                && one.memory == of.memory
        };
        allocations.iter().filter(is_base).find(alike)
    };
    let others = allocations.iter().filter(|one| one.asked_state.is_some() && !is_base(one));
    let of_case = |allocation: &Allocation| {
        let base = base_of(allocation)?;
        let source = Source { run_id, run, allocation };
        let of_call = |(call, _, metric): (&str, Metric, Metric)| {
            let figure = ratio(&values(allocation, call)?, &values(base, call)?)?;
            let mut row = described(&source, metric, None);
            row.baseline = Some(BASE.to_owned());
            row.flags.extend(group_flags::of_figure(&figure, None));
            row.figure = figure;
            Some((allocation.process, row))
        };
        Some(CALLS.into_iter().filter_map(of_call).collect::<Vec<_>>())
    };
    others.filter_map(of_case).flatten().collect()
}

/// The ratio of the medians of samples that were taken apart. Its ends are those of the two medians'
/// intervals, each wide enough that both hold with the asked confidence (Bonferroni): wider than it
/// had to be, and true for any distribution.
fn ratio(samples: &[f64], base: &[f64]) -> Option<Figure> {
    let confidence = 1.0 - (1.0 - CONFIDENCE) / 2.0;
    let (over, under) = (stats::median(samples)?, stats::median(base)?);
    let intervals =
        stats::median_interval(samples, confidence).zip(stats::median_interval(base, confidence));
    let usable = |value: f64| Some(value).filter(|value| value.is_finite());
    Some(Figure {
        samples: Some(samples.len().min(base.len()) as u64),
        median: usable(over / under),
        ci_low: intervals.and_then(|(over, under)| usable(over.low / under.high)),
        ci_high: intervals.and_then(|(over, under)| usable(over.high / under.low)),
        interval: intervals.map(|_| "within"),
        is_autocorrelated: [samples, base]
            .iter()
            .any(|values| stats::is_autocorrelated(values) == Some(true)),
        ..Figure::default()
    })
}
