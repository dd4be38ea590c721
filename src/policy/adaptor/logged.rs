//! A log that other tools replay.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use super::pass_through;
use crate::policy::{Block, Hole, HoleOrder, Policy, PolicyError, Usage};

const HEADER: &str = "Thread,Time,Action,Pointer,Size,Stream";

/// Calls come one after the other, on whatever thread: they are one thread's to who replays them.
const THREAD: u64 = 1;

const SECONDS_OF_DAY: u64 = 24 * 60 * 60;

/// Microseconds of the day, as `HH:MM:SS.ffffff`.
struct TimeOfDay(Duration);

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0.as_secs() % SECONDS_OF_DAY, self.0.subsec_micros());
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        write!(f, "{hours:02}:{minutes:02}:{:02}.{micros:06}", seconds % 60)
    }
}

/// An allocator that writes each call as a line of the log of RAPIDS RMM: `allocate`,
/// `allocate failure` and `free`, each with the size that was requested.
///
/// All is on the default stream and on one thread. What changes no block is no line: a refused free,
/// and memory that goes back to the source, for which the format has no word. A log with a gap would
/// replay as another program, so nothing is written after a write has failed;
/// [`finish`](Self::finish) tells the failure.
///
/// ```
/// # use std::time::Duration;
/// # use fragbench::policy::Policy;
/// use fragbench::policy::Logged;
///
/// # fn logs(allocator: impl Policy) -> Result<(), Box<dyn std::error::Error>> {
/// let mut log = Vec::new();
/// let noon = Duration::from_secs(12 * 60 * 60);
/// let mut allocator = Logged::new(allocator, &mut log, move || noon);
/// allocator.allocate(1000)?;
/// allocator.finish()?;
/// let log = String::from_utf8(log)?;
/// assert!(log.starts_with("Thread,Time,Action,Pointer,Size,Stream\n1,12:00:00.000000,allocate,0x"));
/// assert!(log.ends_with(",1000,0\n"));
/// # Ok(())
/// # }
/// ```
pub struct Logged<P, W, C> {
    inner: P,
    log: W,
    /// The time since midnight.
    clock: C,
    /// The first that failed.
    error: Option<io::Error>,
}

impl<P: Policy, W: Write + Send, C: FnMut() -> Duration + Send> Logged<P, W, C> {
    /// The allocator, logged from now on, after the header. `clock` tells the time since midnight,
    /// and is asked after each call.
    pub fn new(inner: P, mut log: W, clock: C) -> Self {
        let error = writeln!(log, "{HEADER}").err();
        Self { inner, log, clock, error }
    }

    /// The allocator inside.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// The allocator, logged no more, once all lines are written out.
    ///
    /// # Errors
    ///
    /// The first error in writing; the log ends where it occurred. The allocator is dropped.
    pub fn finish(mut self) -> io::Result<P> {
        match self.error {
            Some(error) => Err(error),
            None => self.log.flush().map(|()| self.inner),
        }
    }

    fn write(&mut self, action: &str, address: Option<u64>, bytes: u64) {
        if self.error.is_some() {
            return;
        }
        let time = TimeOfDay((self.clock)());
        let pointer = address.map_or_else(|| "(nil)".to_owned(), |address| format!("{address:#x}"));
        let written = writeln!(self.log, "{THREAD},{time},{action},{pointer},{bytes},0");
        self.error = written.err();
    }
}

impl<P: Policy, W: Write + Send, C: FnMut() -> Duration + Send> Policy for Logged<P, W, C> {
    pass_through!(name alignment_bytes is_live usage holes release_unused);

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        let result = self.inner.allocate(bytes);
        match &result {
            Ok(block) => self.write("allocate", Some(block.address), block.requested_bytes),
            Err(_) => self.write("allocate failure", None, bytes.max(1)),
        }
        result
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        // What it was requested with is what is requested no more.
        let before = self.inner.usage();
        self.inner.free(address)?;
        let bytes = before.requested_bytes - self.inner.usage().requested_bytes;
        self.write("free", Some(address), bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::policy::tests::{arena, whole};
    use crate::policy::{BestFit, Counted, FirstFit, Limited};

    /// A second and a microsecond a call, from shortly before midnight.
    fn clock() -> impl FnMut() -> Duration + Send {
        let mut now = Duration::from_secs(SECONDS_OF_DAY - 3);
        move || {
            now += Duration::new(1, 1000);
            now
        }
    }

    #[test]
    fn calls_are_lines() {
        let mut log = Vec::new();
        let inner = Limited::new(FirstFit::new(arena(), &whole()).unwrap(), 4096);
        let mut policy = Logged::new(inner, &mut log, clock());
        let blocks = [1000, 0].map(|bytes| policy.allocate(bytes).unwrap().address);
        policy.allocate(8192).unwrap_err();
        policy.free(blocks[0] + 1).unwrap_err();
        for address in blocks {
            policy.free(address).unwrap();
        }
        policy.release_unused().unwrap();
        assert_eq!(policy.finish().unwrap().usage(), Usage::default());
        let [first, second] = blocks;
        let expected = format!(
            "Thread,Time,Action,Pointer,Size,Stream\n\
             1,23:59:58.000001,allocate,{first:#x},1000,0\n\
             1,23:59:59.000002,allocate,{second:#x},1,0\n\
             1,00:00:00.000003,allocate failure,(nil),8192,0\n\
             1,00:00:01.000004,free,{first:#x},1000,0\n\
             1,00:00:02.000005,free,{second:#x},1,0\n"
        );
        assert_eq!(String::from_utf8(log).unwrap(), expected);
    }

    /// Takes so many bytes, then fails, each time with another number.
    struct Failing {
        room: usize,
        failures: usize,
    }

    impl Write for Failing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.room {
                self.failures += 1;
                return Err(io::Error::other(format!("failure {}", self.failures)));
            }
            self.room -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            if self.room > 0 { Ok(()) } else { Err(io::Error::other("not flushed")) }
        }
    }

    #[test]
    fn the_first_error_is_kept_and_the_allocator_serves_on() {
        for room in [0, HEADER.len() + 1, HEADER.len() + 60] {
            let log = Failing { room, failures: 0 };
            let inner = Counted::new(BestFit::new(arena(), &whole()).unwrap());
            let mut policy = Logged::new(inner, log, clock());
            for bytes in 1..10 {
                let block = policy.allocate(bytes).unwrap();
                policy.free(block.address).unwrap();
            }
            assert_eq!(policy.inner().counts().frees, 9);
            let error = policy.finish().map(|_| ()).unwrap_err();
            assert_eq!(error.to_string(), "failure 1");
        }
    }

    #[test]
    fn a_log_that_is_not_flushed_is_an_error() {
        let log = Failing { room: HEADER.len() + 1, failures: 0 };
        let policy = Logged::new(BestFit::new(arena(), &whole()).unwrap(), log, clock());
        assert_eq!(policy.finish().map(|_| ()).unwrap_err().to_string(), "not flushed");
    }

    proptest! {
        /// Replayed, the log leaves the blocks that are live, and has a line for each call.
        #[test]
        fn the_log_replays(requests in prop::collection::vec((0..(300u64 << 10), any::<bool>()), 1..60)) {
            let mut log = Vec::new();
            let inner = Counted::new(BestFit::new(arena(), &whole()).unwrap());
            let mut policy = Logged::new(inner, &mut log, clock());
            let mut live = BTreeMap::new();
            for (bytes, frees) in requests {
                let block = policy.allocate(bytes);
                live.extend(block.map(|block| (block.address, block.requested_bytes)));
                if frees && let Some((address, _)) = live.pop_first() {
                    policy.free(address).unwrap();
                }
            }
            let counts = policy.finish().unwrap().counts();
            let log = String::from_utf8(log).unwrap();
            let mut replayed = BTreeMap::new();
            let mut lines = 0;
            for line in log.lines().skip(1) {
                let fields: Vec<&str> = line.split(',').collect();
                prop_assert_eq!(fields.len(), 6);
                let bytes: u64 = fields[4].parse().unwrap();
                match fields[2] {
                    "allocate" => prop_assert_eq!(replayed.insert(fields[3], bytes), None),
                    "free" => prop_assert_eq!(replayed.remove(fields[3]), Some(bytes)),
                    action => prop_assert_eq!((action, fields[3]), ("allocate failure", "(nil)")),
                }
                lines += 1;
            }
            let calls = counts.allocations + counts.refused_allocations + counts.frees;
            prop_assert_eq!(lines, calls);
            let live: BTreeMap<String, u64> =
                live.iter().map(|(address, bytes)| (format!("{address:#x}"), *bytes)).collect();
            let replayed: BTreeMap<String, u64> =
                replayed.into_iter().map(|(pointer, bytes)| (pointer.to_owned(), bytes)).collect();
            prop_assert_eq!(replayed, live);
        }
    }
}
