//! Rows of an embedding table that a batch looks up.

use super::PresetError;
use super::Situation;
use super::parameters::Parameter;
use crate::layout::{Extents, Fragment, Permutation, draw};
use crate::record::{Mechanism, size};

/// A batch of lookups in one table of embeddings: whole rows in random order, none twice.
///
/// The default is a table of DLRM as MLPerf trains it on Criteo's logs (Naumov et al., "Deep learning
/// recommendation model for personalization and recommendation systems", 2019): rows of 128 floats,
/// and a batch of 65,536 with one lookup in each of 26 tables. Here all lie in one table of 10
/// million rows, where MLPerf's largest have 40 million, so that it fits a GPU of 8 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Embedding {
    /// Length of a row in bytes: 64 B to 4 KiB, a multiple of 16 B.
    pub row_bytes: u64,
    /// Rows of the table.
    pub rows: u64,
    /// Rows that the batch looks up: at most all.
    pub lookups: u64,
}

impl Default for Embedding {
    fn default() -> Self {
        Self { row_bytes: 512, rows: 10_000_000, lookups: 65_536 * 26 }
    }
}

impl Embedding {
    pub(super) const NAME: &'static str = "embedding";

    pub(super) fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::bytes("row", &mut self.row_bytes, 64, 4096),
            Parameter::count("rows", &mut self.rows, 1 << 40),
            Parameter::count("lookups", &mut self.lookups, 1 << 32),
        ]
    }

    pub(super) fn check(&self) -> Result<(), PresetError> {
        let Embedding { row_bytes, rows, lookups } = *self;
        if !row_bytes.is_multiple_of(16) {
            return Err(PresetError::UnevenRow { row_bytes });
        }
        if lookups > rows {
            return Err(PresetError::TooManyLookups { lookups, rows });
        }
        Ok(())
    }

    pub(super) fn situation(&self, seed: u64) -> Result<Situation, PresetError> {
        let Embedding { row_bytes, rows, lookups } = *self;
        let key = [row_bytes, rows, lookups].iter().fold(seed, |key, part| draw(key ^ part, 0));
        let rows_in_turn = Permutation::new(key, rows);
        let row = |i| Fragment { offset: rows_in_turn.apply(i) * row_bytes, bytes: row_bytes };
        let words = format!(
            "a batch looks {lookups} rows of {} up in an embedding table of {rows} rows, in random \
             order and none twice",
            size::exact(row_bytes)
        );
        Ok(Situation {
            extents: Extents::new((0..lookups).map(row).collect(), rows * row_bytes)?,
            mechanism: Mechanism::Indirect,
            words,
        })
    }
}
