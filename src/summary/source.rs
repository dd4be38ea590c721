//! Where a row comes from, and the row that every other row begins as.

use std::collections::BTreeSet;

use super::flat::FlatTimes;
use super::{Figure, Flag, Metric, Row, dropped, group_flags};
use crate::measure::known_l2_bytes;
use crate::record::{Arm, Group, HeapFacts, PatternName, Run, Status, size};

/// Where a row comes from.
pub struct Source<'a> {
    pub run_id: &'a str,
    pub run: &'a Run,
    /// The group, without the rounds that were dropped.
    pub group: &'a Group,
    /// Rounds that were dropped because something lowered the clocks in them.
    pub dropped_rounds: u32,
    /// The median SM clock over all samples of the run that have one.
    pub median_sm_khz: Option<f64>,
    /// The arms of the run whose time does not grow with their bytes.
    pub flat_times: &'a FlatTimes,
}

/// What the samples of arms say: the metric, the arm that the row stands on, and the values.
pub struct Finding<'a> {
    pub metric: Metric,
    pub arm: &'a Arm,
    /// What a ratio is held against.
    pub baseline: Option<&'a str>,
    /// The arms whose samples are part of the figure.
    pub parts: Vec<&'a Arm>,
    pub values: Vec<f64>,
    /// The median of each placement of the buffers; none where there was one.
    pub placement_medians: Vec<f64>,
    /// The half-width that was aimed at for this figure.
    pub target_ppm: Option<u32>,
}

impl Source<'_> {
    /// Why the group's samples may not become figures.
    pub fn refusal(&self) -> Option<(Status, String)> {
        let group = self.group;
        match &group.status {
            Status::Ok if group.is_verified() => None,
            Status::Ok => Some((
                Status::Failed,
                "not every arm was verified before and after, without a difference".to_owned(),
            )),
            other => {
                let reason = group.reason.clone().unwrap_or_else(|| "no reason is given".into());
                Some((other.clone(), reason))
            }
        }
    }

    /// A row with figures, or with the reason why no sample is left for them.
    pub fn found(&self, finding: &Finding<'_>) -> Row {
        let mut row = self.of_arm(finding.metric, finding.arm);
        row.baseline = finding.baseline.map(str::to_owned);
        match Figure::within(&finding.values) {
            Some(figure) => {
                for arm in &finding.parts {
                    row.flags.extend(self.flags_of(arm));
                }
                row.flags.extend(group_flags::of_parts(&finding.parts, finding.values.len()));
                row.flags.extend(group_flags::of_figure(&figure, finding.target_ppm));
                row.figure = figure;
                self.place(&mut row, finding);
            }
            None => {
                row.status = Status::Failed;
                row.reason = Some(self.nothing_left());
            }
        }
        row
    }

    /// How far the medians of single placements lie apart, where there was more than one.
    pub fn placement_spread(&self, finding: &Finding<'_>) -> Option<Row> {
        if finding.placement_medians.len() < 2 {
            return None;
        }
        let mut row = self.of_arm(Metric::PlacementSpread, finding.arm);
        self.place(&mut row, finding);
        let median = Figure::within(&finding.values)?.median?;
        let spread = (row.placement_high? - row.placement_low?) / median;
        row.flags.extend(self.flags_of(finding.arm));
        row.figure = Figure {
            samples: row.placements,
            median: Some(spread).filter(|spread| spread.is_finite()),
            ..Figure::default()
        };
        row.figure.median.is_some().then_some(row)
    }

    /// How often the buffers were placed, and the range of the placements' medians.
    fn place(&self, row: &mut Row, finding: &Finding<'_>) {
        let medians = &finding.placement_medians;
        let placements = self.group.placements.len().max(medians.len()) as u64;
        row.placements = Some(placements).filter(|placements| *placements > 0);
        row.placement_low = medians.iter().copied().reduce(f64::min);
        row.placement_high = medians.iter().copied().reduce(f64::max);
    }

    fn nothing_left(&self) -> String {
        match self.dropped_rounds {
            0 => "no usable sample is left".to_owned(),
            rounds => format!(
                "no usable sample is left: {rounds} rounds were dropped, because heat or hardware \
                 lowered the clocks in them"
            ),
        }
    }

    /// The one row of a group without figures. It carries the case id that the figures would have,
    /// so that it lies beside them where runs are compared.
    pub fn without_figures(&self, metric: Metric, arm: Option<&str>, why: (Status, String)) -> Row {
        let mut row = self.row(metric, arm);
        (row.status, row.reason) = (why.0, Some(why.1));
        row
    }

    pub(super) fn of_arm(&self, metric: Metric, arm: &Arm) -> Row {
        let mut row = self.row(metric, Some(&arm.name));
        row.kernel = Some(arm.kernel.clone());
        row.pattern = Some(arm.pattern.clone());
        row.order = arm.order.clone();
        if let Some(backing) = &arm.backing {
            row.backing = Some(backing.clone());
        }
        // Without gaps a layout ends where its payload ends, however wide the scattered one is.
        if arm.pattern.base == PatternName::Contiguous {
            row.footprint_bytes = row.payload_bytes;
        }
        row.touched_bytes = Some(arm.touched_bytes);
        row.index_bytes = Some(arm.index_bytes);
        row
    }

    pub(super) fn row(&self, metric: Metric, arm: Option<&str>) -> Row {
        let group = self.group;
        let arm = arm.map(|name| format!("/arm={name}")).unwrap_or_default();
        Row {
            case: format!("{}{arm}", group.case),
            mechanism: group.mechanism.clone(),
            kernel: Some(group.kernel.clone()),
            pattern: Some(group.pattern.clone()),
            backing: Some("plain".to_owned()),
            allocator: group.heap.as_ref().map(|heap| heap.policy.clone()),
            state: group.heap.as_ref().map(state_of),
            parameters: self.parameters(),
            fragment_bytes: group.fragment_bytes,
            alignment_bytes: group.alignment_bytes,
            footprint_bytes: Some(group.footprint_bytes),
            payload_bytes: Some(group.payload_bytes),
            live_blocks: group.heap.as_ref().map(|heap| heap.live_blocks),
            verified: group.is_verified(),
            status: group.status.clone(),
            flags: self.flags(),
            ..Row::of_run(self.run_id, self.run, group.experiment.clone(), metric)
        }
    }

    fn flags_of(&self, arm: &Arm) -> BTreeSet<Flag> {
        let mut flags = group_flags::of_arm(&self.run.device, self.group, arm);
        flags.extend(self.flat_times.has(self.group, arm).then_some(Flag::FlatTime));
        flags.extend(dropped::is_slow(arm, self.median_sm_khz).then_some(Flag::LowClock));
        flags
    }

    fn flags(&self) -> BTreeSet<Flag> {
        let mut flags = group_flags::of_group(&self.run.device, self.group);
        flags.extend((self.dropped_rounds > 0).then_some(Flag::DroppedRounds));
        flags
    }

    fn parameters(&self) -> String {
        let device = &self.run.device;
        let l2 = match known_l2_bytes(device) {
            None => Some("unknown".to_owned()),
            Some(_) => self.group.l2_evicted.then(|| "evicted".to_owned()),
        };
        let index = self.group.layout.as_ref().map(|layout| layout.index_entry_bytes);
        let heap = self.group.heap.as_ref();
        let heap = |text: fn(&HeapFacts) -> String| heap.map(text);
        [
            ("sizes", heap(|heap| heap.sizes.clone())),
            ("occupancy_percent", heap(|heap| heap.occupancy_percent.to_string())),
            ("median_hole_bytes", heap(|heap| heap.median_hole_bytes.to_string())),
            ("stop", heap(|heap| heap.stop.clone())),
            ("layout_hash", heap(|heap| heap.layout_hash.clone())),
            ("index_entry_bytes", index.map(|bytes| bytes.to_string())),
            ("l2", l2),
            ("dropped_rounds", (self.dropped_rounds > 0).then(|| self.dropped_rounds.to_string())),
            ("page_bytes", device.page_bytes.map(|bytes| bytes.to_string())),
            ("huge_pages", device.huge_pages.clone()),
            ("numa_node", device.numa_node.map(|node| node.to_string())),
            ("threads", device.threads.map(|threads| threads.to_string())),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value?)))
        .collect::<Vec<_>>()
        .join(";")
    }
}

/// The state of a heap as tables name it: by the median hole that was asked for.
fn state_of(heap: &HeapFacts) -> String {
    format!("hole={}", size::exact(heap.hole_bytes))
}
