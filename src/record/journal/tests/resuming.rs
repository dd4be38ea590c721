//! Going on with a journal.

use super::*;
use crate::record::{Lost, Status};

#[test]
fn compressed_journal_is_not_resumed() {
    let bytes = gzip(&sample_text());
    let folder = Folder::with(&bytes);
    let whole_bytes = Journal::read(&folder.path()).unwrap().whole_bytes;
    let error = JournalWriter::resume(&folder.path(), whole_bytes).unwrap_err();
    assert!(matches!(error, JournalError::Compressed { .. }), "{error}");
    assert_eq!(fs::read(folder.path()).unwrap(), bytes);
}

#[test]
fn file_that_changed_since_it_was_read_is_not_touched() {
    let [run, group, ..] = sample_lines();
    let torn = [&run[..], b"{\"type\":\"gro"].concat();
    let whole_bytes = parse(&torn).unwrap().whole_bytes;
    for now in [[&run[..], &group].concat(), run[..run.len() - 5].to_vec(), Vec::new()] {
        let folder = Folder::with(&now);
        let error = JournalWriter::resume(&folder.path(), whole_bytes).unwrap_err();
        assert!(matches!(error, JournalError::Changed { .. }), "{error}");
        assert_eq!(fs::read(folder.path()).unwrap(), now);
    }
}

#[test]
fn two_runs_do_not_write_to_one_file() {
    let folder = Folder::new();
    let mut writer = JournalWriter::create(&folder.path()).unwrap();
    writer.write_run(&sample_run()).unwrap();
    let whole_bytes = Journal::read(&folder.path()).unwrap().whole_bytes;
    let error = JournalWriter::resume(&folder.path(), whole_bytes).unwrap_err();
    assert!(matches!(error, JournalError::Busy { .. }), "{error}");
    drop(writer);
    JournalWriter::resume(&folder.path(), whole_bytes).unwrap();
}

#[test]
fn the_last_line_of_a_case_stands() {
    let lost = Group {
        status: Status::Failed,
        reason: Some("the worker process ended".to_owned()),
        lost: Some(Lost::Worker),
        ..sample_group("a")
    };
    let lines = [&line_of(&sample_run())[..], &line_of(&lost), &line_of(&sample_group("b"))];
    let journal = parse(&lines.concat()).unwrap();
    assert_eq!(journal.groups, [lost, sample_group("b")]);
    let folder = Folder::with(&lines.concat());
    let mut writer = JournalWriter::resume(&folder.path(), journal.whole_bytes).unwrap();
    writer.write_group(&sample_group("a")).unwrap();
    let journal = Journal::read(&folder.path()).unwrap();
    assert_eq!(journal.groups, [sample_group("b"), sample_group("a")]);
}
