//! The experiment `bandwidth`: the verification of a group's arms, and their rounds.

use std::time::Instant;

use serde_json::Map;

use super::Plan;
use super::arms::{Buffers, Ground, PlannedArm, Reference, payload_bytes, plan_arms};
use super::fragments::{Directory, Ends, Fragments};
use super::translated::{checksum_of_layout, checksum_of_stream};
use crate::device::{DeviceError, Launch, Movement, Span};
use crate::kernel::{GUARD_BYTES, Outcome, Verifier, host_checksum};
use crate::layout::{Layout, draw, mix};
use crate::measure::{self, Conduct, Measured, Quota, Ratio};
use crate::record::{Arm, Check, CheckKind, Group, Order, Placement, Status, When};

/// The name under which checks of the whole group stand.
const GROUP: &str = "group";

/// Fragments of a strided gather whose checksum the host works out as well.
const HOST_FRAGMENTS: u64 = 65_536;

/// Measures a group into its record, and returns how many rounds that was to take. A mismatch ends
/// it early and is left to the caller to judge.
pub(super) fn measure_group(
    ground: &Ground<'_>,
    plan: &Plan,
    conduct: &Conduct<'_>,
    group: &mut Group,
) -> Result<Option<Quota>, DeviceError> {
    let begin = Instant::now();
    let fragments = match plan.subject.has_layout() {
        true => Some(match Fragments::of(&plan.scene, ground) {
            Ok(fragments) => fragments,
            // That there is no such heap is known only once it was aged.
            Err(why) => {
                skip(group, why);
                group.phases.prepare_ns += elapsed_ns(begin);
                return Ok(None);
            }
        }),
        false => None,
    };
    group.heap = fragments.as_ref().and_then(Fragments::heap_facts).cloned();
    group.payload_bytes = payload_bytes(plan, fragments.as_ref());
    let verifier = Verifier::new(ground.device)?;
    let check = Checks { ground, plan, verifier: &verifier };
    let footprint = part(ground.arena, 0, plan.scene.arena_bytes())?;
    check.source(footprint, When::Before, group)?;
    let buffers = Buffers::allocate(ground, plan, fragments.as_ref())?;
    let twin = buffers.twin.as_ref().map(|twin| part(twin.span(), 0, plan.scene.arena_bytes()));
    let twin = twin.transpose()?;
    if let Some(twin) = twin {
        check.source(twin, When::Before, group)?;
    }
    if plan.is_placed_anew() {
        let other = buffers.twin.as_ref().unwrap_or(&buffers.payload);
        let destination = other.span().address();
        group.placements.push(Placement::at(ground.arena.address(), destination));
    }
    if let Some(fragments) = &fragments {
        check.fragments(fragments, &buffers, group)?;
    }
    group.phases.prepare_ns += elapsed_ns(begin);
    if differs(group) {
        return Ok(None);
    }

    let begin = Instant::now();
    buffers.fill_payload(ground, plan)?;
    let touched = group.layout.as_ref().map_or(group.payload_bytes, |facts| facts.touched_bytes);
    let mut arms = plan_arms(ground, plan, fragments.as_ref(), touched, &buffers)?;
    let mut poison = Poison { key: mix(ground.data_key ^ ground.seed), drawn: 0 };
    for arm in &mut arms {
        if arm.access.is_read() {
            arm.expected = check.expected(arm, fragments.as_ref(), &buffers)?;
        }
        check.arm(arm, &buffers, &mut poison, When::Before, group)?;
    }
    if let Some(Fragments::Uniform(layout)) = &fragments {
        check.against_the_host(layout, &arms, group)?;
    }
    group.phases.verify_ns += elapsed_ns(begin);
    if differs(group) {
        return Ok(None);
    }

    let begin = Instant::now();
    let stale = poison.next();
    verifier.zero(buffers.sums.span())?;
    if plan.subject.writes() {
        verifier.poison(check.guarded(&buffers), stale)?;
    }
    let measured = rounds(ground, plan, &arms, conduct)?;
    group.phases.measure_ns += elapsed_ns(begin);

    let begin = Instant::now();
    check.timed(&arms, &measured, &buffers, stale, group)?;
    for arm in arms.iter().filter(|arm| !arm.access.is_read()) {
        check.arm(arm, &buffers, &mut poison, When::After, group)?;
    }
    let source = match plan.subject.movement() {
        Some(Movement::ScatterCopy) => part(buffers.payload.span(), 0, group.payload_bytes)?,
        _ => footprint,
    };
    check.source(source, When::After, group)?;
    if let Some(twin) = twin {
        check.source(twin, When::After, group)?;
    }
    group.phases.verify_ns += elapsed_ns(begin);

    let quota = measured.quota;
    record(ground, plan, &arms, measured, group);
    Ok(Some(quota))
}

/// Leaves the group without figures, for a reason that is no fault.
pub(super) fn skip(group: &mut Group, reason: String) {
    group.status = Status::Skipped;
    group.reason = Some(reason);
    group.arms.clear();
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

fn elapsed_ns(begin: Instant) -> u64 {
    begin.elapsed().as_nanos() as u64
}

fn part(span: Span<'_>, offset: u64, bytes: u64) -> Result<Span<'_>, DeviceError> {
    span.slice(offset, bytes).ok_or_else(|| DeviceError::Refused {
        entry: "group",
        what: format!("{bytes} bytes from {offset} on lie outside {}", span.bytes()),
    })
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

/// The checks of a group.
struct Checks<'a> {
    ground: &'a Ground<'a>,
    plan: &'a Plan,
    verifier: &'a Verifier<'a>,
}

impl Checks<'_> {
    /// The data that is read, gaps included.
    fn source(&self, span: Span<'_>, when: When, group: &mut Group) -> Result<(), DeviceError> {
        let outcome = self.verifier.check_fill(span, self.ground.data_key)?;
        push(group, GROUP, CheckKind::Source, when, outcome);
        Ok(())
    }

    /// The layout's metrics, and its directories. Each is checked before anything follows it: a wrong
    /// one could lead a kernel to what is not there. After a mismatch nothing may be launched.
    fn fragments(
        &self,
        fragments: &Fragments,
        buffers: &Buffers,
        group: &mut Group,
    ) -> Result<(), DeviceError> {
        let Ground { arena, data_key, .. } = *self.ground;
        group.layout = fragments.facts(&buffers.directories)?;
        let staging = buffers.payload.span();
        let in_reach = buffers.mitigations.iter().flat_map(|all| &all.in_reach);
        let in_reach =
            in_reach.map(|(fragments, directory)| (fragments, &Order::Scattered, directory));
        let own = buffers.directories.iter().map(|(order, on)| (fragments, order, on));
        for (fragments, order, directory) in own.chain(in_reach) {
            let payload = part(staging, 0, staging.bytes().min(group.payload_bytes))?;
            let ends = Ends { arena, payload: Some(payload), sums: None };
            let gather = Movement::GatherCopy;
            let access = fragments.access(gather, order, Some(directory), ends, data_key)?;
            let outcome = self.verifier.check_index(&access)?;
            push(group, order.as_str(), CheckKind::Index, When::Before, outcome);
            if differs(group) {
                return Ok(());
            }
            let spans = (arena, staging);
            if let Some(outcome) = fragments.copy_back(order, directory, spans, self.ground)? {
                push(group, order.as_str(), CheckKind::CopyBack, When::Before, outcome);
            }
        }
        Ok(())
    }

    /// Without an index there is nothing to copy back: the host works out the checksum of the first
    /// fragments itself.
    fn against_the_host(
        &self,
        layout: &Layout,
        arms: &[PlannedArm<'_>],
        group: &mut Group,
    ) -> Result<(), DeviceError> {
        for arm in arms {
            let Some(order) = &arm.order else { continue };
            if arm.access.movement() != Some(Movement::StridedGather) {
                continue;
            }
            let fragments = layout.fragments().min(HOST_FRAGMENTS);
            let expected = host_checksum(layout, order, fragments, self.ground.data_key);
            let Some(expected) = expected else { continue };
            let access = arm.access.of_fragments(fragments);
            let launch = access.launch()?;
            let outcome = self.verifier.check_read(&access, Some(&launch), expected)?;
            push(group, &arm.name, CheckKind::CopyBack, When::Before, outcome);
        }
        Ok(())
    }

    /// The checksum that one launch of an arm has to give. What lies in another order of chunks is read
    /// from the arena, through an index of its own.
    fn expected(
        &self,
        arm: &PlannedArm<'_>,
        fragments: Option<&Fragments>,
        buffers: &Buffers,
    ) -> Result<u64, DeviceError> {
        let Self { ground, verifier, .. } = *self;
        let range = match &arm.reference {
            Reference::ClosedForm => return verifier.expected_checksum(&arm.access),
            Reference::Launch(other) => return verifier.found_checksum(other, &other.launch()?),
            Reference::Range(range) => range,
        };
        let directory = arm.order.as_ref().and_then(|order| buffers.directory(order));
        match (fragments, directory, &arm.order) {
            (
                Some(Fragments::Uniform(layout)),
                Some(Directory::Index { on_host, .. }),
                Some(order),
            ) => checksum_of_layout(ground, verifier, layout, (order, on_host), range),
            (None, ..) => checksum_of_stream(ground, verifier, arm.access.payload_bytes(), range),
            _ => Err(DeviceError::Refused {
                entry: "range",
                what: "only fragments of one length are found in it".to_owned(),
            }),
        }
    }

    /// Everything that a launch may change in error.
    fn guarded<'b>(&self, buffers: &'b Buffers) -> Span<'b>
    where
        Self: 'b,
    {
        match self.plan.subject.movement() {
            Some(Movement::ScatterCopy) => self.ground.arena,
            _ => buffers.payload.span(),
        }
    }

    /// Runs the arm once and compares.
    fn arm(
        &self,
        arm: &PlannedArm<'_>,
        buffers: &Buffers,
        poison: &mut Poison,
        when: When,
        group: &mut Group,
    ) -> Result<(), DeviceError> {
        let launch = Some(&arm.launch);
        if arm.access.is_read() {
            let outcome = self.verifier.check_read(&arm.access, launch, arm.expected)?;
            push(group, &arm.name, CheckKind::Checksum, when, outcome);
            return Ok(());
        }
        let guarded = self.guarded(buffers);
        let (written, untouched) =
            self.verifier.check_writes(&arm.access, launch, guarded, poison.next())?;
        push(group, &arm.name, CheckKind::Destination, when.clone(), written);
        push(group, &arm.name, CheckKind::Guard, when, untouched);
        Ok(())
    }

    /// What the timed launches left: the sum of all of them, and the destination of the last.
    fn timed(
        &self,
        arms: &[PlannedArm<'_>],
        measured: &Measured,
        buffers: &Buffers,
        stale: u64,
        group: &mut Group,
    ) -> Result<(), DeviceError> {
        let launches = arms.iter().zip(&measured.launches);
        let expected = launches.fold(0u64, |sum, (arm, launches)| {
            sum.wrapping_add(arm.expected.wrapping_mul(*launches))
        });
        let differs = self.verifier.total(buffers.sums.span())? != expected;
        for (i, arm) in arms.iter().enumerate() {
            if arm.access.is_read() {
                let outcome =
                    Outcome { compared: measured.launches[i], mismatches: u64::from(differs) };
                push(group, &arm.name, CheckKind::TimedChecksum, When::After, outcome);
            } else if i == measured.last_arm {
                let found = self.verifier.check_written(&arm.access)?;
                push(group, &arm.name, CheckKind::Destination, When::After, found);
                let guarded = self.guarded(buffers);
                // All arms wrote somewhere before it.
                let may_change = guarded.bytes() - GUARD_BYTES;
                let guard = self.verifier.check_behind(may_change, guarded, stale)?;
                push(group, &arm.name, CheckKind::Guard, When::After, guard);
            }
        }
        Ok(())
    }
}

/// Takes the rounds.
fn rounds(
    ground: &Ground<'_>,
    plan: &Plan,
    arms: &[PlannedArm<'_>],
    conduct: &Conduct<'_>,
) -> Result<Measured, DeviceError> {
    let launches: Vec<Launch<'_>> = arms.iter().map(|arm| arm.launch).collect();
    let at = |name: &str| arms.iter().position(|arm| arm.name == name);
    let ratio = |numerator: &str, denominator: &str| {
        Some(Ratio { numerator: at(numerator)?, denominator: at(denominator)? })
    };
    // Of competing variants the last one against the first.
    let ends = Ratio { numerator: 0, denominator: arms.len().saturating_sub(1) };
    let ratio = ratio("packed", "scattered")
        .or_else(|| ratio("driver_copy", "copy"))
        .unwrap_or_else(|| {
            // Of orders of chunks the first random one.
            let is_shuffled = |arm: &PlannedArm<'_>| arm.name.starts_with("shuffled.");
            let denominator = arms.iter().position(is_shuffled).unwrap_or(ends.denominator);
            Ratio { denominator, ..ends }
        });
    let order_key = mix(ground.seed
        ^ mix(plan.scene.footprint_bytes() ^ plan.scene.fragment_bytes().unwrap_or(0))
        ^ ground.turn);
    measure::measure(ground.device, &launches, ratio, plan.budget(), order_key, conduct)
}

fn record(
    ground: &Ground<'_>,
    plan: &Plan,
    arms: &[PlannedArm<'_>],
    measured: Measured,
    group: &mut Group,
) {
    group.held = Some(ground.device.is_held());
    measured.note(group);
    if measured.samples.iter().any(|samples| samples.is_empty()) {
        group.status = Status::Failed;
        group.reason = Some("no sample is left: the hold gave up in every round".to_owned());
    }
    group.arms = arms
        .iter()
        .zip(measured.samples)
        .map(|(arm, samples)| {
            let traffic = arm.access.traffic();
            // The arena is one end of every access, the payload the other.
            let other_end = traffic.read_bytes.min(traffic.written_bytes);
            Arm {
                name: arm.name.clone(),
                kernel: arm.access.kernel(),
                pattern: arm.pattern.clone(),
                order: arm.order.clone(),
                backing: plan.chunked.as_ref().map(|_| arm.backing().to_string()),
                read_bytes: traffic.read_bytes,
                written_bytes: traffic.written_bytes,
                index_bytes: traffic.index_bytes,
                touched_bytes: arm.arena_touched_bytes + other_end,
                samples,
                extra: Map::new(),
            }
        })
        .collect();
}
