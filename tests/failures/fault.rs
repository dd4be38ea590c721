//! A real fault of a GPU.

use std::env;

use fragbench::record::journal::Journal;
use fragbench::record::{Lost, Status};

use super::process::cases;
use super::{ended, fragbench, start};

#[test]
#[ignore = "needs a GPU: FRAGBENCH_TEST_DEVICE=cuda:0 cargo test --test failures -- --ignored"]
fn a_fault_costs_its_group_and_a_resumed_run_measures_it() {
    let device = env::var("FRAGBENCH_TEST_DEVICE").expect("FRAGBENCH_TEST_DEVICE names a GPU");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let three = ["64B", "128B", "4KiB"].map(|fragment| {
        let case = format!("gather_read/pattern=shuffled/fragment={fragment}/footprint=256MiB");
        format!("bandwidth/kernel={case}")
    });
    let mut arguments =
        ["run", "--inject-device-fault", "--out", "run.jsonl"].map(str::to_owned).to_vec();
    arguments.extend(three.iter().map(|case| format!("--case={case}")));
    arguments.push(format!("--device={device}"));
    let output = ended(start(folder.path(), &fragbench(), &arguments));
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("1 of 3 cases failed"), "{error}");
    let statuses = [Status::Failed, Status::Ok, Status::Ok];
    assert_eq!(cases(&path), three.iter().cloned().zip(statuses).collect::<Vec<_>>());
    let group = &Journal::read(&path).unwrap().groups[0];
    assert_eq!(group.lost, Some(Lost::Device));
    let reason = group.reason.as_deref().unwrap();
    assert!(reason.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{reason}");

    let resume = ["run", "--resume", "run.jsonl"].map(str::to_owned);
    let output = ended(start(folder.path(), &fragbench(), &resume));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut all = cases(&path);
    all.rotate_right(1);
    assert_eq!(all, three.map(|case| (case, Status::Ok)));
}
