//! Rows of a case that several processes measured.

use std::collections::BTreeMap;

use super::{Figure, Flag, Metric, Row};
use crate::record::Status;
use crate::stats;

/// One row for each that the processes have in common: its figure is the mean of their medians, and
/// its interval lies between processes. What a process did not verify has no figure.
pub fn merged(processes: Vec<Vec<Row>>, target_ppm: Option<u32>) -> Vec<Row> {
    for (process, rows) in processes.iter().enumerate() {
        if let [row] = &rows[..]
            && row.status == Status::Failed
        {
            let reason = row.reason.as_deref().unwrap_or("no reason is given");
            let reason = Some(format!("in process {process}: {reason}"));
            return vec![Row { reason, ..row.clone() }];
        }
    }
    let measured = processes.iter().flatten().any(|row| row.status == Status::Ok);
    // A process that had to skip the case says nothing where others measured it.
    let counts = |row: &Row| !measured || row.status != Status::Skipped;
    let mut order = Vec::new();
    let mut alike: BTreeMap<(String, Metric), Vec<Row>> = BTreeMap::new();
    for row in processes.into_iter().flatten().filter(counts) {
        let key = (row.case.clone(), row.metric);
        let known = alike.entry(key.clone()).or_default();
        if known.is_empty() {
            order.push(key);
        }
        known.push(row);
    }
    let alike = order.into_iter().filter_map(|key| alike.remove(&key));
    alike.map(|rows| one(rows, target_ppm)).collect()
}

fn one(mut rows: Vec<Row>, target_ppm: Option<u32>) -> Row {
    if let Some(odd) = rows.iter().position(|row| row.status != Status::Ok) {
        return rows.swap_remove(odd);
    }
    let figures: Vec<Figure> = rows.iter().map(|row| row.figure.clone()).collect();
    let medians: Vec<f64> = figures.iter().filter_map(|figure| figure.median).collect();
    let low = medians.iter().copied().reduce(f64::min);
    let high = medians.iter().copied().reduce(f64::max);
    let flags = rows.iter().flat_map(|row| row.flags.iter().copied()).collect();
    let mut row = Row { flags, ..rows.swap_remove(0) };
    row.figure = figure(&figures, &medians);
    row.processes = Some(medians.len() as u64);
    (row.process_low, row.process_high) = (low, high);
    row.widening = widening(&row.figure, &figures);
    let aims = [Metric::RelativeBandwidth, Metric::DriverCopyRatio].contains(&row.metric);
    let half_width = row.figure.relative_half_width();
    if let Some(ppm) = target_ppm.filter(|_| aims) {
        row.flags.remove(&Flag::Imprecise);
        let is_wide = half_width.is_none_or(|half_width| half_width > f64::from(ppm) / 1e6);
        row.flags.extend(is_wide.then_some(Flag::Imprecise));
    }
    row
}

fn figure(figures: &[Figure], medians: &[f64]) -> Figure {
    let all = Figure {
        samples: figures.iter().map(|figure| figure.samples).sum(),
        min: figures.iter().filter_map(|figure| figure.min).reduce(f64::min),
        max: figures.iter().filter_map(|figure| figure.max).reduce(f64::max),
        ..Figure::default()
    };
    Figure::between(&all, medians)
}

/// How many times as wide as the median interval within a process.
fn widening(between: &Figure, within: &[Figure]) -> Option<f64> {
    let width = |figure: &Figure| figure.ci().map(|interval| interval.half_width());
    let own: Vec<f64> = within.iter().filter_map(width).collect();
    let ratio = width(between)? / stats::median(&own)?;
    ratio.is_finite().then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Group;
    use crate::summary::fixture::{self, Shape};
    use crate::summary::rows;

    /// One group for each process, in which the scattered arm keeps this share.
    fn groups(shares: &[f64]) -> Vec<Group> {
        let group = |(process, share): (usize, &f64)| {
            let mut group =
                Shape { scattered: 1000.0 * share, packed: 1000.0, ..Shape::default() }.group();
            group.process = process as u32;
            group
        };
        shares.iter().enumerate().map(group).collect()
    }

    fn relative(groups: &[Group]) -> Row {
        let mut rows = rows("r", &fixture::gpu_run(), groups);
        rows.retain(|row| row.metric == Metric::RelativeBandwidth);
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows.remove(0)
    }

    #[test]
    fn processes_that_differ_widen_the_interval() {
        let shares = [0.50, 0.52, 0.48, 0.51, 0.49];
        let row = relative(&groups(&shares));
        let alone = relative(&groups(&shares[..1]));
        assert_eq!((row.processes, alone.processes), (Some(5), None));
        assert_eq!((row.figure.interval, alone.figure.interval), (Some("between"), Some("within")));
        assert!((row.figure.median.unwrap() - 0.5).abs() < 0.01);
        // Student's half-width of these five is 2.776 x 0.0158 / sqrt 5 = 0.0196.
        let half_width = row.figure.ci().unwrap().half_width();
        assert!((0.016..0.023).contains(&half_width), "{half_width}");
        assert!(row.process_low.unwrap() < 0.49 && row.process_high.unwrap() > 0.51);
        let widening = half_width / alone.figure.ci().unwrap().half_width();
        assert!(
            (row.widening.unwrap() / widening - 1.0).abs() < 0.5,
            "{:?} {widening}",
            row.widening
        );
        assert!(row.flags.contains(&Flag::Imprecise) && row.figure.p90.is_none());
        assert_eq!(row.figure.samples, alone.figure.samples.map(|samples| 5 * samples));
    }

    #[test]
    fn two_processes_have_a_mean_and_no_interval() {
        let row = relative(&groups(&[0.5, 0.6]));
        assert_eq!((row.processes, row.figure.ci(), row.widening), (Some(2), None, None));
        assert!((row.figure.median.unwrap() - 0.55).abs() < 0.01);
    }

    #[test]
    fn what_failed_in_one_process_has_no_figure() {
        let mut groups = groups(&[0.5; 3]);
        groups[1].status = Status::Failed;
        groups[1].reason = Some("it melted".to_owned());
        let row = relative(&groups);
        assert_eq!((row.status, row.figure.median), (Status::Failed, None));
        assert_eq!(row.reason.as_deref(), Some("in process 1: it melted"));
    }

    #[test]
    fn what_one_process_skipped_is_told_by_the_others() {
        let mut groups = groups(&[0.5; 4]);
        groups[3].status = Status::Skipped;
        assert_eq!(relative(&groups).processes, Some(3));
        groups.iter_mut().for_each(|group| group.status = Status::Skipped);
        let row = relative(&groups);
        assert_eq!((row.status, row.processes), (Status::Skipped, None));
    }
}
