//! Groups over several placements of their buffers: where a buffer lies in physical memory may
//! move its figures, and one placement alone would pass for the device.

use super::{Plan, Session};
use crate::device::{Buffer, DeviceError};
use crate::measure::{Count, Quota};
use crate::record::{Arm, Group, Samples, Status};

impl Session {
    /// Measures the plan's group with its buffers allocated anew as often as the memory limit
    /// allows, and merges what each placement gave. Where memory is short, there are fewer.
    pub(super) fn measure_placements(
        &mut self,
        plan: &Plan,
        group: &mut Group,
    ) -> Result<(), DeviceError> {
        let placements = plan.placements(self.memory_limit_bytes);
        let mut count = Count::Found { parts: placements };
        for placement in 0..placements {
            let mut part = plan.record(Status::Ok, None);
            let placed = self.measure_placement(plan, placement, count, &mut part);
            let is_short_of_memory =
                matches!(placed, Err(DeviceError::OutOfMemory { .. })) || is_skipped(&part);
            if placement > 0 && is_short_of_memory {
                break;
            }
            // What the pilot found, and not what was taken: that holds slow rounds too.
            count = placed?.map_or(count, Count::Given);
            let is_sound = part.status == Status::Ok && part.is_verified();
            match placement {
                0 => begin(group, part),
                _ => merge(group, part, placement),
            }
            if !is_sound {
                break;
            }
        }
        if group.placements.len() < 2 {
            group.arms.iter_mut().for_each(|arm| arm.samples.placement.clear());
        }
        Ok(())
    }

    fn measure_placement(
        &mut self,
        plan: &Plan,
        placement: u32,
        count: Count,
        part: &mut Group,
    ) -> Result<Option<Quota>, DeviceError> {
        self.free_arena();
        self.placement = placement;
        let ballast_bytes = plan.ballast_bytes(placement);
        let _ballast: Option<Buffer> = match ballast_bytes {
            0 => None,
            bytes => {
                let needed = plan.memory_bytes() + bytes;
                let free = self.wait_for(needed)?;
                if free < needed {
                    return Err(DeviceError::OutOfMemory { requested: needed, free });
                }
                Some(self.device.allocate(bytes)?)
            }
        };
        let measured = match self.prepare(plan, part)? {
            true => self.measure(plan, count, part),
            false => Ok(None),
        };
        self.state.freed_bytes += ballast_bytes;
        measured
    }
}

fn is_skipped(group: &Group) -> bool {
    group.status == Status::Skipped
}

/// Rounds that were taken, from the last one that has samples.
fn rounds(group: &Group) -> u32 {
    let last = group.arms.iter().filter_map(|arm| arm.samples.round.last()).max();
    last.map_or(0, |round| round + 1).max(group.round_throttle_reasons.len() as u32)
}

/// The first placement's record becomes the group's; the samples get their placement.
fn begin(group: &mut Group, part: Group) {
    *group = part;
    for arm in &mut group.arms {
        arm.samples.placement = vec![0; arm.samples.len()];
    }
}

/// Appends what a later placement gave. Rounds are numbered on.
fn merge(group: &mut Group, part: Group, placement: u32) {
    let first_round = rounds(group);
    if !part.round_throttle_reasons.is_empty() {
        group.round_throttle_reasons.resize(first_round as usize, None);
        group.round_throttle_reasons.extend(part.round_throttle_reasons);
    }
    for arm in part.arms {
        let Arm { name, samples, .. } = arm;
        if let Some(own) = group.arms.iter_mut().find(|own| own.name == name) {
            append(&mut own.samples, samples, first_round, placement);
        }
    }
    group.checks.extend(part.checks);
    group.placements.extend(part.placements);
    group.void_samples += part.void_samples;
    group.l2_evicted &= part.l2_evicted;
    if let (Some(own), Some(new)) = (&mut group.sentinel, part.sentinel) {
        own.settled &= new.settled;
        own.settling.extend(new.settling);
        own.attempts.extend(new.attempts);
    }
    let (own, new) = (&mut group.phases, part.phases);
    own.prepare_ns += new.prepare_ns;
    own.verify_ns += new.verify_ns;
    own.measure_ns += new.measure_ns;
    own.wait_ns += new.wait_ns;
    own.timed_ns += new.timed_ns;
    own.intervals += new.intervals;
    own.host_ns += new.host_ns;
    if part.status != Status::Ok {
        (group.status, group.reason) = (part.status, part.reason);
    }
}

fn append(own: &mut Samples, new: Samples, first_round: u32, placement: u32) {
    if !own.sm_khz.is_empty() || !new.sm_khz.is_empty() {
        let (before, after) = (own.len(), own.len() + new.len());
        own.sm_khz.resize(before, None);
        own.sm_khz.extend(new.sm_khz);
        own.sm_khz.resize(after, None);
    }
    own.placement.extend(std::iter::repeat_n(placement, new.round.len()));
    own.round.extend(new.round.into_iter().map(|round| first_round + round));
    own.position.extend(new.position);
    own.launches.extend(new.launches);
    own.ns.extend(new.ns);
}

#[cfg(test)]
mod tests;
