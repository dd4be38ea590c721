//! The context that an allocator lives in, on whichever thread it is used.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::{result, sys};

use super::super::DeviceError;
use super::super::driver::Check;
use crate::policy::{PolicyError, SourceError};

thread_local! {
    /// The home that this thread entered last; 0 for none. A number and no context: a context that is
    /// made anew may get the handle of one that is gone.
    static ENTERED: Cell<u64> = const { Cell::new(0) };
}

/// Forgets which home the thread is in: somebody else has set its context.
pub(in super::super) fn forget_thread() {
    ENTERED.set(0);
}

/// A reference of its own to the device's primary context, so that an allocator may outlive the
/// device that it came from.
pub(super) struct Home {
    number: u64,
    device: sys::CUdevice,
    context: sys::CUcontext,
}

// SAFETY: the driver lets every thread use a context; the handle itself is never read through.
unsafe impl Send for Home {}

impl Home {
    pub fn retain(ordinal: u32) -> Result<Home, DeviceError> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let device = result::device::get(ordinal as i32).check("cuDeviceGet")?;
        // SAFETY: `device` was just given by the driver; released once, in `drop`.
        let context =
            unsafe { result::primary_ctx::retain(device) }.check("cuDevicePrimaryCtxRetain")?;
        let home = Home { number: NUMBERS.fetch_add(1, Ordering::Relaxed), device, context };
        home.enter().map_err(Failure::device_error)?;
        Ok(home)
    }

    pub fn device(&self) -> sys::CUdevice {
        self.device
    }

    /// Makes the context the thread's current one, where it is not since the last call here; whether
    /// it was not.
    pub fn enter(&self) -> Result<bool, Failure> {
        if ENTERED.get() == self.number {
            return Ok(false);
        }
        // SAFETY: the context lives as long as `self`.
        unsafe { result::ctx::set_current(self.context) }.told("cuCtxSetCurrent")?;
        ENTERED.set(self.number);
        Ok(true)
    }

    /// Whether the device says that it has something.
    pub fn has(&self, what: sys::CUdevice_attribute) -> bool {
        // SAFETY: `device` was given by the driver.
        unsafe { result::device::get_attribute(self.device, what) }.is_ok_and(|value| value != 0)
    }

    /// The driver's free bytes, and all that the device has.
    pub fn memory_bytes(&self) -> Result<(u64, u64), Failure> {
        self.enter()?;
        let (free, total) = result::mem_get_info().told("cuMemGetInfo")?;
        Ok((free as u64, total as u64))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // SAFETY: retained once, released once; whoever uses the context drops before its home.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// Why a call of the driver or of the runtime gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// There is not so much memory left.
    OutOfMemory,
    /// Anything else.
    Call { call: &'static str, code: String },
}

impl Failure {
    /// As a policy tells it.
    pub fn of_request(self, requested_bytes: u64) -> PolicyError {
        match self {
            Failure::OutOfMemory => PolicyError::OutOfMemory { requested_bytes, hole_bytes: 0 },
            other => PolicyError::Source(other.into()),
        }
    }

    /// As a device tells it.
    pub fn device_error(self) -> DeviceError {
        let Failure::Call { call, code } = self else {
            let code = "CUDA_ERROR_OUT_OF_MEMORY".to_owned();
            return DeviceError::Call { call: "making an allocator", code };
        };
        DeviceError::Call { call, code }
    }
}

impl From<Failure> for SourceError {
    fn from(failure: Failure) -> SourceError {
        SourceError::Device(failure.device_error().to_string())
    }
}

/// Turns the driver's error into ours.
pub(super) trait Told<T> {
    fn told(self, call: &'static str) -> Result<T, Failure>;
}

impl<T> Told<T> for Result<T, result::DriverError> {
    fn told(self, call: &'static str) -> Result<T, Failure> {
        self.map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Failure::OutOfMemory,
            code => Failure::Call { call, code: format!("{code:?}") },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_memory_is_out_of_memory() {
        use sys::CUresult::{CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_OUT_OF_MEMORY};
        let told = |code| Err::<(), _>(result::DriverError(code)).told("cuMemAlloc").unwrap_err();
        assert_eq!(
            told(CUDA_ERROR_OUT_OF_MEMORY).of_request(7),
            PolicyError::OutOfMemory { requested_bytes: 7, hole_bytes: 0 }
        );
        assert_eq!(
            told(CUDA_ERROR_ILLEGAL_ADDRESS).of_request(7).to_string(),
            "the source failed: cuMemAlloc failed with CUDA_ERROR_ILLEGAL_ADDRESS"
        );
    }
}
