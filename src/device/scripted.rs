//! A device that does nothing and takes the times that a script tells it: what intervals and the order of
//! a measurement are tested with. Memory is numbers only: what is downloaded is zeros.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::launch::Work;
use super::memory::Release;
use super::physical::{MapTimes, Mapped, Physical, check_order};
use super::{
    Buffer, Device, DeviceAllocator, DeviceError, Duel, Entry, Interval, Launch, Snapshot, Span,
    Walk,
};
use crate::layout::UNIT_BYTES;
use crate::policy::{Block, Hole, HoleOrder, Policy, PolicyError, Usage};
use crate::record::{DeviceFacts, DeviceKind};

/// What a script is asked to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// The kernel; none for the driver's copy.
    pub entry: Option<Entry>,
    /// Bytes of payload of one launch.
    pub bytes: u64,
    /// Launches of the interval.
    pub launches: u32,
    /// Whether something was launched just before, and not waited for.
    pub cold: bool,
}

type Script = Box<dyn FnMut(Timed) -> Interval>;

/// A scripted device.
pub struct Scripted {
    facts: DeviceFacts,
    memory: Arc<Memory>,
    script: RefCell<Script>,
    reasons: RefCell<Box<dyn FnMut() -> Option<u64>>>,
    snapshots: RefCell<Box<dyn FnMut() -> Snapshot>>,
    held: bool,
    refused_bytes: Option<u64>,
    leaks: bool,
    sharing: Option<u32>,
    cold: Cell<bool>,
    faulted: Cell<bool>,
    /// The time that the script took for intervals.
    waited: Cell<Duration>,
}

/// Memory that is counted and not there.
struct Memory(Mutex<Counts>);

struct Counts {
    free_bytes: u64,
    /// Behind every address that was ever handed out.
    next: u64,
    /// Addresses that came back, by the length that they had.
    free: BTreeMap<u64, Vec<u64>>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free(&self) -> u64 {
        self.lock().free_bytes
    }

    /// The address of so many bytes, where those of an allocator lay before if there is one; none where
    /// so many are not free.
    fn take_again(&self, bytes: u64) -> Option<u64> {
        let is_free = self.free() >= bytes;
        let again = self.lock().free.get_mut(&bytes).filter(|_| is_free).and_then(Vec::pop);
        let Some(address) = again else { return self.take(bytes) };
        self.lock().free_bytes -= bytes;
        Some(address)
    }

    /// A new address of so many bytes; none where so many are not free.
    fn take(&self, bytes: u64) -> Option<u64> {
        let mut counts = self.lock();
        counts.free_bytes = counts.free_bytes.checked_sub(bytes)?;
        let address = counts.next;
        counts.next += bytes.next_multiple_of(PAGE_BYTES);
        Some(address)
    }

    /// Takes back what an allocator had.
    fn give_again(&self, address: u64, bytes: u64) {
        self.lock().free.entry(bytes).or_default().push(address);
        self.give(bytes);
    }

    fn give(&self, bytes: u64) {
        self.lock().free_bytes += bytes;
    }
}

/// Whose buffers give their memory back.
struct Owner(Arc<Memory>);

impl Release for Owner {
    fn release(&self, _address: u64, bytes: u64) {
        self.0.give(bytes);
    }
}

const PAGE_BYTES: u64 = 2 << 20;

/// A driver's allocator: whole pages, wherever they are free.
struct Pages {
    memory: Arc<Memory>,
    live: BTreeMap<u64, Block>,
    usage: Usage,
    leaks: bool,
}

impl Policy for Pages {
    fn name(&self) -> &'static str {
        "pages"
    }

    fn alignment_bytes(&self) -> u64 {
        256
    }

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        let requested_bytes = bytes.max(1);
        let refused = PolicyError::OutOfMemory { requested_bytes, hole_bytes: 0 };
        let rounded_bytes = requested_bytes.checked_next_multiple_of(PAGE_BYTES);
        let rounded_bytes = rounded_bytes.ok_or(refused.clone())?;
        let address = self.memory.take_again(rounded_bytes).ok_or(refused)?;
        let block = Block { address, requested_bytes, rounded_bytes };
        self.live.insert(address, block);
        self.usage.live_blocks += 1;
        self.usage.requested_bytes += requested_bytes;
        self.usage.rounded_bytes += rounded_bytes;
        self.usage.reserved_bytes += rounded_bytes;
        Ok(block)
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        let Block { requested_bytes, rounded_bytes, .. } =
            self.live.remove(&address).ok_or(PolicyError::NotLive { address })?;
        self.memory.give_again(address, rounded_bytes);
        self.usage.live_blocks -= 1;
        self.usage.requested_bytes -= requested_bytes;
        self.usage.rounded_bytes -= rounded_bytes;
        self.usage.reserved_bytes -= rounded_bytes;
        Ok(())
    }

    fn is_live(&self, address: u64) -> bool {
        self.live.contains_key(&address)
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn holes(&self, _order: HoleOrder) -> Vec<Hole> {
        Vec::new()
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        Ok(0)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        for block in self.live.values() {
            self.memory.give_again(block.address, block.rounded_bytes);
        }
        if self.leaks {
            self.memory.take(PAGE_BYTES);
        }
    }
}

/// Chunks that are counted and not there. Each call takes as long as its number says.
struct Chunks {
    memory: Arc<Memory>,
    chunk_bytes: u64,
    chunks: u32,
    create_ns: Vec<u64>,
    /// What is mapped holds its memory too.
    held: Rc<Held>,
}

/// Memory of chunks, given back when nobody holds it any more.
struct Held(Arc<Memory>, Cell<u64>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.give(self.1.get());
    }
}

impl Release for Held {
    fn release(&self, _address: u64, _bytes: u64) {}
}

impl Physical for Chunks {
    fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    fn chunks(&self) -> u32 {
        self.chunks
    }

    fn create_ns(&self) -> &[u64] {
        &self.create_ns
    }

    fn retain(&mut self, keep: &dyn Fn(u32) -> bool) -> Result<(), DeviceError> {
        let kept = (0..self.chunks).filter(|&at| keep(at)).count() as u32;
        let gone = u64::from(self.chunks - kept) * self.chunk_bytes;
        self.held.1.set(self.held.1.get() - gone);
        self.memory.give(gone);
        self.chunks = kept;
        Ok(())
    }

    fn map(&self, order: &[u32]) -> Result<Mapped, DeviceError> {
        check_order(order, self.chunks)?;
        let bytes = order.len() as u64 * self.chunk_bytes;
        let mut counts = self.memory.lock();
        let address = counts.next;
        counts.next += bytes.next_multiple_of(PAGE_BYTES);
        let map_ns = (1..).take(order.len()).collect();
        let times = MapTimes { reserve_ns: 7, map_ns, open_ns: 9 };
        Ok(Mapped { buffer: Buffer::new(address, bytes, self.held.clone()), times })
    }
}

impl Scripted {
    /// A GPU with this much memory and 60 MiB of L2.
    pub fn new(memory_bytes: u64, script: impl FnMut(Timed) -> Interval + 'static) -> Scripted {
        let counts = Counts { free_bytes: memory_bytes, next: 1 << 40, free: BTreeMap::new() };
        let memory = Memory(Mutex::new(counts));
        Scripted {
            facts: DeviceFacts {
                memory_bytes,
                l2_bytes: Some(60 << 20),
                ..DeviceFacts::new(DeviceKind::Cuda)
            },
            memory: Arc::new(memory),
            script: RefCell::new(Box::new(script)),
            reasons: RefCell::new(Box::new(|| None)),
            snapshots: RefCell::new(Box::new(Snapshot::default)),
            held: true,
            refused_bytes: None,
            leaks: false,
            sharing: None,
            cold: Cell::new(false),
            faulted: Cell::new(false),
            waited: Cell::new(Duration::ZERO),
        }
    }

    /// The same with reasons for lowered clocks, asked for round by round.
    pub fn throttled(self, reasons: impl FnMut() -> Option<u64> + 'static) -> Scripted {
        Scripted { reasons: RefCell::new(Box::new(reasons)), ..self }
    }

    /// The same with what NVML tells, asked for moment by moment.
    pub fn seen(self, snapshots: impl FnMut() -> Snapshot + 'static) -> Scripted {
        Scripted { snapshots: RefCell::new(Box::new(snapshots)), ..self }
    }

    /// The same, provably nobody else's.
    pub fn alone(mut self) -> Scripted {
        let facts = &mut self.facts;
        (facts.nvml, facts.display, facts.mps) = (true, Some(false), Some(false));
        (facts.other_processes, facts.used_at_start_bytes) = (Some(0), Some(0));
        self
    }

    /// The same whose allocators keep a page of the memory that they had when they end.
    pub fn leaking(self) -> Scripted {
        Scripted { leaks: true, ..self }
    }

    /// The same with so many pairs of multiprocessors, each of which shares a TLB.
    pub fn in_pairs(self, pairs: u32) -> Scripted {
        Scripted { sharing: Some(pairs), ..self }
    }

    /// The same where nothing can be held.
    pub fn unheld(self) -> Scripted {
        Scripted { held: false, ..self }
    }

    /// The same with no memory for buffers of this length, though it says that there is.
    pub fn refusing(self, bytes: u64) -> Scripted {
        Scripted { refused_bytes: Some(bytes), ..self }
    }

    /// The driver's answer to a call that waits for what was launched.
    fn call(&self, call: &'static str) -> Result<(), DeviceError> {
        match self.faulted.get() {
            true => Err(DeviceError::Call { call, code: "CUDA_ERROR_ILLEGAL_ADDRESS".to_owned() }),
            false => Ok(()),
        }
    }
}

/// An interval of `launches` launches at this rate, in bytes a nanosecond.
pub fn at_rate(timed: Timed, bytes_per_ns: f64) -> Interval {
    let ns = timed.bytes as f64 * f64::from(timed.launches) / bytes_per_ns;
    Interval::Ns { ns: ns.round() as u64, sm_khz: Some(1_980_000) }
}

impl Device for Scripted {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn free_bytes(&self) -> Result<u64, DeviceError> {
        Ok(self.memory.free())
    }

    fn allocate(&self, bytes: u64) -> Result<Buffer, DeviceError> {
        self.call("cuMemAlloc")?;
        let refused = || DeviceError::OutOfMemory { requested: bytes, free: self.memory.free() };
        if self.refused_bytes == Some(bytes) {
            return Err(refused());
        }
        let address = self.memory.take(bytes).ok_or_else(refused)?;
        Ok(Buffer::new(address, bytes, Rc::new(Owner(self.memory.clone()))))
    }

    fn allocator(&self, which: DeviceAllocator) -> Result<Box<dyn Policy>, DeviceError> {
        match which {
            DeviceAllocator::CuMemAlloc => Ok(Box::new(Pages {
                memory: self.memory.clone(),
                live: BTreeMap::new(),
                usage: Usage::default(),
                leaks: self.leaks,
            })),
            _ => Err(super::no_allocator(which.name())),
        }
    }

    fn physical(&self, chunk_bytes: u64, count: u32) -> Result<Box<dyn Physical>, DeviceError> {
        let bytes = chunk_bytes * u64::from(count);
        let free = self.memory.free();
        self.memory.take(bytes).ok_or(DeviceError::OutOfMemory { requested: bytes, free })?;
        Ok(Box::new(Chunks {
            memory: self.memory.clone(),
            chunk_bytes,
            chunks: count,
            create_ns: (1..).take(count as usize).collect(),
            held: Rc::new(Held(self.memory.clone(), Cell::new(bytes))),
        }))
    }

    fn upload(&self, to: Span<'_>, bytes: &[u8]) -> Result<(), DeviceError> {
        to.same_length("upload", bytes.len())
    }

    fn download(&self, from: Span<'_>, bytes: &mut [u8]) -> Result<(), DeviceError> {
        from.same_length("download", bytes.len())?;
        self.call("cuMemcpyDtoH")?;
        bytes.fill(0);
        Ok(())
    }

    fn launch(&self, _launch: &Launch<'_>) -> Result<(), DeviceError> {
        self.cold.set(true);
        Ok(())
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.cold.set(false);
        self.call("cuStreamSynchronize")
    }

    fn duel(&self, duel: &Duel<'_>) -> Result<Vec<Option<Walk>>, DeviceError> {
        duel.task()?;
        let pairs = self.sharing.ok_or(DeviceError::Refused {
            entry: "duel",
            what: "nothing is shared here".to_owned(),
        })?;
        let attacked = duel.aggressor.filter(|_| duel.flood.0 > 0);
        let walk = |own: u32| {
            let cycles = 1000 + 200 * u64::from(attacked.is_some_and(|other| other / 2 == own / 2));
            Some(Walk { cycles: cycles * u64::from(duel.reads), ns: 1 })
        };
        Ok((0..2 * pairs).map(walk).collect())
    }

    fn clusters(&self, _scratch: Span<'_>) -> Result<Vec<Vec<u32>>, DeviceError> {
        Ok(self
            .sharing
            .iter()
            .flat_map(|pairs| (0..*pairs).map(|at| vec![2 * at, 2 * at + 1]))
            .collect())
    }

    fn inject_fault(&self) -> Result<(), DeviceError> {
        self.faulted.set(true);
        Ok(())
    }

    fn time(&self, launch: &Launch<'_>, launches: u32) -> Result<Interval, DeviceError> {
        let (entry, bytes) = match launch.work {
            Work::Kernel { entry, task } => (Some(entry), task.items(entry) * UNIT_BYTES),
            Work::DriverCopy { bytes, .. } => (None, bytes),
        };
        let cold = self.cold.replace(false);
        let begin = Instant::now();
        let interval = (self.script.borrow_mut())(Timed { entry, bytes, launches, cold });
        self.waited.set(self.waited.get() + begin.elapsed());
        Ok(interval)
    }

    fn waited(&self) -> Option<Duration> {
        Some(self.waited.get())
    }

    fn has(&self, _entry: Entry) -> bool {
        true
    }

    fn is_held(&self) -> bool {
        self.held
    }

    fn snapshot(&self) -> Snapshot {
        (self.snapshots.borrow_mut())()
    }

    fn throttle_reasons(&self) -> Option<u64> {
        (self.reasons.borrow_mut())()
    }
}
