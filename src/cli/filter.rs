//! `--only` and `--filter`: which cases of a suite are meant.

use globset::{Glob, GlobMatcher};

use super::Failure;
use crate::experiment::Case;
use crate::record::Experiment;

/// The cases that the experiments and globs select, in their order. A group is selected whole: its
/// baselines are arms of it.
pub fn select(cases: Vec<Case>, only: &[String], filters: &[String]) -> Result<Vec<Case>, Failure> {
    for name in only {
        if !Experiment::KNOWN.iter().any(|known| known.as_str() == name) {
            let known: Vec<&str> = Experiment::KNOWN.iter().map(Experiment::as_str).collect();
            let known = known.join(", ");
            return Err(Failure::request(format_args!(
                "there is no experiment `{name}`: --only takes {known}"
            )));
        }
    }
    let globs = filters.iter().map(|text| glob(text)).collect::<Result<Vec<_>, _>>()?;
    for (glob, text) in globs.iter().zip(filters) {
        if !cases.iter().any(|case| glob.is_match(case.id())) {
            return Err(Failure::request(nothing_matches(text, &cases)));
        }
    }
    let is_of = |case: &Case| {
        let experiment = case.experiment();
        only.is_empty() || only.iter().any(|name| name == experiment.as_str())
    };
    if !cases.iter().any(is_of) {
        return Err(Failure::request(format_args!(
            "--only {} leaves no case of this suite on this device: a larger suite may have one, or a GPU, as the host has no allocators of its own (see `fragbench run --list`)",
            only.join(", ")
        )));
    }
    let is_matched =
        |case: &Case| globs.is_empty() || globs.iter().any(|glob| glob.is_match(case.id()));
    Ok(cases.into_iter().filter(|case| is_of(case) && is_matched(case)).collect())
}

/// The matcher of a `--filter`.
pub fn glob(text: &str) -> Result<GlobMatcher, Failure> {
    Glob::new(text).map(|glob| glob.compile_matcher()).map_err(|error| {
        Failure::request(format_args!("--filter `{text}` is no glob: {}", error.kind()))
    })
}

/// A sentence with the cases nearest to what was asked for.
fn nothing_matches(text: &str, cases: &[Case]) -> String {
    format!(
        "--filter `{text}` matches no case: near it are {} (a filter has to match a whole case id, so begin and end it with *; see `fragbench run --list`)",
        nearest(text, cases.iter().map(Case::id).collect())
    )
}

/// The three names nearest to a glob: those that hold its text, then by the likeness of a part.
pub fn nearest(text: &str, mut names: Vec<String>) -> String {
    let bare: String = text.chars().filter(|c| !"*?[]{}".contains(*c)).collect();
    let near = |name: &str| {
        if !bare.is_empty() && name.contains(&bare) {
            return 2.0 - name.len() as f64 / 1e3;
        }
        let parts = name.split('/').map(|part| strsim::jaro_winkler(&bare, part));
        parts.fold(strsim::jaro_winkler(&bare, name), f64::max)
    };
    names.sort_by(|a, b| near(b).total_cmp(&near(a)));
    names.truncate(3);
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Suite, cases};
    use crate::record::DeviceKind;

    #[test]
    fn globs_cross_slashes_and_select_whole_groups() {
        let all = cases(Suite::Quick, &DeviceKind::Cuda);
        let some = select(all.clone(), &[], &["*gather_copy*".to_owned()]).unwrap();
        assert!(!some.is_empty() && some.len() < all.len());
        assert!(some.iter().all(|case| case.id().contains("gather_copy")));
    }

    #[test]
    fn a_filter_that_matches_nothing_names_what_is_near() {
        let all = cases(Suite::Quick, &DeviceKind::Cuda);
        let failure = select(all, &[], &["*pattern=shufled*".to_owned()]).unwrap_err();
        assert_eq!(failure.code, Failure::REQUEST);
        assert!(failure.message.contains("pattern=shuffled"), "{}", failure.message);
    }
}
