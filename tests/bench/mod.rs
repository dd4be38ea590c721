//! What tests of kernels have in common: the device, and any access against bytes that are worked out
//! here.
//!
//! `FRAGBENCH_TEST_DEVICE` names the device (default `host`), so that the same tests run on a GPU:
//! `FRAGBENCH_TEST_DEVICE=cuda:0 cargo test --test faults --test extents`.

use fragbench::device::{self, Buffer, Device};
use fragbench::kernel::{Access, Verifier};
use fragbench::layout::draw;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// The keys of the source's data and of what lies in a destination before.
pub const DATA: u64 = 0x5EED;
pub const POISON: u64 = 0xBAD;

/// The device that is tested.
pub fn open() -> Box<dyn Device> {
    let id = std::env::var("FRAGBENCH_TEST_DEVICE").unwrap_or_else(|_| "host".to_owned());
    device::open(&id).unwrap_or_else(|error| panic!("{id}: {error}"))
}

/// The bytes that a filled buffer holds.
pub fn bytes_of(key: u64, bytes: u64) -> Vec<u8> {
    (0..bytes.div_ceil(8)).flat_map(|word| draw(key, word).to_le_bytes()).collect()
}

/// The checksum of a payload, its words weighted by their positions.
pub fn checksum(payload: &[u8], unit_bytes: u64) -> u64 {
    payload.chunks(unit_bytes.min(8) as usize).zip((1u64..).step_by(2)).fold(0, |sum, word| {
        let (bytes, weight) = word;
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        sum.wrapping_add(u64::from_le_bytes(word).wrapping_mul(weight))
    })
}

/// A device's buffer, copied back.
pub fn download(device: &dyn Device, buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.bytes() as usize];
    device.download(buffer.span(), &mut bytes).unwrap();
    bytes
}

/// Runs an access once over poison, and compares all of its memory with `image`, and with what the
/// device's own checks say.
pub fn writes(
    (device, verifier): (&dyn Device, &Verifier<'_>),
    access: &Access<'_>,
    written: &Buffer,
    image: &[u8],
) -> Result<(), TestCaseError> {
    let launch = access.launch().unwrap();
    let (destination, guard) =
        verifier.check_writes(access, Some(&launch), written.span(), POISON).unwrap();
    prop_assert!(download(device, written) == image, "the bytes differ");
    prop_assert_eq!((destination.mismatches, guard.mismatches), (0, 0));
    Ok(())
}

/// Runs a read once, and compares its checksum and the device's expectation with the payload's.
pub fn reads(
    (device, verifier): (&dyn Device, &Verifier<'_>),
    access: &Access<'_>,
    sum: u64,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(verifier.expected_checksum(access).unwrap(), sum);
    let sums = access.sums().unwrap();
    verifier.zero(sums).unwrap();
    device.launch(&access.launch().unwrap()).unwrap();
    prop_assert_eq!(verifier.total(sums).unwrap(), sum);
    Ok(())
}
