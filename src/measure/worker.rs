//! The process that holds the device: one line of JSON in, one line of JSON out.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Why a worker gave no answer.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// It could not be started.
    #[error("the worker process could not be started: {0}")]
    Start(#[source] io::Error),
    /// It ended without an answer.
    #[error("the worker process ended ({0}) before it answered")]
    Ended(String),
    /// It did not answer in time, and was killed.
    #[error("the worker process did not answer within {} s, and was killed", .0.as_secs())]
    TimedOut(Duration),
    /// It answered something else than JSON of the right form.
    #[error("the worker process answered what is no answer: {0}")]
    Garbled(String),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// How long a killed process may take to be gone: the driver unmaps what it held, some 10 s for a
/// hundred GiB in pages of 2 MiB. One that hangs in the driver may never be gone, and is
/// then left behind: a run must not hang with it.
const DYING: Duration = Duration::from_secs(30);

/// The parent's end of a worker. Kills it when dropped.
pub struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<io::Result<String>>,
}

impl Worker {
    /// Starts this program again with `arguments`, and `variables` added to its environment.
    ///
    /// # Errors
    ///
    /// [`WorkerError::Start`].
    pub fn start(arguments: &[String], variables: &[(&str, &str)]) -> Result<Worker, WorkerError> {
        let program = std::env::current_exe().map_err(WorkerError::Start)?;
        let mut child = Command::new(program)
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Out of the terminal's group: Ctrl-C is the parent's to handle.
            .process_group(0)
            .spawn()
            .map_err(WorkerError::Start)?;
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| output.lines()) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Worker { child, input, lines })
    }

    /// Sends one request.
    ///
    /// # Errors
    ///
    /// [`WorkerError::Ended`] where nobody reads it.
    pub fn send<Q: Serialize>(&mut self, request: &Q) -> Result<(), WorkerError> {
        let mut line = serde_json::to_string(request)
            .map_err(|error| WorkerError::Garbled(error.to_string()))?;
        line.push('\n');
        let sent = self.input.as_mut().map(|input| input.write_all(line.as_bytes()));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// Waits for one answer, at most `timeout`; asks `interrupted` ten times a second whether to
    /// give up.
    ///
    /// # Errors
    ///
    /// [`WorkerError`] says why there is none. The worker is of no more use then.
    pub fn receive<A: DeserializeOwned>(
        &mut self,
        timeout: Duration,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<A, WorkerError> {
        let begin = Instant::now();
        loop {
            match self.lines.recv_timeout(Duration::from_millis(100)) {
                Ok(Ok(line)) => {
                    return serde_json::from_str(&line).map_err(|error| {
                        let start: String = line.chars().take(80).collect();
                        WorkerError::Garbled(format!("{error} in `{start}`"))
                    });
                }
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) if interrupted() => {
                    return Err(WorkerError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if begin.elapsed() > timeout => {
                    self.end();
                    return Err(WorkerError::TimedOut(timeout));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn ended(&mut self) -> WorkerError {
        WorkerError::Ended(self.end())
    }

    /// Ends the process, and tells how it ended.
    fn end(&mut self) -> String {
        drop(self.input.take());
        let _ = self.child.kill();
        let begin = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.to_string(),
                Ok(None) if begin.elapsed() < DYING => thread::sleep(Duration::from_millis(5)),
                Ok(None) => return "killed, and still not gone".to_owned(),
                Err(error) => return error.to_string(),
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

/// The worker's end: answers each request with `answer` until the input ends. The process ends at
/// once when the input does, in the middle of a measurement too: the driver frees what it held.
///
/// # Errors
///
/// Where an answer cannot be written.
pub fn serve<Q: DeserializeOwned, A: Serialize>(
    first: &A,
    mut answer: impl FnMut(Q) -> A,
) -> io::Result<()> {
    let (sender, requests) = channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    write_line(first)?;
    for line in requests {
        let request = serde_json::from_str(&line)?;
        write_line(&answer(request))?;
    }
    Ok(())
}

fn write_line<A: Serialize>(answer: &A) -> io::Result<()> {
    let mut line = serde_json::to_string(answer)?;
    line.push('\n');
    let mut output = io::stdout().lock();
    output.write_all(line.as_bytes())?;
    output.flush()
}
