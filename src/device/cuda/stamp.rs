//! The SM clock of an interval, from stamps that the device writes at its two ends.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::{result, sys};

use super::driver::Check;
use super::stream::Stream;
use super::{DeviceError, b, launch_task};

/// Words of one stamp: timer, clock, SM.
const WORDS: usize = 3;

/// The shortest time between two stamps that tells a clock. How often the device's timer is updated
/// is up to the device (PTX ISA, special register `%globaltimer`): with steps of 1 us, which is what
/// is allowed for here, the clock is then known to 1 %.
const SHORTEST_NS: u64 = 100_000;

/// SM clocks outside of this range, in kHz, are no clocks: 50 MHz to 10 GHz.
const SANE_KHZ: std::ops::RangeInclusive<u64> = 50_000..=10_000_000;

/// One stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stamp {
    /// `%globaltimer`, in ns; 0 where nothing was written.
    timer_ns: u64,
    /// `%clock64`, in cycles of the SM.
    cycles: u64,
    /// `%smid`.
    sm: u64,
}

/// Cycles of one SM and the time that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    cycles: u64,
    ns: u64,
}

impl Ticks {
    /// Between two stamps; `None` where they are not of one SM, or not in order.
    fn between(begin: Stamp, end: Stamp) -> Option<Ticks> {
        let whole = begin.timer_ns > 0 && begin.sm == end.sm;
        let cycles = end.cycles.checked_sub(begin.cycles)?;
        let ns = end.timer_ns.checked_sub(begin.timer_ns)?;
        whole.then_some(Ticks { cycles, ns })
    }

    /// Both together.
    pub fn and(self, other: Ticks) -> Ticks {
        Ticks {
            cycles: self.cycles.saturating_add(other.cycles),
            ns: self.ns.saturating_add(other.ns),
        }
    }

    /// The clock in kHz; `None` where the time was too short to tell, or it is no clock.
    pub fn khz(self) -> Option<u32> {
        if self.ns < SHORTEST_NS {
            return None;
        }
        let khz = u128::from(self.cycles) * 1_000_000 / u128::from(self.ns);
        let khz = u64::try_from(khz).ok().filter(|khz| SANE_KHZ.contains(khz))?;
        u32::try_from(khz).ok()
    }
}

/// The kernel that stamps, and the two stamps of an interval.
pub(super) struct Stamps {
    function: sys::CUfunction,
    /// Two stamps, in page-locked host memory that the device sees at the same address.
    words: *mut AtomicU64,
}

impl Stamps {
    pub fn create(function: sys::CUfunction) -> Result<Stamps, DeviceError> {
        // 2 = CU_MEMHOSTALLOC_DEVICEMAP
        // SAFETY: a fresh allocation of two stamps, freed in `drop`.
        let words = unsafe { result::malloc_host(2 * WORDS * 8, 2) }.check("cuMemHostAlloc")?;
        let stamps = Stamps { function, words: words.cast() };
        stamps.clear();
        Ok(stamps)
    }

    fn word(&self, which: usize) -> &AtomicU64 {
        debug_assert!(which < 2 * WORDS);
        // SAFETY: six aligned words that live as long as `self`; both sides touch them only whole.
        unsafe { &*self.words.add(which) }
    }

    /// Forgets the stamps of the interval before; nothing may be queued that still writes them.
    pub fn clear(&self) {
        (0..2 * WORDS).for_each(|which| self.word(which).store(0, Ordering::SeqCst));
    }

    /// Queues the stamp of an interval's begin.
    pub fn queue_begin(&self, stream: &Stream) -> Result<(), DeviceError> {
        self.queue(stream, 0)
    }

    /// Queues the stamp of an interval's end.
    pub fn queue_end(&self, stream: &Stream) -> Result<(), DeviceError> {
        self.queue(stream, 1)
    }

    fn queue(&self, stream: &Stream, which: usize) -> Result<(), DeviceError> {
        let destination = self.words as u64 + (which * WORDS * 8) as u64;
        let task = b::fragment_task { destination, ..b::fragment_task::default() };
        launch_task(self.function, 1, 1, stream, &task)
    }

    /// What the two stamps say, after the stream has come to rest.
    pub fn ticks(&self) -> Option<Ticks> {
        let stamp = |which: usize| {
            let [timer_ns, cycles, sm] =
                [0, 1, 2].map(|word| self.word(which * WORDS + word).load(Ordering::SeqCst));
            Stamp { timer_ns, cycles, sm }
        };
        Ticks::between(stamp(0), stamp(1))
    }
}

impl Drop for Stamps {
    fn drop(&mut self) {
        // SAFETY: allocated once in `create`, freed once here; the device that owns this waits for
        // its stream first.
        let _ = unsafe { result::free_host(self.words.cast::<c_void>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(timer_ns: u64, cycles: u64, sm: u64) -> Stamp {
        Stamp { timer_ns, cycles, sm }
    }

    fn khz(begin: Stamp, end: Stamp) -> Option<u32> {
        Ticks::between(begin, end)?.khz()
    }

    #[test]
    fn a_clock_is_cycles_over_time() {
        // 1.98 GHz for 1 ms.
        assert_eq!(khz(stamp(5, 7, 3), stamp(1_000_005, 1_980_007, 3)), Some(1_980_000));
        let part = Ticks { cycles: 99_000, ns: 50_000 };
        assert_eq!((part.khz(), part.and(part).khz()), (None, Some(1_980_000)));
    }

    #[test]
    fn stamps_that_tell_no_clock_are_unknown() {
        let begin = stamp(1_000, 1_000, 0);
        // Another SM, nothing written, time or clock that runs backwards, too short, no clock.
        for end in [
            stamp(2_001_000, 2_001_000, 1),
            stamp(0, 0, 0),
            stamp(999, 2_001_000, 0),
            stamp(2_001_000, 999, 0),
            stamp(100_999, 200_000, 0),
            stamp(2_001_000, 1_001, 0),
            stamp(1_001_000, u64::MAX, 0),
        ] {
            assert_eq!(khz(begin, end), None, "{end:?}");
        }
        assert_eq!(khz(stamp(0, 0, 0), stamp(2_000_000, 2_000_000, 0)), None);
    }
}
