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
    let blocks = if is_measured() { 100_000 } else { 1000 };
    bench_churn(&mut criterion, blocks);
    bench_holes(&mut criterion, blocks);
    criterion.final_summary();
}

/// Whether criterion measures: under `cargo bench`, and not with `--test`.
fn is_measured() -> bool {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    has("--bench") && !has("--test")
}

/// A random live block goes, another comes: nearly log-normal sizes with a median of 16 KiB.
fn bench_churn(criterion: &mut Criterion, blocks: u64) {
    let mut group = criterion.benchmark_group("policy/churn");
    for name in PolicyName::ALL {
        let mut policy = policy(*name);
        let mut live: Vec<u64> = (0..blocks).map(|n| take(&mut *policy, size(n))).collect();
        // Old enough that the holes are those of the policy.
        let mut n = blocks;
        let mut churn = |calls: u64| {
            for _ in 0..calls / 2 {
                let place = &mut live[below(draw(1, n), blocks) as usize];
                policy.free(*place).expect("it is live");
                *place = take(&mut *policy, size(n));
                n += 1;
            }
        };
        churn(20 * blocks);
        bench_calls(&mut group, name.name(), blocks, &mut churn);
    }
    group.finish();
}

/// Blocks come into as many holes as there are blocks, and go again.
fn bench_holes(criterion: &mut Criterion, blocks: u64) {
    let mut group = criterion.benchmark_group("policy/holes");
    for name in [PolicyName::FirstFit, PolicyName::BestFit, PolicyName::NextFit] {
        let policy = &mut *policy(name);
        punch(policy, blocks, size);
        let mut n = 0;
        bench_calls(&mut group, name.name(), blocks, &mut |calls| {
            for _ in 0..calls / 200 {
                let taken =
                    std::array::from_fn::<u64, 100, _>(|i| take(policy, size(n + i as u64)));
                taken.iter().for_each(|&address| policy.free(address).expect("it is live"));
                n += 100;
            }
        });
    }
    // What a walk over the holes is slowest at: none but the last holds the request.
    let policy = &mut *policy(PolicyName::FirstFit);
    punch(policy, blocks, |_| 256);
    bench_calls(&mut group, "first_fit_behind_short_holes", blocks, &mut |calls| {
        for _ in 0..calls / 2 {
            let address = take(policy, 512);
            policy.free(address).expect("it is live");
        }
    });
    group.finish();
}

fn bench_calls(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    blocks: u64,
    make_calls: &mut dyn FnMut(u64),
) {
    const CALLS: u64 = 100_000;
    let calls = CALLS.min(2 * blocks);
    group.throughput(Throughput::Elements(calls));
    group.bench_function(BenchmarkId::new(name, format!("blocks={blocks}")), |bencher| {
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
