//! Columns of a data frame behind their null masks.

use rayon::prelude::*;

use super::PresetError;
use super::Situation;
use super::parameters::Parameter;
use crate::layout::{Extents, Fragment, below, draw, mix};
use crate::record::Mechanism;

/// What columns are aligned to, in bytes: `cudaMalloc`'s and RMM's alignment.
const COLUMN_ALIGNMENT_BYTES: u64 = 256;

/// A scan that reads the valid elements of columns: runs between nulls, each as long as chance has
/// it. Nulls take their place in a column, as in Apache Arrow's format; a mask tells where they are.
///
/// The default is four columns of `store_sales` of TPC-DS at scale factor 10, 28,800,991 rows: keys
/// of 4 B, of which about 4 in 100 are null, each alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NullMask {
    /// Columns, one after the other.
    pub columns: u64,
    /// Elements of a column.
    pub rows: u64,
    /// Bytes of an element: 4 or 8.
    pub element_bytes: u64,
    /// How many of 100 elements are null: 1 to 99.
    pub null_percent: u64,
    /// Mean length of a run of nulls, in elements: 1 where each stands alone.
    pub mean_run: u64,
}

impl Default for NullMask {
    fn default() -> Self {
        Self { columns: 4, rows: 28_800_991, element_bytes: 4, null_percent: 4, mean_run: 1 }
    }
}

impl NullMask {
    pub(super) const NAME: &'static str = "null_mask";

    pub(super) fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::count("columns", &mut self.columns, 4096),
            Parameter::count("rows", &mut self.rows, 1 << 34),
            Parameter::count("element", &mut self.element_bytes, 8),
            Parameter::count("null", &mut self.null_percent, 99),
            Parameter::count("run", &mut self.mean_run, 1 << 30),
        ]
    }

    pub(super) fn check(&self) -> Result<(), PresetError> {
        let NullMask { element_bytes, null_percent, mean_run, .. } = *self;
        if ![4, 8].contains(&element_bytes) {
            return Err(PresetError::Element { element_bytes });
        }
        // Runs of valid elements are at least one long.
        let least_run = null_percent.div_ceil(100 - null_percent);
        if mean_run < least_run {
            return Err(PresetError::RunTooShort { null_percent, mean_run, least_run });
        }
        Ok(())
    }

    /// About as many runs as there are runs of nulls.
    pub(super) fn expected_fragments(&self) -> u64 {
        let nulls = self.columns * self.rows / 100 * self.null_percent;
        nulls / self.mean_run
    }

    pub(super) fn situation(&self, seed: u64) -> Result<Situation, PresetError> {
        let NullMask { columns, rows, element_bytes, null_percent, mean_run } = *self;
        let shape = [rows, element_bytes, null_percent, mean_run];
        let key = shape.iter().fold(seed, |key, part| draw(key ^ part, 0));
        let column_bytes = (rows * element_bytes).next_multiple_of(COLUMN_ALIGNMENT_BYTES);
        let fragments: Vec<Fragment> = (0..columns)
            .into_par_iter()
            .flat_map_iter(|column| {
                let runs = self.valid_runs(draw(key, column));
                runs.into_iter().map(move |(first, elements)| Fragment {
                    offset: column * column_bytes + first * element_bytes,
                    bytes: elements * element_bytes,
                })
            })
            .collect();
        if fragments.is_empty() {
            return Err(PresetError::AllNull { rows });
        }
        let words = format!(
            "a scan reads the valid elements of {columns} columns of {rows} elements of \
             {element_bytes} B: {null_percent} of 100 are null, in runs of {mean_run} on average"
        );
        Ok(Situation {
            extents: Extents::new(fragments, columns * column_bytes)?,
            mechanism: Mechanism::Indirect,
            words,
        })
    }

    /// Runs of valid elements of a column: the first element and how many there are.
    ///
    /// A chain of two states: a null is followed by a valid element with a chance of 1 / run, a valid
    /// element by a null with null / ((100 - null) x run), so that both shares are as asked for.
    fn valid_runs(&self, key: u64) -> Vec<(u64, u64)> {
        let NullMask { rows, null_percent, mean_run, .. } = *self;
        let valid_weight = (100 - null_percent) * mean_run;
        let mut runs = Vec::new();
        let mut first = None;
        let mut is_null = below(mix(key), 100) < null_percent;
        for row in 0..rows {
            match (is_null, first) {
                (false, None) => first = Some(row),
                (true, Some(begin)) => {
                    runs.push((begin, row - begin));
                    first = None;
                }
                _ => {}
            }
            let random = draw(key, row);
            is_null = match is_null {
                true => below(random, mean_run) != 0,
                false => below(random, valid_weight) < null_percent,
            };
        }
        runs.extend(first.map(|begin| (begin, rows - begin)));
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_runs_are_as_asked_for() {
        for (null_percent, mean_run) in [(4, 1), (50, 1), (50, 20), (90, 9), (90, 100)] {
            let mask = NullMask { rows: 2_000_000, null_percent, mean_run, ..NullMask::default() };
            let runs = mask.valid_runs(5);
            let valid: u64 = runs.iter().map(|(_, elements)| elements).sum();
            let nulls = mask.rows - valid;
            let expected = mask.rows * null_percent / 100;
            assert!(nulls.abs_diff(expected) < expected / 20, "{null_percent} {mean_run}: {nulls}");
            let mean = nulls as f64 / runs.len() as f64;
            assert!(
                (mean / mean_run as f64 - 1.0).abs() < 0.05,
                "{null_percent} {mean_run}: {mean}"
            );
        }
    }

    #[test]
    fn runs_are_parted_by_nulls() {
        let mask = NullMask { rows: 10_000, null_percent: 60, mean_run: 3, ..NullMask::default() };
        let runs = mask.valid_runs(1);
        assert!(runs.windows(2).all(|two| two[0].0 + two[0].1 < two[1].0));
        assert!(runs.iter().all(|&(first, elements)| elements > 0 && first + elements <= 10_000));
    }
}
