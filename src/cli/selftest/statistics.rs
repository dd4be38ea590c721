//! The part `statistics`: intervals against a known truth.

use super::super::Failure;
use super::super::progress::Progress;
use super::{Arguments, Ground, interrupted_after, not_kept, unsound};
use crate::record::Coverage;
use crate::report;
use crate::selftest::statistics::{Trial, complaint};

pub fn run(arguments: &Arguments, replications: u64) -> Result<(), Failure> {
    let mut ground = Ground::open(arguments)?;
    let trials = Trial::all();
    let mut progress = Progress::new(trials.len());
    let mut records: Vec<Coverage> = Vec::new();
    for trial in trials {
        let name = trial.name();
        progress.begin(&name);
        let counts = trial.run(replications, arguments.seed, &ground.bench.interrupted);
        let counts = counts.ok_or_else(|| interrupted_after(records.len(), "intervals"))?;
        for count in counts {
            if let Some(journal) = &mut ground.journal {
                journal.write_coverage(&count).map_err(not_kept)?;
            }
            records.push(count);
        }
        progress.end(&name, "ok");
    }
    ground.show(arguments.format, &records, || report::coverage_table(&records))?;
    match records.iter().find_map(complaint) {
        Some(complaint) => Err(unsound(complaint)),
        None => Ok(()),
    }
}
