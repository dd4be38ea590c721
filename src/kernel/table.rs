//! The table of extents on a device, with what it is checked against.

use crate::device::{Buffer, Device, DeviceError, Span};
use crate::layout::{Extents, LayoutError, Places, Table};

/// Buffers of a table and, apart from it, of the places that it is checked against.
pub struct TableBuffers {
    entries: Buffer,
    ranks: Buffer,
    places: Buffer,
    ranges: Buffer,
}

/// Where they lie.
#[derive(Clone, Copy, Debug)]
pub struct TableSpans<'a> {
    /// An entry for each fragment: what kernels follow.
    pub entries: Span<'a>,
    /// A rank for each row of pieces: what kernels follow.
    pub ranks: Span<'a>,
    /// Each fragment in the order of the visits: for checks.
    pub places: Span<'a>,
    /// Each fragment in address order: for the check of what lies between them.
    pub ranges: Span<'a>,
}

impl TableBuffers {
    /// Makes table and places on the host, and brings them to the device.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`], [`DeviceError::Refused`] where the host has no memory for the
    /// table, or whatever else the device says.
    pub fn upload(device: &dyn Device, extents: &Extents) -> Result<TableBuffers, DeviceError> {
        let refused =
            |error: LayoutError| DeviceError::Refused { entry: "table", what: error.to_string() };
        let bring = |bytes: &[u8]| -> Result<Buffer, DeviceError> {
            let buffer = device.allocate(bytes.len() as u64)?;
            device.upload(buffer.span(), bytes)?;
            Ok(buffer)
        };
        let table = Table::new(extents).map_err(refused)?;
        let (entries, ranks) = (bring(table.entry_bytes())?, bring(table.rank_bytes())?);
        drop(table);
        let places = Places::new(extents);
        let (places, ranges) = (bring(places.visited_bytes())?, bring(places.ordered_bytes())?);
        Ok(TableBuffers { entries, ranks, places, ranges })
    }

    /// Where they lie.
    pub fn spans(&self) -> TableSpans<'_> {
        TableSpans {
            entries: self.entries.span(),
            ranks: self.ranks.span(),
            places: self.places.span(),
            ranges: self.ranges.span(),
        }
    }

    /// Bytes of device memory that they hold.
    pub fn bytes(&self) -> u64 {
        [&self.entries, &self.ranks, &self.places, &self.ranges].map(Buffer::bytes).iter().sum()
    }
}
