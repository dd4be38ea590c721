//! One line of a selftest's journal: what became of the faults that were planted in one kernel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::open_enum::open_enum;
use super::{CheckKind, Status};

open_enum! {
    /// What was done wrong on purpose.
    FaultKind {
        /// Nothing was launched: the destination held what it held before.
        NothingLaunched = "nothing_launched",
        /// Two launches where one was expected.
        LaunchedTwice = "launched_twice",
        /// The source began one fragment late; where their lengths vary, one piece of 16 B.
        SourceShifted = "source_shifted",
        /// The destination began one fragment late, or one piece likewise.
        DestinationShifted = "destination_shifted",
        /// The index began one entry late; of a table its entries, or its ranks by two rows.
        IndexShifted = "index_shifted",
        /// The last fragment was left out.
        TailDropped = "tail_dropped",
        /// One fragment too many.
        FragmentAdded = "fragment_added",
        /// The first index entry named another slot.
        FirstEntryWrong = "first_entry_wrong",
        /// An index entry in the middle named another slot.
        MiddleEntryWrong = "middle_entry_wrong",
        /// The last index entry named another slot.
        LastEntryWrong = "last_entry_wrong",
        /// Two index entries changed places.
        EntriesSwapped = "entries_swapped",
        /// A rank told a wrong number of fragments before its row.
        RankWrong = "rank_wrong",
        /// A rank had a bit too many or too few: a fragment that began where none does, or none where
        /// one does.
        RankBitWrong = "rank_bit_wrong",
        /// A byte of the source between fragments was wrong.
        SourceGapByte = "source_gap_byte",
        /// A byte of the source inside a fragment was wrong.
        SourceFragmentByte = "source_fragment_byte",
        /// A byte of the destination was wrong after the launch.
        DestinationByte = "destination_byte",
        /// A byte before the first slot had changed.
        BeginByte = "begin_byte",
        /// A byte between the fragments had changed.
        GapByte = "gap_byte",
        /// A byte behind the destination or the footprint had changed.
        BehindByte = "behind_byte",
    }
}

/// One kind of fault as one check saw it. A fault that two checks have to see stands in two of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// What was done wrong.
    pub kind: FaultKind,
    /// The check that had to see it.
    pub check: CheckKind,
    /// How many were planted.
    pub planted: u64,
    /// How many of them were seen, with the number of mismatches that they had to have.
    pub caught: u64,
}

/// The selftest of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Selftest {
    /// The kernel's entry point without its prefix, or `driver_copy`.
    pub kernel: String,
    /// How it does it: `default`, or the competitor's name.
    pub variant: String,
    /// The PTX module that the device took the kernel from; none where it took none.
    pub module: Option<String>,
    /// Layouts (of a contiguous kernel: payloads) that it ran on.
    pub layouts: u64,
    /// Items that were compared in sound runs: units, index entries and sums.
    pub compared: u64,
    /// How many of these differed.
    pub mismatches: u64,
    /// The planted faults.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// How it ended: skipped where the device does not have the kernel.
    pub status: Status,
    /// Why, where it is not `ok`.
    pub reason: Option<String>,
    /// Wall time in nanoseconds.
    pub wall_ns: u64,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Selftest {
    /// Faults that were planted.
    pub fn planted(&self) -> u64 {
        self.faults.iter().map(|fault| fault.planted).sum()
    }

    /// Faults that were caught.
    pub fn caught(&self) -> u64 {
        self.faults.iter().map(|fault| fault.caught).sum()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::Run;
    use crate::record::journal::{Journal, JournalWriter};

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let run: Run = serde_json::from_value(json!({
            "schema": crate::record::SCHEMA, "tool": "0.1.0", "source_sha256": "00",
            "modules": {}, "arguments": ["selftest"],
            "selection": {"suite": "selftest", "device": "host", "seed": "1"},
            "memory_limit_bytes": 1, "memory_limit_reason": "", "started": "2026-01-01T00:00:00Z",
            "host": {"os": "Linux", "architecture": "x86_64", "processor": null,
                     "logical_processors": 2, "memory_bytes": null},
            "device": {"kind": "host", "id": "host", "name": "", "uuid": null, "memory_bytes": 1,
                       "nvml": false},
        }))
        .unwrap();
        let selftest: Selftest = serde_json::from_value(json!({
            "kernel": "copy", "variant": "default", "module": "access", "layouts": 2,
            "compared": 10, "mismatches": 0, "status": "failed", "reason": "unseen",
            "wall_ns": 5, "humidity": 40,
            "faults": [
                {"kind": "tail_dropped", "check": "destination", "planted": 2, "caught": 1},
                {"kind": "cosmic_ray", "check": "eyesight", "planted": 3, "caught": 3},
            ],
        }))
        .unwrap();
        assert_eq!((selftest.planted(), selftest.caught()), (5, 4));
        assert_eq!(selftest.faults[1].kind, FaultKind::Other("cosmic_ray".to_owned()));

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let mut writer = JournalWriter::create(&path).unwrap();
        writer.write_run(&run).unwrap();
        writer.write_selftest(&selftest).unwrap();
        drop(writer);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().nth(1).unwrap().starts_with("{\"type\":\"selftest\",\"kernel\":"));
        let journal = Journal::read(&path).unwrap();
        assert_eq!((journal.run, journal.selftests), (run, vec![selftest]));
        assert!(journal.groups.is_empty() && journal.unknown.is_empty());
    }
}
