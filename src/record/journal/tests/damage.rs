//! Files that were cut off or changed.

use super::*;

#[test]
fn cut_anywhere_loses_no_whole_line() {
    let lines = sample_lines();
    let text = lines.concat();
    let folder = Folder::new();
    for cut in 0..=text.len() {
        fs::write(folder.path(), &text[..cut]).unwrap();
        let read = Journal::read(&folder.path());
        // A line is whole without its newline too.
        let mut end = 0;
        let mut whole = 0;
        while whole < lines.len() && end + lines[whole].len() - 1 <= cut {
            end += lines[whole].len();
            whole += 1;
        }
        if whole == 0 {
            let expected = match read.unwrap_err() {
                JournalError::Empty { .. } => cut == 0,
                JournalError::NotAJournal { .. } => cut > 0,
                _ => false,
            };
            assert!(expected, "cut at {cut}");
            continue;
        }
        let journal = read.unwrap();
        let kept = parse(&lines[..whole].concat()).unwrap();
        assert_eq!(content(&journal), content(&kept), "cut at {cut}");
        assert_eq!(journal.torn.is_some(), cut > end, "cut at {cut}");
        assert_eq!(journal.whole_bytes, end.min(cut) as u64, "cut at {cut}");

        let mut writer = JournalWriter::resume(&folder.path(), journal.whole_bytes).unwrap();
        writer.write_group(&sample_group("resumed")).unwrap();
        let expected = [&lines[..whole].concat()[..], &line_of(&sample_group("resumed"))];
        assert_eq!(fs::read(folder.path()).unwrap(), expected.concat(), "cut at {cut}");
    }
}

#[test]
fn compressed_and_cut_anywhere_reads_or_is_refused() {
    let text = sample_text();
    let bytes = gzip(&text);
    let whole = parse(&text).unwrap();
    assert_eq!(parse(&bytes).unwrap(), whole);
    let mut notices = 0;
    for cut in 0..bytes.len() {
        match parse(&bytes[..cut]) {
            Ok(journal) => {
                assert!(journal.torn.is_some(), "cut at {cut}");
                assert_eq!(journal.run, whole.run);
                assert!(whole.groups.starts_with(&journal.groups));
                notices += 1;
            }
            Err(JournalError::Empty { .. } | JournalError::NotAJournal { .. }) => {}
            Err(error) => panic!("cut at {cut}: {error}"),
        }
    }
    assert!(notices >= 8, "the checksum at the end may be cut without loss");
}

#[test]
fn damaged_compression_is_reported() {
    let mut bytes = gzip(&sample_text());
    let checksum = bytes.len() - 8;
    bytes[checksum] ^= 1;
    assert!(matches!(parse(&bytes), Err(JournalError::Gzip { .. })));
}

#[test]
fn bad_line_before_the_last_is_an_error_with_its_number() {
    let [run, group, ..] = sample_lines();
    let half = [&group[..group.len() / 2], b"\n"].concat();
    // A blank line is counted.
    let error = parse(&[&run[..], b"\n", &half, &group].concat()).unwrap_err();
    assert!(matches!(error, JournalError::BadLine { line: 3, .. }), "{error}");
    assert!(error.to_string().starts_with("x.jsonl, line 3: "), "{error}");

    // The same as the last line is torn, even with a newline (zeros after a power failure).
    let journal = parse(&[&run[..], b"\n", &group, b"\0\0\0\n"].concat()).unwrap();
    assert_eq!(journal.groups.len(), 1);
    assert!(journal.torn.unwrap().starts_with("x.jsonl, line 4: "));
    assert_eq!(journal.whole_bytes, (run.len() + 1 + group.len()) as u64);
}

/// Every single bit of every byte: an error, a torn end without the last line, or the same content.
#[test]
fn no_flipped_bit_makes_a_different_content() {
    let lines = sample_lines();
    // A journal of a run alone has no other line to tell that its checksums are gone.
    for lines in [&lines[..], &lines[..2], &lines[..1]] {
        let text = lines.concat();
        let sound = parse(&text).unwrap();
        let mut errors = 0;
        for bit in 0..8 * text.len() {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match parse(&flipped) {
                Err(_) => errors += 1,
                Ok(journal) if journal.torn.is_some() => {
                    assert_eq!(journal.run, sound.run, "bit {bit}");
                    assert!(sound.groups.starts_with(&journal.groups), "bit {bit}");
                }
                Ok(journal) => assert_eq!(journal, sound, "bit {bit}"),
            }
        }
        assert!(errors > 7 * lines[0].len(), "{errors} errors");
    }
}

#[test]
fn a_whole_line_that_is_not_what_was_written_is_named() {
    let [run, group, ..] = sample_lines();
    // One figure for another is JSON as before.
    let changed = String::from_utf8(group.clone()).unwrap().replace("4096", "4097").into_bytes();
    assert_ne!(changed, group);
    for (text, line) in
        [([&run[..], &changed].concat(), 2), ([&run[..], &group, &changed].concat(), 3)]
    {
        let error = parse(&text).unwrap_err();
        assert!(matches!(error, JournalError::BadLine { line: at, .. } if at == line), "{error}");
        assert!(error.to_string().contains("its checksum does not fit"), "{error}");
    }
}

#[test]
fn a_journal_with_checksums_has_them_on_every_line() {
    let [run, group, ..] = sample_lines();
    let bare = serde_json::to_vec(&Written::from(&sample_group("first/größe"))).unwrap();
    let error = parse(&[&run[..], &bare].concat()).unwrap_err().to_string();
    assert!(error.starts_with("x.jsonl, line 2: it has no checksum"), "{error}");
    // Journals from before there were checksums have none, and one that stands there is checked.
    let old = format!("{}\n", unsealed_run()).into_bytes();
    let journal = parse(&[&old[..], &bare].concat()).unwrap();
    assert_eq!((journal.run, journal.groups), (sample_run(), vec![sample_group("first/größe")]));
    assert!(parse(&[&old[..], &group].concat()).is_ok());
    let changed = String::from_utf8(group).unwrap().replace("4096", "4097");
    assert!(parse(&[&old[..], changed.as_bytes()].concat()).is_err());
    let first = "{\"crc32\":1,\"type\":\"weather\"}";
    let error = parse(&[&old[..], first.as_bytes()].concat()).unwrap_err().to_string();
    assert!(error.contains("`crc32` is no checksum that ends the line"), "{error}");
}
