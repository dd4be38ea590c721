//! Snapshots of every report over runs with a known shape.

use super::*;
use crate::record::{Group, Run};
use crate::summary::{self, Row, fixture};

fn gpu() -> (Run, Vec<Row>) {
    rows_of(fixture::gpu_run(), &fixture::gpu_groups())
}

fn host() -> (Run, Vec<Row>) {
    rows_of(fixture::host_run(), &fixture::host_groups())
}

fn rows_of(run: Run, groups: &[Group]) -> (Run, Vec<Row>) {
    let rows = summary::rows(&summary::run_id(&run), &run, groups);
    (run, rows)
}

#[test]
fn answer_of_a_gpu() {
    let (run, rows) = gpu();
    insta::assert_snapshot!(answer(&run, &rows));
}

#[test]
fn answer_of_a_host() {
    let (run, rows) = host();
    insta::assert_snapshot!(answer(&run, &rows));
}

#[test]
fn table_of_a_gpu() {
    let (run, rows) = gpu();
    insta::assert_snapshot!(table(&run, &rows));
}

#[test]
fn table_of_a_host() {
    let (run, rows) = host();
    insta::assert_snapshot!(table(&run, &rows));
}

#[test]
fn page_of_a_gpu() {
    insta::assert_snapshot!(markdown(&[gpu()]));
}

#[test]
fn page_of_both() {
    insta::assert_snapshot!(markdown(&[gpu(), host()]));
}

#[test]
fn csv_of_a_gpu() {
    insta::assert_snapshot!(csv(&gpu().1));
}

#[test]
fn csv_and_json_have_the_columns_in_order_and_the_same_cells() {
    let (_, rows) = gpu();
    let (table, objects) = (csv(&rows), json(&rows));
    let mut reader = ::csv::Reader::from_reader(table.as_bytes());
    assert_eq!(reader.headers().unwrap(), &summary::COLUMNS[..]);
    let parsed: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(&objects).unwrap();
    assert_eq!(parsed.len(), rows.len());
    for (record, object) in reader.records().map(Result::unwrap).zip(&parsed) {
        assert_eq!(object.len(), summary::COLUMNS.len());
        for (column, cell) in summary::COLUMNS.iter().zip(&record) {
            let value = &object[*column];
            let text = value.as_str().map(str::to_owned).unwrap_or_else(|| value.to_string());
            assert_eq!(if value.is_null() { "" } else { &text }, cell, "{column}");
        }
    }
    let first = objects.split("},").next().unwrap();
    let keys = first.lines().filter_map(|line| line.trim().strip_prefix('"')?.split('"').next());
    assert_eq!(keys.collect::<Vec<_>>(), summary::COLUMNS);
}

#[test]
fn an_empty_table_still_has_its_header() {
    assert_eq!(csv(&[]).trim_end(), summary::COLUMNS.join(","));
    assert_eq!(json(&[]), "[]\n");
}

#[test]
fn the_table_keeps_to_150_columns_whatever_the_strings() {
    let mut groups = fixture::gpu_groups();
    for group in &mut groups {
        group.held = Some(false);
        group.void_samples = 1;
        group.clocks.throttle_reasons = Some(0x4);
    }
    groups[1].kernel = "gather_read.with_a_long_refinement".to_owned().into();
    groups[1].arms[3].kernel = groups[1].kernel.clone();
    let (run, rows) = rows_of(fixture::gpu_run(), &groups);
    for line in table(&run, &rows).lines() {
        assert!(line.chars().count() <= 150, "{line}");
    }
}

#[test]
fn strings_from_files_can_neither_steer_a_terminal_nor_break_a_page() {
    let hostile = "x\x1b]0;y\x07|\n# z `<b>`";
    let (mut run, mut groups) = (fixture::gpu_run(), fixture::gpu_groups());
    run.device.name = hostile.into();
    run.started = hostile.into();
    run.arguments = vec![hostile.into()];
    run.memory_limit_reason = hostile.into();
    run.tool = hostile.into();
    run.modules = [(hostile.to_owned(), hostile.to_owned())].into();
    run.device.driver = Some(hostile.into());
    for group in &mut groups {
        group.reason = Some(hostile.into());
        group.case.push_str(hostile);
        group.kernel = match group.fragment_bytes {
            Some(_) => hostile.to_owned().into(),
            None => group.kernel.clone(),
        };
        for arm in &mut group.arms {
            arm.pattern = hostile.to_owned().into();
        }
    }
    let (run, rows) = rows_of(run, &groups);
    let pages = [answer(&run, &rows), table(&run, &rows), markdown(&[(run, rows)])];
    for page in &pages {
        assert!(!page.chars().any(|c| c.is_control() && c != '\n'), "{page}");
        assert!(!page.lines().any(|line| line.starts_with("# z")), "{page}");
    }
    let widths: std::collections::BTreeSet<usize> = pages[2]
        .split("## Every row")
        .nth(1)
        .unwrap()
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.replace(r"\|", "").matches('|').count())
        .collect();
    assert_eq!(widths, [12].into());
}
