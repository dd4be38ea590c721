//! Holding the stream while launches are queued behind it, so that the time between two events is
//! the device's alone.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::{result, sys};

use super::driver::Check;
use super::stream::Stream;
use super::{DeviceError, b, launch_task};

/// After this time the kernel gives up, and the sample is void.
pub(super) const TIMEOUT_NS: u64 = 250_000_000;

/// The same for the trial at the start.
pub(super) const TRIAL_TIMEOUT_NS: u64 = 100_000_000;

/// Two words that host and device share, and the kernel that waits on them.
pub(super) struct Holder {
    function: sys::CUfunction,
    /// `[released, gave_up]`, in page-locked host memory that the device sees at the same address.
    words: *mut AtomicU32,
}

impl Holder {
    pub fn create(function: sys::CUfunction) -> Result<Holder, DeviceError> {
        // 2 = CU_MEMHOSTALLOC_DEVICEMAP
        // SAFETY: a fresh allocation of 8 bytes, freed in `drop`.
        let words = unsafe { result::malloc_host(8, 2) }.check("cuMemHostAlloc")?;
        let holder = Holder { function, words: words.cast() };
        holder.word(0).store(1, Ordering::SeqCst);
        holder.word(1).store(0, Ordering::SeqCst);
        Ok(holder)
    }

    fn word(&self, which: usize) -> &AtomicU32 {
        // SAFETY: two aligned words that live as long as `self`; both sides touch them only whole.
        unsafe { &*self.words.add(which) }
    }

    /// Queues the kernel that waits for the release.
    pub fn queue(&self, stream: &Stream, timeout_ns: u64) -> Result<(), DeviceError> {
        self.word(1).store(0, Ordering::SeqCst);
        let task = b::fragment_task {
            source: self.words as u64,
            destination: self.words as u64 + 4,
            units: timeout_ns,
            ..b::fragment_task::default()
        };
        launch_task(self.function, 1, 1, stream, &task)
    }

    /// Holds the stream until the guard is dropped, on whichever path that happens.
    pub fn engage(&self, stream: &Stream, timeout_ns: u64) -> Result<Hold<'_>, DeviceError> {
        self.word(0).store(0, Ordering::SeqCst);
        let hold = Hold(self);
        self.queue(stream, timeout_ns)?;
        Ok(hold)
    }

    /// Lets whatever is held go on.
    pub fn release(&self) {
        self.word(0).store(1, Ordering::SeqCst);
    }

    /// Whether the last hold ran into its time limit.
    pub fn gave_up(&self) -> bool {
        self.word(1).load(Ordering::SeqCst) != 0
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.release();
        // SAFETY: allocated once in `create`, freed once here, after the stream is idle: dropping
        // the guard released it, and the device waits for its stream before anything is dropped.
        let _ = unsafe { result::free_host(self.words.cast::<c_void>()) };
    }
}

/// The stream is held as long as this lives.
pub(super) struct Hold<'a>(&'a Holder);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}
