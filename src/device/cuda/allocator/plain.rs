//! `cuMemAlloc` and `cuMemFree`.

use cudarc::driver::result;

use super::super::DeviceError;
use super::Calls;
use super::home::{Failure, Home, Told};
use crate::policy::Block;

pub(super) struct Plain(Home);

impl Plain {
    pub fn create(ordinal: u32) -> Result<Plain, DeviceError> {
        Home::retain(ordinal).map(Plain)
    }
}

impl Calls for Plain {
    type Held = ();

    fn take(&mut self, bytes: u64, _rounded_bytes: u64) -> Result<(u64, ()), Failure> {
        self.0.enter()?;
        // SAFETY: a fresh allocation, which the books own.
        let address = unsafe { result::malloc_sync(bytes as usize) }.told("cuMemAlloc")?;
        Ok((address, ()))
    }

    fn give(&mut self, block: &Block, _held: &()) -> Result<(), Failure> {
        self.0.enter()?;
        // SAFETY: the address came from cuMemAlloc and was live in the books until now.
        unsafe { result::free_sync(block.address) }.told("cuMemFree")
    }
}
