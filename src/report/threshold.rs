//! What a bracket says, in words.

use super::text::{bytes, listed};
use crate::summary::{Bracket, Outcome};

/// `95 % from 256 B on, not at 128 B; 80 % and 50 % at every size measured (32 B and more)`: what
/// each threshold of a curve says, those that say the same in one breath.
pub fn shares(brackets: &[&Bracket]) -> String {
    let mut said: Vec<(Vec<String>, String)> = Vec::new();
    for bracket in brackets {
        let (share, words) = (format!("{:.0} %", bracket.threshold * 100.0), stays(bracket));
        match said.last_mut().filter(|(_, last)| *last == words) {
            Some((shares, _)) => shares.push(share),
            None => said.push((vec![share], words)),
        }
    }
    let parts = said.iter().map(|(shares, words)| format!("{} {words}", listed(shares)));
    parts.collect::<Vec<_>>().join("; ")
}

/// `stays from 256 B on, not at 128 B`.
fn stays(bracket: &Bracket) -> String {
    let lost = |below: Option<u64>| {
        below.map(|below| format!(", not at {}", bytes(below))).unwrap_or_default()
    };
    match bracket.outcome() {
        Outcome::Everywhere(smallest) => {
            format!("at every size measured ({} and more)", bytes(smallest))
        }
        Outcome::Between(below, above) => {
            let between = match &named(&bracket.undecided())[..] {
                [] => String::new(),
                sizes => format!(", ambiguous at {}", listed(sizes)),
            };
            format!("from {} on{}{between}", bytes(above), lost(Some(below)))
        }
        Outcome::AmbiguousBelow(above) => {
            let sizes = listed(&named(&bracket.undecided()));
            format!("from {} on, ambiguous at {sizes}", bytes(above))
        }
        Outcome::NotReached(largest) => {
            format!("not reached, not even at {}, the largest size", bytes(largest))
        }
        Outcome::Ambiguous => {
            let sizes = listed(&named(&bracket.undecided()));
            format!(
                "ambiguous: open at {sizes}, the largest size among them{}",
                lost(bracket.below)
            )
        }
    }
}

fn named(sizes: &[u64]) -> Vec<String> {
    sizes.iter().copied().map(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{KernelName, PatternName};
    use crate::summary::BracketKey;

    fn says(sizes: &[u64], above: Option<u64>, below: Option<u64>, ambiguous: &[u64]) -> String {
        stays(&Bracket {
            key: BracketKey {
                run: "r".into(),
                device: "d".into(),
                kernel: KernelName::GatherRead.into(),
                pattern: PatternName::Shuffled.into(),
                footprint_bytes: 1 << 31,
            },
            threshold: 0.95,
            sizes: sizes.to_vec(),
            above,
            below,
            ambiguous: ambiguous.to_vec(),
            cache: false,
        })
    }

    #[test]
    fn every_outcome_has_its_words() {
        let sizes = [32, 64, 128];
        let all = says(&sizes, Some(32), None, &[]);
        assert_eq!(all, "at every size measured (32 B and more)");
        assert_eq!(says(&sizes, Some(64), Some(32), &[]), "from 64 B on, not at 32 B");
        let open = says(&sizes, Some(128), Some(32), &[64]);
        assert_eq!(open, "from 128 B on, not at 32 B, ambiguous at 64 B");
        let open = says(&sizes, Some(128), None, &[32, 64]);
        assert_eq!(open, "from 128 B on, ambiguous at 32 B and 64 B");
        let lost = says(&sizes, None, Some(128), &[64]);
        assert_eq!(lost, "not reached, not even at 128 B, the largest size");
        let open = says(&sizes, None, Some(32), &[64, 128]);
        assert_eq!(
            open,
            "ambiguous: open at 64 B and 128 B, the largest size among them, not at 32 B"
        );
    }

    #[test]
    fn what_lies_under_the_bracket_is_not_called_undecided() {
        let words = says(&[32, 64, 128], Some(128), Some(64), &[32]);
        assert_eq!(words, "from 128 B on, not at 64 B");
    }
}
