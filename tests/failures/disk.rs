//! Files and streams that cannot be written.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use fragbench::record::Status;

use super::process::{PATIENCE, cases, wait_until, workers_of};
use super::{ended, fragbench, quick, run_of, start};

/// What a shell of POSIX counts the limit of a file's size in.
const BLOCK_BYTES: usize = 512;

#[test]
fn a_full_disk_ends_the_run_with_what_was_written_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let three = ["256B", "512B", "1KiB"].map(quick);
    let output = ended(start(folder.path(), &fragbench(), &run_of(&three)));
    assert_eq!(output.status.code(), Some(0));
    let whole = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let lengths: Vec<usize> = whole.split_inclusive('\n').map(str::len).collect();
    // The run's line and the first group's fit, and the second group's does not.
    let blocks = (lengths[0] + lengths[1] + lengths[2] / 2) / BLOCK_BYTES;

    let limited = format!("ulimit -f {blocks} && exec \"$0\" \"$@\"");
    let mut arguments = vec!["-c".to_owned(), limited, fragbench()];
    arguments.extend(run_of(&three));
    let child = start(folder.path(), "sh", &arguments);
    let parent = child.id();
    let output = ended(child);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(output.stdout.is_empty());
    let sentence = error.lines().last().unwrap();
    assert!(
        sentence.starts_with("fragbench: a result cannot be written to run.jsonl: "),
        "{error}"
    );
    assert!(sentence.contains("kept") && sentence.ends_with("--resume run.jsonl"), "{error}");
    assert_eq!(error.lines().filter(|line| line.starts_with("fragbench: ")).count(), 1, "{error}");
    wait_until(PATIENCE, "the worker's end", || workers_of(parent).is_empty());
    // Nothing of the line that did not fit is left.
    let kept = fs::read_to_string(&path).unwrap();
    assert!(kept.ends_with('\n'));
    assert_eq!(cases(&path), [(three[0].clone(), Status::Ok)]);

    let resume = ["run", "--resume", "run.jsonl"].map(str::to_owned);
    let output = ended(start(folder.path(), &fragbench(), &resume));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(fs::read_to_string(&path).unwrap().starts_with(&kept));
    assert_eq!(cases(&path), three.map(|case| (case, Status::Ok)));
}

/// `/dev/full` takes no byte, as a full disk under a redirection.
#[test]
fn streams_that_cannot_be_written_do_not_spoil_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let mut command = Command::new(fragbench());
    command.current_dir(folder.path()).args(run_of(&[quick("256B")]));
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(full()).status();
    assert_eq!(status.unwrap().code(), Some(0));
    assert_eq!(cases(&folder.path().join("run.jsonl")), [(quick("256B"), Status::Ok)]);

    let mut export = Command::new(fragbench());
    let output = export.current_dir(folder.path()).args(["export", "run.jsonl"]);
    let output = output.stdout(full()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.starts_with("fragbench: standard output cannot be written: "), "{error}");
}
