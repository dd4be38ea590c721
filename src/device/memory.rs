//! Buffers of a device and pieces of them.

use std::rc::Rc;

/// What gives a buffer's memory back.
pub(super) trait Release {
    fn release(&self, address: u64, bytes: u64);
}

/// Memory of a device: one plain allocation, freed when dropped.
pub struct Buffer {
    address: u64,
    bytes: u64,
    owner: Rc<dyn Release>,
}

impl Buffer {
    pub(super) fn new(address: u64, bytes: u64, owner: Rc<dyn Release>) -> Buffer {
        Buffer { address, bytes, owner }
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All of it.
    pub fn span(&self) -> Span<'_> {
        Span { address: self.address, bytes: self.bytes, buffer: std::marker::PhantomData }
    }

    /// `bytes` bytes from `offset` on; `None` where that is not inside the buffer.
    pub fn slice(&self, offset: u64, bytes: u64) -> Option<Span<'_>> {
        self.span().slice(offset, bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.owner.release(self.address, self.bytes);
    }
}

/// A piece of a buffer, which it cannot outlive.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    pub(super) address: u64,
    pub(super) bytes: u64,
    buffer: std::marker::PhantomData<&'a ()>,
}

impl<'a> Span<'a> {
    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// `bytes` bytes of the span from `offset` on; `None` where that is not inside it.
    pub fn slice(&self, offset: u64, bytes: u64) -> Option<Span<'a>> {
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes).then_some(Span {
            address: self.address + offset,
            bytes,
            buffer: std::marker::PhantomData,
        })
    }
}

impl Span<'_> {
    /// Refuses a transfer between the span and `length` bytes of the host where they differ.
    pub(super) fn same_length(
        &self,
        what: &'static str,
        length: usize,
    ) -> Result<(), super::DeviceError> {
        if self.bytes == length as u64 {
            return Ok(());
        }
        let what_differs = format!("{} bytes for {length}", self.bytes);
        Err(super::DeviceError::Refused { entry: what, what: what_differs })
    }
}
