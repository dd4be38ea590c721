//! The host's own look: sampled fragments are copied back and compared with its layout.

use rayon::prelude::*;

use super::Access;
use super::verify::Outcome;
use crate::device::{Device, DeviceError, Span};
use crate::layout::{Index, Layout, UNIT_BYTES, draw};
use crate::record::Order;

/// Fragments that are copied back, as far as they fit into [`COPY_BACK_BYTES`].
const FRAGMENTS: u64 = 65_536;

/// Runs of consecutive fragments that the sample is made of.
const RUNS: u64 = 64;

/// The most bytes that are copied back, and the length of the staging buffer.
pub const COPY_BACK_BYTES: u64 = 256 << 20;

/// Gathers sampled runs of fragments into `staging` with the index that lies on the device, copies
/// fragments and index entries back, and compares every byte with what the host's layout and the
/// data's closed form say. Counts units of 16 B and index entries.
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
    let capacity = staging.bytes().min(COPY_BACK_BYTES) / fragment_bytes;
    let sampled = layout.fragments().min(FRAGMENTS).min(capacity);
    let runs = RUNS.min(sampled).max(1);
    let length = sampled / runs;
    let entry_bytes = u64::from(layout.index_entry_bytes());
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
        let gather = Access::gather_copy(layout, order, source, part, staging, data_key)
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
                (u64::from(wrong_entry), differing_units(fragment, slot * fragment_bytes, data_key))
            })
            .reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        outcome = outcome.and(Outcome {
            compared: length + length * (fragment_bytes / UNIT_BYTES),
            mismatches: differing.0 + differing.1,
        });
    }
    Ok(outcome)
}

/// Units of the fragment that differ from the data at this offset of the source.
fn differing_units(fragment: &[u8], offset: u64, data_key: u64) -> u64 {
    let first_word = offset / 8;
    let units = fragment.as_chunks::<16>().0;
    let differing = units.iter().enumerate().filter(|(unit, bytes)| {
        let word = first_word + 2 * *unit as u64;
        let expected = [draw(data_key, word), draw(data_key, word + 1)];
        let (words, _) = bytes.as_chunks::<8>();
        expected.iter().zip(words).any(|(value, word)| value.to_le_bytes() != *word)
    });
    differing.count() as u64
}

fn outside(bytes: u64) -> DeviceError {
    DeviceError::Refused { entry: "copy_back", what: format!("{bytes} bytes lie outside a buffer") }
}
