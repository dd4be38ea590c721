//! What a range has to read whose physical chunks lie in another order, worked out without it: from the
//! arena, through an index of where each fragment really lies.

use super::arena::Range;
use super::arms::Ground;
use crate::device::{DeviceError, Movement, SUM_BYTES};
use crate::kernel::{Access, Operands, Verifier};
use crate::layout::{Index, Layout, Pattern, Spec};
use crate::record::Order;

/// Where a byte of the range lies in the arena.
fn place(range: &Range<'_>, offset: u64) -> Option<u64> {
    let chunk = *range.order.get((offset / range.chunk_bytes) as usize)?;
    Some(u64::from(chunk) * range.chunk_bytes + offset % range.chunk_bytes)
}

/// The index of the same fragments in the arena.
fn translated(layout: &Layout, index: &Index, range: &Range<'_>) -> Option<Vec<u64>> {
    let fragment_bytes = layout.fragment_bytes();
    let of = |at: usize| Some(place(range, index.get(at)? * fragment_bytes)? / fragment_bytes);
    (0..index.len()).map(of).collect()
}

/// The checksum of the layout's fragments in an order, read from the range.
///
/// # Errors
///
/// [`DeviceError::Refused`] where a fragment lies across chunks or behind the range, or whatever the
/// device says.
pub(super) fn checksum_of_layout(
    ground: &Ground<'_>,
    verifier: &Verifier<'_>,
    layout: &Layout,
    (order, index): (&Order, &Index),
    range: &Range<'_>,
) -> Result<u64, DeviceError> {
    let refused = |what: &str| DeviceError::Refused { entry: "range", what: what.to_owned() };
    if layout.spec().offset_bytes > 0 || layout.fragment_bytes() > range.chunk_bytes {
        return Err(refused("fragments lie across chunks"));
    }
    let entries = translated(layout, index, range);
    let entries = entries.ok_or_else(|| refused("a fragment lies behind it"))?;
    let device = ground.device;
    let bytes: &[u8] = bytemuck::cast_slice(&entries);
    let on_device = device.allocate(bytes.len() as u64)?;
    device.upload(on_device.span(), bytes)?;
    let sums = device.allocate(SUM_BYTES)?;
    // Chunks may lie behind what the layout's own entries can name.
    let wide = layout.clone().with_wide_index();
    let operands =
        Operands { index: Some(on_device.span()), payload: None, sums: Some(sums.span()) };
    let gather = Movement::GatherRead;
    let access = Access::of_layout(gather, &wide, order, ground.whole, operands, ground.data_key)?;
    verifier.zero(sums.span())?;
    device.launch(&access.launch()?)?;
    verifier.total(sums.span())
}

/// The checksum of the first `bytes` bytes of the range, read from end to end.
///
/// # Errors
///
/// As [`checksum_of_layout`].
pub(super) fn checksum_of_stream(
    ground: &Ground<'_>,
    verifier: &Verifier<'_>,
    bytes: u64,
    range: &Range<'_>,
) -> Result<u64, DeviceError> {
    let fragment_bytes = 1 << (bytes | range.chunk_bytes).trailing_zeros();
    let spec = Spec {
        pattern: Pattern::Contiguous,
        fragment_bytes,
        offset_bytes: 0,
        footprint_bytes: bytes,
        payload_bytes: bytes,
    };
    let refused = |error: crate::layout::LayoutError| DeviceError::Refused {
        entry: "range",
        what: error.to_string(),
    };
    let layout = Layout::new(spec, ground.seed).map_err(refused)?;
    let index = layout.index(&Order::Packed).map_err(refused)?;
    checksum_of_layout(ground, verifier, &layout, (&Order::Packed, &index), range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::device::scripted::{Scripted, at_rate};
    use crate::experiment::Backing;

    #[test]
    fn fragments_are_found_where_their_chunks_lie() {
        let device = Scripted::new(1 << 30, |timed| at_rate(timed, 1.0));
        let buffer = device.allocate(16 << 20).unwrap();
        let spec = Spec {
            pattern: Pattern::Random,
            fragment_bytes: 128,
            offset_bytes: 0,
            footprint_bytes: 16 << 20,
            payload_bytes: 1 << 20,
        };
        let layout = Layout::new(spec, 1).unwrap();
        let index = layout.index(&Order::Scattered).unwrap();
        let order = Backing::Reversed.order(8, 2 << 20, 1);
        let range = |order| Range {
            backing: Backing::Reversed,
            chunk_bytes: 2 << 20,
            order,
            span: buffer.span(),
        };
        let found = translated(&layout, &index, &range(&order)).unwrap();
        let slots_of_a_chunk = (2 << 20) / 128;
        for (at, slot) in found.into_iter().enumerate() {
            let own = index.get(at).unwrap();
            let (part, rest) = (own / slots_of_a_chunk, own % slots_of_a_chunk);
            assert_eq!(slot, (7 - part) * slots_of_a_chunk + rest);
        }
        assert_eq!(translated(&layout, &index, &range(&order[..4])), None);
    }
}
