//! The journal: JSON Lines, the run first, then a line per group.
//!
//! Every line is an object whose `type` says what it is. A line is written whole and flushed when
//! its group ends, so that a run that dies loses no more than the group that it was measuring: what
//! it leaves of a line is recognised as torn, left out with a notice, and cut off on resume.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use thiserror::Error;

use super::{Group, Run, SCHEMA};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// What a journal holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    /// The first line.
    pub run: Run,
    /// The groups, in the order in which they ended.
    pub groups: Vec<Group>,
    /// Lines of types that this version does not know, as they stand in the file.
    pub unknown: Vec<Value>,
    /// What to tell the user where the end of the file is torn.
    pub torn: Option<String>,
    /// Bytes of text up to the end of the last whole line: where a resumed run goes on.
    pub whole_bytes: u64,
}

/// Why a journal cannot be read or written. Each text is a sentence for the user.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}; check the path and your permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// The file cannot be written.
    #[error(
        "cannot write {}: {reason}; check the folder, its free space and your permissions, or name \
         another file with --out", path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// A new journal would replace a file.
    #[error(
        "{0} exists already: go on with it by --resume {0}, or name another file with --out",
        path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another process is writing the file.
    #[error(
        "another run is writing {}: wait for it to end, or name another file with --out",
        path.display()
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// There is nothing in the file.
    #[error("{} is empty: give a file that `fragbench run` wrote", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file does not begin with a whole run line.
    #[error(
        "{} is no fragbench journal, since its first line is not a whole run line: give a file that \
         `fragbench run` wrote", path.display()
    )]
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// The file has another form than this version reads.
    #[error(
        "{} has schema {found}, but this fragbench reads schema {SCHEMA}: use the fragbench that \
         wrote it ({tool})", path.display()
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// The schema of the file, as it stands there.
        found: String,
        /// The version of fragbench that wrote the file.
        tool: String,
    },
    /// A line that is not the last, or is whole, cannot be understood.
    #[error(
        "{}, line {line}: {reason}; repair or remove that line, or take a sound copy of the file",
        path.display()
    )]
    BadLine {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The compressed data are damaged.
    #[error("{} cannot be decompressed: {reason}; take a sound copy of the file", path.display())]
    Gzip {
        /// The file.
        path: PathBuf,
        /// What the decoder says.
        reason: io::Error,
    },
    /// A compressed journal was to be resumed.
    #[error(
        "{} is compressed and cannot be written to: decompress it (gunzip) and resume the \
         uncompressed file", path.display()
    )]
    Compressed {
        /// The file.
        path: PathBuf,
    },
    /// The file is not what it was when it was read.
    #[error(
        "{} changed after it was read: make sure that nothing else writes to it, and resume it \
         again", path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

impl Journal {
    /// Reads a journal, compressed with gzip or not, whatever its name.
    ///
    /// # Errors
    ///
    /// [`JournalError`] says what is wrong with the file. A torn end is no error.
    pub fn read(path: &Path) -> Result<Self, JournalError> {
        let bytes =
            fs::read(path).map_err(|reason| JournalError::Read { path: path.into(), reason })?;
        Self::parse(&bytes, path)
    }

    /// Reads a journal from the content of the file at `path`, which is only named in messages.
    ///
    /// # Errors
    ///
    /// As [`Journal::read`].
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, JournalError> {
        if !bytes.starts_with(&GZIP_MAGIC) {
            return Reader { path }.text(bytes);
        }
        let mut text = Vec::new();
        let decoded = MultiGzDecoder::new(bytes).read_to_end(&mut text);
        if let Err(reason) = &decoded
            && reason.kind() != io::ErrorKind::UnexpectedEof
        {
            return Err(JournalError::Gzip {
                path: path.into(),
                reason: decoded.expect_err("it was matched above"),
            });
        }
        let mut journal = Reader { path }.text(&text)?;
        if decoded.is_err() && journal.torn.is_none() {
            journal.torn = Some(format!(
                "{} ends in the middle of its compressed data: what followed is lost",
                path.display()
            ));
        }
        Ok(journal)
    }
}

/// A line that is not blank.
struct Line<'a> {
    number: usize,
    start: usize,
    bytes: &'a [u8],
}

fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split_inclusive(|&byte| byte == b'\n').enumerate().filter_map(move |(index, bytes)| {
        let line = Line { number: index + 1, start, bytes };
        start += bytes.len();
        (!bytes.trim_ascii().is_empty()).then_some(line)
    })
}

/// Reads text, and names the file in what it says.
struct Reader<'a> {
    path: &'a Path,
}

impl Reader<'_> {
    fn text(&self, text: &[u8]) -> Result<Journal, JournalError> {
        let mut lines = lines(text).peekable();
        let first = lines.next().ok_or_else(|| JournalError::Empty { path: self.path.into() })?;
        let mut journal = Journal {
            run: self.run(&first)?,
            groups: Vec::new(),
            unknown: Vec::new(),
            torn: None,
            whole_bytes: text.len() as u64,
        };
        while let Some(line) = lines.next() {
            match serde_json::from_slice(line.bytes) {
                Ok(value) => self.add(&mut journal, &line, value)?,
                Err(_) if lines.peek().is_none() => {
                    journal.torn = Some(self.torn(&line));
                    journal.whole_bytes = line.start as u64;
                }
                Err(error) => return Err(self.bad_line(&line, format!("no JSON: {error}"))),
            }
        }
        Ok(journal)
    }

    fn run(&self, line: &Line) -> Result<Run, JournalError> {
        let foreign = || JournalError::NotAJournal { path: self.path.into() };
        let mut object: Map<String, Value> =
            serde_json::from_slice(line.bytes).map_err(|_| foreign())?;
        if object.remove("type").is_none_or(|kind| kind != "run") {
            return Err(foreign());
        }
        // Before all else: what another schema's line holds is nothing to complain about.
        let schema = object.get("schema").ok_or_else(foreign)?;
        if *schema != SCHEMA {
            return Err(JournalError::Schema {
                path: self.path.into(),
                found: schema.to_string(),
                tool: match object.get("tool").and_then(Value::as_str) {
                    Some(version) => format!("version {version}"),
                    None => "it does not say its version".to_owned(),
                },
            });
        }
        self.record(line, object)
    }

    fn add(&self, journal: &mut Journal, line: &Line, value: Value) -> Result<(), JournalError> {
        let Value::Object(mut object) = value else {
            return Err(self.bad_line(line, "no JSON object"));
        };
        match object.get("type").and_then(Value::as_str) {
            None => Err(self.bad_line(line, "it does not say its `type`")),
            Some("run") => {
                Err(self.bad_line(line, "a second run begins here, and a journal holds one"))
            }
            Some("group") => {
                object.remove("type");
                journal.groups.push(self.record(line, object)?);
                Ok(())
            }
            Some(_) => {
                journal.unknown.push(Value::Object(object));
                Ok(())
            }
        }
    }

    fn record<T: DeserializeOwned>(
        &self,
        line: &Line,
        object: Map<String, Value>,
    ) -> Result<T, JournalError> {
        serde_json::from_value(Value::Object(object))
            .map_err(|error| self.bad_line(line, error.to_string()))
    }

    fn bad_line(&self, line: &Line, reason: impl Into<String>) -> JournalError {
        JournalError::BadLine { path: self.path.into(), line: line.number, reason: reason.into() }
    }

    fn torn(&self, line: &Line) -> String {
        format!(
            "{}, line {}: the last line is not whole, as after a run that was cut off; it is left \
             out",
            self.path.display(),
            line.number
        )
    }
}

/// A line as it is written, its type first.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Written<'a> {
    Run(&'a Run),
    Group(&'a Group),
}

/// Writes a journal, a line at a time. A journal without any line is removed when its writer is
/// dropped.
#[derive(Debug)]
pub struct JournalWriter {
    path: PathBuf,
    file: File,
    whole_bytes: u64,
}

impl JournalWriter {
    /// Begins a new journal, which fails where there is a file: nothing is ever replaced. To be
    /// called before anything is measured.
    ///
    /// # Errors
    ///
    /// [`JournalError::Exists`] or [`JournalError::Write`].
    pub fn create(path: &Path) -> Result<Self, JournalError> {
        let file = OpenOptions::new().append(true).create_new(true).open(path);
        let file = file.map_err(|reason| match reason.kind() {
            io::ErrorKind::AlreadyExists => JournalError::Exists { path: path.into() },
            _ => write_error(path, reason),
        })?;
        let writer = Self { path: path.into(), file, whole_bytes: 0 };
        lock(&writer.file, path)?;
        Ok(writer)
    }

    /// Goes on with a journal that [`Journal::read`] read: cuts off what is torn, behind
    /// [`Journal::whole_bytes`], and appends.
    ///
    /// # Errors
    ///
    /// [`JournalError::Compressed`], [`JournalError::Busy`], [`JournalError::Changed`], or one of
    /// reading and writing.
    pub fn resume(path: &Path, whole_bytes: u64) -> Result<Self, JournalError> {
        let file = OpenOptions::new().read(true).append(true).open(path);
        let mut file = file.map_err(|reason| write_error(path, reason))?;
        lock(&file, path)?;
        let read_error = |reason| JournalError::Read { path: path.into(), reason };
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(read_error)?;
        if content.starts_with(&GZIP_MAGIC) {
            return Err(JournalError::Compressed { path: path.into() });
        }
        let changed = || JournalError::Changed { path: path.into() };
        let whole = usize::try_from(whole_bytes).map_err(|_| changed())?;
        let (whole, tail) = content.split_at_checked(whole).ok_or_else(changed)?;
        // A whole line behind the end was written after the journal was read.
        if whole.is_empty() || lines(tail).any(|line| is_whole(&line)) {
            return Err(changed());
        }
        let mut writer = Self { path: path.into(), file, whole_bytes };
        writer.cut().map_err(|reason| write_error(path, reason))?;
        if !whole.ends_with(b"\n") {
            writer.append(b"\n")?;
        }
        Ok(writer)
    }

    /// Writes the first line.
    ///
    /// # Errors
    ///
    /// [`JournalError::Write`]; the journal is then as it was before.
    pub fn write_run(&mut self, run: &Run) -> Result<(), JournalError> {
        self.write(&Written::Run(run))
    }

    /// Writes a group's line.
    ///
    /// # Errors
    ///
    /// [`JournalError::Write`]; the journal is then as it was before.
    pub fn write_group(&mut self, group: &Group) -> Result<(), JournalError> {
        self.write(&Written::Group(group))
    }

    /// Gives up: removes the file if it holds no line, so that a run that fails before its first
    /// line leaves nothing behind.
    pub fn abandon(self) {
        drop(self);
    }

    fn write(&mut self, line: &Written) -> Result<(), JournalError> {
        let mut text = serde_json::to_vec(line)
            .map_err(|error| write_error(&self.path, io::Error::from(error)))?;
        text.push(b'\n');
        self.append(&text)
    }

    fn append(&mut self, text: &[u8]) -> Result<(), JournalError> {
        let written = self.file.write_all(text).and_then(|()| self.file.flush());
        if let Err(reason) = written {
            // Half a line in the middle would spoil the journal; where cutting it off fails too,
            // the first failure is still the one to tell.
            let _ = self.cut();
            return Err(write_error(&self.path, reason));
        }
        self.whole_bytes += text.len() as u64;
        Ok(())
    }

    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.whole_bytes)
    }
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        if self.whole_bytes == 0 {
            // An empty file that stays does no harm: reading it says that it is empty.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn is_whole(line: &Line) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line.bytes).is_ok()
}

fn write_error(path: &Path, reason: io::Error) -> JournalError {
    JournalError::Write { path: path.into(), reason }
}

/// Keeps other runs from writing to the file while it is open. Where the file system knows no
/// locks, nothing does.
fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(JournalError::Busy { path: path.into() }),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::record::{Arm, DeviceKind, KernelName, Order, PatternName, Samples, Status};

    fn sample_run() -> Run {
        serde_json::from_value(json!({
            "schema": SCHEMA,
            "tool": "0.1.0",
            "source_sha256": "00ff",
            "modules": {"access": "aa", "verify": "bb"},
            "arguments": ["run", "--seed", "7"],
            "selection": {"suite": "quick", "device": "auto", "seed": "18446744073709551615"},
            "memory_limit_bytes": u64::MAX,
            "memory_limit_reason": "half of free: “shared”",
            "started": "2026-01-01T00:00:00Z",
            "host": {"os": "Linux", "architecture": "x86_64", "processor": null,
                     "logical_processors": 2, "memory_bytes": null, "sockets": 2},
            "device": {"kind": "quantum", "id": "cuda:0", "name": "Größe", "uuid": null,
                       "memory_bytes": 1, "nvml": false, "future": [1, {"x": null}]},
            "weather": "sunny",
        }))
        .unwrap()
    }

    fn sample_group(case: &str) -> Group {
        serde_json::from_value(json!({
            "case": case,
            "experiment": "bandwidth",
            "mechanism": "indirect",
            "kernel": "gather_read",
            "pattern": "zigzag",
            "footprint_bytes": 4096,
            "payload_bytes": 2048,
            "status": "ok",
            "arms": [{
                "name": "scattered", "kernel": "gather_read", "pattern": "zigzag",
                "order": "backwards", "read_bytes": 2048, "written_bytes": 0, "index_bytes": 64,
                "touched_bytes": 4096, "energy_uj": 5,
                "samples": {"round": [0], "position": [1], "launches": [2], "ns": [u64::MAX]},
            }],
            "stop": "bored",
            "humidity": {"percent": 40},
        }))
        .unwrap()
    }

    fn line_of(line: &Written) -> Vec<u8> {
        let mut text = serde_json::to_vec(line).unwrap();
        text.push(b'\n');
        text
    }

    /// A run, a group, a line of an unknown type, and a group.
    fn sample_lines() -> [Vec<u8>; 4] {
        [
            line_of(&Written::Run(&sample_run())),
            line_of(&Written::Group(&sample_group("first/größe"))),
            b"{\"type\":\"weather\",\"sky\":\"blue\"}\n".to_vec(),
            line_of(&Written::Group(&sample_group("second"))),
        ]
    }

    fn sample_text() -> Vec<u8> {
        sample_lines().concat()
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn parse(bytes: &[u8]) -> Result<Journal, JournalError> {
        Journal::parse(bytes, Path::new("x.jsonl"))
    }

    fn parse_with(first: &Value, rest: &str) -> Result<Journal, JournalError> {
        parse(format!("{first}\n{rest}").as_bytes())
    }

    /// What the journal holds, apart from where it ends.
    fn content(journal: &Journal) -> (&Run, Vec<&str>, usize) {
        let cases = journal.groups.iter().map(|group| group.case.as_str()).collect();
        (&journal.run, cases, journal.unknown.len())
    }

    struct Folder(TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("x.jsonl")
        }

        fn with(bytes: &[u8]) -> Self {
            let folder = Self::new();
            fs::write(folder.path(), bytes).unwrap();
            folder
        }
    }

    #[test]
    fn lines_begin_with_their_type() {
        let [run, group, ..] = sample_lines();
        assert!(run.starts_with(b"{\"type\":\"run\",\"schema\":0,"));
        assert!(group.starts_with(b"{\"type\":\"group\",\"case\":"));
    }

    #[test]
    fn newer_fields_values_and_line_types_are_kept() {
        let journal = parse(&sample_text()).unwrap();
        assert_eq!(journal.unknown, [json!({"type": "weather", "sky": "blue"})]);
        let folder = Folder::new();
        let mut writer = JournalWriter::create(&folder.path()).unwrap();
        writer.write_run(&journal.run).unwrap();
        writer.write_group(&journal.groups[0]).unwrap();
        let text = fs::read_to_string(folder.path()).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["weather"], "sunny");
        assert_eq!(lines[0]["host"]["sockets"], 2);
        assert_eq!(lines[0]["device"]["kind"], "quantum");
        assert_eq!(lines[0]["device"]["future"], json!([1, {"x": null}]));
        assert_eq!(lines[1]["pattern"], "zigzag");
        assert_eq!(lines[1]["stop"], "bored");
        assert_eq!(lines[1]["humidity"], json!({"percent": 40}));
        assert_eq!(lines[1]["arms"][0]["order"], "backwards");
        assert_eq!(lines[1]["arms"][0]["energy_uj"], 5);
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
            let expected =
                [&lines[..whole].concat()[..], &line_of(&Written::Group(&sample_group("resumed")))];
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

    #[test]
    fn whole_lines_that_make_no_sense_are_errors_even_at_the_end() {
        // Dropping them would lose what somebody wrote in full.
        let run = serde_json::from_slice(&sample_lines()[0]).unwrap();
        for (line, reason) in [
            ("[1]", "no JSON object"),
            ("{}", "does not say its `type`"),
            ("{\"type\":7}", "does not say its `type`"),
            ("{\"type\":\"group\"}", "missing field `case`"),
            ("{\"type\":\"run\"}", "a second run"),
        ] {
            let error = parse_with(&run, line).unwrap_err();
            assert!(matches!(error, JournalError::BadLine { line: 2, .. }), "{error}");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn foreign_files_are_told_apart() {
        for text in
            ["{\"a\":1}\n", "a,b\n1,2\n", "[]", "{\"type\":\"run\"}", "{\"type\":\"group\"}"]
        {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(matches!(error, JournalError::NotAJournal { .. }), "{text}: {error}");
        }
        for text in ["", "\n", " \r\n\n"] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(matches!(error, JournalError::Empty { .. }), "{text:?}: {error}");
        }
        let missing = Journal::read(Path::new("no-such-folder/x.jsonl")).unwrap_err();
        assert!(matches!(missing, JournalError::Read { .. }), "{missing}");
    }

    #[test]
    fn another_schema_is_reported_before_anything_else_of_its_line() {
        let run = json!({"type": "run", "schema": 9, "tool": "3.1.4", "device": "reshaped"});
        let error = parse_with(&run, "").unwrap_err().to_string();
        assert!(error.contains("has schema 9, but this fragbench reads schema 0"), "{error}");
        assert!(error.contains("version 3.1.4"), "{error}");
        let run = json!({"type": "run", "schema": SCHEMA, "tool": "3.1.4"});
        let error = parse_with(&run, "").unwrap_err();
        assert!(matches!(error, JournalError::BadLine { line: 1, .. }), "{error}");
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

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn any_extra() -> impl Strategy<Value = Map<String, Value>> {
        // No field has such a name.
        prop::collection::btree_map("new_\\PC{0,6}", any_json(), 0..3)
            .prop_map(|map| map.into_iter().collect())
    }

    fn any_run() -> impl Strategy<Value = Run> {
        (
            any_extra(),
            any_extra(),
            any_extra(),
            any::<String>(),
            any::<[Option<u64>; 2]>(),
            prop::collection::btree_map(any::<String>(), any::<String>(), 0..3),
        )
            .prop_map(|(of_run, of_host, of_device, text, numbers, modules)| {
                let mut run = sample_run();
                run.extra = of_run;
                run.host.extra = of_host;
                run.device.extra = of_device;
                run.device.kind = DeviceKind::from(text.clone());
                run.device.uuid = numbers[0].map(|_| text.clone());
                run.device.l2_bytes = numbers[1];
                run.selection.filters = vec![text];
                run.selection.memory_limit_bytes = numbers[0];
                run.modules = BTreeMap::from_iter(modules);
                run
            })
    }

    fn any_arm() -> impl Strategy<Value = Arm> {
        let samples = prop::collection::vec(any::<(u32, u32, u32, u64)>(), 0..5);
        (any::<String>(), any::<Option<String>>(), any::<[u64; 4]>(), samples, any_extra())
            .prop_map(|(name, order, bytes, rows, extra)| {
                let mut samples = Samples::default();
                for (round, position, launches, ns) in rows {
                    samples.push(round, position, launches, ns);
                }
                Arm {
                    kernel: KernelName::from(name.clone()),
                    pattern: PatternName::from(name.clone()),
                    name,
                    order: order.map(Order::from),
                    read_bytes: bytes[0],
                    written_bytes: bytes[1],
                    index_bytes: bytes[2],
                    touched_bytes: bytes[3],
                    samples,
                    extra,
                }
            })
    }

    fn any_group() -> impl Strategy<Value = Group> {
        (
            any::<String>(),
            prop_oneof!["ok|skipped|failed", any::<String>()],
            any::<Option<String>>(),
            any::<[Option<u64>; 2]>(),
            prop::collection::vec(any_arm(), 0..3),
            any_extra(),
        )
            .prop_map(|(case, status, reason, bytes, arms, extra)| {
                let mut group = sample_group(&case);
                group.status = Status::from(status);
                group.reason = reason;
                group.fragment_bytes = bytes[0];
                group.alignment_bytes = bytes[1];
                group.arms = arms;
                group.extra = extra;
                group
            })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            run in any_run(),
            groups in prop::collection::vec(any_group(), 0..4),
            resumed in any_group(),
        ) {
            let folder = Folder::new();
            let mut writer = JournalWriter::create(&folder.path()).unwrap();
            writer.write_run(&run).unwrap();
            for group in &groups {
                writer.write_group(group).unwrap();
            }
            drop(writer);
            let journal = Journal::read(&folder.path()).unwrap();
            prop_assert_eq!(&journal.run, &run);
            prop_assert_eq!(&journal.groups, &groups);
            prop_assert_eq!(&journal.torn, &None);

            let mut writer = JournalWriter::resume(&folder.path(), journal.whole_bytes).unwrap();
            writer.write_group(&resumed).unwrap();
            let mut all = groups;
            all.push(resumed);
            prop_assert_eq!(Journal::read(&folder.path()).unwrap().groups, all);
        }

        #[test]
        fn unknown_lines_are_kept(kind in "[a-z]{1,8}", body in any_extra()) {
            prop_assume!(kind != "run" && kind != "group");
            let mut line = body;
            line.insert("type".into(), kind.into());
            let line = Value::Object(line);
            let run = serde_json::from_slice(&sample_lines()[0]).unwrap();
            prop_assert_eq!(parse_with(&run, &line.to_string()).unwrap().unknown, [line]);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>(), at in any::<prop::sample::Index>()) {
            let _ = parse(&bytes);
            let _ = parse(&[&GZIP_MAGIC[..], &bytes].concat());
            for mut damaged in [sample_text(), gzip(&sample_text())] {
                let at = at.index(damaged.len());
                let end = damaged.len().min(at + bytes.len());
                damaged.splice(at..end, bytes.iter().copied());
                let _ = parse(&damaged);
            }
        }
    }
}
