//! Rows gathered by group: what the tables for people show in one line.

use std::collections::BTreeSet;

use crate::record::{Experiment, KernelName, PatternName, Refined, Status};
use crate::summary::{Flag, Metric, Row};

/// The rows of one group.
pub struct Case<'a> {
    rows: Vec<&'a Row>,
}

impl<'a> Case<'a> {
    /// How many processes measured it; none where it was one.
    pub fn processes(&self) -> Option<u64> {
        self.rows.iter().filter_map(|row| row.processes).max()
    }

    /// The groups in the order of their first rows.
    pub fn all(rows: &'a [Row]) -> Vec<Case<'a>> {
        let mut cases: Vec<Case<'a>> = Vec::new();
        for row in rows {
            let is_same = |case: &Case<'_>| {
                case.first().run == row.run && case.first().group_case() == row.group_case()
            };
            // A group's rows follow each other, so only the last can be the same.
            match cases.last_mut().filter(|case| is_same(case)) {
                Some(case) => case.rows.push(row),
                None => cases.push(Case { rows: vec![row] }),
            }
        }
        cases
    }

    /// The first row, which tells whatever the group's rows share.
    pub fn first(&self) -> &'a Row {
        self.rows[0]
    }

    /// The row of a metric on an arm.
    pub fn row(&self, metric: Metric, arm: &str) -> Option<&'a Row> {
        self.rows.iter().copied().find(|row| row.metric == metric && row.arm() == Some(arm))
    }

    /// The median of an arm's effective bandwidth.
    pub fn rate(&self, arm: &str) -> Option<f64> {
        self.row(Metric::EffectiveBandwidth, arm)?.figure.median
    }

    /// The row of a ratio, whichever arm it stands on.
    pub fn ratio(&self, metric: Metric) -> Option<&'a Row> {
        self.rows.iter().copied().find(|row| row.metric == metric)
    }

    /// Whether it is a group of kernels, and not a case of an allocator, nor what follows from several
    /// groups.
    pub fn is_group(&self) -> bool {
        let is_kernels = [Experiment::Bandwidth, Experiment::Scatter];
        is_kernels.contains(&self.first().experiment) && !self.is_curve()
    }

    /// Whether it follows from several groups together.
    pub fn is_curve(&self) -> bool {
        self.first().metric == Metric::TlbReach
    }

    /// Whether it compares fragments with the same ones packed.
    pub fn is_access(&self) -> bool {
        self.first().experiment == Experiment::Bandwidth
            && !(self.is_ceiling() || self.is_variants() || self.is_aged() || self.is_curve())
    }

    /// Whether the group is one of ceilings.
    pub fn is_ceiling(&self) -> bool {
        if self.is_variants() {
            return false;
        }
        let kernel = self.first().kernel.as_ref();
        kernel.is_some_and(|kernel| kernel.base == KernelName::Ceiling)
            || (self.first().fragment_bytes.is_none()
                && matches!(self.first().arm(), Some("read" | "write" | "copy" | "driver_copy")))
    }

    /// Whether the group compares a kernel with its competitors.
    pub fn is_variants(&self) -> bool {
        self.rows.iter().any(|row| row.metric == Metric::VariantRatio)
    }

    /// Whether the group goes over an aged heap.
    pub fn is_aged(&self) -> bool {
        // Streams and packed arms are contiguous.
        let is_aged = |pattern: &Refined<PatternName>| pattern.base == PatternName::Aged;
        self.rows.iter().any(|row| row.pattern.as_ref().is_some_and(is_aged))
    }

    /// The rows of a metric, in their order.
    pub fn of_metric(&self, metric: Metric) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().copied().filter(move |row| row.metric == metric)
    }

    /// How the group ended: the worst of its rows.
    pub fn status(&self) -> &'a Status {
        self.worst().map_or(&Status::Ok, |row| &row.status)
    }

    /// Why the group has no figures, or not all of them.
    pub fn reason(&self) -> Option<&'a str> {
        self.worst()?.reason.as_deref()
    }

    fn worst(&self) -> Option<&'a Row> {
        self.rows.iter().copied().find(|row| row.status != Status::Ok)
    }

    /// Whether any row carries the flag.
    pub fn has(&self, flag: Flag) -> bool {
        self.rows.iter().any(|row| row.flags.contains(&flag))
    }

    /// The flags of all rows.
    pub fn flags(&self) -> BTreeSet<Flag> {
        self.rows.iter().flat_map(|row| row.flags.iter().copied()).collect()
    }
}
