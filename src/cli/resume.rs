//! What a resumed run takes from its journal, and what has to agree.

use super::Failure;
use crate::record::{DeviceFacts, Run, Selection};

/// The selection of the journal, where whatever is also given on the command line agrees with it.
pub fn selection(journal: &Run, given: &Given) -> Result<Selection, Failure> {
    let kept = &journal.selection;
    let differs = |field: &str, kept: &str, given: Option<String>| match given {
        Some(given) if given != kept => Err(Failure::request(format_args!(
            "--resume: {field} is `{kept}` in the journal and `{given}` on the command line: leave --{field} out, or start a new run"
        ))),
        _ => Ok(()),
    };
    let listed = |items: &[String]| (!items.is_empty()).then(|| items.join(","));
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let shown = |value: Option<u64>| value.map_or_else(|| "none".to_owned(), |v| v.to_string());
    differs("suite", &kept.suite, given.suite.clone())?;
    differs("only", &kept.only.join(","), listed(&given.only))?;
    differs("case", &kept.cases.join(","), listed(&given.cases))?;
    differs("filter", &kept.filters.join(","), listed(&given.filters))?;
    differs("device", &kept.device, given.device.clone())?;
    differs("seed", &kept.seed, given.seed.map(|seed| seed.to_string()))?;
    differs("memory-limit", &shown(kept.memory_limit_bytes), number(given.memory_limit_bytes))?;
    differs("processes", &kept.processes.to_string(), given.processes.map(|n| n.to_string()))?;
    differs("time-limit", &shown(kept.time_limit_s), number(given.time_limit_s))?;
    // What a journal was not allowed, its continuation may be.
    Ok(Selection { allow_fill: kept.allow_fill || given.allow_fill, ..kept.clone() })
}

/// What was given on the command line; nothing is filled in.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub suite: Option<String>,
    pub only: Vec<String>,
    pub cases: Vec<String>,
    pub filters: Vec<String>,
    pub device: Option<String>,
    pub seed: Option<u64>,
    pub memory_limit_bytes: Option<u64>,
    pub time_limit_s: Option<u64>,
    pub processes: Option<u32>,
    pub allow_fill: bool,
}

/// How the journal's device is named on the command line: by its UUID where it has one, for
/// numbers can move.
pub fn device_request(journal: &Run) -> String {
    journal.device.uuid.clone().unwrap_or_else(|| journal.device.id.clone())
}

/// Refuses to add to a journal what was measured differently.
pub fn same_ground(journal: &Run, tool: &str, run: &Run) -> Result<(), Failure> {
    let (old, new) = (&journal.device, &run.device);
    let unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let modules = |run: &Run| {
        let short = run.modules.iter().map(|(name, hash)| format!("{name} {:.12}", hash));
        short.collect::<Vec<_>>().join(", ")
    };
    let fields = [
        ("device", identity(old), identity(new)),
        ("driver", unknown(&old.driver), unknown(&new.driver)),
        ("CUDA driver", unknown(&old.cuda_driver), unknown(&new.cuda_driver)),
        ("kernels", modules(journal), modules(run)),
        ("tool", journal.tool.clone(), tool.to_owned()),
        ("source", journal.source_sha256.clone(), run.source_sha256.clone()),
    ];
    match fields.into_iter().find(|(_, old, new)| old != new) {
        Some((field, old, new)) => Err(Failure::request(format_args!(
            "--resume: the {field} differs: `{old}` in the journal, `{new}` now; start a new run"
        ))),
        None => Ok(()),
    }
}

fn identity(device: &DeviceFacts) -> String {
    let uuid = device.uuid.as_deref().unwrap_or(&device.name);
    format!("{uuid} ({})", device.name)
}
