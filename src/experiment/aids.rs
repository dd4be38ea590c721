//! What the protocol needs beside a group's own buffers, and what it knows of the device's state.

use std::time::{Duration, Instant};

use crate::device::{Buffer, Device, DeviceError, Launch, SUM_BYTES, Span};
use crate::kernel::{Access, fill};
use crate::measure::{Rest, SENTINEL_BYTES, Steady, Watch};
use crate::record::Sentinel;

/// The work that wakes a host from its idle clocks before the first group.
const WARM_UP: Duration = Duration::from_millis(400);

/// After so many freed bytes the device has to settle again: the driver scrubs them, and that takes
/// bandwidth.
const MUCH_FREED: u64 = 1 << 30;

/// Buffers that the protocol's own launches use.
pub(super) struct Aids {
    sums: Buffer,
    scratch: Option<Buffer>,
}

impl Aids {
    /// Allocates them, with `eviction_bytes` to evict L2 by.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn new(device: &dyn Device, eviction_bytes: u64) -> Result<Aids, DeviceError> {
        let sums = device.allocate(SUM_BYTES)?;
        let scratch = match eviction_bytes {
            0 => None,
            bytes => Some(device.allocate(bytes)?),
        };
        if let Some(scratch) = &scratch {
            fill(device, scratch.span(), 0)?;
        }
        Ok(Aids { sums, scratch })
    }

    /// The read that evicts L2, where it has to be evicted.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] where the scratch buffer is not one that can be read.
    pub fn evict(&self) -> Result<Option<Launch<'_>>, DeviceError> {
        let Some(scratch) = &self.scratch else { return Ok(None) };
        Access::read(scratch.span(), self.sums.span(), 0).launch().map(Some)
    }

    /// What is done for the state of the device while `source` is measured: a sentinel over its
    /// beginning, or on the host, which nobody expects to settle, a warm-up before the first group.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] where `source` is not one that can be read.
    pub fn steady<'a>(
        &'a self,
        device: &dyn Device,
        source: Span<'a>,
        state: &State,
    ) -> Result<Steady<'a>, DeviceError> {
        if device.facts().is_host() {
            let is_first = state.last_busy.is_none();
            return Ok(Steady::WarmUp(if is_first { WARM_UP } else { Duration::ZERO }));
        }
        let bytes = source.bytes().min(SENTINEL_BYTES);
        let watched = source.slice(0, bytes).unwrap_or(source);
        // The sums are never looked at, so neither is the key of the data.
        let launch = Access::read(watched, self.sums.span(), 0).launch()?;
        Ok(Steady::Watch(Watch {
            launch,
            bytes,
            rest: state.rest,
            disturbed: state.is_moved || state.freed_bytes > MUCH_FREED,
            last_busy: state.last_busy,
        }))
    }
}

/// What is known of the state of the device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// Where the last settling left it.
    pub rest: Option<Rest>,
    /// Whether the arena is another one since.
    pub is_moved: bool,
    /// Bytes that were freed since.
    pub freed_bytes: u64,
    /// When the last group ended.
    pub last_busy: Option<Instant>,
}

impl State {
    /// A group has ended, and frees so many bytes.
    pub fn update(&mut self, sentinel: Option<&Sentinel>, freed_bytes: u64) {
        if let Some(sentinel) = sentinel.filter(|sentinel| !sentinel.settling.is_empty()) {
            let reading = sentinel.attempts.last().and_then(|attempt| attempt.settled);
            self.rest = Some(Rest { reading, settled: sentinel.settled });
            self.freed_bytes = 0;
            self.is_moved = false;
        }
        self.freed_bytes += freed_bytes;
        self.last_busy = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::scripted::{Scripted, at_rate};
    use crate::record::{Attempt, Reading};

    /// Whether the next group has to settle, as its sentinel is told.
    fn is_disturbed(state: &State) -> bool {
        let device = Scripted::new(1 << 30, |timed| at_rate(timed, 4000.0));
        let source = device.allocate(1 << 20).unwrap();
        let aids = Aids::new(&device, 0).unwrap();
        match aids.steady(&device, source.span(), state).unwrap() {
            Steady::Watch(watch) => {
                assert_eq!(watch.bytes, 1 << 20);
                watch.disturbed
            }
            Steady::WarmUp(_) => panic!("a GPU is watched"),
        }
    }

    fn sentinel(settling: Vec<Reading>) -> Sentinel {
        let settled = settling.last().copied();
        let attempt = Attempt { settled, before: None, after: None, voided: false };
        Sentinel { bytes: 1 << 20, settled: true, settling, attempts: vec![attempt] }
    }

    #[test]
    fn much_freed_memory_and_another_arena_disturb_until_the_device_has_settled() {
        let reading = Reading { launches: 1, ns: 7, sm_khz: None };
        let mut state = State { is_moved: true, ..State::default() };
        assert!(is_disturbed(&state));
        state.update(Some(&sentinel(vec![reading])), MUCH_FREED);
        assert!(!is_disturbed(&state));
        assert_eq!(state.rest, Some(Rest { reading: Some(reading), settled: true }));
        // Little by little it becomes much, unless the device settles meanwhile.
        state.update(Some(&sentinel(vec![])), 1);
        assert!(is_disturbed(&state));
        state.update(Some(&sentinel(vec![reading])), 1);
        assert!(!is_disturbed(&state));
        assert!(state.last_busy.is_some());
    }
}
