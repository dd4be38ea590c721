//! The host's own look at extents: a table and fragments that are copied back, and a checksum.

use rayon::prelude::*;

use super::super::copy_back::COPY_BACK_BYTES;
use super::super::table::TableSpans;
use super::super::verify::Outcome;
use super::{Access, ExtentOperands};
use crate::device::{Device, DeviceError, Movement, Span};
use crate::layout::{Extents, Fragment, ROW_PIECES, Table, draw};

/// Runs of consecutive entries or ranks that are copied back where there are too many for all.
const RUNS: u64 = 64;

/// Fragments that a thread sums at a time.
const GRAIN: usize = 1 << 12;

/// How long the staging buffer has to be: the first fragment at least, which may be long.
pub fn extents_staging_bytes(extents: &Extents) -> u64 {
    let first = extents.fragments().first().map_or(0, |fragment| fragment.bytes);
    extents.payload_bytes().min(COPY_BACK_BYTES.max(first))
}

/// Copies the table back, all of it or evenly spread runs, and compares it with the host's own;
/// gathers as many fragments as fit into `staging` with the table that lies on the device, and
/// compares every unit with what the extents and the data's closed form say. Counts entries, ranks
/// and units.
///
/// # Errors
///
/// [`DeviceError::Refused`] where the first fragment does not fit into `staging`, or whatever the
/// device says.
pub fn copy_back_extents(
    device: &dyn Device,
    extents: &Extents,
    table: TableSpans<'_>,
    (source, staging): (Span<'_>, Span<'_>),
    data_key: u64,
) -> Result<Outcome, DeviceError> {
    let refused = |what: String| DeviceError::Refused { entry: "copy_back", what };
    let own = Table::new(extents).map_err(|error| refused(error.to_string()))?;
    let width = u64::from(extents.entry_form().bytes());
    let entries = compare_runs(device, table.entries, own.entry_bytes(), width)?;
    // That of the piece behind the last as well: it tells where the last fragment ends.
    let used = ((extents.tally().pieces / ROW_PIECES + 1) * 8) as usize;
    let ranks = compare_runs(device, table.ranks, &own.rank_bytes()[..used], 8)?;

    let capacity = staging.bytes().min(extents_staging_bytes(extents));
    let mut end = 0;
    let fits = |fragment: &&Fragment| {
        end += fragment.bytes;
        end <= capacity
    };
    let count = extents.fragments().iter().take_while(fits).count();
    let gathered = &extents.fragments()[..count];
    let bytes: u64 = gathered.iter().map(|fragment| fragment.bytes).sum();
    let part = staging.slice(0, bytes).filter(|_| count > 0);
    let part = part.ok_or_else(|| refused("the first fragment does not fit".to_owned()))?;
    let operands = ExtentOperands { table, payload: Some(staging), sums: None };
    let access = Access::of_extents(Movement::GatherCopy, extents, source, operands, data_key)?;
    device.launch(&access.of_fragments(count as u64).launch()?)?;
    let mut copy = vec![0; bytes as usize];
    device.download(part, &mut copy)?;

    let unit_bytes = u64::from(extents.entry_form().unit_bytes());
    let mut rest = &copy[..];
    let copies: Vec<&[u8]> = gathered
        .iter()
        .map(|fragment| {
            let (own, behind) = rest.split_at(fragment.bytes as usize);
            rest = behind;
            own
        })
        .collect();
    let differing = gathered.par_iter().zip(copies).map(|(fragment, copy)| {
        let units = copy.chunks_exact(unit_bytes as usize);
        let offsets = (fragment.offset..).step_by(unit_bytes as usize);
        let expected = |offset| unit_value(data_key, offset, unit_bytes);
        units.zip(offsets).filter(|(unit, offset)| words(unit) != expected(*offset)).count() as u64
    });
    let units = Outcome { compared: bytes / unit_bytes, mismatches: differing.sum() };
    Ok(entries.and(ranks).and(units))
}

/// The checksum that a read of the first `fragments` fragments has to give, from the extents and the
/// data's closed form alone.
pub fn extents_checksum(extents: &Extents, fragments: u64, data_key: u64) -> u64 {
    let unit_bytes = u64::from(extents.entry_form().unit_bytes());
    // Weights are odd and count words of the payload; half a word counts as one.
    let words = unit_bytes.div_ceil(8);
    let all = extents.fragments();
    let chosen = &all[..all.len().min(usize::try_from(fragments).unwrap_or(usize::MAX))];
    let mut before = 0;
    let chunks: Vec<(u64, &[Fragment])> = chosen
        .chunks(GRAIN)
        .map(|chunk| {
            let first = before;
            before += chunk.iter().map(|fragment| fragment.bytes / unit_bytes).sum::<u64>();
            (first, chunk)
        })
        .collect();
    let sum = |(first, chunk): (u64, &[Fragment])| {
        let offsets = chunk
            .iter()
            .flat_map(|fragment| (fragment.offset..fragment.end()).step_by(unit_bytes as usize));
        offsets.zip(first..).fold(0, |sum: u64, (offset, unit)| {
            let [low, high] = unit_value(data_key, offset, unit_bytes);
            let weight = 2 * unit * words + 1;
            sum.wrapping_add(low.wrapping_mul(weight))
                .wrapping_add(high.wrapping_mul(weight.wrapping_add(2)))
        })
    };
    chunks.into_par_iter().map(sum).reduce(|| 0, u64::wrapping_add)
}

/// What a unit of the source holds at this offset: two words, or one half of a word.
fn unit_value(data_key: u64, offset: u64, unit_bytes: u64) -> [u64; 2] {
    let word = draw(data_key, offset / 8);
    match unit_bytes {
        4 => [u64::from((word >> (8 * (offset % 8))) as u32), 0],
        _ => [word, draw(data_key, offset / 8 + 1)],
    }
}

/// A unit's bytes as such words.
fn words(unit: &[u8]) -> [u64; 2] {
    let mut bytes = [0; 16];
    bytes[..unit.len()].copy_from_slice(unit);
    let (low, high) = bytes.split_at(8);
    [low, high].map(|half| u64::from_le_bytes(half.try_into().expect("eight bytes")))
}

/// Copies items back that should be these, and counts those that are not: all of them, or evenly
/// spread runs, of which the first begins with the first item and the last ends with the last.
fn compare_runs(
    device: &dyn Device,
    span: Span<'_>,
    expected: &[u8],
    item_bytes: u64,
) -> Result<Outcome, DeviceError> {
    let items = expected.len() as u64 / item_bytes;
    let most = COPY_BACK_BYTES / item_bytes;
    let (runs, length) = if items <= most { (1, items) } else { (RUNS, most / RUNS) };
    let mut outcome = Outcome::default();
    for run in 0..runs {
        let last = u128::from(items - length);
        let first = (last * u128::from(run) / u128::from((runs - 1).max(1))) as u64;
        let (offset, bytes) = (first * item_bytes, length * item_bytes);
        let part = span.slice(offset, bytes).ok_or_else(|| DeviceError::Refused {
            entry: "copy_back",
            what: format!("{bytes} bytes lie outside a buffer"),
        })?;
        let mut copy = vec![0; bytes as usize];
        device.download(part, &mut copy)?;
        let own = expected[offset as usize..][..bytes as usize].chunks_exact(item_bytes as usize);
        let differing = copy.chunks_exact(item_bytes as usize).zip(own).filter(|(a, b)| a != b);
        let mismatches = differing.count() as u64;
        outcome = outcome.and(Outcome { compared: length, mismatches });
    }
    Ok(outcome)
}
