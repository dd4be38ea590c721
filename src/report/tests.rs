//! Snapshots of every report over runs with a known shape.

use super::heaps::placement;
use super::*;
use crate::record::Refined;
use crate::summary::{self, Summary, fixture};

fn gpu() -> Summary {
    Summary::of(fixture::gpu_run(), &fixture::gpu_groups())
}

fn host() -> Summary {
    Summary::of(fixture::host_run(), &fixture::host_groups())
}

#[test]
fn answer_of_a_gpu() {
    insta::assert_snapshot!(answer(&gpu()));
}

#[test]
fn answer_of_a_host() {
    insta::assert_snapshot!(answer(&host()));
}

#[test]
fn table_of_a_gpu() {
    insta::assert_snapshot!(table(&gpu()));
}

#[test]
fn table_of_a_host() {
    insta::assert_snapshot!(table(&host()));
}

#[test]
fn plot_of_a_gpu() {
    insta::assert_snapshot!(plot(&gpu().rows));
}

#[test]
fn a_plot_of_a_host_says_so() {
    let shape = fixture::Shape::default;
    let groups = [64, 128, 256, 512].map(|fragment| fixture::Shape { fragment, ..shape() }.group());
    assert!(
        plot(&Summary::of(fixture::host_run(), &groups).rows)
            .starts_with("gather_read, shuffled, on the host: ")
    );
}

#[test]
fn page_of_a_gpu() {
    insta::assert_snapshot!(markdown(&[gpu()]));
}

#[test]
fn page_with_competitors() {
    let strided = fixture::Shape {
        kernel: crate::record::KernelName::StridedGather,
        pattern: crate::record::PatternName::Strided,
        fragment: 8,
        ..fixture::Shape::default()
    };
    let competitors = [("depth_1", 4100.0), ("depth_16", 3900.0)];
    let groups = [strided.variants(&competitors)];
    insta::assert_snapshot!(markdown(&[Summary::of(fixture::gpu_run(), &groups)]));
}

fn heaps_of(rates: [(&str, f64); 3]) -> Summary {
    let aged = |(policy, scattered): (&str, f64)| {
        fixture::Shape { scattered, ..fixture::Shape::default() }.aged(policy)
    };
    Summary::of(fixture::gpu_run(), &rates.map(aged))
}

#[test]
fn page_with_aged_heaps() {
    let heaps = heaps_of([("best_fit", 4300.0), ("buddy", 3900.0), ("caching", 4380.0)]);
    insta::assert_snapshot!(markdown(&[heaps]));
}

#[test]
fn a_claimed_loss_is_counted_by_its_interval() {
    let said = |rates| {
        let lines = placement(&heaps_of(rates).rows);
        let [line] = &lines[..] else { panic!("{lines:?}") };
        line.split_once("A loss of 10 % or more: ").unwrap().1.to_owned()
    };
    // Of 4425 packed: 0.9 lies at 3982.5, inside the interval of 3982.
    let rates = [("best_fit", 4300.0), ("buddy", 3900.0), ("caching", 3982.4)];
    assert_eq!(said(rates), "in 1 of them, less in 1, ambiguous in 1.");
    let rates = [("best_fit", 4300.0), ("buddy", 4100.0), ("caching", 4400.0)];
    assert_eq!(said(rates), "in 0 of them, less in 3.");
}

fn scatter() -> Summary {
    Summary::of(fixture::gpu_run(), &fixture::scatter_groups())
}

#[test]
fn answer_of_scattered_memory() {
    insta::assert_snapshot!(answer(&scatter()));
}

#[test]
fn table_of_scattered_memory() {
    insta::assert_snapshot!(table(&scatter()));
}

#[test]
fn what_scattered_pages_cost_is_only_asked_where_it_was_not_measured() {
    let asked = "of scattered physical pages";
    assert!(answer(&gpu()).replace("\n  ", " ").contains(asked));
    let both = [fixture::gpu_groups(), fixture::scatter_groups()].concat();
    let both = answer(&Summary::of(fixture::gpu_run(), &both)).replace("\n  ", " ");
    assert!(!both.contains(asked) && both.contains("what scattered physical pages cost follows"));
}

#[test]
fn a_reach_that_is_none_or_in_doubt_is_told_as_such() {
    let told = |groups: &[crate::record::Group]| {
        answer(&Summary::of(fixture::gpu_run(), groups)).replace("\n  ", " ")
    };
    let mut groups = fixture::scatter_groups();
    let within = groups[4..].to_vec();
    assert!(!told(&within).contains("Reach of the TLB"), "four footprints tell nothing");
    let short = told(&groups[3..]);
    assert!(short.contains("in_order (128 B) none, it falls in footprints up to 80GiB"), "{short}");
    for arm in groups[2].arms.iter_mut().filter(|arm| arm.name == "in_order") {
        arm.samples.ns.iter_mut().for_each(|ns| *ns *= 2);
    }
    let doubtful = told(&groups);
    assert_eq!(doubtful.matches("ambiguous: the curve is not").count(), 1, "{doubtful}");
}

#[test]
fn page_of_both() {
    insta::assert_snapshot!(markdown(&[gpu(), host()]));
}

#[test]
fn csv_of_a_gpu() {
    insta::assert_snapshot!(csv(&gpu().rows));
}

#[test]
fn csv_and_json_have_the_columns_in_order_and_the_same_cells() {
    let rows = gpu().rows;
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
    groups[1].kernel = Refined::parse("gather_read.with_a_long_refinement");
    groups[1].arms[3].kernel = groups[1].kernel.clone();
    for line in table(&Summary::of(fixture::gpu_run(), &groups)).lines() {
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
            Some(_) => Refined::parse(hostile),
            None => group.kernel.clone(),
        };
        for arm in &mut group.arms {
            arm.pattern = Refined::parse(hostile);
        }
    }
    let one = Summary::of(run, &groups);
    let pages = [answer(&one), table(&one), markdown(std::slice::from_ref(&one)), plot(&one.rows)];
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
