//! How fast policies hand out and take back blocks, on one core.
//!
//! `cargo bench --bench policy`; as a test (`cargo test --benches`) it takes few blocks.

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput};
use fragbench::layout::{below, draw};
use fragbench::policy::{Growth, Params, Placement, Policy, PolicyName, SimulatedSource};

const CAPACITY_BYTES: u64 = 256 << 30;
const GRANULE_BYTES: u64 = 2 << 20;

/// The length of a slab's block, and the longest request.
const MOST_BYTES: u64 = 1 << 20;

fn main() {
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    bench_churn(&mut criterion);
    bench_holes(&mut criterion);
    criterion.final_summary();
}

/// Blocks that fit into the caches of a core, and more of them than do.
const FEW: u64 = 10_000;
const MANY: u64 = 100_000;

/// Whether criterion measures: under `cargo bench`, and not with `--test`.
fn is_measured() -> bool {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    has("--bench") && !has("--test")
}

/// A random live block goes, another comes: nearly log-normal sizes with a median of 16 KiB.
fn bench_churn(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("policy/churn");
    let few = PolicyName::ALL.iter().map(|&name| (name, FEW));
    let many =
        [PolicyName::FirstFit, PolicyName::BestFit, PolicyName::Caching].map(|name| (name, MANY));
    for (name, blocks) in few.chain(many) {
        bench_calls(&mut group, name.name(), blocks, |blocks| {
            let mut policy = policy(name);
            let mut live: Vec<u64> = (0..blocks).map(|n| take(&mut *policy, size(n))).collect();
            let mut n = blocks;
            let mut churn = move |calls: u64| {
                for _ in 0..calls / 2 {
                    let place = &mut live[below(draw(1, n), blocks) as usize];
                    policy.free(*place).expect("it is live");
                    *place = take(&mut *policy, size(n));
                    n += 1;
                }
            };
            // Old enough that the holes are those of the policy.
            churn(20 * blocks);
            churn
        });
    }
    group.finish();
}

/// Blocks come into as many holes as there are blocks, and go again.
fn bench_holes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("policy/holes");
    bench_calls(&mut group, "best_fit", MANY, |blocks| {
        let mut policy = policy(PolicyName::BestFit);
        punch(&mut *policy, blocks, size);
        let mut n = 0;
        move |calls| {
            for _ in 0..calls / 200 {
                let taken =
                    std::array::from_fn::<u64, 100, _>(|i| take(&mut *policy, size(n + i as u64)));
                taken.iter().for_each(|&address| policy.free(address).expect("it is live"));
                n += 100;
            }
        }
    });
    // What a walk over the holes is slowest at: none but the last holds the request.
    bench_calls(&mut group, "first_fit_behind_short_holes", MANY, |blocks| {
        let mut policy = policy(PolicyName::FirstFit);
        punch(&mut *policy, blocks, |_| 256);
        move |calls| {
            for _ in 0..calls / 2 {
                let address = take(&mut *policy, 512);
                policy.free(address).expect("it is live");
            }
        }
    });
    group.finish();
}

/// Times calls of what `prepare` makes for so many blocks, which happens only where the filter asks
/// for it.
fn bench_calls<C: FnMut(u64)>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    blocks: u64,
    prepare: impl Fn(u64) -> C,
) {
    let id = BenchmarkId::new(name, format!("blocks={blocks}"));
    // As a test, few do.
    let blocks = if is_measured() { blocks } else { 1000 };
    let calls = 2 * FEW.min(blocks);
    let mut make_calls = None;
    group.throughput(Throughput::Elements(calls));
    group.bench_function(id, |bencher| {
        let make_calls = make_calls.get_or_insert_with(|| prepare(blocks));
        bencher.iter(|| make_calls(black_box(calls)));
    });
}

fn policy(name: PolicyName) -> Box<dyn Policy> {
    let source = SimulatedSource::new(CAPACITY_BYTES, GRANULE_BYTES, Placement::Contiguous);
    let params = Params { growth: Growth::Whole, block_bytes: MOST_BYTES, ..Params::default() };
    name.build(source.expect("sizes are powers of two"), &params).expect("so are these")
}

/// Leaves so many live blocks with a hole before each.
fn punch(policy: &mut dyn Policy, blocks: u64, size: impl Fn(u64) -> u64) {
    let holes: Vec<u64> = (0..blocks)
        .map(|n| {
            let hole = take(policy, size(n));
            take(policy, 256);
            hole
        })
        .collect();
    holes.into_iter().for_each(|address| policy.free(address).expect("it is live"));
}

fn take(policy: &mut dyn Policy, bytes: u64) -> u64 {
    policy.allocate(bytes).expect("there is memory").address
}

/// Sizes whose logarithm has a binomial distribution: the coins that fall one way are its exponent.
fn size(n: u64) -> u64 {
    let random = draw(0, n);
    let doubling = 8 + u64::from((random & 0xFFF).count_ones());
    ((1 << doubling) + below(random, 1 << doubling)).min(MOST_BYTES)
}
