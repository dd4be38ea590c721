//! One row of the summary table, and how its fields are written.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use super::{Flag, Metric};
use crate::record::{Experiment, KernelName, Mechanism, Order, PatternName, Refined, Run, Status};
use crate::stats::{self, CONFIDENCE, Interval};

/// The columns of the summary table, in order.
pub const COLUMNS: [&str; 45] = [
    "run",
    "device",
    "device_uuid",
    "experiment",
    "case",
    "mechanism",
    "kernel",
    "pattern",
    "order",
    "backing",
    "allocator",
    "state",
    "parameters",
    "fragment_bytes",
    "alignment_bytes",
    "footprint_bytes",
    "payload_bytes",
    "touched_bytes",
    "index_bytes",
    "request_bytes",
    "live_blocks",
    "metric",
    "unit",
    "baseline",
    "samples",
    "median",
    "ci_low",
    "ci_high",
    "interval",
    "p90",
    "p99",
    "p999",
    "min",
    "max",
    "verified",
    "status",
    "reason",
    "flags",
    "placements",
    "placement_low",
    "placement_high",
    "processes",
    "process_low",
    "process_high",
    "widening",
];

/// One row: a case and a metric. Fields are the columns, in order; what does not apply is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The run that the row comes from.
    pub run: String,
    /// The device's name; a host's begins with `host`.
    pub device: String,
    /// The device's UUID; none for the host.
    pub device_uuid: Option<String>,
    /// The experiment.
    pub experiment: Experiment,
    /// The case id, with `/arm=…` where the row belongs to an arm.
    pub case: String,
    /// The mechanism that the layout stands for.
    pub mechanism: Mechanism,
    /// The kernel; none where an allocator is measured.
    pub kernel: Option<Refined<KernelName>>,
    /// The pattern that the arm reads; none where an allocator is measured.
    pub pattern: Option<Refined<PatternName>>,
    /// The order in which the arm visits the fragments; none on a stream.
    pub order: Option<Order>,
    /// How physical memory lies under the arena.
    pub backing: Option<String>,
    /// The allocator.
    pub allocator: Option<String>,
    /// The state that the allocator was in.
    pub state: Option<String>,
    /// Further parameters, as `key=value;…`.
    pub parameters: String,
    /// Length of a fragment.
    pub fragment_bytes: Option<u64>,
    /// Alignment of a fragment.
    pub alignment_bytes: Option<u64>,
    /// From the first to the last byte that the arm's layout may use.
    pub footprint_bytes: Option<u64>,
    /// Bytes held by the fragments.
    pub payload_bytes: Option<u64>,
    /// Distinct 128 B lines x 128 that one launch touches, index apart.
    pub touched_bytes: Option<u64>,
    /// Bytes of index that one launch reads.
    pub index_bytes: Option<u64>,
    /// Size of an allocation request.
    pub request_bytes: Option<u64>,
    /// Live blocks.
    pub live_blocks: Option<u64>,
    /// The metric.
    pub metric: Metric,
    /// The unit of the figures.
    pub unit: &'static str,
    /// What a ratio is held against.
    pub baseline: Option<String>,
    /// The figures; all empty where the case has none.
    #[serde(flatten)]
    pub figure: Figure,
    /// Whether every arm was checked, before and after, and nothing differed.
    pub verified: bool,
    /// How the case ended.
    pub status: Status,
    /// Why, where it is not `ok`.
    pub reason: Option<String>,
    /// What to keep in mind about the figures.
    #[serde(serialize_with = "joined")]
    pub flags: BTreeSet<Flag>,
    /// How often the buffers were placed, where they were placed anew.
    pub placements: Option<u64>,
    /// The lowest median of one placement.
    #[serde(serialize_with = "six_digits")]
    pub placement_low: Option<f64>,
    /// The highest median of one placement.
    #[serde(serialize_with = "six_digits")]
    pub placement_high: Option<f64>,
    /// How many processes measured the case; none where it was one. The median is then the mean of
    /// their medians.
    pub processes: Option<u64>,
    /// The lowest median of one process.
    #[serde(serialize_with = "six_digits")]
    pub process_low: Option<f64>,
    /// The highest median of one process.
    #[serde(serialize_with = "six_digits")]
    pub process_high: Option<f64>,
    /// How many times as wide the interval between processes is as the median one within a process.
    #[serde(serialize_with = "six_digits")]
    pub widening: Option<f64>,
}

impl Row {
    /// A row of a run that says nothing yet.
    pub(super) fn of_run(run_id: &str, run: &Run, experiment: Experiment, metric: Metric) -> Row {
        let device = &run.device;
        Row {
            run: run_id.to_owned(),
            device: if device.is_host() { host_name(&device.name) } else { device.name.clone() },
            device_uuid: device.uuid.clone(),
            experiment,
            case: String::new(),
            mechanism: Mechanism::None,
            kernel: None,
            pattern: None,
            order: None,
            backing: None,
            allocator: None,
            state: None,
            parameters: String::new(),
            fragment_bytes: None,
            alignment_bytes: None,
            footprint_bytes: None,
            payload_bytes: None,
            touched_bytes: None,
            index_bytes: None,
            request_bytes: None,
            live_blocks: None,
            metric,
            unit: metric.unit(),
            baseline: None,
            figure: Figure::default(),
            verified: false,
            status: Status::Ok,
            reason: None,
            flags: BTreeSet::new(),
            placements: None,
            placement_low: None,
            placement_high: None,
            processes: None,
            process_low: None,
            process_high: None,
            widening: None,
        }
    }

    /// The kernel as tables write it; empty where there is none.
    pub fn kernel_text(&self) -> String {
        self.kernel.as_ref().map(Refined::to_string).unwrap_or_default()
    }

    /// The pattern as tables write it; empty where there is none.
    pub fn pattern_text(&self) -> String {
        self.pattern.as_ref().map(Refined::to_string).unwrap_or_default()
    }

    /// The case id of the group, without an arm.
    pub fn group_case(&self) -> &str {
        self.case.rsplit_once("/arm=").map_or(&self.case, |(group, _)| group)
    }

    /// The arm that the row belongs to.
    pub fn arm(&self) -> Option<&str> {
        self.case.rsplit_once("/arm=").map(|(_, arm)| arm)
    }

    /// The value of a key of `parameters`.
    pub fn parameter(&self, key: &str) -> Option<&str> {
        let pairs = self.parameters.split(';').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(own, _)| *own == key).map(|(_, value)| value)
    }

    /// The flags as they stand in the table: `;` between them.
    pub fn flags_text(&self) -> String {
        self.flags.iter().map(|flag| flag.as_str()).collect::<Vec<_>>().join(";")
    }
}

/// The figures of a row. A figure is finite or none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// How many samples the figures stand on.
    pub samples: Option<u64>,
    /// The median.
    #[serde(serialize_with = "six_digits")]
    pub median: Option<f64>,
    /// The lower end of the median's 95 % interval.
    #[serde(serialize_with = "six_digits")]
    pub ci_low: Option<f64>,
    /// The upper end of the median's 95 % interval.
    #[serde(serialize_with = "six_digits")]
    pub ci_high: Option<f64>,
    /// What the interval spans: `within` or `between` processes; `exact` where nothing was sampled.
    pub interval: Option<&'static str>,
    /// The 90th percentile, where the samples can bound it.
    #[serde(serialize_with = "six_digits")]
    pub p90: Option<f64>,
    /// The 99th percentile, where the samples can bound it.
    #[serde(serialize_with = "six_digits")]
    pub p99: Option<f64>,
    /// The 99.9th percentile, where the samples can bound it.
    #[serde(serialize_with = "six_digits")]
    pub p999: Option<f64>,
    /// The smallest sample.
    #[serde(serialize_with = "six_digits")]
    pub min: Option<f64>,
    /// The largest sample.
    #[serde(serialize_with = "six_digits")]
    pub max: Option<f64>,
    /// Whether neighbouring samples resemble each other, so that the interval is the block
    /// bootstrap's. Not a column: a flag tells it.
    #[serde(skip)]
    pub is_autocorrelated: bool,
}

impl Figure {
    /// The figures of samples taken within one process, in the order in which they were taken.
    /// Values that are not finite are left out; none where no value is left.
    pub fn within(values: &[f64]) -> Option<Figure> {
        let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let median = stats::median(&finite)?;
        let is_autocorrelated = stats::is_autocorrelated(&finite) == Some(true);
        let interval = match is_autocorrelated {
            true => stats::block_median_interval(&finite),
            false => stats::median_interval(&finite, CONFIDENCE),
        };
        let bounded = |q: f64| {
            stats::quantile_interval(&finite, q, CONFIDENCE)?;
            stats::quantile(&finite, q)
        };
        Some(Figure {
            samples: Some(finite.len() as u64),
            median: Some(median),
            ci_low: interval.map(|interval| interval.low),
            ci_high: interval.map(|interval| interval.high),
            interval: interval.map(|_| "within"),
            p90: bounded(0.9),
            p99: bounded(0.99),
            p999: bounded(0.999),
            min: finite.iter().copied().reduce(f64::min),
            max: finite.iter().copied().reduce(f64::max),
            is_autocorrelated,
        })
    }

    /// The figures of units (processes, placements of buffers) with these medians: their mean, and an
    /// interval between them. What `all` holds stays of the samples of all of them.
    pub fn between(all: &Figure, medians: &[f64]) -> Figure {
        let interval = stats::between_interval(medians);
        let mean = medians.iter().sum::<f64>() / medians.len() as f64;
        Figure {
            samples: all.samples,
            median: Some(mean).filter(|mean| mean.is_finite()),
            ci_low: interval.map(|(_, interval)| interval.low),
            ci_high: interval.map(|(_, interval)| interval.high),
            interval: interval.map(|_| "between"),
            min: all.min,
            max: all.max,
            ..Figure::default()
        }
    }

    /// The median's interval.
    pub fn ci(&self) -> Option<Interval> {
        Some(Interval { low: self.ci_low?, high: self.ci_high? })
    }

    /// Half the interval's width over the median.
    pub fn relative_half_width(&self) -> Option<f64> {
        let Interval { low, high } = self.ci()?;
        let share = (high - low) / 2.0 / self.median?;
        share.is_finite().then_some(share)
    }

    /// Every number that may stand in the row.
    pub fn numbers(&self) -> [Option<f64>; 8] {
        let Figure { median, ci_low, ci_high, p90, p99, p999, min, max, .. } = *self;
        [median, ci_low, ci_high, p90, p99, p999, min, max]
    }
}

/// A host's name is the processor's or none at all; neither may pass for a GPU's.
fn host_name(name: &str) -> String {
    if name.starts_with("host") { name.to_owned() } else { format!("host: {name}") }
}

fn joined<S: Serializer>(flags: &BTreeSet<Flag>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&flags.iter().map(|flag| flag.as_str()).collect::<Vec<_>>().join(";"))
}

/// More digits than a timer resolves would only make two exports of one run hard to compare.
fn six_digits<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value.and_then(|value| format!("{value:.5e}").parse::<f64>().ok()) {
        Some(value) => serializer.serialize_some(&value),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_finite_are_left_out() {
        let figure = Figure::within(&[f64::NAN, 2.0, f64::INFINITY, 1.0, 3.0]).unwrap();
        assert_eq!((figure.samples, figure.median, figure.max), (Some(3), Some(2.0), Some(3.0)));
        assert_eq!(Figure::within(&[f64::NAN]), None);
    }

    #[test]
    fn three_samples_have_a_median_and_no_interval() {
        let figure = Figure::within(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((figure.ci(), figure.interval), (None, None));
    }

    #[test]
    fn rounds_that_depend_on_each_other_widen_the_interval() {
        let slow: Vec<f64> = (0..60).map(|round| f64::from(round % 20)).collect();
        let mixed: Vec<f64> = (0..60).map(|round| f64::from(round * 7 % 20)).collect();
        let [slow, mixed] = [slow, mixed].map(|values| Figure::within(&values).unwrap());
        assert!(slow.is_autocorrelated && !mixed.is_autocorrelated);
        assert_eq!(slow.median, mixed.median);
        assert!(slow.ci_low < mixed.ci_low && mixed.ci_high < slow.ci_high);
    }

    #[test]
    fn a_half_width_is_half_the_interval_over_the_median() {
        let (ci_low, ci_high, median) = (Some(0.75), Some(1.0), Some(0.5));
        let figure = Figure { median, ci_low, ci_high, ..Figure::default() };
        assert_eq!(figure.relative_half_width(), Some(0.25));
        assert_eq!(Figure { median: Some(0.0), ..figure }.relative_half_width(), None);
    }

    #[test]
    fn a_tail_is_told_only_where_the_samples_bound_it() {
        let samples = |n: u32| (1..=n).map(f64::from).collect::<Vec<_>>();
        let tail = |n| Figure::within(&samples(n)).unwrap().p99.is_some();
        assert_eq!((tail(367), tail(368)), (false, true));
    }
}
