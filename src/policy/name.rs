//! Which policies there are.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::caching::{Caching, Config};
use super::{
    BestFit, Buddy, FirstFit, NextFit, Params, ParamsError, Policy, SizeClasses, Slab, Source,
};

/// A policy by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PolicyName {
    /// [`FirstFit`].
    FirstFit,
    /// [`BestFit`].
    BestFit,
    /// [`NextFit`].
    NextFit,
    /// [`Buddy`].
    Buddy,
    /// [`SizeClasses`].
    SizeClasses,
    /// [`Slab`].
    Slab,
    /// [`Caching`], with its default settings.
    Caching,
}

impl PolicyName {
    /// Every policy.
    pub const ALL: &[PolicyName] = &[
        PolicyName::FirstFit,
        PolicyName::BestFit,
        PolicyName::NextFit,
        PolicyName::Buddy,
        PolicyName::SizeClasses,
        PolicyName::Slab,
        PolicyName::Caching,
    ];

    /// Those that hand out blocks of any size: all but the slab.
    pub const OF_ANY_SIZE: &[PolicyName] = &[
        PolicyName::FirstFit,
        PolicyName::BestFit,
        PolicyName::NextFit,
        PolicyName::Buddy,
        PolicyName::SizeClasses,
        PolicyName::Caching,
    ];

    /// The name in cases and tables.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyName::FirstFit => "first_fit",
            PolicyName::BestFit => "best_fit",
            PolicyName::NextFit => "next_fit",
            PolicyName::Buddy => "buddy",
            PolicyName::SizeClasses => "size_classes",
            PolicyName::Slab => "slab",
            PolicyName::Caching => "caching",
        }
    }

    /// The policy over a source, holding nothing yet.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] says which parameter cannot be.
    pub fn build<S: Source + Send + 'static>(
        self,
        source: S,
        params: &Params,
    ) -> Result<Box<dyn Policy>, ParamsError> {
        Ok(match self {
            PolicyName::FirstFit => Box::new(FirstFit::new(source, params)?),
            PolicyName::BestFit => Box::new(BestFit::new(source, params)?),
            PolicyName::NextFit => Box::new(NextFit::new(source, params)?),
            PolicyName::Buddy => Box::new(Buddy::new(source, params)?),
            PolicyName::SizeClasses => Box::new(SizeClasses::new(source, params)?),
            PolicyName::Slab => Box::new(Slab::new(source, params)?),
            // It has an alignment and a growth of its own.
            PolicyName::Caching => Box::new(Caching::new(Config::default(), source)?),
        })
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PolicyName {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let named = Self::ALL.iter().find(|policy| policy.name() == text);
        named.copied().ok_or_else(|| UnknownPolicy { text: text.to_owned() })
    }
}

/// There is no policy of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no policy `{text}`{}: there are {}", nearest(.text), all())]
pub struct UnknownPolicy {
    text: String,
}

/// The name that was probably meant, where one is near.
fn nearest(text: &str) -> String {
    let near = |policy: &PolicyName| strsim::jaro_winkler(text, policy.name());
    let nearest = PolicyName::ALL.iter().max_by(|a, b| near(a).total_cmp(&near(b)));
    let nearest = nearest.filter(|policy| near(policy) > 0.8);
    nearest.map_or_else(String::new, |policy| format!(", perhaps {policy}"))
}

fn all() -> String {
    let names: Vec<&str> = PolicyName::ALL.iter().map(|policy| policy.name()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::arena;

    #[test]
    fn a_policy_is_found_and_built_by_its_name() {
        for policy in PolicyName::ALL {
            assert_eq!(policy.name().parse(), Ok(*policy));
            let built = policy.build(arena(), &Params::default()).unwrap();
            assert_eq!(built.name(), policy.to_string());
        }
    }

    #[test]
    fn an_unknown_name_is_told_what_exists_and_what_is_near() {
        let says = |text: &str| text.parse::<PolicyName>().unwrap_err().to_string();
        let all = "first_fit, best_fit, next_fit, buddy, size_classes, slab, caching";
        assert_eq!(
            says("bestfit"),
            format!("there is no policy `bestfit`, perhaps best_fit: there are {all}")
        );
        assert!(says("sizeclass").contains("perhaps size_classes"));
        assert!(says("Slab").contains("perhaps slab"));
        assert_eq!(says("arena42"), format!("there is no policy `arena42`: there are {all}"));
    }

    #[test]
    fn parameters_that_cannot_be_are_told() {
        let refused = |params: Params| {
            let own = PolicyName::ALL.iter().filter(|policy| **policy != PolicyName::Caching);
            let built = own.map(|policy| policy.build(arena(), &params));
            let errors = built.map(|built| built.err().unwrap().to_string());
            let mut errors: Vec<String> = errors.collect();
            errors.dedup();
            assert_eq!(errors.len(), 1);
            errors.remove(0)
        };
        use crate::policy::Growth;
        let default = Params::default();
        let said = refused(Params { alignment_bytes: 768, ..default });
        assert!(said.starts_with("an alignment of 768 B: it must be a power of two"), "{said}");
        let said = refused(Params { alignment_bytes: 8192, ..default });
        assert!(said.ends_with("at most the granule of the source, 4096 B"), "{said}");
        assert!(refused(Params { alignment_bytes: 0, ..default }).contains("0 B"));
        let said = refused(default.with_growth(Growth::Regions { bytes: 0 }));
        assert_eq!(said, "growth by regions of 0 B: they must have at least 1 B");
        let said = refused(Params { block_bytes: 0, ..default });
        assert_eq!(said, "blocks of 0 B: they must have from 1 B to 4 EiB");
        refused(Params { block_bytes: u64::MAX, ..default });
    }
}
