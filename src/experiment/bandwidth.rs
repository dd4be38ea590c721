//! The experiment `bandwidth`: the arms of a group, their verification, and their rounds.

use std::time::{Duration, Instant};

use serde_json::Map;

use super::Plan;
use crate::device::{Buffer, Device, DeviceError, Launch, SUM_BYTES, Span};
use crate::kernel::{Access, GUARD_BYTES, Outcome, Verifier, copy_back};
use crate::layout::{Layout, draw, mix};
use crate::measure::{self, Measured, Ratio};
use crate::record::{Arm, Check, CheckKind, Group, KernelName, Order, PatternName, Status, When};

/// The name under which checks of the whole group stand.
const GROUP: &str = "group";

/// What a group is measured on.
pub(super) struct Ground<'a> {
    pub device: &'a dyn Device,
    /// The footprint, filled with the data of `data_key`.
    pub source: Span<'a>,
    pub seed: u64,
    pub data_key: u64,
    /// How long the device is kept busy before the first sample.
    pub warm_up: Duration,
}

/// Buffers of a group; the arms borrow from them.
struct Buffers {
    /// The destination with its guard, or the staging for what is copied back.
    destination: Buffer,
    /// The index of each order.
    indices: Vec<(Order, Buffer)>,
    /// The sums of each arm.
    sums: Vec<Buffer>,
}

/// One arm: its name, what it does, and how it is recorded.
struct PlannedArm<'a> {
    name: &'static str,
    pattern: PatternName,
    order: Option<Order>,
    source_touched_bytes: u64,
    access: Access<'a>,
    launch: Launch<'a>,
    /// The checksum of one launch, for reads.
    expected: u64,
}

/// Measures a group into its record. A mismatch ends it early and is left to the caller to judge.
pub(super) fn measure_group(
    ground: &Ground<'_>,
    plan: &Plan,
    group: &mut Group,
) -> Result<(), DeviceError> {
    let begin = Instant::now();
    let layout = plan
        .layout(ground.seed)
        .map_err(|error| DeviceError::Refused { entry: "layout", what: error.to_string() })?;
    let verifier = Verifier::new(ground.device)?;
    let source = verifier.check_fill(ground.source, ground.data_key)?;
    push(group, GROUP, CheckKind::Source, When::Before, source);

    let buffers = allocate(ground, plan, &layout, &verifier, group)?;
    let mut arms = plan_arms(ground, plan, &layout, &buffers, group)?;
    group.phases.prepare_ns += begin.elapsed().as_nanos() as u64;
    if differs(group) {
        return Ok(());
    }

    let begin = Instant::now();
    let mut poison = Poison { key: mix(ground.data_key ^ ground.seed), drawn: 0 };
    for arm in &mut arms {
        if arm.access.is_read() {
            arm.expected = verifier.expected_checksum(&arm.access)?;
        }
        check_arm(&verifier, arm, &buffers, &mut poison, When::Before, group)?;
    }
    group.phases.verify_ns += begin.elapsed().as_nanos() as u64;
    if differs(group) {
        return Ok(());
    }

    let begin = Instant::now();
    let stale = poison.next();
    for (arm, sums) in arms.iter().zip(&buffers.sums) {
        match arm.access.is_read() {
            true => verifier.zero(sums.span())?,
            false => verifier.poison(&arm.access, buffers.destination.span(), stale)?,
        }
    }
    let measured = rounds(ground, plan, &arms)?;
    group.phases.measure_ns += begin.elapsed().as_nanos() as u64;

    let begin = Instant::now();
    for (i, arm) in arms.iter().enumerate() {
        if arm.access.is_read() {
            let found = verifier.total(buffers.sums[i].span())?;
            let expected = arm.expected.wrapping_mul(measured.launches[i]);
            let outcome = Outcome {
                compared: measured.launches[i],
                mismatches: u64::from(found != expected),
            };
            push(group, arm.name, CheckKind::TimedChecksum, When::After, outcome);
        } else if i == measured.last_arm {
            let found = verifier.check_destination(&arm.access)?;
            push(group, arm.name, CheckKind::Destination, When::After, found);
            let guard = verifier.check_guard(&arm.access, buffers.destination.span(), stale)?;
            push(group, arm.name, CheckKind::Guard, When::After, guard);
        }
    }
    for arm in arms.iter().filter(|arm| !arm.access.is_read()) {
        check_arm(&verifier, arm, &buffers, &mut poison, When::After, group)?;
    }
    let source = verifier.check_fill(ground.source, ground.data_key)?;
    push(group, GROUP, CheckKind::Source, When::After, source);
    group.phases.verify_ns += begin.elapsed().as_nanos() as u64;

    record(ground, &arms, measured, group);
    Ok(())
}

/// What the record of a group that is not verified gives as its reason.
pub(super) fn what_differed(group: &Group) -> String {
    let differing = group.checks.iter().find(|check| check.mismatches > 0);
    differing.map_or_else(
        || "not every arm was verified".to_owned(),
        |check| {
            format!(
                "verification failed: {} of {} differed in the {} check of `{}`, {} the samples",
                check.mismatches, check.compared, check.kind, check.arm, check.when
            )
        },
    )
}

/// Keys that poison destinations, a fresh one each time.
struct Poison {
    key: u64,
    drawn: u64,
}

impl Poison {
    fn next(&mut self) -> u64 {
        self.drawn += 1;
        draw(self.key, self.drawn)
    }
}

fn push(group: &mut Group, arm: &str, kind: CheckKind, when: When, outcome: Outcome) {
    let (compared, mismatches) = (outcome.compared, outcome.mismatches);
    group.checks.push(Check { arm: arm.to_owned(), kind, when, compared, mismatches });
}

fn differs(group: &Group) -> bool {
    group.checks.iter().any(|check| check.mismatches > 0)
}

/// Allocates what the group needs beside its source, and puts the indices in place. Each is checked
/// before anything follows it: a wrong one could lead a kernel to what is not there. After a
/// mismatch the remaining indices are left out, and nothing may be launched.
fn allocate(
    ground: &Ground<'_>,
    plan: &Plan,
    layout: &Layout,
    verifier: &Verifier<'_>,
    group: &mut Group,
) -> Result<Buffers, DeviceError> {
    let device = ground.device;
    let written = match plan.writes() {
        true => plan.payload_bytes + GUARD_BYTES,
        false => plan.payload_bytes.min(crate::kernel::COPY_BACK_BYTES),
    };
    let destination = device.allocate(written)?;
    let mut indices = Vec::new();
    if plan.fragment_bytes.is_some() {
        let make = |order: Order| {
            layout
                .index(&order)
                .map_err(|error| DeviceError::Refused { entry: "index", what: error.to_string() })
        };
        let sorted = make(Order::Sorted)?;
        let scattered = make(Order::Scattered)?;
        group.layout = Some(layout.facts(&sorted, &scattered));
        let packed = make(Order::Packed)?;
        let orders =
            [(Order::Packed, packed), (Order::Sorted, sorted), (Order::Scattered, scattered)];
        for (order, on_host) in orders {
            let bytes = on_host.as_bytes();
            let buffer = device.allocate(bytes.len() as u64)?;
            device.upload(buffer.span(), bytes)?;
            let (source, index, staging) = (ground.source, buffer.span(), destination.span());
            let access =
                Access::gather_copy(layout, &order, source, index, staging, ground.data_key);
            let outcome = verifier.check_index(&access)?;
            push(group, order.as_str(), CheckKind::Index, When::Before, outcome);
            if differs(group) {
                break;
            }
            // The layout itself, and what the device has no closed form to check against.
            if order == Order::Scattered || layout.slot(&order, 0).is_none() {
                let spans = (source, index, staging);
                let outcome = copy_back(device, layout, &order, &on_host, spans, ground.data_key)?;
                push(group, order.as_str(), CheckKind::CopyBack, When::Before, outcome);
            }
            indices.push((order, buffer));
        }
    }
    let sums = (0..4).map(|_| device.allocate(SUM_BYTES)).collect::<Result<_, _>>()?;
    Ok(Buffers { destination, indices, sums })
}

/// The arms of the group: for ceilings read, copy and the driver's copy; else stream, packed,
/// sorted and scattered.
fn plan_arms<'a>(
    ground: &Ground<'a>,
    plan: &Plan,
    layout: &Layout,
    buffers: &'a Buffers,
    group: &Group,
) -> Result<Vec<PlannedArm<'a>>, DeviceError> {
    let outside = || DeviceError::Refused {
        entry: "arm",
        what: "the payload does not fit its buffer".to_owned(),
    };
    let payload = plan.payload_bytes;
    let packed_source = ground.source.slice(0, payload).ok_or_else(outside)?;
    let destination = || buffers.destination.slice(0, payload).ok_or_else(outside);
    let (source, key) = (ground.source, ground.data_key);
    let sums = |arm: usize| buffers.sums[arm].span();
    let arm = |name, order, pattern, source_touched_bytes, access: Access<'a>| {
        let launch = access.launch()?;
        Ok(PlannedArm { name, pattern, order, source_touched_bytes, access, launch, expected: 0 })
    };
    let contiguous = || PatternName::Contiguous;
    if plan.kernel == KernelName::Ceiling {
        let to = destination()?;
        return Ok(vec![
            arm("read", None, contiguous(), payload, Access::read(packed_source, sums(0), key))?,
            arm("copy", None, contiguous(), payload, Access::copy(packed_source, to, key))?,
            arm(
                "driver_copy",
                None,
                contiguous(),
                payload,
                Access::driver_copy(packed_source, to, key),
            )?,
        ]);
    }
    let stream = match plan.writes() {
        true => Access::copy(packed_source, destination()?, key),
        false => Access::read(packed_source, sums(0), key),
    };
    let mut arms = vec![arm("stream", None, contiguous(), payload, stream)?];
    for (i, (order, index)) in buffers.indices.iter().enumerate() {
        let index = index.span();
        let access = match plan.writes() {
            true => Access::gather_copy(layout, order, source, index, destination()?, key),
            false => Access::gather_read(layout, order, source, index, sums(i + 1), key),
        };
        let scattered_touched = group.layout.as_ref().map_or(payload, |facts| facts.touched_bytes);
        let (name, pattern, touched) = match order {
            Order::Packed => ("packed", contiguous(), payload),
            Order::Sorted => ("sorted", plan.pattern.clone(), scattered_touched),
            _ => ("scattered", plan.pattern.clone(), scattered_touched),
        };
        arms.push(arm(name, Some(order.clone()), pattern, touched, access)?);
    }
    Ok(arms)
}

/// Runs the arm once and compares.
fn check_arm(
    verifier: &Verifier<'_>,
    arm: &PlannedArm<'_>,
    buffers: &Buffers,
    poison: &mut Poison,
    when: When,
    group: &mut Group,
) -> Result<(), DeviceError> {
    let launch = Some(&arm.launch);
    if arm.access.is_read() {
        let outcome = verifier.check_read(&arm.access, launch, arm.expected)?;
        push(group, arm.name, CheckKind::Checksum, when, outcome);
        return Ok(());
    }
    let guarded = buffers.destination.span();
    let (written, guard) = verifier.check_copy(&arm.access, launch, guarded, poison.next())?;
    push(group, arm.name, CheckKind::Destination, when.clone(), written);
    push(group, arm.name, CheckKind::Guard, when, guard);
    Ok(())
}

/// Warms the device up, and takes the rounds.
fn rounds(
    ground: &Ground<'_>,
    plan: &Plan,
    arms: &[PlannedArm<'_>],
) -> Result<Measured, DeviceError> {
    let launches: Vec<Launch<'_>> = arms.iter().map(|arm| arm.launch).collect();
    let at = |name: &str| arms.iter().position(|arm| arm.name == name);
    let ratio = |numerator: &str, denominator: &str| {
        Some(Ratio { numerator: at(numerator)?, denominator: at(denominator)? })
    };
    let ratio = ratio("packed", "scattered")
        .or_else(|| ratio("driver_copy", "copy"))
        .unwrap_or(Ratio { numerator: 0, denominator: 0 });
    let order_key = mix(ground.seed ^ mix(plan.footprint_bytes ^ plan.fragment_bytes.unwrap_or(0)));
    measure::measure(ground.device, &launches, ratio, plan.budget(), order_key, ground.warm_up)
}

fn record(ground: &Ground<'_>, arms: &[PlannedArm<'_>], measured: Measured, group: &mut Group) {
    group.held = Some(ground.device.is_held());
    group.void_samples = measured.void_samples;
    group.pilot_rounds = measured.pilot_rounds;
    group.stop = measured.stop;
    if measured.samples.iter().any(|samples| samples.is_empty()) {
        group.status = Status::Failed;
        group.reason = Some("no sample is left: the hold gave up in every round".to_owned());
    }
    group.arms = arms
        .iter()
        .zip(measured.samples)
        .map(|(arm, samples)| {
            let traffic = arm.access.traffic();
            Arm {
                name: arm.name.to_owned(),
                kernel: arm.access.kernel(),
                pattern: arm.pattern.clone(),
                order: arm.order.clone(),
                read_bytes: traffic.read_bytes,
                written_bytes: traffic.written_bytes,
                index_bytes: traffic.index_bytes,
                touched_bytes: arm.source_touched_bytes + traffic.written_bytes,
                samples,
                extra: Map::new(),
            }
        })
        .collect();
}
