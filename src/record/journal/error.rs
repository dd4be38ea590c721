//! What can go wrong with a journal.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::super::SCHEMA;

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
    #[error(
        "{} is empty, as after a run that was killed at its start: remove it and start the run again, \
         or give a file that `fragbench run` wrote", path.display()
    )]
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
