//! Holds the kernels for fragments of varying length against those for fragments of one length.
//!
//! `cargo run --release --example varied_kernels [cuda:N|host [BYTES...]]`: first the same equal fragments by both
//! and by the competing variants; then one long fragment beside a million short ones, whose time is
//! held against the sum of the times that the long one and the short ones take alone. Every kernel is
//! verified before it is timed; ratios are medians over rounds with 95 % intervals.

use std::error::Error;

use fragbench::device::{
    self, Buffer, Device, Entry, Interval, Launch, Movement, SUM_BYTES, Span, VariedMover,
};
use fragbench::kernel::{
    Access, ExtentOperands, GUARD_BYTES, Operands, TableBuffers, Verifier, fill,
};
use fragbench::layout::{Extents, Fragment, Layout, Pattern, Permutation, Spec};
use fragbench::record::{Order, size};
use fragbench::stats;

const SEED: u64 = 1;
const KEY: u64 = 0x6461_7461;
const ROUNDS: usize = 40;
const LAUNCHES: u32 = 3;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let id = std::env::args().nth(1).unwrap_or_else(|| "cuda:0".to_owned());
    let asked: Result<Vec<u64>, _> = std::env::args().skip(2).map(|text| text.parse()).collect();
    let mut sizes = asked?;
    if sizes.is_empty() {
        sizes = vec![64, 128, 512, 4 << 10, 64 << 10, 4 << 20];
    }
    let device = device::open(&id)?;
    let on_host = device.facts().is_host();
    let footprint_bytes: u64 = if on_host { 256 << 20 } else { 16 << 30 };
    let payload_bytes: u64 = if on_host { 32 << 20 } else { 2 << 30 };
    let bench = Bench::new(&*device, footprint_bytes, payload_bytes.max(footprint_bytes / 8))?;
    println!("{} ({id})", device.facts().name);
    for movement in VariedMover::MOVEMENTS {
        for &fragment_bytes in &sizes {
            for order in [Order::Packed, Order::Scattered] {
                bench.equal(movement, fragment_bytes, payload_bytes, &order)?;
            }
        }
    }
    bench.mixed(if on_host { 64 << 20 } else { 1 << 30 }, if on_host { 100_000 } else { 1_000_000 })
}

struct Bench<'d> {
    device: &'d dyn Device,
    arena: Buffer,
    payload: Buffer,
    sums: Buffer,
    footprint_bytes: u64,
}

/// A kernel that is ready to be timed.
struct Arm<'a> {
    name: String,
    launch: Launch<'a>,
    bytes: u64,
}

impl<'d> Bench<'d> {
    fn new(device: &'d dyn Device, footprint_bytes: u64, most: u64) -> Result<Self, Failure> {
        Ok(Bench {
            device,
            arena: device.allocate(footprint_bytes + GUARD_BYTES)?,
            payload: device.allocate(most + GUARD_BYTES)?,
            sums: device.allocate(SUM_BYTES)?,
            footprint_bytes,
        })
    }

    fn payload(&self, bytes: u64) -> Result<Span<'_>, Failure> {
        self.payload.slice(0, bytes).ok_or_else(|| "the payload is too long".into())
    }

    /// The same fragments by the uniform kernel, the varied one and its variants.
    fn equal(
        &self,
        movement: Movement,
        fragment_bytes: u64,
        payload_bytes: u64,
        order: &Order,
    ) -> Result<(), Failure> {
        let spec = Spec {
            pattern: Pattern::SHUFFLED,
            fragment_bytes,
            offset_bytes: 0,
            footprint_bytes: self.footprint_bytes,
            payload_bytes,
        };
        let layout = Layout::new(spec, SEED)?;
        let on_host = layout.index(order)?;
        let index = self.device.allocate(on_host.as_bytes().len() as u64)?;
        self.device.upload(index.span(), on_host.as_bytes())?;
        let place = |i| {
            let slot = on_host.get(i as usize).unwrap_or_default();
            Fragment { offset: slot * fragment_bytes, bytes: fragment_bytes }
        };
        let fragments = (0..layout.fragments()).map(place).collect();
        let extents = Extents::new(fragments, self.footprint_bytes)?;
        let table = TableBuffers::upload(self.device, &extents)?;
        let payload = Some(self.payload(payload_bytes)?);
        let sums = Some(self.sums.span());
        let operands = Operands { index: Some(index.span()), payload, sums };
        let arena = self.arena.slice(0, self.footprint_bytes).ok_or("the arena is too short")?;
        let uniform = Access::of_layout(movement, &layout, order, arena, operands, KEY)?;
        let varied = self.over(movement, &extents, &table)?;
        let mut arms = vec![self.arm("uniform", uniform)?, self.arm("varied", varied)?];
        for variant in VariedMover::competitors(movement) {
            let access = varied.by(*variant);
            if access.entry().is_some_and(|entry: Entry| self.device.has(entry)) {
                arms.push(self.arm(&variant.to_string(), access)?);
            }
        }
        let times = self.rounds(&arms)?;
        let what = format!("{} {order} {}", movement.name(), size::exact(fragment_bytes));
        let rate = |arm: usize| arms[arm].bytes as f64 / median(&times[arm]);
        let mut line = format!("{what:<28} uniform {:6.0} GB/s", rate(0));
        for (arm, own) in arms.iter().enumerate().skip(1) {
            line += &format!("; {} {}", own.name, ratio(&times[0], &times[arm]));
        }
        println!("{line}");
        Ok(())
    }

    /// One long fragment and many of 64 B, each in a place of 4 KiB: together, and each alone.
    fn mixed(&self, long_bytes: u64, short: u64) -> Result<(), Failure> {
        let places = (self.footprint_bytes - long_bytes) / 4096;
        let permutation = Permutation::new(SEED, places);
        let long = Fragment { offset: 0, bytes: long_bytes };
        let offset = |i| long_bytes + permutation.apply(i) * 4096;
        let shorts: Vec<Fragment> =
            (0..short.min(places)).map(|i| Fragment { offset: offset(i), bytes: 64 }).collect();
        let (before, behind) = shorts.split_at(shorts.len() / 2);
        let all = [before, &[long], behind].concat();
        for movement in VariedMover::MOVEMENTS {
            let extents = [all.clone(), vec![long], shorts.clone()]
                .map(|fragments| Extents::new(fragments, self.footprint_bytes));
            let [all, long, short] = extents;
            let extents = [all?, long?, short?];
            let mut tables = Vec::new();
            for extents in &extents {
                tables.push(TableBuffers::upload(self.device, extents)?);
            }
            let mut arms = Vec::new();
            for ((extents, table), name) in
                extents.iter().zip(&tables).zip(["all", "long", "short"])
            {
                arms.push(self.arm(name, self.over(movement, extents, table)?)?);
            }
            let times = self.rounds(&arms)?;
            let sum: Vec<f64> = times[1].iter().zip(&times[2]).map(|(a, b)| a + b).collect();
            println!(
                "{}: 1 of {} beside {} of 64 B: {:.0} GB/s, alone {:.0} and {:.0}; time of all / sum of both {}",
                movement.name(),
                size::exact(long_bytes),
                shorts.len(),
                arms[0].bytes as f64 / median(&times[0]),
                arms[1].bytes as f64 / median(&times[1]),
                arms[2].bytes as f64 / median(&times[2]),
                ratio(&times[0], &sum),
            );
        }
        Ok(())
    }

    fn over<'a>(
        &'a self,
        movement: Movement,
        extents: &'a Extents,
        table: &'a TableBuffers,
    ) -> Result<Access<'a>, Failure> {
        let payload = Some(self.payload(extents.payload_bytes())?);
        let sums = Some(self.sums.span());
        let operands = ExtentOperands { table: table.spans(), payload, sums };
        let arena = self.arena.slice(0, self.footprint_bytes).ok_or("the arena is too short")?;
        Ok(Access::of_extents(movement, extents, arena, operands, KEY)?)
    }

    /// The access, verified.
    fn arm<'a>(&'a self, name: &str, access: Access<'a>) -> Result<Arm<'a>, Failure> {
        let launch = access.launch()?;
        let verifier = Verifier::new(self.device)?;
        let scatters = access.movement() == Some(Movement::ScatterCopy);
        let ends = (self.arena.span(), self.payload.span());
        let (source, guarded) = if scatters { (ends.1, ends.0) } else { ends };
        fill(self.device, source, KEY)?;
        let mut wrong = verifier.check_index(&access)?.mismatches;
        if access.is_read() {
            let expected = verifier.expected_checksum(&access)?;
            wrong += verifier.check_read(&access, Some(&launch), expected)?.mismatches;
        } else {
            let (written, untouched) = verifier.check_writes(&access, Some(&launch), guarded, 7)?;
            wrong += written.mismatches + untouched.mismatches;
        }
        if wrong > 0 {
            return Err(format!("{name}: verification failed, {wrong} differ").into());
        }
        let traffic = access.traffic();
        Ok(Arm { name: name.to_owned(), launch, bytes: traffic.read_bytes + traffic.written_bytes })
    }

    /// Times of one launch in ns, of every arm in each round.
    fn rounds(&self, arms: &[Arm<'_>]) -> Result<Vec<Vec<f64>>, Failure> {
        let mut times = vec![Vec::new(); arms.len()];
        for round in 0..ROUNDS + 3 {
            for at in 0..arms.len() {
                let arm = (at + round) % arms.len();
                let ns = loop {
                    match self.device.time(&arms[arm].launch, LAUNCHES)? {
                        Interval::Ns { ns, .. } => break ns,
                        Interval::Void => {}
                    }
                };
                if round >= 3 {
                    times[arm].push(ns as f64 / f64::from(LAUNCHES));
                }
            }
        }
        Ok(times)
    }
}

fn median(values: &[f64]) -> f64 {
    stats::median(values).unwrap_or(f64::NAN)
}

/// The median of the rounds' quotients with its interval.
fn ratio(numerators: &[f64], denominators: &[f64]) -> String {
    let quotients: Vec<f64> = numerators.iter().zip(denominators).map(|(a, b)| a / b).collect();
    let interval = stats::median_interval(&quotients, stats::CONFIDENCE);
    match interval {
        Some(ci) => format!("{:.3} [{:.3}, {:.3}]", median(&quotients), ci.low, ci.high),
        None => format!("{:.3}", median(&quotients)),
    }
}
