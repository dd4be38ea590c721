//! Situations that a reader may be in: what is read, and where it lies.

mod embedding;
mod error;
mod kv_cache;
mod null_mask;
mod optimizer;
mod parameters;
mod pool;
#[cfg(test)]
mod tests;

pub use embedding::Embedding;
pub use error::PresetError;
pub use kv_cache::KvCache;
pub use null_mask::NullMask;
pub use optimizer::Optimizer;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::names::{list, perhaps};
use crate::layout::Extents;
use crate::record::Mechanism;
use parameters::Parameter;

/// The most fragments of a situation: 4 GiB of them on the host.
const MAX_FRAGMENTS: u64 = 1 << 28;

/// A situation by its parameters. As text it is a name with those that are not the default's:
/// `kv_cache`, `kv_cache:layers=16,blocks=4096`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Preset {
    /// A batch of lookups in an embedding table.
    Embedding(Embedding),
    /// A decoding step over a paged KV cache.
    KvCache(KvCache),
    /// A scan of columns behind null masks.
    NullMask(NullMask),
    /// An optimizer's pass over its moments.
    Optimizer(Optimizer),
}

/// What is visited in a situation, and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The fragments in the order of the visits.
    pub extents: Extents,
    /// The mechanism that scattered them.
    pub mechanism: Mechanism,
    /// The situation in words, for reports.
    pub words: String,
}

impl Preset {
    /// Every situation, with the default's parameters.
    pub fn all() -> [Preset; 4] {
        [
            Preset::Embedding(Embedding::default()),
            Preset::KvCache(KvCache::default()),
            Preset::NullMask(NullMask::default()),
            Preset::Optimizer(Optimizer::default()),
        ]
    }

    /// The name in cases and tables: `kv_cache`.
    pub fn name(&self) -> &'static str {
        match self {
            Preset::Embedding(_) => Embedding::NAME,
            Preset::KvCache(_) => KvCache::NAME,
            Preset::NullMask(_) => NullMask::NAME,
            Preset::Optimizer(_) => Optimizer::NAME,
        }
    }

    /// What is visited. The same seed gives the same everywhere.
    ///
    /// # Errors
    ///
    /// [`PresetError`] says which parameters contradict each other, and what would work.
    pub fn situation(&self, seed: u64) -> Result<Situation, PresetError> {
        self.check()?;
        match self {
            Preset::Embedding(embedding) => embedding.situation(seed),
            Preset::KvCache(cache) => cache.situation(seed),
            Preset::NullMask(mask) => mask.situation(seed),
            // What a step makes and frees leaves nothing to chance.
            Preset::Optimizer(optimizer) => optimizer.situation(),
        }
    }

    /// Whether there is such a situation.
    ///
    /// # Errors
    ///
    /// [`PresetError`] says which parameter cannot be, and what would work.
    pub fn check(&self) -> Result<(), PresetError> {
        parameters::check(self.name(), &self.clone().parameters())?;
        match self {
            Preset::Embedding(embedding) => embedding.check()?,
            Preset::KvCache(cache) => cache.check()?,
            Preset::NullMask(mask) => mask.check()?,
            Preset::Optimizer(_) => {}
        }
        let fragments = match self {
            Preset::Embedding(embedding) => embedding.lookups,
            Preset::KvCache(cache) => cache.most_fragments(),
            Preset::NullMask(mask) => mask.expected_fragments(),
            Preset::Optimizer(optimizer) => 2 * optimizer.elements().len() as u64,
        };
        let (preset, most) = (self.name(), MAX_FRAGMENTS);
        match fragments > most {
            true => Err(PresetError::TooManyFragments { preset, fragments, most }),
            false => Ok(()),
        }
    }

    /// All parameters as text: `layers=32,heads=8`, the default's among them.
    pub fn parameters_text(&self) -> String {
        parameters::write(&self.clone().parameters())
    }

    /// The parameters that are not the default's, as text; empty without any.
    pub fn own_parameters(&self) -> String {
        let default = Preset::all().into_iter().find(|preset| preset.name() == self.name());
        let default = default.map(|preset| preset.parameters_text()).unwrap_or_default();
        let usual: Vec<&str> = default.split(',').collect();
        let text = self.parameters_text();
        let own: Vec<&str> = text.split(',').filter(|pair| !usual.contains(pair)).collect();
        own.join(",")
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        match self {
            Preset::Embedding(embedding) => embedding.parameters(),
            Preset::KvCache(cache) => cache.parameters(),
            Preset::NullMask(mask) => mask.parameters(),
            Preset::Optimizer(optimizer) => optimizer.parameters(),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.own_parameters() {
            own if own.is_empty() => f.pad(self.name()),
            own => f.pad(&format!("{}:{own}", self.name())),
        }
    }
}

impl From<Preset> for String {
    fn from(preset: Preset) -> String {
        preset.to_string()
    }
}

impl TryFrom<String> for Preset {
    type Error = PresetError;

    fn try_from(text: String) -> Result<Preset, PresetError> {
        text.parse()
    }
}

impl FromStr for Preset {
    type Err = PresetError;

    fn from_str(text: &str) -> Result<Self, PresetError> {
        let (name, own) = text.split_once(':').unwrap_or((text, ""));
        let all = Preset::all();
        let names = || all.iter().map(Preset::name);
        let mut preset = all.into_iter().find(|known| known.name() == name).ok_or_else(|| {
            PresetError::Unknown {
                text: name.to_owned(),
                perhaps: perhaps(name, names()),
                known: list(names()),
            }
        })?;
        parameters::read(preset.name(), own, &mut preset.parameters())?;
        preset.check()?;
        Ok(preset)
    }
}
