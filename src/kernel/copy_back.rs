//! The host's own look: sampled fragments are copied back and compared with its layout.

use rayon::prelude::*;

use super::verify::Outcome;
use super::{Access, Operands};
use crate::device::{Device, DeviceError, Movement, Span};
use crate::layout::{Index, Layout, draw};
use crate::record::Order;

/// Fragments that are copied back, as far as they fit into [`COPY_BACK_BYTES`].
const FRAGMENTS: u64 = 65_536;

/// Runs of consecutive fragments that the sample is made of.
const RUNS: u64 = 64;

/// The most bytes that are copied back, but for a longer fragment: a PCIe link takes some 20 ms for
/// them, less than a group's rounds.
pub(super) const COPY_BACK_BYTES: u64 = 64 << 20;

/// How long the staging buffer of a layout has to be.
pub fn staging_bytes(fragment_bytes: u64, payload_bytes: u64) -> u64 {
    payload_bytes.min(COPY_BACK_BYTES.max(fragment_bytes))
}

/// Gathers sampled runs of fragments into `staging` with the index that lies on the device, copies
/// fragments and index entries back, and compares every byte with what the host's layout and the
/// data's closed form say. Counts units and index entries.
///
/// # Errors
///
/// Whatever the device says.
pub fn copy_back(
    device: &dyn Device,
    layout: &Layout,
    order: &Order,
    on_host: &Index,
    (source, index, staging): (Span<'_>, Span<'_>, Span<'_>),
    data_key: u64,
) -> Result<Outcome, DeviceError> {
    let fragment_bytes = layout.fragment_bytes();
    let capacity = (staging.bytes().min(COPY_BACK_BYTES) / fragment_bytes).max(1);
    let sampled = layout.fragments().min(FRAGMENTS).min(capacity);
    let runs = RUNS.min(sampled).max(1);
    let length = sampled / runs;
    let entry_bytes = u64::from(layout.index_entry_bytes());
    let unit_bytes = layout.unit_bytes();
    let mut outcome = Outcome::default();
    for run in 0..runs {
        // Runs are spread evenly; the last one ends with the last fragment.
        let span = layout.fragments() - length;
        let first = if runs == 1 {
            0
        } else {
            (u128::from(span) * u128::from(run) / u128::from(runs - 1)) as u64
        };
        let slice = |span: Span<'_>, offset: u64, bytes: u64| -> Result<_, DeviceError> {
            let mut copy = vec![0u8; bytes as usize];
            let part = span.slice(offset, bytes).ok_or_else(|| outside(bytes))?;
            device.download(part, &mut copy)?;
            Ok(copy)
        };
        let entries = slice(index, first * entry_bytes, length * entry_bytes)?;
        let part = index.slice(first * entry_bytes, length * entry_bytes);
        let part = part.ok_or_else(|| outside(length * entry_bytes))?;
        let operands = Operands { index: Some(part), payload: Some(staging), sums: None };
        let gather =
            Access::of_layout(Movement::GatherCopy, layout, order, source, operands, data_key)?
                .of_fragments(length);
        device.launch(&gather.launch()?)?;
        let bytes = slice(staging, 0, length * fragment_bytes)?;

        let differing: (u64, u64) = (0..length as usize)
            .into_par_iter()
            .map(|k| {
                let i = first + k as u64;
                let slot = layout.slot(order, i).or_else(|| on_host.get(i as usize)).unwrap_or(0);
                let at = k * entry_bytes as usize;
                let mut entry = [0u8; 8];
                entry[..entry_bytes as usize]
                    .copy_from_slice(&entries[at..at + entry_bytes as usize]);
                let wrong_entry = u64::from_le_bytes(entry) != slot;
                let at = k * fragment_bytes as usize;
                let fragment = &bytes[at..at + fragment_bytes as usize];
                let offset = layout.spec().offset_bytes + slot * fragment_bytes;
                (u64::from(wrong_entry), differing_units(fragment, offset, unit_bytes, data_key))
            })
            .reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        outcome = outcome.and(Outcome {
            compared: length + length * (fragment_bytes / unit_bytes),
            mismatches: differing.0 + differing.1,
        });
    }
    Ok(outcome)
}

/// Units of the fragment that differ from the data at this offset of the source.
fn differing_units(fragment: &[u8], offset: u64, unit_bytes: u64, data_key: u64) -> u64 {
    let units =
        fragment.chunks_exact(unit_bytes as usize).zip((offset..).step_by(unit_bytes as usize));
    let differing = units.filter(|(unit, offset)| {
        let word = offset / 8;
        let mut expected = [0; 16];
        expected[..8].copy_from_slice(&draw(data_key, word).to_le_bytes());
        expected[8..].copy_from_slice(&draw(data_key, word + 1).to_le_bytes());
        // A unit is aligned to its length: it is one or two words, or half of one.
        let within = (offset % 8) as usize;
        expected[within..within + unit.len()] != **unit
    });
    differing.count() as u64
}

/// The checksum that a read of the first `fragments` fragments has to give, from the host's layout
/// and the data's closed form alone. `None` where the layout has no closed form.
pub fn host_checksum(layout: &Layout, order: &Order, fragments: u64, data_key: u64) -> Option<u64> {
    let (unit_bytes, fragment_bytes) = (layout.unit_bytes(), layout.fragment_bytes());
    let units = fragment_bytes / unit_bytes;
    let words = unit_bytes.div_ceil(8);
    (0..fragments).try_fold(0, |sum: u64, i| {
        let first = layout.fragment(order, i)?.offset;
        Some((0..units).fold(sum, |sum, k| {
            let offset = first + k * unit_bytes;
            // Weights are odd and count words of the payload; half a word counts as one.
            let weight = 2 * (i * units + k) * words + 1;
            (0..words).fold(sum, |sum, w| {
                let word = draw(data_key, offset / 8 + w) >> (8 * (offset % 8));
                let word = if unit_bytes < 8 { u64::from(word as u32) } else { word };
                sum.wrapping_add(word.wrapping_mul(weight + 2 * w))
            })
        }))
    })
}

fn outside(bytes: u64) -> DeviceError {
    DeviceError::Refused { entry: "copy_back", what: format!("{bytes} bytes lie outside a buffer") }
}
