//! What a selftest shows: on a terminal, and on a page.

use std::collections::BTreeMap;

use super::answer::subject;
use super::escape::escape;
use super::grid::Grid;
use super::markdown::{bullets, table};
use super::provenance::{facts, hashes};
use super::table::aligned;
use super::text::{clean, wrapped};
use crate::record::{Run, Selftest, Status};

/// The widest line.
const WIDTH: usize = 110;
/// The widest cell of a text: a kernel's name has its room.
const CELL: usize = 40;

/// A selftest as plain text: a line for each kernel that was tested, and the answer.
pub fn selftest_table(run: &Run, records: &[Selftest]) -> String {
    let mut blocks = vec![wrapped(&format!("{}.", subject(run)), WIDTH, "  ")];
    let grid = kernels(records);
    if !grid.body.is_empty() {
        blocks.push(aligned(&grid, CELL));
    }
    let lines: Vec<String> =
        sentences(records).iter().map(|line| wrapped(&clean(line), WIDTH, "  ")).collect();
    blocks.push(lines.join("\n"));
    blocks.join("\n\n") + "\n"
}

/// A selftest as a Markdown page: the answer, each kernel, each kind of fault, and where it comes
/// from.
pub fn selftest_page(run: &Run, records: &[Selftest]) -> String {
    let mut blocks = vec![
        format!("# fragbench selftest: {}", escape(&subject(run))),
        facts(run),
        "## The answer".to_owned(),
        bullets(sentences(records).iter().map(|line| escape(line))),
    ];
    for (title, grid) in [("## Kernels", kernels(records)), ("## Faults", faults(records))] {
        if !grid.body.is_empty() {
            blocks.push(title.to_owned());
            blocks.push(table(&grid));
        }
    }
    blocks.push("## Where it comes from".to_owned());
    blocks.push(hashes(run));
    blocks.join("\n\n") + "\n"
}

/// How many kernels and faults there were; what failed, each by itself, and what was skipped, by
/// its reason.
fn sentences(records: &[Selftest]) -> Vec<String> {
    let of = |status: Status| records.iter().filter(move |record| record.status == status);
    let planted: u64 = records.iter().map(Selftest::planted).sum();
    let caught: u64 = records.iter().map(Selftest::caught).sum();
    let (sound, skipped) = (of(Status::Ok).count(), of(Status::Skipped).count());
    let failed: Vec<&Selftest> = records
        .iter()
        .filter(|record| ![Status::Ok, Status::Skipped].contains(&record.status))
        .collect();
    let mut lines = vec![format!(
        "Kernels: {sound} sound, {} failed, {skipped} skipped. Planted faults: {caught} of \
         {planted} caught.",
        failed.len()
    )];
    let reason = |record: &Selftest| record.reason.clone().unwrap_or_else(|| "no reason".into());
    lines.extend(
        failed
            .into_iter()
            .map(|record| format!("{}: {}: {}", record.status, record.kernel, reason(record))),
    );
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    of(Status::Skipped).for_each(|record| *reasons.entry(reason(record)).or_default() += 1);
    lines.extend(reasons.into_iter().map(|(reason, count)| format!("skipped {count}: {reason}")));
    lines
}

fn kernels(records: &[Selftest]) -> Grid {
    let tested = records.iter().filter(|record| record.status != Status::Skipped);
    let body = tested.map(|record| {
        vec![
            record.kernel.clone(),
            record.layouts.to_string(),
            record.compared.to_string(),
            record.mismatches.to_string(),
            record.planted().to_string(),
            record.caught().to_string(),
            record.status.to_string(),
        ]
    });
    let head =
        vec!["kernel", "layouts", "compared", "mismatches", "faults planted", "caught", "status"];
    Grid { head, texts: 1, body: body.collect() }
}

/// Every kind of fault with the check that had to see it, over all kernels.
fn faults(records: &[Selftest]) -> Grid {
    let mut counts: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for fault in records.iter().flat_map(|record| &record.faults) {
        let (planted, caught) = counts.entry((&fault.kind, &fault.check)).or_default();
        *planted += fault.planted;
        *caught += fault.caught;
    }
    let body = counts.into_iter().map(|((kind, check), (planted, caught))| {
        let missed = if caught < planted { "unseen or miscounted" } else { "" };
        vec![
            kind.to_string(),
            check.to_string(),
            planted.to_string(),
            caught.to_string(),
            missed.to_owned(),
        ]
    });
    let head = vec!["fault", "seen by the check", "planted", "caught", "remark"];
    Grid { head, texts: 2, body: body.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CheckKind, Fault, FaultKind};
    use crate::summary::fixture;

    fn record(kernel: &str, status: Status, reason: Option<&str>, caught: u64) -> Selftest {
        let fault = Fault {
            kind: FaultKind::TailDropped,
            check: CheckKind::Destination,
            planted: 12,
            caught,
        };
        Selftest {
            kernel: kernel.to_owned(),
            variant: "default".to_owned(),
            module: None,
            layouts: 30,
            compared: 123_456,
            mismatches: 0,
            faults: if status == Status::Skipped { Vec::new() } else { vec![fault] },
            status,
            reason: reason.map(str::to_owned),
            wall_ns: 1,
            extra: serde_json::Map::new(),
        }
    }

    fn records() -> [Selftest; 4] {
        let unseen = "the fault `tail_dropped` went unseen by the destination check: 0 mismatches \
                      instead of 4, on shuffled in scattered order\x1b[2J | <b>";
        [
            record("copy", Status::Ok, None, 12),
            record("gather_copy_i4_u16_streaming", Status::Failed, Some(unseen), 11),
            record("read_bulk", Status::Skipped, Some("no module"), 0),
            record("copy_bulk", Status::Skipped, Some("no module"), 0),
        ]
    }

    #[test]
    fn table_of_a_selftest() {
        insta::assert_snapshot!(selftest_table(&fixture::gpu_run(), &records()));
    }

    #[test]
    fn page_of_a_selftest() {
        insta::assert_snapshot!(selftest_page(&fixture::host_run(), &records()));
    }

    #[test]
    fn a_selftest_of_nothing_has_a_form() {
        for show in [selftest_table, selftest_page] {
            assert!(show(&fixture::host_run(), &[]).contains("0 of 0 caught"));
        }
    }
}
