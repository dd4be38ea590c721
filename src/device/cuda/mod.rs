//! A CUDA device, through the driver API.

mod allocator;
mod driver;
mod duel;
mod hold;
mod stamp;
mod stream;
mod timer;

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::rc::Rc;
use std::time::Duration;

use cudarc::driver::{result, sys};

pub use allocator::VmmSource;
pub use driver::list;
use driver::{Check, cuda_version};
use duel::Duels;
use stream::Stream;
use timer::Timer;

use super::bindings as b;
use super::launch::{Task, Work};
use super::memory::Release;
use super::modules::{self, Module};
use super::nvml::Monitor;
use super::{
    Buffer, Device, DeviceAllocator, DeviceError, Duel, Entry, Interval, Launch, Mover, Physical,
    Snapshot, Span, Variant, Walk,
};
use crate::policy::Policy;
use crate::record::DeviceFacts;

/// The oldest devices that are measured: Turing.
const LEAST_CAPABILITY: (u32, u32) = (7, 5);

/// The oldest devices that have clusters of blocks: Hopper.
const CLUSTERS: (u32, u32) = (9, 0);

/// Where nothing is ever allocated.
const ILLEGAL_ADDRESS: u64 = 0x10;

/// A kernel that the device has.
#[derive(Clone, Copy)]
struct Function {
    handle: sys::CUfunction,
    /// The module that it was taken from.
    module: &'static str,
}

/// An opened CUDA device: its primary context, one stream, and every kernel loaded.
pub struct Cuda {
    facts: DeviceFacts,
    monitor: Option<Monitor>,
    functions: HashMap<Entry, Function>,
    stream: Stream,
    timer: Timer,
    duels: Duels,
    memory: Rc<dyn Release>,
    ordinal: u32,
    // Last, so that it is released after everything that lives in it.
    _context: Context,
}

/// The kernels around a timed interval.
#[derive(Clone, Copy)]
struct ControlKernels {
    hold: sys::CUfunction,
    stamp: sys::CUfunction,
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // What is still queued after an error writes into memory that is about to be freed.
        let _ = self.stream.synchronize();
    }
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
        if driver::is_older(&capability, LEAST_CAPABILITY) {
            return Err(DeviceError::TooOld { device: facts.name, capability });
        }
        let mut monitor = facts.uuid.as_deref().and_then(Monitor::open);
        let others = monitor.as_ref().and_then(Monitor::processes);

        let device = result::device::get(ordinal as i32).check("cuDeviceGet")?;
        // SAFETY: `device` was just given by the driver.
        let context =
            unsafe { result::primary_ctx::retain(device) }.check("cuDevicePrimaryCtxRetain")?;
        let owner = Context(device);
        // SAFETY: the context was just retained and lives as long as `owner`.
        unsafe { result::ctx::set_current(context) }.check("cuCtxSetCurrent")?;
        allocator::forget_thread();
        if let Some(monitor) = &mut monitor {
            monitor.know_own(others.as_ref());
        }
        let granularity = sys::CUlimit_enum::CU_LIMIT_MAX_L2_FETCH_GRANULARITY;
        facts.l2_fetch_granularity_bytes =
            result::ctx::get_limit(granularity).ok().map(|bytes| bytes as u64);
        facts.free_bytes = result::mem_get_info().ok().map(|(free, _)| free as u64);

        let Loaded { functions, control, duels } = load_modules(&capability)?;
        let multiprocessors = facts.multiprocessors.unwrap_or(1);
        let cuda = Cuda {
            facts,
            monitor,
            functions,
            stream: Stream::create()?,
            timer: Timer::create(control)?,
            duels: Duels::create(device, multiprocessors, duels)?,
            memory: Rc::new(Plain),
            ordinal,
            _context: owner,
        };
        cuda.try_hold()?;
        Ok(cuda)
    }

    /// A trial of the hold, with a launch that does as good as nothing.
    fn try_hold(&self) -> Result<(), DeviceError> {
        let buffer = self.allocate(super::SUM_BYTES)?;
        let spans = super::Spans { destination: Some(buffer.span()), ..Default::default() };
        let shape = super::Shape { units: 1, ..Default::default() };
        let fill = Launch::kernel(Entry::Fill, spans, shape)?;
        self.timer.try_hold(&self.stream, &|| self.launch(&fill))
    }

    fn queue(&self, work: &Work) -> Result<(), DeviceError> {
        match work {
            Work::Kernel { entry, task } => {
                let function = self.functions.get(entry).ok_or_else(|| DeviceError::Refused {
                    entry: entry.kind(),
                    what: format!("this device has no kernel `{}`", entry.name()),
                })?;
                let (blocks, threads) = (self.blocks(*entry, task)?, entry.threads());
                match task {
                    Task::Uniform(task) => {
                        launch_task(function.handle, blocks, threads, &self.stream, task)
                    }
                    Task::Varied(task) => {
                        launch_task(function.handle, blocks, threads, &self.stream, task)
                    }
                }
            }
            Work::DriverCopy { source, destination, bytes } => {
                let (to, from, bytes) = (*destination, *source, *bytes as usize);
                // SAFETY: `Launch::driver_copy` took both addresses from live spans of this length.
                unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream.raw()) }
                    .check("cuMemcpyDtoDAsync")
            }
        }
    }

    fn blocks(&self, entry: Entry, task: &Task) -> Result<u32, DeviceError> {
        let multiprocessors = self.facts.multiprocessors.unwrap_or(64);
        if let Some(tile) = entry.tile() {
            let blocks = task.items(entry).div_ceil(tile);
            // The limit of a grid (CUDA C++ Programming Guide, compute capabilities).
            return i32::try_from(blocks).map(|blocks| blocks as u32).map_err(|_| {
                let what = format!("{blocks} blocks are more than a grid can have");
                DeviceError::Refused { entry: entry.kind(), what }
            });
        }
        match entry {
            Entry::Move(Mover { variant: Variant::Persistent, .. }) => Ok(multiprocessors * 8),
            Entry::Move(Mover { variant: Variant::Windows, .. }) => {
                Ok(multiprocessors * b::FRAGBENCH_WINDOW_BLOCKS)
            }
            // Enough to fill every multiprocessor: these kernels walk with the grid's stride.
            _ => Ok(multiprocessors * 16),
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
        self.timer.time(&self.stream, launches, &|| self.queue(&launch.work))
    }

    fn time_cold(
        &self,
        launch: &Launch<'_>,
        evict: &Launch<'_>,
        launches: u32,
    ) -> Result<Interval, DeviceError> {
        let (evict, launch) = (|| self.queue(&evict.work), || self.queue(&launch.work));
        self.timer.time_cold(&self.stream, launches, &evict, &launch)
    }

    fn has(&self, entry: Entry) -> bool {
        self.functions.contains_key(&entry)
    }

    fn module(&self, entry: Entry) -> Option<&'static str> {
        self.functions.get(&entry).map(|function| function.module)
    }

    fn is_held(&self) -> bool {
        self.timer.is_held()
    }

    fn waited(&self) -> Option<Duration> {
        Some(self.timer.waited())
    }

    fn inject_fault(&self) -> Result<(), DeviceError> {
        // Loaded only here: nothing else has to do with it.
        let function = get_function(load(&modules::FAULT)?, "fault")?;
        let task = b::fragment_task { destination: ILLEGAL_ADDRESS, ..b::fragment_task::default() };
        launch_task(function, 1, 1, &self.stream, &task)
    }

    fn allocator(&self, which: DeviceAllocator) -> Result<Box<dyn Policy>, DeviceError> {
        allocator::create(which, self.ordinal)
    }

    fn vmm_source(&self, piece_bytes: u64) -> Result<VmmSource, DeviceError> {
        VmmSource::create(self.ordinal, piece_bytes)
    }

    fn physical(&self, chunk_bytes: u64, count: u32) -> Result<Box<dyn Physical>, DeviceError> {
        Ok(Box::new(allocator::Chunks::create(self.ordinal, chunk_bytes, count)?))
    }

    fn duel(&self, duel: &Duel<'_>) -> Result<Vec<Option<Walk>>, DeviceError> {
        self.duels.duel(duel, &self.stream)
    }

    fn clusters(&self, scratch: Span<'_>) -> Result<Vec<Vec<u32>>, DeviceError> {
        match driver::is_older(
            self.facts.compute_capability.as_deref().unwrap_or_default(),
            CLUSTERS,
        ) {
            true => Ok(Vec::new()),
            false => self.duels.clusters(scratch, &self.stream),
        }
    }

    fn snapshot(&self) -> Snapshot {
        self.monitor.as_ref().map(Monitor::snapshot).unwrap_or_default()
    }

    fn throttle_reasons(&self) -> Option<u64> {
        self.monitor.as_ref()?.throttle_reasons()
    }
}

/// A struct that kernels take by value.
trait Parameter: Copy {}
impl Parameter for b::fragment_task {}
impl Parameter for b::varied_task {}

/// Queues one kernel that takes the task by value.
fn launch_task<T: Parameter>(
    function: sys::CUfunction,
    blocks: u32,
    threads: u32,
    stream: &Stream,
    task: &T,
) -> Result<(), DeviceError> {
    launch_with(function, (blocks, threads, 0), stream, task)
}

/// The same, with so many bytes of dynamic shared memory behind blocks and threads.
fn launch_with<T: Parameter>(
    function: sys::CUfunction,
    (blocks, threads, shared_bytes): (u32, u32, u32),
    stream: &Stream,
    task: &T,
) -> Result<(), DeviceError> {
    let mut task = *task;
    let mut parameters = [(&raw mut task).cast::<c_void>()];
    let (grid, block) = ((blocks, 1, 1), (threads, 1, 1));
    // SAFETY: every kernel of the modules takes one task by value, of the struct that its launch holds,
    // which the driver copies before this returns; its addresses were checked against live buffers.
    unsafe {
        result::launch_kernel(function, grid, block, shared_bytes, stream.raw(), &mut parameters)
    }
    .check("cuLaunchKernel")
}

/// Loads a module, which is never unloaded.
fn load(module: &Module) -> Result<sys::CUmodule, DeviceError> {
    let text = CString::new(module.ptx).map_err(|_| DeviceError::Call {
        call: "cuModuleLoadData",
        code: format!("the PTX of `{}` holds a NUL", module.name),
    })?;
    // SAFETY: PTX text with its terminating NUL, alive during the call.
    let handle = unsafe { result::module::load_data(text.as_ptr().cast()) };
    handle.map_err(|error| not_loaded(module, error.0, cuda_version()))
}

/// What it means that a module is not loaded.
fn not_loaded(module: &Module, error: sys::CUresult, driver: Option<String>) -> DeviceError {
    use sys::CUresult::{
        CUDA_ERROR_INVALID_PTX, CUDA_ERROR_JIT_COMPILATION_DISABLED,
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CUDA_ERROR_NO_BINARY_FOR_GPU,
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
    };
    let (major, minor) = module.ptx_version;
    let (name, ptx) = (module.name.to_owned(), format!("{major}.{minor}"));
    let driver = driver.unwrap_or_else(|| "unknown".to_owned());
    let code = format!("{error:?}");
    match error {
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION => DeviceError::PtxTooNew { module: name, ptx, driver },
        CUDA_ERROR_INVALID_PTX
        | CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUDA_ERROR_JIT_COMPILATION_DISABLED
        | CUDA_ERROR_JIT_COMPILER_NOT_FOUND => {
            DeviceError::PtxRefused { module: name, ptx, driver, code }
        }
        _ => DeviceError::Call { call: "cuModuleLoadData", code },
    }
}

fn get_function(module: sys::CUmodule, name: &str) -> Result<sys::CUfunction, DeviceError> {
    let symbol = CString::new(format!("fragbench_{name}")).expect("names hold no NUL");
    // SAFETY: the module is loaded and is never unloaded.
    unsafe { result::module::get_function(module, symbol) }.check("cuModuleGetFunction")
}

/// The entry points that the device has, the kernels around an interval, and those of duels.
struct Loaded {
    functions: HashMap<Entry, Function>,
    control: ControlKernels,
    duels: [sys::CUfunction; 2],
}

/// Loads every module that the device can run.
fn load_modules(capability: &str) -> Result<Loaded, DeviceError> {
    let mut loaded = HashMap::new();
    for module in modules::MODULES {
        let is_optional = module.least_capability > LEAST_CAPABILITY;
        if driver::is_older(capability, module.least_capability) {
            continue;
        }
        match load(module) {
            // Competitors only: everything else goes on without them.
            Err(_) if is_optional => {}
            handle => drop(loaded.insert(module.name, handle?)),
        }
    }
    let function = |module: &str, name: &str| get_function(loaded[module], name);
    // The first of an entry's modules that is there: the one that knows the device best.
    let of_entry = |entry: Entry| entry.modules().iter().find(|name| loaded.contains_key(**name));
    let functions = Entry::all()
        .into_iter()
        .filter_map(|entry| Some((entry, of_entry(entry)?)))
        .map(|(entry, module)| {
            let handle = function(module, &entry.name())?;
            Ok((entry, Function { handle, module }))
        })
        .collect::<Result<_, DeviceError>>()?;
    let control = |name: &str| function("control", name);
    Ok(Loaded {
        functions,
        control: ControlKernels { hold: control("hold")?, stamp: control("stamp")? },
        duels: [function("duel", "duel")?, function("duel", "who")?],
    })
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_module_that_is_refused_is_told_with_driver_ptx_and_cure() {
        use sys::CUresult::*;
        let module = &modules::MODULES[0];
        let told = |code, driver: Option<&str>| {
            not_loaded(module, code, driver.map(str::to_owned)).to_string()
        };
        let named = format!("module `{}` (PTX 7.0)", module.name);
        let old = told(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, Some("10.2"));
        assert!(old.contains("driver (CUDA 10.2) is older") && old.contains(&named), "{old}");
        assert!(old.contains("update the NVIDIA driver"), "{old}");
        for (code, name) in [
            (CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"),
            (CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"),
            (CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"),
            (CUDA_ERROR_JIT_COMPILATION_DISABLED, "CUDA_ERROR_JIT_COMPILATION_DISABLED"),
        ] {
            let refused = told(code, None);
            assert!(refused.contains("driver (CUDA unknown) refuses"), "{refused}");
            assert!(refused.contains(&named) && refused.contains(name), "{refused}");
            assert!(refused.contains("update the NVIDIA driver; "), "{refused}");
        }
        // What has nothing to do with the module is the call's.
        let other = told(CUDA_ERROR_ILLEGAL_ADDRESS, None);
        assert_eq!(other, "cuModuleLoadData failed with CUDA_ERROR_ILLEGAL_ADDRESS");
    }

    #[test]
    #[ignore = "needs a GPU: cargo test --lib -- --ignored a_hold_that_nobody_releases"]
    fn a_hold_that_nobody_releases_gives_up() {
        let cuda = Cuda::open(0).unwrap();
        assert!(cuda.is_held());
        let buffer = cuda.allocate(super::super::SUM_BYTES).unwrap();
        let spans = super::super::Spans { destination: Some(buffer.span()), ..Default::default() };
        let shape = super::super::Shape { units: 1, ..Default::default() };
        let fill = Launch::kernel(Entry::Fill, spans, shape).unwrap();
        let begin = Instant::now();
        let dawdle = || {
            // Nobody releases the hold meanwhile.
            sleep(3 * Duration::from_nanos(hold::TIMEOUT_NS) / 2);
            // The hold is over and the stream at rest: its kernel gave up, and was not released.
            cuda.stream.synchronize()?;
            cuda.launch(&fill)
        };
        assert_eq!(cuda.timer.time(&cuda.stream, 1, &dawdle), Ok(Interval::Void));
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
        let next = cuda.timer.time(&cuda.stream, 1, &|| cuda.launch(&fill)).unwrap();
        assert!(matches!(next, Interval::Ns { ns, .. } if ns < hold::TIMEOUT_NS), "{next:?}");
    }
}
