//! A device that does nothing and takes the times that a script tells it: what intervals and the order of
//! a measurement are tested with. Memory is numbers only: what is downloaded is zeros.

use std::cell::Cell;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::launch::Work;
use super::memory::Release;
use super::{Buffer, Device, DeviceError, Entry, Interval, Launch, Snapshot, Span};
use crate::layout::UNIT_BYTES;
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
    memory: Rc<Memory>,
    script: RefCell<Script>,
    reasons: RefCell<Box<dyn FnMut() -> Option<u64>>>,
    snapshots: RefCell<Box<dyn FnMut() -> Snapshot>>,
    held: bool,
    refused_bytes: Option<u64>,
    cold: Cell<bool>,
    faulted: Cell<bool>,
    /// The time that the script took for intervals.
    waited: Cell<Duration>,
}

struct Memory {
    free: Cell<u64>,
    next: Cell<u64>,
}

impl Release for Memory {
    fn release(&self, _address: u64, bytes: u64) {
        self.free.set(self.free.get() + bytes);
    }
}

impl Scripted {
    /// A GPU with this much memory and 60 MiB of L2.
    pub fn new(memory_bytes: u64, script: impl FnMut(Timed) -> Interval + 'static) -> Scripted {
        let memory = Memory { free: Cell::new(memory_bytes), next: Cell::new(1 << 40) };
        Scripted {
            facts: DeviceFacts {
                memory_bytes,
                l2_bytes: Some(60 << 20),
                ..DeviceFacts::new(DeviceKind::Cuda)
            },
            memory: Rc::new(memory),
            script: RefCell::new(Box::new(script)),
            reasons: RefCell::new(Box::new(|| None)),
            snapshots: RefCell::new(Box::new(Snapshot::default)),
            held: true,
            refused_bytes: None,
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
        Ok(self.memory.free.get())
    }

    fn allocate(&self, bytes: u64) -> Result<Buffer, DeviceError> {
        self.call("cuMemAlloc")?;
        let free = self.memory.free.get();
        let left = free
            .checked_sub(bytes)
            .filter(|_| self.refused_bytes != Some(bytes))
            .ok_or(DeviceError::OutOfMemory { requested: bytes, free })?;
        self.memory.free.set(left);
        let address = self.memory.next.get();
        self.memory.next.set(address + bytes.next_multiple_of(2 << 20));
        Ok(Buffer::new(address, bytes, self.memory.clone()))
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
