//! Exploration.
#![allow(missing_docs)]
use std::time::Instant;
use fragbench::harness::*;
use fragbench::policy::*;
fn main() {
    let heap: u64 = 16 << 30;
    for policy in PolicyName::ALL.iter().copied() {
        for sizes in Distribution::ALL {
            for level in [4u64 << 10, 64 << 10, 2 << 20] {
                if policy == PolicyName::Slab && sizes != Distribution::Uniform { continue; }
                let occ: &[u32] = match policy { PolicyName::Slab => &[45], PolicyName::Buddy => &[65, 60], PolicyName::SizeClasses => &[80, 70], PolicyName::Caching => &[90, 80, 70], _ => &[95, 90] };
                for occupancy_percent in occ.iter().copied() {
                    let begin = Instant::now();
                    let recipe = Recipe { occupancy_percent, scale: Scale::Level, ..Recipe::new(sizes, heap, level, 1) };
                    let source = SimulatedSource::new(heap, 2 << 20, Placement::Contiguous).unwrap();
                    let params = Params { growth: Growth::Whole, block_bytes: sizes.largest_bytes(recipe.scale_shift(256)), ..Params::default() };
                    let mut p = policy.build(source, &params).unwrap();
                    match age(&mut *p, &recipe) {
                        Ok(a) => { let r = a.reached(); println!("{policy} {sizes} level {level} occ {occupancy_percent}: median {} {} ops {} refusals {} blocks {} shift {} holes {} MiB footprint {} MiB {:.2} s", r.median_hole_bytes, r.stop, r.operations, r.refusals, r.usage.live_blocks, r.scale_shift, a.holes(HoleOrder::Address).iter().map(|h| h.bytes).sum::<u64>() >> 20, a.footprint_bytes() >> 20, begin.elapsed().as_secs_f64()); break; }
                        Err(e) => println!("{policy} {sizes} level {level} occ {occupancy_percent}: {e} {:.2} s", begin.elapsed().as_secs_f64()),
                    }
                }
            }
        }
    }
}
