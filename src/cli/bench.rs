//! What a verb measures with: a worker, started again whenever its device is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Map;

use super::Failure;

use super::worker::{Message, Ready, Request};
use crate::device::{self, DeviceRequest, host, modules::MODULES};
use crate::measure::worker::{Worker, WorkerError};
use crate::record::{Run, SCHEMA, Selection};

/// Same seed, same layouts, everywhere: unless another is asked for.
pub const DEFAULT_SEED: u64 = 1;

/// How long a worker may take to open its device.
const OPENING: Duration = Duration::from_secs(120);

/// Why an answer of a worker is not taken.
pub const OUT_OF_TURN: &str = "the worker process answered out of turn";

/// A worker on a device, and what was asked for.
pub struct Bench {
    pub device: String,
    pub selection: Selection,
    pub worker: Option<Worker>,
    pub interrupted: Arc<AtomicBool>,
}

/// Raised by Ctrl-C, and by what a batch system sends.
pub fn interruption() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    ctrlc::set_handler(move || raised.store(true, Ordering::SeqCst)).map_err(Failure::request)?;
    Ok(flag)
}

impl Bench {
    /// Starts a worker; returns it with what it says of its device.
    pub fn open(&self) -> Result<(Worker, Ready), Failure> {
        let mut arguments = vec![
            "worker".to_owned(),
            format!("--device={}", self.device),
            format!("--seed={}", self.selection.seed),
            format!("--parent={}", std::process::id()),
        ];
        let limit = self.selection.memory_limit_bytes;
        arguments.extend(limit.map(|bytes| format!("--memory-limit={bytes}")));
        arguments.extend(self.selection.allow_fill.then(|| "--allow-fill".to_owned()));
        let mut worker =
            Worker::start(&arguments, &device::environment()).map_err(Failure::request)?;
        let first = worker.receive(OPENING, &|| self.interrupted.load(Ordering::SeqCst));
        match first.map_err(|error| self.failure(&error))? {
            Message::Ready(ready) => Ok((worker, *ready)),
            Message::Refused { message } => {
                let auto = self.selection.device == DeviceRequest::Auto.to_string();
                let code = if auto { Failure::CASE } else { Failure::REQUEST };
                Err(Failure { code, message })
            }
            _ => Err(Failure { code: Failure::CASE, message: OUT_OF_TURN.to_owned() }),
        }
    }

    pub fn failure(&self, error: &WorkerError) -> Failure {
        let code = match error {
            WorkerError::Interrupted => Failure::INTERRUPTED,
            _ => Failure::CASE,
        };
        Failure { code, message: format!("{} on {}", error, self.device) }
    }

    /// The journal's first line.
    pub fn describe(&self, ready: Ready) -> Run {
        let Ready { device, memory_limit_bytes, memory_limit_reason, .. } = ready;
        Run {
            schema: SCHEMA,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            source_sha256: env!("FRAGBENCH_SOURCE_SHA256").to_owned(),
            modules: MODULES
                .iter()
                .map(|module| (module.name.to_owned(), module.sha256.to_owned()))
                .collect(),
            arguments: std::env::args().skip(1).collect(),
            selection: self.selection.clone(),
            memory_limit_bytes,
            memory_limit_reason,
            started: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            host: host::machine(),
            device,
            extra: Map::new(),
        }
    }

    /// Asks the worker, or a fresh one where the last gave no answer or was given up.
    pub fn ask(
        &mut self,
        request: &Request,
        timeout: Duration,
    ) -> Result<Result<Message, WorkerError>, Failure> {
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => self.open()?.0,
        };
        let answer = worker.send(request).and_then(|()| {
            worker.receive::<Message>(timeout, &|| self.interrupted.load(Ordering::SeqCst))
        });
        self.worker = answer.is_ok().then_some(worker);
        Ok(answer)
    }
}
