//! The one stream and its events.

use cudarc::driver::result::stream::StreamKind;
use cudarc::driver::{result, sys};

use super::DeviceError;
use super::driver::Check;

/// A stream, destroyed when dropped.
pub(super) struct Stream(sys::CUstream);

impl Stream {
    pub fn create() -> Result<Stream, DeviceError> {
        result::stream::create(StreamKind::NonBlocking).check("cuStreamCreate").map(Stream)
    }

    pub fn raw(&self) -> sys::CUstream {
        self.0
    }

    pub fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream lives as long as `self`.
        unsafe { result::stream::synchronize(self.0) }.check("cuStreamSynchronize")
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        let _ = unsafe { result::stream::destroy(self.0) };
    }
}

/// A timing event, destroyed when dropped.
pub(super) struct Event(sys::CUevent);

impl Event {
    pub fn create() -> Result<Event, DeviceError> {
        result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
            .check("cuEventCreate")
            .map(Event)
    }

    pub fn record(&self, stream: &Stream) -> Result<(), DeviceError> {
        // SAFETY: event and stream are live and of the same context.
        unsafe { result::event::record(self.0, stream.raw()) }.check("cuEventRecord")
    }

    /// Nanoseconds from this event to a later one. The driver gives milliseconds as a 32-bit float.
    pub fn elapsed_ns(&self, later: &Event) -> Result<u64, DeviceError> {
        // SAFETY: both events are live and were recorded on the same stream.
        let ms = unsafe { result::event::elapsed(self.0, later.0) }.check("cuEventElapsedTime")?;
        Ok((f64::from(ms) * 1e6).round().max(0.0) as u64)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}
