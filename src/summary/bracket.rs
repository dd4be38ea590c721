//! Above which fragment size a share of the packed bandwidth stays.

use std::collections::BTreeMap;

use super::{Flag, Metric, Row};
use crate::record::{KernelName, PatternName, Refined};

/// What is compared by fragment size: one device, kernel, pattern and footprint of one run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BracketKey {
    /// The run.
    pub run: String,
    /// The device's name.
    pub device: String,
    /// The kernel.
    pub kernel: Refined<KernelName>,
    /// The pattern.
    pub pattern: Refined<PatternName>,
    /// The footprint, in bytes.
    pub footprint_bytes: u64,
}

impl BracketKey {
    /// The key of a `relative_bandwidth` row over fragments of one length, with figures or without.
    pub fn of(row: &Row) -> Option<BracketKey> {
        let is_curve = row.metric == Metric::RelativeBandwidth && row.fragment_bytes.is_some();
        is_curve.then_some(BracketKey {
            run: row.run.clone(),
            device: row.device.clone(),
            kernel: row.kernel.clone()?,
            pattern: row.pattern.clone()?,
            footprint_bytes: row.footprint_bytes?,
        })
    }
}

/// The fragment sizes between which the relative bandwidth crosses a threshold for good.
#[derive(Clone, Debug, PartialEq)]
pub struct Bracket {
    /// What is compared.
    pub key: BracketKey,
    /// The share of the packed bandwidth that is asked for.
    pub threshold: f64,
    /// Every measured size, ascending, in bytes.
    pub sizes: Vec<u64>,
    /// The smallest size from which on every measured size lies wholly at or above the threshold.
    pub above: Option<u64>,
    /// The largest size that lies wholly below the threshold.
    pub below: Option<u64>,
    /// Sizes whose interval contains the threshold, or that have no interval, ascending.
    pub ambiguous: Vec<u64>,
    /// Whether any of the sizes is a cache case.
    pub cache: bool,
}

/// What a bracket says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The share stays at every measured size; the smallest is named.
    Everywhere(u64),
    /// It does not stay at the first size and stays from the second on.
    Between(u64, u64),
    /// It stays from this size on; every smaller size is ambiguous.
    AmbiguousBelow(u64),
    /// It does not even stay at the largest measured size, which is named.
    NotReached(u64),
    /// The interval at the largest measured size contains the threshold.
    Ambiguous,
}

impl Bracket {
    /// What the bracket says.
    pub fn outcome(&self) -> Outcome {
        let (smallest, largest) = (self.sizes.first().copied(), self.sizes.last().copied());
        match (self.above, self.below, largest) {
            (Some(above), _, _) if Some(above) == smallest => Outcome::Everywhere(above),
            (Some(above), Some(below), _) => Outcome::Between(below, above),
            (Some(above), None, _) => Outcome::AmbiguousBelow(above),
            (None, Some(below), Some(largest)) if below == largest => Outcome::NotReached(largest),
            (None, _, _) => Outcome::Ambiguous,
        }
    }

    /// Ambiguous sizes above the largest that lies wholly below the threshold: those that could
    /// move the bracket.
    pub fn undecided(&self) -> Vec<u64> {
        let below = self.below.unwrap_or(0);
        self.ambiguous.iter().copied().filter(|size| *size > below).collect()
    }
}

/// The brackets of every device, kernel, pattern and footprint that has figures, in order.
pub fn brackets(rows: &[Row], threshold: f64) -> Vec<Bracket> {
    let mut curves: BTreeMap<BracketKey, BTreeMap<u64, Vec<&Row>>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.figure.median.is_some()) {
        if let (Some(key), Some(size)) = (BracketKey::of(row), row.fragment_bytes) {
            curves.entry(key).or_default().entry(size).or_default().push(row);
        }
    }
    curves.into_iter().map(|(key, curve)| bracket(key, threshold, &curve)).collect()
}

/// Where a size lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Above,
    Below,
    Ambiguous,
}

fn bracket(key: BracketKey, threshold: f64, curve: &BTreeMap<u64, Vec<&Row>>) -> Bracket {
    let sides: Vec<(u64, Side)> =
        curve.iter().map(|(&size, rows)| (size, side(rows, threshold))).collect();
    let on = |side: Side| sides.iter().filter(move |(_, s)| *s == side).map(|(size, _)| *size);
    let above = sides.iter().rev().take_while(|(_, side)| *side == Side::Above).last();
    Bracket {
        key,
        threshold,
        above: above.map(|(size, _)| *size),
        below: on(Side::Below).next_back(),
        ambiguous: on(Side::Ambiguous).collect(),
        sizes: curve.keys().copied().collect(),
        cache: curve.values().flatten().any(|row| row.flags.contains(&Flag::Cache)),
    }
}

/// A size that was measured more than once is above only if it was so each time, and below if it
/// was so once.
fn side(rows: &[&Row], threshold: f64) -> Side {
    let ends = |row: &Row| row.figure.ci().map(|ci| (ci.low, ci.high));
    if rows.iter().all(|row| ends(row).is_some_and(|(low, _)| low >= threshold)) {
        Side::Above
    } else if rows.iter().any(|row| ends(row).is_some_and(|(_, high)| high < threshold)) {
        Side::Below
    } else {
        Side::Ambiguous
    }
}

#[cfg(test)]
mod tests;
