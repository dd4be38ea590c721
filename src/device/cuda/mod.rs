//! A CUDA device, through the driver API.

mod driver;
mod hold;
mod stream;

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::rc::Rc;

use cudarc::driver::{result, sys};

pub use driver::list;
use driver::{Check, cuda_version};
use hold::{Holder, TRIAL_TIMEOUT_NS};
use stream::{Event, Stream};

use super::bindings as b;
use super::launch::Work;
use super::memory::Release;
use super::nvml::Monitor;
use super::{Buffer, Device, DeviceError, Entry, Interval, Launch, Span, modules};
use crate::record::{Clocks, DeviceFacts};

/// Launches that may wait behind one hold; a longer queue could fill the driver's.
const MOST_QUEUED: u32 = 32;

/// An opened CUDA device: its primary context, one stream, and every kernel loaded.
pub struct Cuda {
    facts: DeviceFacts,
    monitor: Option<Monitor>,
    functions: HashMap<Entry, sys::CUfunction>,
    stream: Stream,
    start: Event,
    stop: Event,
    holder: Holder,
    held: Cell<bool>,
    memory: Rc<dyn Release>,
    // Last, so that it is released after everything that lives in it.
    _context: Context,
}

/// A reference to the device's primary context.
struct Context(sys::CUdevice);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once in `Cuda::open`, released once here.
        let _ = unsafe { result::primary_ctx::release(self.0) };
    }
}

/// Gives plain allocations back.
struct Plain;

impl Release for Plain {
    fn release(&self, address: u64, _bytes: u64) {
        // SAFETY: `address` came from cuMemAlloc and is freed once, by the buffer that owns it.
        let _ = unsafe { result::free_sync(address) };
    }
}

impl Cuda {
    /// Opens a device: context, stream, modules, and a trial of the hold.
    ///
    /// # Errors
    ///
    /// [`DeviceError`] says why the device cannot be used.
    pub fn open(ordinal: u32) -> Result<Cuda, DeviceError> {
        let known = driver::list()?;
        let id = format!("cuda:{ordinal}");
        let mut facts = known.iter().find(|device| device.id == id).cloned().ok_or_else(|| {
            DeviceError::Unknown {
                asked: id.clone(),
                known: known.iter().map(|device| device.id.clone()).collect(),
            }
        })?;
        let capability = facts.compute_capability.clone().unwrap_or_default();
        if driver::is_older(&capability, (7, 5)) {
            return Err(DeviceError::TooOld { device: facts.name, capability });
        }
        let monitor = facts.uuid.as_deref().and_then(Monitor::open);
        facts.used_at_start_bytes = monitor.as_ref().and_then(Monitor::used_bytes);

        let device = result::device::get(ordinal as i32).check("cuDeviceGet")?;
        // SAFETY: `device` was just given by the driver.
        let context =
            unsafe { result::primary_ctx::retain(device) }.check("cuDevicePrimaryCtxRetain")?;
        let owner = Context(device);
        // SAFETY: the context was just retained and lives as long as `owner`.
        unsafe { result::ctx::set_current(context) }.check("cuCtxSetCurrent")?;
        let granularity = sys::CUlimit_enum::CU_LIMIT_MAX_L2_FETCH_GRANULARITY;
        facts.l2_fetch_granularity_bytes =
            result::ctx::get_limit(granularity).ok().map(|bytes| bytes as u64);
        facts.free_bytes = result::mem_get_info().ok().map(|(free, _)| free as u64);

        let (functions, hold) = load_modules()?;
        let cuda = Cuda {
            facts,
            monitor,
            functions,
            stream: Stream::create()?,
            start: Event::create()?,
            stop: Event::create()?,
            holder: Holder::create(hold)?,
            held: Cell::new(false),
            memory: Rc::new(Plain),
            _context: owner,
        };
        cuda.held.set(cuda.try_hold()?);
        Ok(cuda)
    }

    /// Whether a launch that is queued behind a hold returns before the hold ends. It does not
    /// under CUDA_LAUNCH_BLOCKING, sanitizers, profilers that serialize, and WDDM.
    fn try_hold(&self) -> Result<bool, DeviceError> {
        // Once unheld, so that nothing is loaded behind the hold.
        self.holder.release();
        self.holder.queue(&self.stream, TRIAL_TIMEOUT_NS)?;
        self.stream.synchronize()?;
        let buffer = self.allocate(super::SUM_BYTES)?;
        let spans = super::Spans { destination: Some(buffer.span()), ..Default::default() };
        let shape = super::Shape { units: 1, ..Default::default() };
        let fill = Launch::kernel(Entry::Fill, spans, shape)?;
        self.launch(&fill)?;
        self.stream.synchronize()?;
        let hold = self.holder.engage(&self.stream, TRIAL_TIMEOUT_NS)?;
        self.start.record(&self.stream)?;
        self.launch(&fill)?;
        self.stop.record(&self.stream)?;
        drop(hold);
        self.stream.synchronize()?;
        Ok(!self.holder.gave_up())
    }

    fn queue(&self, work: &Work) -> Result<(), DeviceError> {
        match work {
            Work::Kernel { entry, task } => {
                let blocks = self.blocks(*entry, task);
                let function = self.functions[entry];
                launch_task(function, blocks, b::FRAGBENCH_BLOCK_THREADS, &self.stream, task)
            }
            Work::DriverCopy { source, destination, bytes } => {
                let (to, from, bytes) = (*destination, *source, *bytes as usize);
                // SAFETY: `Launch::driver_copy` took both addresses from live spans of this length.
                unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream.raw()) }
                    .check("cuMemcpyDtoDAsync")
            }
        }
    }

    fn blocks(&self, entry: Entry, task: &b::fragment_task) -> u32 {
        let threads = u64::from(b::FRAGBENCH_BLOCK_THREADS);
        match entry.depth() {
            Some(depth) => task.units.div_ceil(threads * u64::from(depth)) as u32,
            // Enough blocks to fill every multiprocessor; the kernels walk with the grid's stride.
            None => self.facts.multiprocessors.unwrap_or(64) * 16,
        }
    }
}

impl Device for Cuda {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn free_bytes(&self) -> Result<u64, DeviceError> {
        result::mem_get_info().check("cuMemGetInfo").map(|(free, _)| free as u64)
    }

    fn allocate(&self, bytes: u64) -> Result<Buffer, DeviceError> {
        // SAFETY: a plain allocation; the buffer that owns it frees it.
        match unsafe { result::malloc_sync(bytes as usize) } {
            Ok(address) => Ok(Buffer::new(address, bytes, self.memory.clone())),
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let free = self.free_bytes().unwrap_or(0);
                Err(DeviceError::OutOfMemory { requested: bytes, free })
            }
            Err(error) => Err(error).check("cuMemAlloc"),
        }
    }

    fn upload(&self, to: Span<'_>, bytes: &[u8]) -> Result<(), DeviceError> {
        to.same_length("upload", bytes.len())?;
        self.stream.synchronize()?;
        // SAFETY: the span is live and as long as the slice.
        unsafe { result::memcpy_htod_sync(to.address, bytes) }.check("cuMemcpyHtoD")
    }

    fn download(&self, from: Span<'_>, bytes: &mut [u8]) -> Result<(), DeviceError> {
        from.same_length("download", bytes.len())?;
        self.stream.synchronize()?;
        // SAFETY: the span is live and as long as the slice.
        unsafe { result::memcpy_dtoh_sync(bytes, from.address) }.check("cuMemcpyDtoH")
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        self.queue(&launch.work)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.stream.synchronize()
    }

    fn time(&self, launch: &Launch<'_>, launches: u32) -> Result<Interval, DeviceError> {
        let launches = launches.clamp(1, MOST_QUEUED);
        let hold = match self.held.get() {
            true => Some(self.holder.engage(&self.stream, hold::TIMEOUT_NS)?),
            false => None,
        };
        self.start.record(&self.stream)?;
        for _ in 0..launches {
            self.queue(&launch.work)?;
        }
        self.stop.record(&self.stream)?;
        let was_held = hold.is_some();
        drop(hold);
        self.stop.synchronize()?;
        if was_held && self.holder.gave_up() {
            return Ok(Interval::Void);
        }
        self.start.elapsed_ns(&self.stop).map(Interval::Ns)
    }

    fn is_held(&self) -> bool {
        self.held.get()
    }

    fn clocks(&self) -> Clocks {
        self.monitor.as_ref().map(Monitor::clocks).unwrap_or_default()
    }
}

/// Queues one kernel that takes the task by value.
fn launch_task(
    function: sys::CUfunction,
    blocks: u32,
    threads: u32,
    stream: &Stream,
    task: &b::fragment_task,
) -> Result<(), DeviceError> {
    let mut task = *task;
    let mut parameters = [(&raw mut task).cast::<c_void>()];
    let (grid, block) = ((blocks, 1, 1), (threads, 1, 1));
    // SAFETY: every kernel of the modules takes one `fragment_task` by value, which the driver
    // copies before this returns; its addresses were checked against live buffers.
    unsafe { result::launch_kernel(function, grid, block, 0, stream.raw(), &mut parameters) }
        .check("cuLaunchKernel")
}

/// Loads every module; returns the entry points and the hold's function.
fn load_modules() -> Result<(HashMap<Entry, sys::CUfunction>, sys::CUfunction), DeviceError> {
    let mut loaded = HashMap::new();
    for module in modules::MODULES {
        let text = CString::new(module.ptx).map_err(|_| DeviceError::Call {
            call: "cuModuleLoadData",
            code: format!("the PTX of `{}` holds a NUL", module.name),
        })?;
        // SAFETY: PTX text with its terminating NUL, alive during the call.
        let handle = unsafe { result::module::load_data(text.as_ptr().cast()) };
        let handle = match handle {
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
                let (major, minor) = module.ptx_version;
                return Err(DeviceError::PtxTooNew {
                    module: module.name.to_owned(),
                    ptx: format!("{major}.{minor}"),
                    driver: cuda_version().unwrap_or_else(|| "unknown".to_owned()),
                });
            }
            other => other.check("cuModuleLoadData")?,
        };
        loaded.insert(module.name, handle);
    }
    let function = |module: &str, name: &str| {
        let symbol = CString::new(format!("fragbench_{name}")).expect("names hold no NUL");
        // SAFETY: the module is loaded and is never unloaded.
        unsafe { result::module::get_function(loaded[module], symbol) }.check("cuModuleGetFunction")
    };
    let functions = Entry::ALL
        .iter()
        .map(|entry| Ok((*entry, function(entry.module(), entry.name())?)))
        .collect::<Result<_, DeviceError>>()?;
    Ok((functions, function("control", "hold")?))
}
