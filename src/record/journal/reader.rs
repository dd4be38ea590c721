//! Reading a journal, whoever wrote it.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::super::{Run, SCHEMA};
use super::checksum::{self, Verdict};
use super::{CHECKSUM, Journal, JournalError};

pub(super) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

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
pub(super) struct Line<'a> {
    pub(super) number: usize,
    pub(super) start: usize,
    pub(super) bytes: &'a [u8],
}

pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
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
        let (run, is_sealed) = self.run(&first)?;
        let mut journal = Journal {
            run,
            groups: Vec::new(),
            allocations: Vec::new(),
            selftests: Vec::new(),
            coverages: Vec::new(),
            clocks: Vec::new(),
            unknown: Vec::new(),
            torn: None,
            whole_bytes: text.len() as u64,
        };
        let mut seen = HashSet::new();
        while let Some(line) = lines.next() {
            if !seen.insert(line.bytes.trim_ascii()) {
                continue;
            }
            match serde_json::from_slice(line.bytes) {
                Ok(value) => self.add(&mut journal, &line, value, is_sealed)?,
                Err(_) if lines.peek().is_none() => {
                    journal.torn = Some(self.torn(&line));
                    journal.whole_bytes = line.start as u64;
                }
                Err(error) => return Err(self.bad_line(&line, format!("no JSON: {error}"))),
            }
        }
        replace_lost(&mut journal.groups, |one| (one.process, &one.case, one.lost.is_some()));
        replace_lost(&mut journal.allocations, |one| (one.process, &one.case, one.lost.is_some()));
        Ok(journal)
    }

    /// The first line, and whether it says that every line has a checksum.
    fn run(&self, line: &Line) -> Result<(Run, bool), JournalError> {
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
        let is_sealed = object.get("checksum").is_some_and(|name| name == CHECKSUM);
        if is_sealed {
            object.remove("checksum");
        }
        self.unseal(line, &mut object, is_sealed)?;
        Ok((self.record(line, object)?, is_sealed))
    }

    /// Checks the line's checksum, and takes it out.
    fn unseal(
        &self,
        line: &Line,
        object: &mut Map<String, Value>,
        is_sealed: bool,
    ) -> Result<(), JournalError> {
        let verdict = object.remove(checksum::FIELD).map(|_| checksum::check(line.bytes));
        let what = match verdict {
            None if is_sealed => "it has no checksum, which every line of this journal has",
            None | Some(Verdict::Fits) => return Ok(()),
            Some(Verdict::Differs) => "its checksum does not fit, so it is not what was written",
            Some(Verdict::Misplaced) => "its `crc32` is no checksum that ends the line",
        };
        Err(self.bad_line(line, what))
    }

    fn add(
        &self,
        journal: &mut Journal,
        line: &Line,
        value: Value,
        is_sealed: bool,
    ) -> Result<(), JournalError> {
        let Value::Object(mut object) = value else {
            return Err(self.bad_line(line, "no JSON object"));
        };
        self.unseal(line, &mut object, is_sealed)?;
        let kind = object.get("type").and_then(Value::as_str).map(str::to_owned);
        match kind.as_deref() {
            None => return Err(self.bad_line(line, "it does not say its `type`")),
            Some("run") => {
                return Err(
                    self.bad_line(line, "a second run begins here, and a journal holds one")
                );
            }
            Some("group") => journal.groups.push(self.record(line, object)?),
            Some("allocation") => journal.allocations.push(self.record(line, object)?),
            Some("selftest") => journal.selftests.push(self.record(line, object)?),
            Some("coverage") => journal.coverages.push(self.record(line, object)?),
            Some("clock") => journal.clocks.push(self.record(line, object)?),
            Some(_) => journal.unknown.push(Value::Object(object)),
        }
        Ok(())
    }

    fn record<T: DeserializeOwned>(
        &self,
        line: &Line,
        mut object: Map<String, Value>,
    ) -> Result<T, JournalError> {
        object.remove("type");
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

/// A later record of the same case and process stands in place of one that was lost.
fn replace_lost<T>(records: &mut Vec<T>, key: impl Fn(&T) -> (u32, &String, bool)) {
    let mut later = HashSet::new();
    records.reverse();
    records.retain(|record| {
        let (process, case, is_lost) = key(record);
        let is_last = later.insert((process, case.clone()));
        is_last || !is_lost
    });
    records.reverse();
}

pub(super) fn is_whole(line: &Line) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line.bytes).is_ok()
}
