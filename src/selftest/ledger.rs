//! What was seen: sound runs, and planted faults.

use std::collections::BTreeMap;

use crate::kernel::Outcome;
use crate::record::{CheckKind, Fault, FaultKind, Selftest};

/// How many mismatches a check has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// So many; 0 where the check has nothing to complain about.
    Exactly(u64),
    /// So many, but for units that are right by chance.
    Nearly(u64),
    /// So many or more: how many is left to chance, or to the order of the threads.
    AtLeast(u64),
    /// The check cannot tell.
    Anything,
}

/// From so many units of 4 B on, one that is right by chance is no surprise in a run of months.
const MANY: u64 = 1_000;

impl Expect {
    /// So many bytes in units of this width.
    pub fn bytes(bytes: u64, unit_bytes: u64) -> Expect {
        match bytes / unit_bytes {
            units if unit_bytes == 4 && units >= MANY => Expect::Nearly(units),
            units => Expect::Exactly(units),
        }
    }

    /// Whether there is a mismatch at least.
    pub fn is_seen(self) -> bool {
        match self {
            Expect::Exactly(count) | Expect::Nearly(count) | Expect::AtLeast(count) => count > 0,
            Expect::Anything => false,
        }
    }

    fn is_met_by(self, found: u64) -> bool {
        match self {
            Expect::Exactly(count) => found == count,
            Expect::Nearly(count) => found == count || found + 1 == count,
            Expect::AtLeast(count) => found >= count,
            Expect::Anything => true,
        }
    }
}

impl std::fmt::Display for Expect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expect::Exactly(count) | Expect::Nearly(count) => write!(f, "{count}"),
            Expect::AtLeast(count) => write!(f, "at least {count}"),
            Expect::Anything => write!(f, "anything"),
        }
    }
}

/// The account of one kernel's test.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Layouts that were begun.
    pub layouts: u64,
    /// The layout at hand, in words.
    pub what: String,
    compared: u64,
    mismatches: u64,
    faults: BTreeMap<(FaultKind, CheckKind), (u64, u64)>,
    complaint: Option<String>,
}

impl Ledger {
    /// What went wrong first.
    pub fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }

    /// A check that has nothing to complain about. Whether it did not.
    pub fn sound(&mut self, check: CheckKind, outcome: Outcome) -> bool {
        self.compared += outcome.compared;
        self.mismatches += outcome.mismatches;
        if outcome.compared == 0 {
            self.complain(format!("the {check} check compared nothing in a sound run"));
        }
        if outcome.mismatches > 0 {
            self.complain(format!(
                "the {check} check found {} of {} differing in a sound run",
                outcome.mismatches, outcome.compared
            ));
        }
        outcome.compared > 0 && outcome.mismatches == 0
    }

    /// What a check said of a planted fault.
    pub fn fault(&mut self, kind: FaultKind, check: CheckKind, outcome: Outcome, expect: Expect) {
        match expect {
            Expect::Anything => return,
            Expect::Exactly(0) => {
                if outcome.mismatches > 0 {
                    self.complain(format!(
                        "the {check} check found {} where `{kind}` leaves nothing for it",
                        outcome.mismatches
                    ));
                }
                return;
            }
            _ => {}
        }
        let (planted, caught) = self.faults.entry((kind.clone(), check.clone())).or_default();
        *planted += 1;
        if expect.is_met_by(outcome.mismatches) {
            *caught += 1;
            return;
        }
        let how = if outcome.mismatches == 0 { "went unseen by" } else { "was miscounted by" };
        self.complain(format!(
            "the fault `{kind}` {how} the {check} check: {} mismatches instead of {expect}",
            outcome.mismatches
        ));
    }

    fn complain(&mut self, what: String) {
        let layout = &self.what;
        self.complaint.get_or_insert_with(|| format!("{what}, on {layout}"));
    }

    /// Writes the account into a record.
    pub fn write(self, record: &mut Selftest) {
        record.layouts = self.layouts;
        record.compared = self.compared;
        record.mismatches = self.mismatches;
        let fault = |((kind, check), (planted, caught))| Fault { kind, check, planted, caught };
        record.faults = self.faults.into_iter().map(fault).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mismatches: u64) -> Outcome {
        Outcome { compared: 10, mismatches }
    }

    #[test]
    fn the_first_fault_unseen_is_named() {
        let mut ledger = Ledger { what: "a layout".to_owned(), ..Ledger::default() };
        let mut plant = |outcome, expect| {
            ledger.fault(FaultKind::TailDropped, CheckKind::Destination, outcome, expect);
            ledger.complaint().map(str::to_owned)
        };
        assert_eq!(plant(found(4), Expect::Exactly(4)), None);
        assert_eq!(plant(found(0), Expect::Anything), None);
        assert_eq!(plant(found(0), Expect::Exactly(0)), None);
        assert_eq!(plant(found(5), Expect::AtLeast(4)), None);
        let miscounted = plant(found(3), Expect::Exactly(4)).unwrap();
        assert!(miscounted.contains("`tail_dropped` was miscounted by the destination check"));
        assert!(miscounted.contains("3 mismatches instead of 4, on a layout"), "{miscounted}");
        assert_eq!(plant(found(0), Expect::AtLeast(1)).unwrap(), miscounted);
        assert_eq!(ledger.faults.into_values().collect::<Vec<_>>(), [(4, 2)]);
    }

    #[test]
    fn a_check_that_always_complains_or_never_compares_is_found_out() {
        for outcome in [found(1), Outcome::default()] {
            let mut ledger = Ledger::default();
            assert!(!ledger.sound(CheckKind::Guard, outcome));
            assert!(ledger.complaint().unwrap().contains("guard check"));
        }
        let mut ledger = Ledger::default();
        ledger.fault(FaultKind::TailDropped, CheckKind::Guard, found(1), Expect::Exactly(0));
        assert!(ledger.complaint().is_some());
    }

    #[test]
    fn one_of_many_narrow_units_may_be_right_by_chance() {
        assert!(Expect::bytes(8_000, 4).is_met_by(1_999));
        assert!(!Expect::bytes(8_000, 4).is_met_by(1_998));
        assert!(!Expect::bytes(400, 4).is_met_by(99));
        assert!(!Expect::bytes(32_000, 16).is_met_by(1_999));
    }
}
