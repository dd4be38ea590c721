//! An allocation and a free by each allocator, on the default device: `cargo bench --bench allocation`.
//!
//! The device's own allocators and a caching one over its plain one, with nothing else alive; and the
//! plain one among holes. On a host, which has none of its own, policies over simulated memory. The
//! time is the host's, of both calls together; `fragbench run --only latency` has each alone, with
//! tails and intervals.

mod device;

use criterion::{BenchmarkId, Criterion, SamplingMode};
use fragbench::device::{Device, DeviceAllocator, DeviceError};
use fragbench::policy::{AsSource, Growth, Params, Placement, Policy, PolicyName, SimulatedSource};
use fragbench::record::size;

const MIB: u64 = 1 << 20;
const PAGE_BYTES: u64 = 2 * MIB;

/// What policies may take of the memory below them.
const CAPACITY_BYTES: u64 = 2 << 30;

/// Lengths of blocks.
const REQUESTS_BYTES: [u64; 2] = [2 * MIB, 128 * MIB];

/// Holes of 2 MiB, between as many live blocks.
const HOLES: usize = 1_000;

/// A pool that releases is none of them: without a wait between its calls it is one that keeps.
const OWN: [DeviceAllocator; 3] =
    [DeviceAllocator::CuMemAlloc, DeviceAllocator::CudaMalloc, DeviceAllocator::MemPoolKeep];

const POLICIES: [PolicyName; 3] = [PolicyName::FirstFit, PolicyName::BestFit, PolicyName::Caching];

type Case = (String, Box<dyn Policy>);

fn main() {
    device::restart_in_the_workers_environment();
    let device = device::default_device().unwrap_or_else(|message| device::fail(&message));
    let mut cases = match device.facts().is_host() {
        true => simulated(),
        false => own(&*device).unwrap_or_else(|error| device::fail(&error.to_string())),
    };
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    let mut group = criterion.benchmark_group(format!("allocation/{}", device::name(&*device)));
    group.sampling_mode(SamplingMode::Flat);
    for (name, allocator) in &mut cases {
        for bytes in REQUESTS_BYTES {
            let id = BenchmarkId::new(name.as_str(), size::exact(bytes));
            group.bench_function(id, |bencher| bencher.iter(|| pair(&mut **allocator, bytes)));
        }
    }
    group.finish();
    criterion.final_summary();
}

/// A block comes and goes.
fn pair(allocator: &mut dyn Policy, bytes: u64) {
    let taken = allocator.allocate(bytes).and_then(|block| allocator.free(block.address));
    taken.unwrap_or_else(|error| device::fail(&error.to_string()));
}

fn over(below: Box<dyn Policy>, name: PolicyName) -> Box<dyn Policy> {
    let source = AsSource::with_capacity(below, PAGE_BYTES, CAPACITY_BYTES).expect("whole pages");
    name.build(source, &Params::default()).expect("parameters")
}

/// Those that the device has, and what stands on its plain one.
fn own(device: &dyn Device) -> Result<Vec<Case>, DeviceError> {
    let plain = || device.allocator(DeviceAllocator::CuMemAlloc);
    let mut cases: Vec<Case> = Vec::new();
    for which in OWN {
        match device.allocator(which) {
            Ok(allocator) => cases.push((which.to_string(), allocator)),
            Err(error @ DeviceError::NoAllocator { .. }) => eprintln!("{error}"),
            Err(error) => return Err(error),
        }
    }
    cases.push(("caching".to_owned(), over(plain()?, PolicyName::Caching)));
    let mut aged = plain()?;
    // As many as fit will do where a device has not so much.
    let blocks: Vec<u64> = (0..2 * HOLES)
        .map_while(|_| aged.allocate(PAGE_BYTES).ok())
        .map(|block| block.address)
        .collect();
    for &address in blocks.iter().step_by(2) {
        aged.free(address).unwrap_or_else(|error| device::fail(&error.to_string()));
    }
    cases.push((format!("{} among holes", DeviceAllocator::CuMemAlloc), aged));
    Ok(cases)
}

/// Policies over memory that is counted and not there.
fn simulated() -> Vec<Case> {
    let case = |name: PolicyName| {
        let source = SimulatedSource::new(CAPACITY_BYTES, PAGE_BYTES, Placement::Contiguous);
        let whole = Params::default().with_growth(Growth::Whole);
        let built = name.build(source.expect("whole pages"), &whole).expect("parameters");
        (format!("{name} (simulated)"), built)
    };
    POLICIES.map(case).into()
}
