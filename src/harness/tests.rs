//! Ageing, every distribution on every policy.

use proptest::prelude::*;

use super::*;
use crate::layout::{Fragment, mix};
use crate::policy::{
    Growth, HoleOrder, Params, Placement, Policy, PolicyName, SimulatedSource, Usage,
};

const HEAP_BYTES: u64 = 16 << 20;

/// Policies that hand out any size.
const POLICIES: [PolicyName; 5] = [
    PolicyName::FirstFit,
    PolicyName::BestFit,
    PolicyName::NextFit,
    PolicyName::Buddy,
    PolicyName::SizeClasses,
];

fn policy(name: PolicyName, placement: Placement, growth: Growth) -> Box<dyn Policy> {
    let source = SimulatedSource::new(HEAP_BYTES, 64 << 10, placement).unwrap();
    name.build(source, &Params::default().with_growth(growth)).unwrap()
}

fn arena(name: PolicyName) -> Box<dyn Policy> {
    policy(name, Placement::Contiguous, Growth::Whole)
}

/// A recipe of few operations at an occupancy that every policy serves.
fn recipe(distribution: Distribution) -> Recipe {
    Recipe {
        occupancy_percent: 50,
        limit_operations: 30_000,
        ..Recipe::new(distribution, HEAP_BYTES, 1, 42)
    }
}

fn refused(name: PolicyName, recipe: &Recipe) -> String {
    age(&mut *arena(name), recipe).unwrap_err().to_string()
}

fn ranges(fragments: &[Fragment]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<_> = fragments.iter().map(|f| (f.offset, f.offset + f.bytes)).collect();
    ranges.sort_unstable();
    ranges
}

/// What holds for every aged heap.
fn check(aged: &Aged, policy: &dyn Policy) {
    let usage: Usage = policy.usage();
    assert_eq!(aged.reached().usage, usage);
    assert_eq!(aged.live().len() as u64, usage.live_blocks);
    // Extents refuse fragments that overlap or leave the footprint.
    let live = live_layout(aged).unwrap();
    assert!(live.alignment_bytes() >= 16);
    let payload_bytes = live.payload_bytes();
    assert!(usage.requested_bytes <= payload_bytes && payload_bytes <= usage.rounded_bytes);
    let [by_address, by_list] =
        [HoleOrder::Address, HoleOrder::FreeList].map(|order| aged.holes(order));
    assert!(by_address.is_sorted_by_key(|hole| hole.offset));
    assert_eq!(ranges(by_address), ranges(by_list));
    let hole_bytes: u64 = by_address.iter().map(|hole| hole.bytes).sum();
    assert!(usage.rounded_bytes + hole_bytes <= usage.reserved_bytes);
    let mut all = ranges(aged.live());
    all.extend(ranges(by_address));
    all.sort_unstable();
    assert!(all.windows(2).all(|two| two[0].1 <= two[1].0), "blocks and holes overlap");
    assert_eq!((all[0].0, all[all.len() - 1].1), (0, aged.footprint_bytes()));
}

#[test]
fn every_distribution_ages_every_policy() {
    for distribution in Distribution::ALL {
        for name in POLICIES {
            let mut policy = arena(name);
            let aged = age(&mut *policy, &recipe(distribution)).unwrap();
            check(&aged, &*policy);
            let reached = *aged.reached();
            assert_eq!(aged.policy(), name.name());
            assert_eq!(reached.stop, Stop::Limit, "{distribution} {name}");
            assert!(reached.operations >= 30_000, "{distribution} {name}");
            let occupancy = reached.occupancy_percent(aged.recipe());
            let held = if reached.refusals > 0 { 30.0 } else { 49.0 };
            assert!((held..=50.0).contains(&occupancy), "{distribution} {name}: {reached:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_heap_everywhere() {
    let golden: [(Distribution, [u64; 5]); 6] = [
        (
            Distribution::TrainingStep,
            [
                10_325_249_452_867_897_666,
                6_387_399_945_851_746_523,
                13_708_720_100_076_434_643,
                5_598_972_550_641_065_375,
                8_529_642_954_122_068_959,
            ],
        ),
        (
            Distribution::InferenceKv,
            [
                15_646_765_331_863_430_385,
                10_268_840_539_761_855_687,
                17_725_345_914_725_921_420,
                6_441_426_941_440_339_325,
                5_826_126_390_969_266_163,
            ],
        ),
        (
            Distribution::DataFrames,
            [
                12_595_744_616_479_924_795,
                16_428_811_510_470_349_036,
                1_831_980_272_778_673_498,
                9_633_354_713_216_150_132,
                1_974_985_386_036_139_856,
            ],
        ),
        (
            Distribution::Uniform,
            [
                17_590_218_210_703_793_667,
                3_460_946_334_432_860_224,
                7_372_385_686_056_573_600,
                6_755_979_278_933_232_677,
                1_512_284_453_504_377_202,
            ],
        ),
        (
            Distribution::LogNormal,
            [
                1_561_150_317_902_478_973,
                11_134_386_555_769_798_840,
                14_546_893_037_395_342_509,
                12_231_599_196_568_526_796,
                15_391_614_434_938_870_485,
            ],
        ),
        (
            Distribution::PowerLaw,
            [
                18_361_117_571_852_190_898,
                9_217_201_716_697_775_421,
                18_046_798_641_100_442_819,
                17_729_363_929_160_532_783,
                17_855_003_432_290_156_062,
            ],
        ),
    ];
    let hash = |distribution, name| {
        let aged = age(&mut *arena(name), &recipe(distribution)).unwrap();
        let live = live_layout(&aged).unwrap();
        let holes = aged.holes(HoleOrder::FreeList).iter();
        holes.fold(live.hash(), |hash, hole| mix(mix(hash ^ hole.offset) ^ hole.bytes))
    };
    let found = golden
        .map(|(distribution, _)| (distribution, POLICIES.map(|name| hash(distribution, name))));
    assert_eq!(found, golden);
}

#[test]
fn another_seed_gives_another_heap() {
    let age = |seed| {
        let recipe = Recipe { seed, ..recipe(Distribution::LogNormal) };
        age(&mut *arena(PolicyName::FirstFit), &recipe).unwrap()
    };
    assert_eq!(age(1).live(), age(1).live());
    assert_ne!(age(1).live(), age(2).live());
}

#[test]
fn lower_levels_are_later_stages_of_one_ageing() {
    let at = |level_bytes| {
        let recipe = Recipe {
            level_bytes,
            occupancy_percent: 85,
            limit_operations: 1_000_000,
            ..recipe(Distribution::LogNormal)
        };
        (recipe, age(&mut *arena(PolicyName::FirstFit), &recipe).unwrap())
    };
    let mut operations = 0;
    let mut median = u64::MAX;
    for level_bytes in [1 << 20, 16 << 10, 8 << 10, 4 << 10] {
        let (recipe, aged) = at(level_bytes);
        let reached = aged.reached();
        assert_eq!(reached.stop, Stop::Level, "{level_bytes}: {reached:?}");
        assert!(reached.median_hole_bytes <= level_bytes);
        assert!(reached.operations >= operations && reached.median_hole_bytes <= median);
        // The median jumps when one piece no longer holds half of what is free: past 16 KiB here.
        assert_eq!(reached.is_at_level(&recipe), level_bytes != 16 << 10, "{reached:?}");
        (operations, median) = (reached.operations, reached.median_hole_bytes);
    }
    // No hole is shorter than the alignment: it falls no more, and the record says so.
    let (recipe, aged) = at(16);
    assert_eq!(aged.reached().stop, Stop::Steady, "{:?}", aged.reached());
    assert!(!aged.reached().is_at_level(&recipe));
    assert!(aged.reached().operations > operations && aged.reached().operations < 1_000_000);
}

#[test]
fn the_median_is_that_of_holes_and_of_what_is_not_taken_yet() {
    let whole = age(&mut *arena(PolicyName::FirstFit), &recipe(Distribution::Uniform)).unwrap();
    let lengths: Vec<u64> = whole.holes(HoleOrder::Address).iter().map(|hole| hole.bytes).collect();
    assert_eq!(metrics::median_bytes(&lengths), Some(whole.reached().median_hole_bytes));
    // In small regions the free half of the heap is still the source's.
    let growth = Growth::Regions { bytes: 64 << 10 };
    let mut grown = policy(PolicyName::FirstFit, Placement::Contiguous, growth);
    let recipe = Recipe { level_bytes: 64 << 10, ..recipe(Distribution::Uniform) };
    let aged = age(&mut *grown, &recipe).unwrap();
    let untaken = HEAP_BYTES - aged.reached().usage.reserved_bytes;
    assert!(aged.reached().operations > 20_000, "{:?}", aged.reached());
    assert_eq!(aged.reached().median_hole_bytes, untaken);
}

#[test]
fn a_level_is_met_within_a_factor_of_two() {
    let recipe = Recipe { level_bytes: 4096, ..recipe(Distribution::Uniform) };
    let reached = *age(&mut *arena(PolicyName::FirstFit), &recipe).unwrap().reached();
    let at = |median_hole_bytes| Reached { median_hole_bytes, ..reached }.is_at_level(&recipe);
    assert_eq!([2047, 2048, 8192, 8193].map(at), [false, true, true, false]);
}

#[test]
fn sizes_scale_with_the_level() {
    let at = |level_bytes, heap_bytes| {
        let recipe = Recipe {
            scale: Scale::Level,
            ..Recipe::new(Distribution::LogNormal, heap_bytes, level_bytes, 1)
        };
        recipe.scale_shift(256)
    };
    let shifts = LEVELS_BYTES.map(|level_bytes| at(level_bytes, 64 << 30));
    // 192 KiB are typical; four alignments of 256 B on average are the least.
    assert_eq!(shifts, [6, 5, 1, -4]);
    let recipe =
        Recipe { scale: Scale::Level, level_bytes: 2 << 20, ..recipe(Distribution::Uniform) };
    let error = refused(PolicyName::BestFit, &recipe);
    assert!(error.contains("256 are the least: take a heap of"), "{error}");
}

#[test]
fn what_is_refused_lives_elsewhere_and_sizes_stay() {
    let recipe = Recipe {
        occupancy_percent: 90,
        limit_operations: 400_000,
        ..recipe(Distribution::LogNormal)
    };
    let aged = age(&mut *arena(PolicyName::NextFit), &recipe).unwrap();
    let reached = aged.reached();
    assert!(reached.refusals > 0);
    assert!(reached.occupancy_percent(&recipe) < 85.0, "{reached:?}");
    // Live blocks keep their number, and small ones have not taken the place of large ones: those
    // that are refused are rare.
    let filled = Recipe { limit_operations: 1, ..recipe };
    let filled = age(&mut *arena(PolicyName::NextFit), &filled).unwrap();
    let small = |aged: &Aged| {
        let bytes: Vec<u64> = aged.live().iter().map(|live| live.bytes).collect();
        bytes.iter().filter(|bytes| **bytes < 2048).count()
    };
    let (before, after) = (small(&filled), small(&aged));
    assert!(after.abs_diff(before) < before / 8, "{before} {after}");
}

#[test]
fn a_scattered_source_has_a_longer_footprint() {
    let growth = Growth::Regions { bytes: 256 << 10 };
    let mut policy = policy(PolicyName::BestFit, Placement::Scattered { seed: 5 }, growth);
    let aged = age(&mut *policy, &recipe(Distribution::LogNormal)).unwrap();
    check(&aged, &*policy);
    assert!(aged.footprint_bytes() > HEAP_BYTES);
}

#[test]
fn blocks_are_visited_in_the_order_of_their_making() {
    // Until something is freed, first fit makes them in address order.
    let recipe = Recipe { limit_operations: 1, ..recipe(Distribution::LogNormal) };
    let filled = age(&mut *arena(PolicyName::FirstFit), &recipe).unwrap();
    let live = live_layout(&filled).unwrap();
    assert!(live.fragments().is_sorted_by_key(|block| block.offset));
    let aged = age(&mut *arena(PolicyName::FirstFit), &self::recipe(Distribution::LogNormal));
    let live = live_layout(&aged.unwrap()).unwrap();
    assert!(!live.fragments().is_sorted_by_key(|block| block.offset));
    assert!(live.facts().jumps * 2 > live.fragments().len() as u64);
}

#[test]
fn holes_are_filled_one_after_the_other() {
    let aged = age(&mut *arena(PolicyName::BestFit), &recipe(Distribution::LogNormal)).unwrap();
    // Best fit meets the shortest first.
    assert!(aged.holes(HoleOrder::FreeList).is_sorted_by_key(|hole| hole.bytes));
    assert!(aged.holes(HoleOrder::Address).is_sorted_by_key(|hole| hole.offset));
    for order in [HoleOrder::Address, HoleOrder::FreeList] {
        let holes = aged.holes(order);
        let held: u64 = holes.iter().map(|hole| hole.bytes).sum();
        assert_eq!(holes_layout(&aged, held, order).unwrap().fragments(), holes);
        // Cut within the third hole.
        let payload_bytes = holes[0].bytes + holes[1].bytes + 16;
        let layout = holes_layout(&aged, payload_bytes, order).unwrap();
        let expected = [holes[0], holes[1], Fragment { bytes: 16, ..holes[2] }];
        assert_eq!(layout.fragments(), expected);
        let error = holes_layout(&aged, held + 16, order).unwrap_err();
        let held_bytes = held;
        let policy = "best_fit";
        let payload_bytes = held + 16;
        assert_eq!(error, HarnessError::HolesTooSmall { policy, payload_bytes, held_bytes });
    }
    for payload_bytes in [0, 24] {
        let error = holes_layout(&aged, payload_bytes, HoleOrder::Address).unwrap_err();
        assert_eq!(error, HarnessError::UnevenPayload { payload_bytes, unit_bytes: 16 });
    }
}

#[test]
fn recipes_that_cannot_be_are_told_with_what_would_work() {
    let usual = recipe(Distribution::LogNormal);
    let says = |recipe: Recipe, part: &str| {
        let error = refused(PolicyName::Buddy, &recipe);
        assert!(error.contains(part), "{error}");
    };
    says(Recipe { occupancy_percent: 0, ..usual }, "it must be from 1 to 99 %");
    says(Recipe { occupancy_percent: 100, ..usual }, "it must be from 1 to 99 %");
    says(Recipe { heap_bytes: 1000, ..usual }, "a heap of 1000B: it must be at least 1MiB");
    says(Recipe { level_bytes: 0, ..usual }, "take 256B or more");
    let vast = Recipe { heap_bytes: 1 << 40, scale: Scale::Shift(10), ..usual };
    says(vast, "67108864 are the most: take a smaller heap");
    says(Recipe { scale: Scale::Shift(21), ..usual }, "from -20 to 20");
    says(Recipe { scale: Scale::Shift(-21), ..usual }, "from -20 to 20");
    let slab = refused(PolicyName::Slab, &Recipe { scale: Scale::Shift(5), ..usual });
    assert!(slab.contains("slab does not hand out the sizes of log_normal"), "{slab}");
    assert!(slab.contains("up to 128KiB") && slab.contains("it takes"), "{slab}");
    let mut policy = arena(PolicyName::FirstFit);
    policy.allocate(1).unwrap();
    let error = age(&mut *policy, &usual).unwrap_err();
    assert_eq!(error, HarnessError::NotEmpty { policy: "first_fit", live_blocks: 1 });
}

#[test]
fn an_occupancy_that_a_policy_cannot_fill_is_told_and_what_it_can() {
    // Blocks of powers of two: a quarter of each is lost on average.
    let recipe = Recipe { occupancy_percent: 95, ..recipe(Distribution::LogNormal) };
    let error = age(&mut *arena(PolicyName::Buddy), &recipe).unwrap_err();
    let HarnessError::Unreachable { reached_percent, .. } = error else { panic!("{error}") };
    let text = error.to_string();
    assert!(text.contains("buddy cannot fill 95 % of a heap of 16MiB"), "{text}");
    assert!(text.contains(&format!("ask for {reached_percent} % or less")), "{text}");
    assert!((55..85).contains(&reached_percent), "{text}");
    let would_work = Recipe { occupancy_percent: reached_percent as u32, ..recipe };
    age(&mut *arena(PolicyName::Buddy), &would_work).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn aged_heaps_are_whole(
        name in prop::sample::select(&POLICIES),
        distribution in prop::sample::select(&Distribution::ALL),
        (seed, percent) in (any::<u64>(), 5..75u32),
        (limit, shift) in (1..10_000u64, 4..8),
        (is_scattered, is_whole) in any::<(bool, bool)>(),
        share in 1..=100u64,
    ) {
        let placement =
            if is_scattered { Placement::Scattered { seed } } else { Placement::Contiguous };
        let growth = if is_whole { Growth::Whole } else { Growth::Regions { bytes: 128 << 10 } };
        let recipe = Recipe {
            seed,
            occupancy_percent: percent,
            limit_operations: limit,
            scale: Scale::Shift(shift),
            level_bytes: 4096,
            ..recipe(distribution)
        };
        let mut policy = policy(name, placement, growth);
        match age(&mut *policy, &recipe) {
            Ok(aged) => {
                check(&aged, &*policy);
                for order in [HoleOrder::Address, HoleOrder::FreeList] {
                    let held: u64 =
                        aged.holes(order).iter().map(|hole| hole.bytes / 16 * 16).sum();
                    let payload_bytes = (held / 16 * share).div_ceil(100) * 16;
                    if payload_bytes > 0 {
                        let layout = holes_layout(&aged, payload_bytes, order).unwrap();
                        prop_assert_eq!(layout.payload_bytes(), payload_bytes);
                    }
                }
            }
            Err(HarnessError::Unreachable { reached_percent, .. }) => {
                prop_assert!(reached_percent < u64::from(percent));
            }
            Err(HarnessError::TooFewBlocks { blocks, least_blocks, .. }) => {
                prop_assert!(blocks < least_blocks);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}
