//! The worker's side: a device, its arena, and one group after another.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Plan;
use super::bandwidth::{self, Ground};
use crate::device::{Buffer, Device, DeviceError, Span};
use crate::kernel::fill;
use crate::layout::mix;
use crate::record::{Clocks, Group, Status, size};

/// How long freed memory may take to come back: the driver scrubs it first.
const RECOVERY: Duration = Duration::from_secs(5);

/// The work that wakes a device from its idle clocks before the first group.
const WARM_UP: Duration = Duration::from_millis(400);

/// A group's record, and whether the device can still be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The record.
    pub group: Group,
    /// The device gave an error after which nothing more can be expected of this process.
    pub device_lost: bool,
}

/// A device that measures groups.
pub struct Session {
    // Before the device, so that it is freed first.
    arena: Option<Buffer>,
    device: Box<dyn Device>,
    seed: u64,
    memory_limit_bytes: u64,
    warm: bool,
}

impl Session {
    /// A session on an opened device.
    pub fn new(device: Box<dyn Device>, seed: u64, memory_limit_bytes: u64) -> Session {
        Session { arena: None, device, seed, memory_limit_bytes, warm: false }
    }

    /// Measures one group. Whatever goes wrong is in the record.
    pub fn perform(&mut self, plan: &Plan) -> Answer {
        let mut group = plan.record(Status::Ok, None);
        let before = self.device.clocks();
        let result = self
            .prepare(plan, &mut group)
            .and_then(|prepared| if prepared { self.measure(plan, &mut group) } else { Ok(()) });
        group.clocks = around(before, self.device.clocks());
        let mut device_lost = false;
        match result {
            Ok(()) => {}
            Err(error @ DeviceError::OutOfMemory { .. }) => skip(&mut group, error.to_string()),
            Err(error) => {
                group.status = Status::Failed;
                group.reason = Some(error.to_string());
                device_lost = matches!(error, DeviceError::Call { .. });
            }
        }
        if group.status == Status::Ok && !group.is_verified() {
            group.status = Status::Failed;
            group.reason = Some(bandwidth::what_differed(&group));
        }
        Answer { group, device_lost }
    }

    /// Makes sure of memory and data. False where the group was skipped.
    fn prepare(&mut self, plan: &Plan, group: &mut Group) -> Result<bool, DeviceError> {
        let begin = Instant::now();
        let held = self.arena.as_ref().map_or(0, Buffer::bytes);
        let keeps =
            held >= plan.footprint_bytes && held + plan.extra_bytes() <= self.memory_limit_bytes;
        if !keeps {
            self.arena = None;
        }
        let needed = if keeps { plan.extra_bytes() } else { plan.memory_bytes() };
        let free = self.wait_for(needed)?;
        if free < needed {
            let (needed, free) = (size::rounded(needed), size::rounded(free));
            skip(
                group,
                format!("needs {needed} of memory, and {free} were free when its turn came"),
            );
            return Ok(false);
        }
        if !keeps {
            let arena = self.device.allocate(plan.footprint_bytes)?;
            fill(&*self.device, arena.span(), self.data_key())?;
            self.device.synchronize()?;
            self.arena = Some(arena);
        }
        group.phases.prepare_ns += begin.elapsed().as_nanos() as u64;
        Ok(true)
    }

    fn measure(&mut self, plan: &Plan, group: &mut Group) -> Result<(), DeviceError> {
        let arena = self.arena.as_ref().and_then(|arena| arena.slice(0, plan.footprint_bytes));
        let source: Span<'_> = arena.ok_or_else(|| DeviceError::Refused {
            entry: "arena",
            what: "it is shorter than the footprint".to_owned(),
        })?;
        let warm_up = if self.warm { Duration::ZERO } else { WARM_UP };
        let ground = Ground {
            device: &*self.device,
            source,
            seed: self.seed,
            data_key: self.data_key(),
            warm_up,
        };
        bandwidth::measure_group(&ground, plan, group)?;
        self.warm = true;
        Ok(())
    }

    fn data_key(&self) -> u64 {
        mix(self.seed ^ 0x6461_7461)
    }

    /// Free memory, after waiting for at least `bytes` of it as long as freed memory may take.
    fn wait_for(&self, bytes: u64) -> Result<u64, DeviceError> {
        let begin = Instant::now();
        loop {
            let free = self.device.free_bytes()?;
            if free >= bytes || begin.elapsed() > RECOVERY {
                return Ok(free);
            }
            sleep(Duration::from_millis(20));
        }
    }
}

fn skip(group: &mut Group, reason: String) {
    group.status = Status::Skipped;
    group.reason = Some(reason);
    group.arms.clear();
}

/// Clocks before and after, in one.
fn around(before: Clocks, after: Clocks) -> Clocks {
    let pair = |before: Option<[u32; 2]>, after: Option<[u32; 2]>| Some([before?[0], after?[1]]);
    let reasons = before.throttle_reasons.zip(after.throttle_reasons);
    Clocks {
        sm_mhz: pair(before.sm_mhz, after.sm_mhz),
        memory_mhz: pair(before.memory_mhz, after.memory_mhz),
        throttle_reasons: reasons.map(|(before, after)| before | after),
    }
}
