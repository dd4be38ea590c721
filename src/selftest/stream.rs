//! The kernels without a layout, and the driver's copy: a fragment is a piece of their payload.

use std::cell::Cell;

use super::cases::{self, Dice};
use super::ledger::{Expect, Ledger};
use super::trial::{Plant, Trial, Witness, flip, part};
use crate::device::{Buffer, Device, DeviceError, Movement, Mover, SUM_BYTES};
use crate::kernel::{Access, GUARD_BYTES, Outcome, Verifier, fill, host_checksum};
use crate::layout::{LEAST_UNIT_BYTES, Layout, Pattern, Spec, UNIT_BYTES};
use crate::record::{CheckKind, FaultKind, Order, size};

/// The operands, each with room for a piece more.
struct Buffers {
    source: Buffer,
    destination: Buffer,
    sums: Buffer,
    data_key: u64,
}

impl Buffers {
    /// The kernel on so many bytes, from these offsets on.
    fn access(
        &self,
        mover: Option<Mover>,
        (source, destination): (u64, u64),
        bytes: u64,
    ) -> Result<Access<'_>, DeviceError> {
        let from = part(self.source.span(), source, bytes)?;
        let to = part(self.destination.span(), destination, bytes)?;
        let key = self.data_key;
        Ok(match mover {
            None => Access::driver_copy(from, to, key),
            Some(Mover { movement, variant, .. }) => match movement {
                Movement::Read => Access::read(from, self.sums.span(), key),
                Movement::Write => Access::write(to, key),
                _ => Access::copy(from, to, key),
            }
            .by(variant),
        })
    }
}

/// Tests a kernel on one payload; none: the driver's copy.
pub fn test(
    device: &dyn Device,
    verifier: &Verifier<'_>,
    mover: Option<Mover>,
    dice: &mut Dice,
    ledger: &mut Ledger,
) -> Result<(), DeviceError> {
    let (piece, pieces) = cases::pieces(dice);
    let payload = piece * pieces;
    ledger.what = format!("{pieces} pieces of {}", size::exact(piece));
    let guard = GUARD_BYTES.max(2 * piece);
    let buffers = Buffers {
        source: device.allocate(payload + guard)?,
        destination: device.allocate(payload + guard)?,
        sums: device.allocate(SUM_BYTES)?,
        data_key: dice.next(),
    };
    fill(device, buffers.source.span(), buffers.data_key)?;
    let expected = buffers.access(mover, (0, 0), payload)?;
    let witness = match expected.is_read() {
        true => Witness::Checksum(verifier.expected_checksum(&expected)?),
        false => Witness::Memory(buffers.destination.span()),
    };
    if let Witness::Checksum(sum) = witness {
        let own = checksum_of_the_host(payload, buffers.data_key)?;
        ledger.sound(CheckKind::Checksum, Outcome::of_sums(sum, own));
    }
    let trial = Trial {
        device,
        verifier,
        expected,
        witness,
        unit_bytes: UNIT_BYTES,
        poison_key: dice.next(),
        poisoned: Cell::new(0),
    };
    trial.sound(ledger)?;
    trial.too_few_and_too_many(ledger)?;

    let reads_source = expected.traffic().read_bytes > 0;
    let (none, all) = (Expect::Exactly(0), Expect::bytes(payload, UNIT_BYTES));
    let (one, stray) = (Expect::bytes(piece, UNIT_BYTES), Expect::bytes(piece, LEAST_UNIT_BYTES));
    let launch = |offsets, bytes| buffers.access(mover, offsets, bytes);
    let mut plant = |kind, launched: Access<'_>, destination, guard| {
        trial.plant(ledger, &Plant { kind, launched: Some(launched), destination, guard })
    };
    if reads_source {
        plant(FaultKind::SourceShifted, launch((piece, 0), payload)?, all, none)?;
    }
    if !expected.is_read() {
        plant(FaultKind::DestinationShifted, launch((0, piece), payload)?, all, stray)?;
    }
    if pieces > 1 {
        plant(FaultKind::TailDropped, launch((0, 0), payload - piece)?, one, none)?;
    }
    plant(FaultKind::FragmentAdded, launch((0, 0), payload + piece)?, none, stray)?;

    for (kind, check, offset) in [
        (FaultKind::DestinationByte, CheckKind::Destination, dice.below(payload)),
        (FaultKind::DestinationByte, CheckKind::Destination, payload - 1),
        (FaultKind::BehindByte, CheckKind::Guard, payload),
        (FaultKind::BehindByte, CheckKind::Guard, payload + guard - 1),
    ] {
        trial.byte(ledger, kind, check, offset)?;
    }
    if reads_source {
        source_bytes(&trial, &buffers, payload, dice, ledger)?;
    }
    trial.sound(ledger)
}

/// Bytes of the source that are wrong: one that is read, and one behind them all.
fn source_bytes(
    trial: &Trial<'_>,
    buffers: &Buffers,
    payload: u64,
    dice: &mut Dice,
    ledger: &mut Ledger,
) -> Result<(), DeviceError> {
    let span = buffers.source.span();
    let check = || trial.verifier.check_fill(span, buffers.data_key);
    let one = Expect::Exactly(1);
    ledger.sound(CheckKind::Source, check()?);
    let at = dice.below(payload);
    flip(trial.device, span, at)?;
    let kind = FaultKind::SourceFragmentByte;
    ledger.fault(kind.clone(), CheckKind::Source, check()?, one);
    let (launched, guard) = (Some(trial.expected), Expect::Exactly(0));
    trial.plant(ledger, &Plant { kind, launched, destination: one, guard })?;
    flip(trial.device, span, at)?;

    let behind = payload + dice.below(span.bytes() - payload);
    flip(trial.device, span, behind)?;
    ledger.fault(FaultKind::SourceGapByte, CheckKind::Source, check()?, one);
    trial.sound(ledger)?;
    flip(trial.device, span, behind)
}

/// What the host makes of a contiguous payload.
fn checksum_of_the_host(payload: u64, data_key: u64) -> Result<u64, DeviceError> {
    let refused = |what: String| DeviceError::Refused { entry: "read", what };
    let spec = Spec {
        pattern: Pattern::Contiguous,
        fragment_bytes: UNIT_BYTES,
        offset_bytes: 0,
        footprint_bytes: payload,
        payload_bytes: payload,
    };
    let layout = Layout::new(spec, 0).map_err(|error| refused(error.to_string()))?;
    host_checksum(&layout, &Order::Packed, layout.fragments(), data_key)
        .ok_or_else(|| refused("it has no closed form".to_owned()))
}
