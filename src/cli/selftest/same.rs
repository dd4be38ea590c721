//! The part `same`: kernels are compared with themselves, through all that a run does.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::super::Failure;
use super::super::bench::OUT_OF_TURN;
use super::super::groups::Groups;
use super::super::progress::Progress;
use super::super::worker::Request;
use super::{Arguments, Ground, interrupted_after, not_kept, unsound};
use crate::experiment::{Case, MOVED, Plan, SAME, Suite, parse_plan};
use crate::record::{DeviceKind, Entry, Group, Run, Status};
use crate::report;
use crate::summary::{SameCount, count_same};

/// Comparisons of each kind unless asked otherwise.
pub const COMPARISONS: u32 = 200;

/// Kernels and fragments that take turns.
const SAME_CASES: [(&str, &str); 4] = [
    ("gather_read", "128B"),
    ("gather_read", "4KiB"),
    ("gather_copy", "128B"),
    ("scatter_copy", "128B"),
];
const MOVED_CASES: [(&str, &str); 2] = [("gather_read", "128B"), ("gather_read", "4KiB")];

pub fn run(arguments: &Arguments, comparisons: u32) -> Result<(), Failure> {
    let mut ground = Ground::open(arguments)?;
    let plans = plans(&ground.run, comparisons)?;
    let mut progress = Progress::new(plans.len());
    let mut groups: Vec<Group> = Vec::new();
    for plan in &plans {
        let id = plan.case();
        progress.begin(&id);
        let request = Request::Measure {
            plan: Box::new(plan.clone()),
            ahead: Vec::new(),
            after_fault: false,
        };
        let asked =
            Groups { run: &ground.run, path: Path::new(""), patience: None, inject_fault: false };
        let case = Case::Bandwidth(Box::new(plan.clone()));
        let Entry::Group(group) = asked.ask(&mut ground.bench, &case, &request)? else {
            return Err(Failure { code: Failure::CASE, message: OUT_OF_TURN.to_owned() });
        };
        if ground.bench.interrupted.load(Ordering::SeqCst) {
            return Err(interrupted_after(groups.len(), "comparisons"));
        }
        if let Some(journal) = &mut ground.journal {
            journal.write_group(&group).map_err(not_kept)?;
        }
        progress.end(&id, group.status.as_str());
        groups.push(*group);
    }
    let counts = count_same(&ground.run, &groups);
    ground.show(arguments.format, &counts, || report::same_table(&ground.run, &counts))?;
    verdict(&counts, &groups)
}

fn plans(run: &Run, comparisons: u32) -> Result<Vec<Plan>, Failure> {
    let kind = &run.device.kind;
    let of = |refinement: &str, cases: &[(&str, &str)], footprint: &str| {
        let plan = |n: u32| {
            let (kernel, fragment) = cases[n as usize % cases.len()];
            let case = format!(
                "bandwidth/kernel={kernel}.{refinement}/pattern=shuffled/fragment={fragment}/footprint={footprint}"
            );
            let plan = parse_plan(&case, Suite::Quick, kind).map_err(Failure::request)?;
            Ok(Plan { repetition: n, ..plan })
        };
        (0..comparisons).map(plan).collect::<Result<Vec<Plan>, Failure>>()
    };
    let same = if *kind == DeviceKind::Host { "256MiB" } else { "2GiB" };
    let mut plans = of(SAME, &SAME_CASES, same)?;
    // All of one case before the next, so that data are laid out once.
    plans.sort_by_key(Plan::case);
    plans.extend(of(MOVED, &MOVED_CASES, "256MiB")?);
    Ok(plans)
}

fn verdict(counts: &[SameCount], groups: &[Group]) -> Result<(), Failure> {
    if let Some(group) = groups.iter().find(|group| group.status != Status::Ok) {
        let reason = group.reason.as_deref().unwrap_or("no reason is given");
        return Err(unsound(format!("{} was {}: {reason}", group.case, group.status)));
    }
    match counts.iter().find(|count| count.different > count.allowed()) {
        Some(count) => Err(unsound(format!(
            "{} of {} comparisons of a kernel with itself ({}) were called different, over the {} that chance allows",
            count.different,
            count.comparisons,
            count.kind,
            count.allowed()
        ))),
        None => Ok(()),
    }
}
