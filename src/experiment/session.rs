//! The worker's side: a device, its arena, and one group after another.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Plan;
use super::aids::{Aids, State};
use super::arena::Arena;
use super::arms::Ground;
use super::bandwidth::{self, skip};
use super::heap_cache::HeapCache;
use super::plan::Subject;
use super::scene::Heap;
use super::tlb::{self, tlb_groups};
use crate::device::{Device, DeviceError, Movement, Span};
use crate::kernel::fill;
use crate::layout::mix;
use crate::measure::{Conduct, Count, Pauses, Quota, eviction_bytes};
use crate::record::{Duels, Group, Lost, Status, size};
use crate::stats::Sharing;

/// How long freed memory may take to come back: the driver scrubs it first.
const RECOVERY: Duration = Duration::from_secs(5);

/// A device that measures groups.
pub struct Session {
    // Before the device, so that it is freed first.
    arena: Option<Arena>,
    /// Whether the arena holds something else than its data: a scatter wrote to it.
    is_overwritten: bool,
    pub(super) device: Box<dyn Device>,
    pub(super) seed: u64,
    pub(super) memory_limit_bytes: u64,
    pub(super) state: State,
    /// How often the group's buffers were placed before, where they are placed anew.
    pub(super) placement: u32,
    heaps: HeapCache,
    /// Which multiprocessors share a TLB, once that was asked.
    tlb: Option<(Duels, Option<Sharing>)>,
    /// Whether the device may be filled though it is not provably this run's alone.
    pub(super) allow_fill: bool,
}

impl Session {
    /// A session on an opened device.
    pub fn new(device: Box<dyn Device>, seed: u64, memory_limit_bytes: u64) -> Session {
        Session {
            arena: None,
            is_overwritten: false,
            device,
            seed,
            memory_limit_bytes,
            state: State::default(),
            placement: 0,
            heaps: HeapCache::new(seed),
            tlb: None,
            allow_fill: false,
        }
    }

    /// The same, allowed to fill a device that is not provably this run's alone, or not.
    pub fn allowing_fill(self, allow_fill: bool) -> Session {
        Session { allow_fill, ..self }
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Ages heaps of groups to come on other cores. Not on the host, whose cores are what is measured.
    pub fn age_ahead(&self, heaps: &[Heap]) {
        if !self.device.facts().is_host() {
            self.heaps.age_ahead(heaps);
        }
    }

    /// Lets the device fault, and measures a group as if nothing were the matter: what a fault costs.
    pub fn perform_after_fault(&mut self, plan: &Plan) -> Group {
        match self.device.inject_fault() {
            Ok(()) => self.perform(plan),
            Err(error) => {
                let mut group = plan.record(Status::Ok, None);
                give_up(&mut group, &error);
                group
            }
        }
    }

    /// Measures one group. Whatever goes wrong is in the record; where that says that the device is
    /// lost, nothing more can be expected of this process.
    pub fn perform(&mut self, plan: &Plan) -> Group {
        let mut group = plan.record(Status::Ok, None);
        self.placement = 0;
        let before = self.device.snapshot();
        let result = match plan.is_placed_anew() {
            true => self.measure_placements(plan, &mut group),
            false => self.measure_once(plan, &mut group),
        };
        let after = self.device.snapshot();
        group.clocks = before.clocks_until(&after);
        group.condition = before.condition_until(&after);
        if let Err(error) = result {
            give_up(&mut group, &error);
        }
        if group.status == Status::Ok && !group.is_verified() {
            group.status = Status::Failed;
            group.reason = Some(bandwidth::what_differed(&group));
        }
        group
    }

    fn measure_once(&mut self, plan: &Plan, group: &mut Group) -> Result<(), DeviceError> {
        match self.prepare(plan, group)? {
            true => self.measure(plan, Count::Found { parts: 1 }, group).map(|_| ()),
            false => Ok(()),
        }
    }

    /// Makes sure of memory and data. False where the group was skipped.
    pub(super) fn prepare(&mut self, plan: &Plan, group: &mut Group) -> Result<bool, DeviceError> {
        let begin = Instant::now();
        let held = self.arena.as_ref().filter(|arena| arena.serves(plan)).map(Arena::bytes);
        let extra = plan.extra_bytes() + self.eviction_bytes(plan);
        let on_device = plan.heap().filter(Heap::is_on_device);
        // An arena in the midst of an allocator's addresses would spread its blocks.
        let keeps =
            on_device.is_none() && held.is_some_and(|held| held + extra <= self.memory_limit_bytes);
        if !keeps {
            self.free_arena();
        }
        if let Some(heap) = on_device {
            self.heaps.age_first(&heap, &*self.device);
        }
        let needed = if keeps { extra } else { plan.arena_bytes() + extra };
        let waiting = Instant::now();
        let free = self.wait_for(needed)?;
        let waited_ns = waiting.elapsed().as_nanos() as u64;
        group.phases.wait_ns += waited_ns;
        if free < needed {
            let (needed, free) = (size::rounded(needed), size::rounded(free));
            skip(
                group,
                format!("needs {needed} of memory, and {free} were free when its turn came"),
            );
            return Ok(false);
        }
        if !keeps {
            let (arena, mappings) = Arena::make(&*self.device, plan, self.seed)?;
            self.arena = Some(arena);
            group.mappings = mappings;
            self.is_overwritten = true;
            self.state.is_moved = true;
        }
        if let Some(arena) = self.arena.as_ref().filter(|_| self.is_overwritten) {
            fill(&*self.device, arena.span(), self.data_key())?;
            self.device.synchronize()?;
            self.is_overwritten = false;
        }
        if plan.subject == Subject::Mitigations && self.tlb.is_none() {
            let found =
                self.arena.as_ref().map(|arena| tlb::duels(&*self.device, arena.span(), self.seed));
            if let Some(duels) = found.transpose()? {
                group.duels = Some(duels.clone());
                let sharing = tlb_groups(&duels);
                self.tlb = Some((duels, sharing));
            }
        }
        group.phases.prepare_ns += (begin.elapsed().as_nanos() as u64).saturating_sub(waited_ns);
        Ok(true)
    }

    /// The next group gets memory of its own.
    pub(super) fn free_arena(&mut self) {
        self.state.freed_bytes += self.arena.take().map_or(0, |arena| arena.bytes());
    }

    /// Measures what is prepared. Returns how many rounds that was to take, where it came to them.
    pub(super) fn measure(
        &mut self,
        plan: &Plan,
        count: Count,
        group: &mut Group,
    ) -> Result<Option<Quota>, DeviceError> {
        self.is_overwritten |= plan.subject.movement() == Some(Movement::ScatterCopy);
        let missing = || DeviceError::Refused {
            entry: "arena",
            what: "it is shorter than the footprint".to_owned(),
        };
        let whole = self.arena.as_ref().ok_or_else(missing)?;
        let arena: Span<'_> = whole.span().slice(0, plan.arena_bytes()).ok_or_else(missing)?;
        let aids = Aids::new(&*self.device, self.eviction_bytes(plan))?;
        let steady = aids.steady(&*self.device, arena, &self.state)?;
        let ground = Ground {
            device: &*self.device,
            arena,
            whole: whole.span(),
            ranges: whole.ranges(plan),
            tlb: self.tlb.as_ref().and_then(|(duels, sharing)| Some((duels, sharing.as_ref()?))),
            seed: self.seed,
            turn: u64::from(plan.repetition) << 32 | u64::from(self.placement),
            data_key: self.data_key(),
            heaps: &self.heaps,
        };
        let conduct = Conduct { steady, evict: aids.evict()?, count, pauses: Pauses::default() };
        let measured = bandwidth::measure_group(&ground, plan, &conduct, group);
        self.state.update(group.sentinel.as_ref(), plan.extra_bytes());
        measured
    }

    /// Bytes to evict L2 by before each launch; 0 where that is of no use. Only before kernels that
    /// read: what one that writes leaves in L2 is written back after its interval, so it would
    /// still be no memory case. And only within the memory limit; without, it is a cache case.
    fn eviction_bytes(&self, plan: &Plan) -> u64 {
        let bytes = match plan.subject.writes() {
            true => None,
            false => eviction_bytes(self.device.facts(), plan.touched_bytes()),
        };
        let fits = |bytes: &u64| plan.memory_bytes() + bytes <= self.memory_limit_bytes;
        bytes.filter(fits).unwrap_or(0)
    }

    fn data_key(&self) -> u64 {
        mix(self.seed ^ 0x6461_7461)
    }

    /// Free memory, after waiting for at least `bytes` of it as long as freed memory may take.
    pub(super) fn wait_for(&self, bytes: u64) -> Result<u64, DeviceError> {
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

/// Ends a group with the device's error.
fn give_up(group: &mut Group, error: &DeviceError) {
    if matches!(error, DeviceError::OutOfMemory { .. } | DeviceError::NoAllocator { .. }) {
        return skip(group, error.to_string());
    }
    group.status = Status::Failed;
    group.reason = Some(error.to_string());
    group.lost = matches!(error, DeviceError::Call { .. }).then_some(Lost::Device);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Snapshot;
    use crate::device::scripted::{Scripted, at_rate};
    use crate::experiment::{Scene, Suite, parse_plan, plans};
    use crate::record::{Clocks, DeviceKind};

    fn session(memory_limit_bytes: u64) -> Session {
        let device = Scripted::new(1 << 40, |timed| at_rate(timed, 4000.0));
        Session::new(Box::new(device), 1, memory_limit_bytes)
    }

    fn plan(kernel: &str, footprint: &str) -> Plan {
        let plans = plans(Suite::Standard, &DeviceKind::Cuda);
        let wanted = |plan: &&Plan| {
            let case = plan.case();
            case.contains(&format!("kernel={kernel}/")) && case.ends_with(footprint)
        };
        plans.iter().find(wanted).cloned().unwrap()
    }

    #[test]
    fn a_heap_that_cannot_be_filled_is_skipped_with_what_would_work() {
        let case = "bandwidth/kernel=gather_read/pattern=aged.live/policy=buddy/sizes=log_normal/\
                    occupancy=99/hole=64KiB/footprint=64MiB";
        let plan = parse_plan(case, Suite::Quick, &DeviceKind::Cuda).unwrap();
        let group = session(1 << 40).perform(&plan);
        assert_eq!((group.status, group.lost), (Status::Skipped, None));
        assert!(group.arms.is_empty() && group.heap.is_none());
        let reason = group.reason.unwrap();
        assert!(
            reason.contains("buddy cannot fill 99 %") && reason.contains("ask for"),
            "{reason}"
        );
    }

    /// What a group's record holds of a device that NVML tells so about, moment by moment.
    fn seen(mut snapshots: Vec<Snapshot>) -> Group {
        snapshots.reverse();
        let device = Scripted::new(1 << 40, |timed| at_rate(timed, 4000.0))
            .seen(move || snapshots.pop().expect("NVML is asked twice for a group"));
        let plan = plan("gather_read", "footprint=256MiB");
        Session::new(Box::new(device), 1, 1 << 40).perform(&plan)
    }

    #[test]
    fn nvml_is_asked_before_and_after_and_may_die_in_between() {
        let snapshot = |n: u32| Snapshot {
            sm_mhz: Some(1900 + n),
            temperature_c: Some(30 + n),
            other_processes: Some(n),
            ..Snapshot::default()
        };
        let group = seen(vec![snapshot(0), snapshot(1)]);
        assert_eq!(group.clocks.sm_mhz, Some([1900, 1901]));
        let condition = group.condition.unwrap();
        assert_eq!(condition.temperature_c, Some([30, 31]));
        assert_eq!((condition.other_processes, condition.power_mw), (Some([0, 1]), None));
        let dead = seen(vec![snapshot(1), Snapshot::default()]);
        assert_eq!((dead.clocks, dead.condition), (Clocks::default(), None));
    }

    #[test]
    fn a_fault_costs_the_device_and_memory_that_runs_out_does_not() {
        let plan = plan("gather_read", "footprint=2GiB");
        let reason = |group: &Group| group.reason.clone().unwrap_or_default();
        let mut faulted = session(1 << 40);
        // Nothing more can be had from the process, whatever is asked for.
        for group in [faulted.perform_after_fault(&plan), faulted.perform(&plan)] {
            assert_eq!((&group.status, &group.lost), (&Status::Failed, &Some(Lost::Device)));
            assert!(reason(&group).ends_with("failed with CUDA_ERROR_ILLEGAL_ADDRESS"));
        }
        // The payload's other end is refused, behind an arena that was had.
        let Scene::Uniform(spec) = &plan.scene else { panic!("fragments of one length") };
        let index_bytes = 4 * spec.payload_bytes / spec.fragment_bytes;
        let device = Scripted::new(1 << 40, |timed| at_rate(timed, 4000.0)).refusing(index_bytes);
        let mut session = Session::new(Box::new(device), 1, 1 << 40);
        let group = session.perform(&plan);
        assert_eq!((&group.status, &group.lost), (&Status::Skipped, &None));
        assert!(reason(&group).contains("the device has no"), "{}", reason(&group));
        assert!(session.arena.is_some() && group.arms.is_empty());
        let ceiling = session.perform(&super::tests::plan("ceiling", "footprint=2GiB"));
        assert_eq!(ceiling.status, Status::Ok, "{:?}", ceiling.reason);
    }

    #[test]
    fn only_small_cases_that_read_are_evicted_and_only_within_the_limit() {
        let small = plan("gather_read", "footprint=256MiB");
        assert_eq!(session(1 << 40).eviction_bytes(&small), 240 << 20);
        let room = small.memory_bytes() + (240 << 20);
        assert_eq!(session(room).eviction_bytes(&small), 240 << 20);
        assert_eq!(session(room - 1).eviction_bytes(&small), 0);
        assert_eq!(session(1 << 40).eviction_bytes(&plan("gather_read", "footprint=2GiB")), 0);
        let mut writes = plan("gather_copy", "footprint=2GiB");
        let Scene::Uniform(spec) = &mut writes.scene else { panic!("fragments of one length") };
        spec.payload_bytes = 1 << 20;
        assert_eq!(session(1 << 40).eviction_bytes(&writes), 0);
    }
}
