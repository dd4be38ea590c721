//! What is written, and that nothing else is.

use std::io;

use super::*;

#[test]
fn lines_begin_with_their_type() {
    let [run, group, ..] = sample_lines();
    assert!(run.starts_with(b"{\"type\":\"run\",\"checksum\":\"crc32\",\"schema\":0,"));
    assert!(group.starts_with(b"{\"type\":\"group\",\"case\":"));
}

#[test]
fn each_line_is_in_the_file_as_soon_as_it_is_written() {
    let folder = Folder::new();
    let mut writer = JournalWriter::create(&folder.path()).unwrap();
    writer.write_run(&sample_run()).unwrap();
    assert_eq!(Journal::read(&folder.path()).unwrap().groups.len(), 0);
    writer.write_group(&sample_group("a")).unwrap();
    let journal = Journal::read(&folder.path()).unwrap();
    assert_eq!(journal.groups, [sample_group("a")]);
    assert_eq!(journal.whole_bytes, fs::metadata(folder.path()).unwrap().len());
    drop(writer);
    assert!(folder.path().exists());
}

#[test]
fn every_message_is_one_sentence_that_names_the_file() {
    let path = || PathBuf::from("folder/x.jsonl");
    let reason = || io::Error::other("no luck");
    let errors = [
        JournalError::Read { path: path(), reason: reason() },
        JournalError::Write { path: path(), reason: reason() },
        JournalError::Exists { path: path() },
        JournalError::Busy { path: path() },
        JournalError::Empty { path: path() },
        JournalError::NotAJournal { path: path() },
        JournalError::Schema { path: path(), found: "9".into(), tool: "version 9".into() },
        JournalError::BadLine { path: path(), line: 3, reason: "no JSON".into() },
        JournalError::Gzip { path: path(), reason: reason() },
        JournalError::Compressed { path: path() },
        JournalError::Changed { path: path() },
    ];
    for error in errors {
        let text = error.to_string();
        assert!(text.contains("folder/x.jsonl"), "{text}");
        assert!(!text.contains("  ") && !text.contains('\n'), "{text}");
        // What is wrong, then what to do.
        assert!(text.contains([':', ';']) && !text.ends_with('.'), "{text}");
    }
}

#[test]
fn nothing_is_replaced() {
    let folder = Folder::with(b"precious");
    let error = JournalWriter::create(&folder.path()).unwrap_err();
    assert!(matches!(error, JournalError::Exists { .. }), "{error}");
    assert!(error.to_string().contains("--resume"), "{error}");
    assert!(error.to_string().contains("--out"), "{error}");
    assert_eq!(fs::read(folder.path()).unwrap(), b"precious");
}

#[test]
fn only_a_journal_without_a_line_is_removed() {
    let folder = Folder::new();
    let writer = JournalWriter::create(&folder.path()).unwrap();
    assert!(folder.path().exists());
    writer.abandon();
    assert!(!folder.path().exists());

    let mut writer = JournalWriter::create(&folder.path()).unwrap();
    writer.write_run(&sample_run()).unwrap();
    writer.abandon();
    let journal = Journal::read(&folder.path()).unwrap();
    JournalWriter::resume(&folder.path(), journal.whole_bytes).unwrap().abandon();
    assert_eq!(Journal::read(&folder.path()).unwrap(), journal);
}
