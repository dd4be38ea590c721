//! Writing a journal, a line at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::super::{Allocation, ClockTest, Coverage, Entry, Group, Run, Selftest};
use super::reader::{GZIP_MAGIC, is_whole, lines};
use super::{CHECKSUM, JournalError, checksum};

/// A line as it is written, its type first.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Written<'a> {
    Run {
        /// What ends every line; absent in journals from before there were checksums.
        #[schemars(default)]
        checksum: &'static str,
        #[serde(flatten)]
        run: &'a Run,
    },
    Group(&'a Group),
    Allocation(&'a Allocation),
    Selftest(&'a Selftest),
    Coverage(&'a Coverage),
    Clock(&'a ClockTest),
}

impl Written<'_> {
    /// The line, with its checksum and its end.
    pub(super) fn line(&self) -> serde_json::Result<Vec<u8>> {
        let mut line = checksum::seal(serde_json::to_vec(self)?);
        line.push(b'\n');
        Ok(line)
    }
}

impl<'a> From<&'a Run> for Written<'a> {
    fn from(run: &'a Run) -> Written<'a> {
        Written::Run { checksum: CHECKSUM, run }
    }
}

impl<'a> From<&'a Group> for Written<'a> {
    fn from(group: &'a Group) -> Written<'a> {
        Written::Group(group)
    }
}

impl<'a> From<&'a Selftest> for Written<'a> {
    fn from(selftest: &'a Selftest) -> Written<'a> {
        Written::Selftest(selftest)
    }
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

    /// Goes on with a journal that [`Journal::read`](super::Journal::read) read: cuts off what is torn, behind
    /// [`Journal::whole_bytes`](super::Journal::whole_bytes), and appends.
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
        self.write(&run.into())
    }

    /// Writes a group's line.
    ///
    /// # Errors
    ///
    /// [`JournalError::Write`]; the journal is then as it was before.
    pub fn write_group(&mut self, group: &Group) -> Result<(), JournalError> {
        self.write(&group.into())
    }

    /// Writes the line of a case as it ended.
    ///
    /// # Errors
    ///
    /// [`JournalError::Write`]; the journal is then as it was before.
    pub fn write_entry(&mut self, entry: &Entry) -> Result<(), JournalError> {
        match entry {
            Entry::Group(group) => self.write_group(group),
            Entry::Allocation(allocation) => self.write(&Written::Allocation(allocation)),
        }
    }

    /// Writes the line of a selftest's kernel.
    ///
    /// # Errors
    ///
    /// [`JournalError::Write`]; the journal is then as it was before.
    pub fn write_selftest(&mut self, selftest: &Selftest) -> Result<(), JournalError> {
        self.write(&selftest.into())
    }

    /// Writes the line of how often an interval held the truth.
    ///
    /// # Errors
    ///
    /// [`JournalError::Write`]; the journal is then as it was before.
    pub fn write_coverage(&mut self, coverage: &Coverage) -> Result<(), JournalError> {
        self.write(&Written::Coverage(coverage))
    }

    /// Writes the line of a device's clock.
    ///
    /// # Errors
    ///
    /// [`JournalError::Write`]; the journal is then as it was before.
    pub fn write_clock(&mut self, clock: &ClockTest) -> Result<(), JournalError> {
        self.write(&Written::Clock(clock))
    }

    /// Gives up: removes the file if it holds no line, so that a run that fails before its first
    /// line leaves nothing behind.
    pub fn abandon(self) {
        drop(self);
    }

    fn write(&mut self, line: &Written) -> Result<(), JournalError> {
        let text = line.line().map_err(|error| write_error(&self.path, error.into()))?;
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
