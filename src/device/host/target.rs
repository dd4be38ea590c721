//! Running the kernels on the host.

use std::alloc::Layout;
use std::rc::Rc;
use std::time::Instant;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::super::bindings::{self as b, fragment_task, varied_task};
use super::super::launch::{Task, Work};
use super::super::memory::Release;
use super::super::{Buffer, Device, DeviceError, Entry, Interval, Launch, Snapshot, Span};
use super::facts;
use crate::record::DeviceFacts;

/// Buffers begin on a boundary of 2 MiB, so that huge pages can back them where the system uses them.
const ALIGNMENT: usize = 2 << 20;

type Kernel<T> = unsafe extern "C" fn(*const T, u64, u64) -> u64;

macro_rules! host_kernels {
    ($list:ident of $task:ident: $($name:ident),+ $(,)?) => {
        unsafe extern "C" {
            $(fn $name(task: *const $task, first_block: u64, last_block: u64) -> u64;)+
        }

        /// The kernels of the host that take such a task, by name.
        const $list: &[(&str, Kernel<$task>)] = &[$((stringify!($name), $name)),+];
    };
}

host_kernels!(
    UNIFORM of fragment_task:
    fragbench_host_read,
    fragbench_host_write,
    fragbench_host_copy,
    fragbench_host_gather_read_i4_u4,
    fragbench_host_gather_read_i4_u8,
    fragbench_host_gather_read_i4_u16,
    fragbench_host_gather_read_i8_u4,
    fragbench_host_gather_read_i8_u8,
    fragbench_host_gather_read_i8_u16,
    fragbench_host_gather_copy_i4_u4,
    fragbench_host_gather_copy_i4_u8,
    fragbench_host_gather_copy_i4_u16,
    fragbench_host_gather_copy_i8_u4,
    fragbench_host_gather_copy_i8_u8,
    fragbench_host_gather_copy_i8_u16,
    fragbench_host_scatter_copy_i4_u4,
    fragbench_host_scatter_copy_i4_u8,
    fragbench_host_scatter_copy_i4_u16,
    fragbench_host_scatter_copy_i8_u4,
    fragbench_host_scatter_copy_i8_u8,
    fragbench_host_scatter_copy_i8_u16,
    fragbench_host_strided_gather_u4,
    fragbench_host_strided_gather_u8,
    fragbench_host_strided_gather_u16,
    fragbench_host_fill,
    fragbench_host_check_fill,
    fragbench_host_check_gathered,
    fragbench_host_check_scattered,
    fragbench_host_check_gaps,
    fragbench_host_check_written,
    fragbench_host_expect_checksum,
    fragbench_host_check_index,
    fragbench_host_sum_index,
    fragbench_host_expect_index_sum,
);

host_kernels!(
    VARIED of varied_task:
    fragbench_host_varied_gather_read_e4,
    fragbench_host_varied_gather_read_e8,
    fragbench_host_varied_gather_read_ragged,
    fragbench_host_varied_gather_copy_e4,
    fragbench_host_varied_gather_copy_e8,
    fragbench_host_varied_gather_copy_ragged,
    fragbench_host_varied_scatter_copy_e4,
    fragbench_host_varied_scatter_copy_e8,
    fragbench_host_varied_scatter_copy_ragged,
    fragbench_host_varied_expect_checksum,
    fragbench_host_varied_check_gathered,
    fragbench_host_varied_check_scattered,
    fragbench_host_varied_check_gaps,
    fragbench_host_varied_check_entries,
    fragbench_host_varied_check_ranks,
);

/// The kernel of an entry; none where it is for GPUs only.
fn kernel<T>(list: &[(&str, Kernel<T>)], entry: Entry) -> Option<Kernel<T>> {
    let name = format!("fragbench_host_{}", entry.name());
    list.iter().find(|(known, _)| *known == name).map(|(_, kernel)| *kernel)
}

/// The host, opened: its threads are pinned and waiting.
pub struct Host {
    facts: DeviceFacts,
    threads: ThreadPool,
    memory: Rc<dyn Release>,
}

struct Heap;

impl Release for Heap {
    fn release(&self, address: u64, bytes: u64) {
        if let Ok(layout) = Layout::from_size_align(bytes as usize, ALIGNMENT) {
            // SAFETY: allocated with this layout in `allocate`, freed once by its buffer.
            unsafe { std::alloc::dealloc(address as *mut u8, layout) };
        }
    }
}

impl Host {
    /// Opens the host.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Call`] where the threads cannot be started.
    pub fn open() -> Result<Host, DeviceError> {
        let facts = facts::facts().ok_or(DeviceError::NoHostKernels)?;
        let ids = facts::node_processors().ids;
        let pins = ids.clone();
        let threads = ThreadPoolBuilder::new()
            .num_threads(ids.len().max(1))
            .start_handler(move |index| {
                let mut set = rustix::thread::CpuSet::new();
                set.set(pins[index % pins.len()]);
                // A refused pin costs precision, not correctness.
                let _ = rustix::thread::sched_setaffinity(None, &set);
            })
            .build()
            .map_err(|error| DeviceError::Call {
                call: "pthread_create",
                code: error.to_string(),
            })?;
        Ok(Host { facts, threads, memory: Rc::new(Heap) })
    }

    fn run(&self, work: &Work) -> Result<(), DeviceError> {
        match work {
            Work::Kernel { entry, task } => self.run_kernel(*entry, task)?,
            Work::DriverCopy { source, destination, bytes } => {
                self.share(*bytes, |first, last| {
                    let (from, to) =
                        ((source + first) as *const u8, (destination + first) as *mut u8);
                    // SAFETY: `Launch::driver_copy` took both from live spans of this length; each
                    // thread copies a part of its own.
                    unsafe { std::ptr::copy_nonoverlapping(from, to, (last - first) as usize) };
                    0
                });
            }
        }
        Ok(())
    }

    fn run_kernel(&self, entry: Entry, task: &Task) -> Result<(), DeviceError> {
        let blocks = task.items(entry).div_ceil(u64::from(b::FRAGBENCH_HOST_BLOCK_UNITS));
        let missing = || DeviceError::Refused {
            entry: entry.kind(),
            what: format!("the host has no kernel `{}`", entry.name()),
        };
        // SAFETY: in both, the kernel stays inside the task's spans, which the launch's constructor
        // checked, and each thread has blocks of its own.
        let sum = match task {
            Task::Uniform(task) => {
                let kernel = kernel(UNIFORM, entry).ok_or_else(missing)?;
                self.share(blocks, |first, last| unsafe { kernel(task, first, last) })
            }
            Task::Varied(task) => {
                let kernel = kernel(VARIED, entry).ok_or_else(missing)?;
                self.share(blocks, |first, last| unsafe { kernel(task, first, last) })
            }
        };
        if entry.adds_to_sums() {
            let slot = task.sums() as *mut u64;
            // SAFETY: the sums were checked to be there and aligned; no other thread is running.
            unsafe { *slot = (*slot).wrapping_add(sum) };
        }
        Ok(())
    }

    /// Splits `0..items` over the threads, and sums what they return.
    fn share(&self, items: u64, part: impl Fn(u64, u64) -> u64 + Sync) -> u64 {
        let sums = self.threads.broadcast(|context| {
            let (index, count) = (context.index() as u128, context.num_threads() as u128);
            let at = |i: u128| (u128::from(items) * i / count) as u64;
            part(at(index), at(index + 1))
        });
        sums.into_iter().fold(0, u64::wrapping_add)
    }
}

impl Device for Host {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn free_bytes(&self) -> Result<u64, DeviceError> {
        Ok(facts::free_bytes())
    }

    fn allocate(&self, bytes: u64) -> Result<Buffer, DeviceError> {
        // The system promises more than it has: ask what there is before the pages are touched.
        let out_of_memory =
            || DeviceError::OutOfMemory { requested: bytes, free: facts::free_bytes() };
        let layout =
            Layout::from_size_align(bytes as usize, ALIGNMENT).map_err(|_| out_of_memory())?;
        if bytes == 0 || bytes > facts::free_bytes() {
            return Err(out_of_memory());
        }
        // SAFETY: the layout's size is not zero.
        let address = unsafe { std::alloc::alloc(layout) };
        if address.is_null() {
            return Err(out_of_memory());
        }
        let buffer = Buffer::new(address as u64, bytes, self.memory.clone());
        // Zeroed by the threads that will use it: pages land on their node, and nothing is
        // uninitialised.
        let span = buffer.span();
        self.share(bytes, |first, last| {
            // SAFETY: inside the fresh allocation, each thread a part of its own.
            unsafe { std::ptr::write_bytes(address_at(span, first), 0, (last - first) as usize) };
            0
        });
        Ok(buffer)
    }

    fn upload(&self, to: Span<'_>, bytes: &[u8]) -> Result<(), DeviceError> {
        to.same_length("upload", bytes.len())?;
        // SAFETY: the span is live and as long as the slice, which is no part of it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address_at(to, 0), bytes.len()) };
        Ok(())
    }

    fn download(&self, from: Span<'_>, bytes: &mut [u8]) -> Result<(), DeviceError> {
        from.same_length("download", bytes.len())?;
        // SAFETY: the span is live and as long as the slice, which is no part of it.
        unsafe {
            std::ptr::copy_nonoverlapping(address_at(from, 0), bytes.as_mut_ptr(), bytes.len())
        };
        Ok(())
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        self.run(&launch.work)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn time(&self, launch: &Launch<'_>, launches: u32) -> Result<Interval, DeviceError> {
        let begin = Instant::now();
        for _ in 0..launches {
            self.run(&launch.work)?;
        }
        Ok(Interval::Ns { ns: begin.elapsed().as_nanos() as u64, sm_khz: None })
    }

    fn has(&self, entry: Entry) -> bool {
        match entry {
            Entry::Varied(_) => kernel(VARIED, entry).is_some(),
            _ => kernel(UNIFORM, entry).is_some(),
        }
    }

    fn is_held(&self) -> bool {
        true
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }
}

fn address_at(span: Span<'_>, offset: u64) -> *mut u8 {
    (span.address + offset) as *mut u8
}
