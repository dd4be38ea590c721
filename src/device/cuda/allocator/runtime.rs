//! The runtime's `cudaMalloc` and `cudaFree`.

use std::cell::Cell;

use super::super::DeviceError;
use super::Calls;
use super::home::{Failure, Home};
use super::library::Cudart;
use crate::device::DeviceAllocator;
use crate::policy::Block;

thread_local! {
    /// The device that the runtime was last told on this thread.
    static TOLD: Cell<Option<u32>> = const { Cell::new(None) };
}

pub(super) struct Runtime {
    home: Home,
    ordinal: u32,
    cudart: &'static Cudart,
}

impl Runtime {
    pub fn create(ordinal: u32) -> Result<Runtime, DeviceError> {
        let home = Home::retain(ordinal)?;
        let allocator = DeviceAllocator::CudaMalloc.name();
        let cudart =
            Cudart::get(ordinal).map_err(|why| DeviceError::NoAllocator { allocator, why })?;
        let runtime = Runtime { home, ordinal, cudart };
        runtime.enter().map_err(Failure::device_error)?;
        Ok(runtime)
    }

    /// Lets the runtime know the device too: it works in the same primary context then.
    fn enter(&self) -> Result<(), Failure> {
        if self.home.enter()? || TOLD.get() != Some(self.ordinal) {
            self.cudart.set_device(self.ordinal)?;
            TOLD.set(Some(self.ordinal));
        }
        Ok(())
    }
}

impl Calls for Runtime {
    type Held = ();

    fn take(&mut self, bytes: u64, _rounded_bytes: u64) -> Result<(u64, ()), Failure> {
        self.enter()?;
        self.cudart.malloc(bytes).map(|address| (address, ()))
    }

    fn give(&mut self, block: &Block, _held: &()) -> Result<(), Failure> {
        self.enter()?;
        // SAFETY: the address came from cudaMalloc and was live in the books until now.
        unsafe { self.cudart.free(block.address) }
    }
}
