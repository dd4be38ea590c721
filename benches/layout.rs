//! How fast the index of a shuffled layout is made, on one core and on all, and in how much memory;
//! and how fast the table of extents.
//!
//! `cargo bench --bench layout`; as a test (`cargo test --benches`) it takes a small layout.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use fragbench::layout::{
    Extents, Fragment, Layout, Pattern, Permutation, Spec, Table, below, draw,
};
use fragbench::record::Order;
use rayon::ThreadPoolBuilder;

const FRAGMENT_BYTES: u64 = 16;
const SLOTS_PER_FRAGMENT: u64 = 8;

fn main() {
    let layout = shuffled(if is_measured() { 1 << 27 } else { 1 << 16 });
    // Before anything else allocates: the high-water mark never falls.
    print_memory(&layout);
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    bench_index(&mut criterion, &layout);
    bench_table(&mut criterion, if is_measured() { 10_000_000 } else { 10_000 });
    criterion.final_summary();
}

/// Whether criterion measures: under `cargo bench`, and not with `--test`.
fn is_measured() -> bool {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    has("--bench") && !has("--test")
}

fn shuffled(fragments: u64) -> Layout {
    let payload_bytes = fragments * FRAGMENT_BYTES;
    let footprint_bytes = payload_bytes * SLOTS_PER_FRAGMENT;
    let spec = Spec {
        pattern: Pattern::SHUFFLED,
        fragment_bytes: FRAGMENT_BYTES,
        offset_bytes: 0,
        footprint_bytes,
        payload_bytes,
    };
    Layout::new(spec, 1).expect("sizes are powers of two")
}

fn bench_index(criterion: &mut Criterion, layout: &Layout) {
    let mut group = criterion.benchmark_group("layout/index");
    group.throughput(Throughput::Elements(layout.fragments()));
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let mut threads = vec![1, all];
    threads.dedup();
    for threads in threads {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let id = BenchmarkId::new("shuffled", format!("threads={threads}"));
        group.bench_function(id, |bencher| {
            pool.install(|| bencher.iter(|| black_box(layout.index(&Order::Scattered))));
        });
    }
    group.finish();
}

/// Fragments of 64 B to 4 KiB in a random order, aligned to 16 B or to 4 B.
fn extents(fragments: u64, granule: u64) -> Extents {
    let mut end = 0;
    let place = |i| {
        let offset = end + granule * below(draw(2, i), 8);
        end = offset + granule * (4 + below(draw(1, i), 252));
        Fragment { offset, bytes: end - offset }
    };
    let placed: Vec<Fragment> = (0..fragments).map(place).collect();
    let order = Permutation::new(3, fragments);
    let visited = (0..fragments).map(|i| placed[order.apply(i) as usize]).collect();
    Extents::new(visited, end).expect("they lie one behind the other")
}

fn bench_table(criterion: &mut Criterion, fragments: u64) {
    let mut group = criterion.benchmark_group("layout/table");
    group.throughput(Throughput::Elements(fragments));
    for granule in [16, 4] {
        let extents = extents(fragments, granule);
        let id = BenchmarkId::new("extents", format!("alignment={granule}"));
        group.bench_function(id, |bencher| bencher.iter(|| black_box(Table::new(&extents))));
    }
    group.finish();
}

fn print_memory(layout: &Layout) {
    let Some(before) = peak_resident_bytes() else {
        println!("layout/index: this system does not tell its peak memory");
        return;
    };
    let index = black_box(layout.index(&Order::Scattered)).expect("memory");
    let used = peak_resident_bytes().unwrap_or(before) - before;
    println!(
        "layout/index: {} fragments, {:.2} B of peak memory a fragment, of which {} B index",
        layout.fragments(),
        used as f64 / layout.fragments() as f64,
        index.as_bytes().len() as u64 / layout.fragments(),
    );
}

/// The most memory that this process has held, where Linux tells it.
fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
