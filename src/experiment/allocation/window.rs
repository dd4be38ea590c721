//! A window of a device's memory: all else is taken by ballast.

use crate::device::{Buffer, Device, DeviceError};

/// The driver gives memory out in pages of this size.
const PAGE_BYTES: u64 = 2 << 20;

/// How many pages the ballast may give back until what has to fit does.
const MOST_STEPS: u64 = 64;

/// What is left free of a device: so many bytes, and nothing else once it is [closed](Window::close).
pub(super) struct Window<'a> {
    device: &'a dyn Device,
    ballast: Option<Buffer>,
    ballast_bytes: u64,
    steps: u64,
    plugs: Vec<Buffer>,
}

impl<'a> Window<'a> {
    /// Fills a device but for so many bytes.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] where not so much is free, or whatever else the driver says.
    pub(super) fn open(device: &'a dyn Device, bytes: u64) -> Result<Self, DeviceError> {
        let free = device.free_bytes()?;
        let Some(rest) = free.checked_sub(bytes) else {
            return Err(DeviceError::OutOfMemory { requested: bytes, free });
        };
        let ballast_bytes = rest / PAGE_BYTES * PAGE_BYTES;
        let mut window = Self { device, ballast: None, ballast_bytes, steps: 0, plugs: Vec::new() };
        while !window.fill()? {
            window.step(free)?;
        }
        Ok(window)
    }

    /// Gives one more page to the window.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] after so many that the window cannot be what it is to be.
    pub(super) fn widen(&mut self) -> Result<(), DeviceError> {
        self.ballast = None;
        let free = self.device.free_bytes()?;
        loop {
            self.step(free)?;
            if self.fill()? {
                return Ok(());
            }
        }
    }

    /// Takes what is free now, page by page until the driver refuses: the window is full, and what
    /// is freed in it is all that can be had.
    ///
    /// # Errors
    ///
    /// Whatever the driver says but that it is out of memory.
    pub(super) fn close(&mut self) -> Result<(), DeviceError> {
        loop {
            match self.device.allocate(PAGE_BYTES) {
                Ok(plug) => self.plugs.push(plug),
                Err(DeviceError::OutOfMemory { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn step(&mut self, free: u64) -> Result<(), DeviceError> {
        self.steps += 1;
        self.ballast_bytes = self.ballast_bytes.saturating_sub(PAGE_BYTES);
        if self.steps > MOST_STEPS {
            return Err(DeviceError::OutOfMemory { requested: self.ballast_bytes, free });
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<bool, DeviceError> {
        if self.ballast_bytes == 0 {
            return Ok(true);
        }
        match self.device.allocate(self.ballast_bytes) {
            Ok(ballast) => self.ballast = Some(ballast),
            Err(DeviceError::OutOfMemory { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::scripted::{Scripted, at_rate};

    #[test]
    fn a_window_is_what_ballast_and_plugs_leave() {
        let device = Scripted::new(1 << 30, |timed| at_rate(timed, 4000.0));
        let free = device.free_bytes().unwrap();
        let mut window = Window::open(&device, 64 << 20).unwrap();
        assert_eq!(device.free_bytes().unwrap(), 64 << 20);
        window.widen().unwrap();
        assert_eq!(device.free_bytes().unwrap(), 66 << 20);
        let block = device.allocate(60 << 20).unwrap();
        window.close().unwrap();
        assert_eq!(device.free_bytes().unwrap(), 0);
        drop(block);
        assert_eq!(device.free_bytes().unwrap(), 60 << 20);
        drop(window);
        assert_eq!(device.free_bytes().unwrap(), free);
    }

    #[test]
    fn more_than_is_free_is_no_window() {
        let device = Scripted::new(1 << 30, |timed| at_rate(timed, 4000.0));
        let error = Window::open(&device, 2 << 30).err().unwrap();
        assert!(matches!(error, DeviceError::OutOfMemory { .. }), "{error}");
    }
}
