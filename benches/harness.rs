//! How fast a policy is aged, with a policy that costs nothing and with those that do, and how fast
//! layouts and situations are made.
//!
//! `cargo bench --bench harness`; as a test (`cargo test --benches`) it takes a small heap.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use fragbench::harness::{Aged, Distribution, Preset, Recipe, age, holes_layout, live_layout};
use fragbench::policy::{
    Block, Growth, Hole, HoleOrder, Params, Placement, Policy, PolicyError, PolicyName,
    SimulatedSource, Usage,
};

/// Heaps of some 8,000 live blocks, which fit into the caches of a core, and of some 130,000.
const SMALL_BYTES: u64 = 16 << 20;
const LARGE_BYTES: u64 = 1 << 30;

fn main() {
    let large_bytes = if is_measured() { LARGE_BYTES } else { SMALL_BYTES };
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    bench_age_nothing(&mut criterion, large_bytes);
    bench_age(&mut criterion, "harness/age", large_bytes, PolicyName::OF_ANY_SIZE);
    bench_age(&mut criterion, "harness/age_cached", SMALL_BYTES, &PolicyName::OF_ANY_SIZE[..1]);
    bench_layouts(&mut criterion, large_bytes);
    bench_situations(&mut criterion);
    criterion.final_summary();
}

/// Whether criterion measures: under `cargo bench`, and not with `--test`.
fn is_measured() -> bool {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    has("--bench") && !has("--test")
}

/// An ageing that ends with its operations: no level is reached, and none is steady as early.
fn recipe(heap_bytes: u64) -> Recipe {
    let recipe = Recipe::new(Distribution::LogNormal, heap_bytes, 1, 1);
    Recipe { occupancy_percent: 70, limit_operations: heap_bytes / 1024, ..recipe }
}

fn policy(name: PolicyName, heap_bytes: u64) -> Box<dyn Policy> {
    let source = SimulatedSource::new(heap_bytes, 2 << 20, Placement::Contiguous).expect("sizes");
    name.build(source, &Params::default().with_growth(Growth::Whole)).expect("parameters")
}

fn aged(mut policy: Box<dyn Policy>, heap_bytes: u64) -> Aged {
    age(&mut *policy, &recipe(heap_bytes)).expect("the heap holds it")
}

fn bench_age_nothing(criterion: &mut Criterion, heap_bytes: u64) {
    let mut group = criterion.benchmark_group("harness/age");
    group.throughput(Throughput::Elements(recipe(heap_bytes).limit_operations));
    group.bench_function("nothing", |bencher| {
        let fresh = || Box::new(Counter::default());
        bencher.iter_batched(fresh, |policy| aged(policy, heap_bytes), BatchSize::PerIteration);
    });
    group.finish();
}

fn bench_age(criterion: &mut Criterion, group: &str, heap_bytes: u64, policies: &[PolicyName]) {
    let mut group = criterion.benchmark_group(group);
    group.throughput(Throughput::Elements(recipe(heap_bytes).limit_operations));
    for name in policies {
        group.bench_function(name.name(), |bencher| {
            let fresh = || policy(*name, heap_bytes);
            bencher.iter_batched(fresh, |policy| aged(policy, heap_bytes), BatchSize::PerIteration);
        });
    }
    group.finish();
}

fn bench_layouts(criterion: &mut Criterion, heap_bytes: u64) {
    let aged = aged(policy(PolicyName::FirstFit, heap_bytes), heap_bytes);
    let mut group = criterion.benchmark_group("harness/layout");
    group.throughput(Throughput::Elements(aged.live().len() as u64));
    group.bench_function("live", |bencher| bencher.iter(|| black_box(live_layout(&aged))));
    let holes = aged.holes(HoleOrder::FreeList);
    let payload_bytes = holes.iter().map(|hole| hole.bytes).sum::<u64>() / 16 * 16;
    group.throughput(Throughput::Elements(holes.len() as u64));
    group.bench_function("holes", |bencher| {
        bencher.iter(|| black_box(holes_layout(&aged, payload_bytes, HoleOrder::FreeList)));
    });
    group.finish();
}

fn bench_situations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("harness/situation");
    let texts = match is_measured() {
        true => ["embedding", "kv_cache"],
        false => ["embedding:rows=100000,lookups=10000", "kv_cache:layers=2"],
    };
    for text in texts {
        let preset: Preset = text.parse().expect("a situation");
        let fragments = preset.situation(1).expect("it can be").extents.fragments().len();
        group.throughput(Throughput::Elements(fragments as u64));
        group.bench_function(BenchmarkId::from_parameter(preset.name()), |bencher| {
            bencher.iter(|| black_box(preset.situation(1)));
        });
    }
    group.finish();
}

/// A policy that only counts, so that what is measured is the program that ages it.
#[derive(Default)]
struct Counter {
    next: u64,
    usage: Usage,
}

impl Policy for Counter {
    fn name(&self) -> &'static str {
        "counter"
    }

    fn alignment_bytes(&self) -> u64 {
        256
    }

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        let address = self.next;
        self.next += bytes.next_multiple_of(256);
        self.usage.live_blocks += 1;
        self.usage.requested_bytes += bytes;
        self.usage.reserved_bytes = self.next;
        Ok(Block { address, requested_bytes: bytes, rounded_bytes: self.next - address })
    }

    fn free(&mut self, _: u64) -> Result<(), PolicyError> {
        self.usage.live_blocks -= 1;
        Ok(())
    }

    fn is_live(&self, _: u64) -> bool {
        true
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn holes(&self, _: HoleOrder) -> Vec<Hole> {
        vec![Hole { address: self.next, bytes: 1 << 40 }]
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        Ok(0)
    }
}
