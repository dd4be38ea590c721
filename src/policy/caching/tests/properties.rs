//! Any program on several streams, against a plain account of it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::blocks::State;
use super::check::check;
use super::*;

#[derive(Clone, Debug)]
enum Step {
    Allocate { pools: usize, stream: u64, bytes: u64 },
    Free { which: usize },
    Record { which: usize, stream: u64 },
    Complete { stream: u64 },
    Process,
    ReleaseUnused,
}

fn any_step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![
        0..5000u64,
        (0..=2048u64).prop_map(|blocks| 512 * blocks),
        (MIB..12 * MIB),
        (1..60u64).prop_map(|mib| mib * MIB),
    ];
    let allocate = (0..8usize, 0..3u64, bytes).prop_map(|(pools, stream, bytes)| {
        // Most programs capture no graph.
        Step::Allocate { pools: pools / 7, stream, bytes }
    });
    prop_oneof![
        10 => allocate,
        8 => any::<usize>().prop_map(|which| Step::Free { which }),
        2 => (any::<usize>(), 0..3u64).prop_map(|(which, stream)| Step::Record { which, stream }),
        2 => (0..3u64).prop_map(|stream| Step::Complete { stream }),
        1 => Just(Step::Process),
        1 => Just(Step::ReleaseUnused),
    ]
}

const SETTINGS: &[&str] = &[
    "",
    "max_split_size_mb:20",
    "max_split_size_mb:32,max_non_split_rounding_mb:21",
    "roundup_power2_divisions:[1:4,16:2,>:8]",
    "garbage_collection_threshold:0.3,per_process_memory_fraction:0.7",
    "large_segment_size_mb:15",
    "expandable_segments:True",
    "expandable_segments:True,large_segment_size_mb:12,max_split_size_mb:32",
    "expandable_segments:True,expandable_segments_reserve:0.3,per_process_memory_fraction:0.9",
];

/// A block as the program sees it, and the streams that use it besides its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Account {
    block: Block,
    stream: u64,
    uses: BTreeSet<u64>,
}

/// The program's account: what is live, and what waits for which streams.
#[derive(Default)]
struct Model {
    live: Vec<Account>,
    waiting: Vec<Account>,
    /// Streams that waiting blocks have been come past by, but not yet processed.
    passed: Vec<(u64, BTreeSet<u64>)>,
}

impl Model {
    /// Blocks that nobody else may touch.
    fn ranges(&self) -> BTreeMap<u64, u64> {
        let all = self.live.iter().chain(&self.waiting);
        all.map(|account| (account.block.address, account.block.rounded_bytes)).collect()
    }

    fn complete(&mut self, stream: u64) {
        for account in &mut self.waiting {
            if account.uses.contains(&stream) {
                self.passed.push((account.block.address, BTreeSet::from([stream])));
            }
        }
    }

    fn process(&mut self) {
        for (address, streams) in self.passed.drain(..) {
            for account in &mut self.waiting {
                if account.block.address == address {
                    account.uses.retain(|stream| !streams.contains(stream));
                }
            }
        }
        self.waiting.retain(|account| !account.uses.is_empty());
    }
}

/// The free block that best fit takes by the rules, from what a snapshot shows: its address.
fn best_fit(
    allocator: &Caching<SimulatedSource>,
    pools: PoolId,
    stream: u64,
    rounded_bytes: u64,
) -> Option<u64> {
    let small = rounded_bytes <= SMALL_BLOCK_BYTES;
    let kind = if small { PoolKind::Small } else { PoolKind::Large };
    let (bytes, address) = allocator
        .segments()
        .iter()
        .filter(|info| (info.pools, info.kind, info.stream) == (pools, kind, Stream(stream)))
        .flat_map(|info| info.blocks.iter())
        .filter(|block| block.state == BlockState::Inactive && block.bytes >= rounded_bytes)
        .map(|block| (block.bytes, block.address))
        .min()?;
    let limit = allocator.config().max_split_bytes.unwrap_or(u64::MAX);
    let rounding = allocator.config().max_non_split_rounding_bytes;
    let fits = match rounded_bytes < limit {
        true => bytes < limit,
        false => bytes - rounded_bytes < rounding,
    };
    fits.then_some(address)
}

/// What a block takes of what was found for it.
fn taken(config: &Config, rounded_bytes: u64, found_bytes: u64) -> u64 {
    let rest = found_bytes - rounded_bytes;
    let whole = config.max_split_bytes.is_some_and(|limit| rounded_bytes >= limit);
    let small = rounded_bytes <= SMALL_BLOCK_BYTES || config.expandable_segments;
    let splits = if small { rest > 0 } else { !whole && rest > MIB };
    if splits { rounded_bytes } else { found_bytes }
}

fn allocate(
    allocator: &mut Caching<SimulatedSource>,
    model: &mut Model,
    (pools, stream, bytes): (PoolId, u64, u64),
) -> Result<(), TestCaseError> {
    allocator.process_events();
    model.process();
    let config = allocator.config().clone();
    let rounded_bytes = config.round_size(bytes);
    let expected = best_fit(allocator, pools, stream, rounded_bytes);
    let free: BTreeMap<u64, u64> =
        allocator.holes(HoleOrder::Address).iter().map(|hole| (hole.address, hole.bytes)).collect();
    let before = *allocator.statistics();
    let result = allocator.allocate_in(pools, Stream(stream), bytes);
    let after = *allocator.statistics();
    if after.alloc_retries > before.alloc_retries {
        // All events were waited for.
        model.waiting.clear();
        model.passed.clear();
    }
    match result {
        Err(error) => {
            let requested_bytes = bytes.max(1);
            let hole_bytes = after.reserved_bytes.current - after.active_bytes.current;
            prop_assert_eq!(error, PolicyError::OutOfMemory { requested_bytes, hole_bytes });
            prop_assert_eq!(after.ooms, before.ooms + 1);
            prop_assert_eq!(expected, None);
        }
        Ok(block) => {
            prop_assert_eq!(block.requested_bytes, bytes.max(1));
            prop_assert!(block.rounded_bytes >= rounded_bytes);
            prop_assert!(block.address.is_multiple_of(MIN_BLOCK_BYTES));
            if !config.expandable_segments {
                let segment_bytes = config.allocation_size(rounded_bytes);
                let found_bytes = match expected {
                    Some(address) => {
                        prop_assert_eq!(block.address, address);
                        prop_assert_eq!(after.reserved_bytes, before.reserved_bytes);
                        free[&address]
                    }
                    None => segment_bytes,
                };
                let bytes = taken(&config, rounded_bytes, found_bytes);
                prop_assert_eq!(block.rounded_bytes, bytes);
            }
            let end = block.address + block.rounded_bytes;
            for (address, bytes) in model.ranges() {
                prop_assert!(end <= address || address + bytes <= block.address);
            }
            model.live.push(Account { block, stream, uses: BTreeSet::new() });
        }
    }
    Ok(())
}

fn run(settings: &str, source: SimulatedSource, steps: &[Step]) -> Result<(), TestCaseError> {
    let capacity_bytes = source.capacity_bytes();
    let mut allocator = Caching::new(settings.parse().unwrap(), source).unwrap();
    let graph = allocator.add_pools();
    let mut model = Model::default();
    for step in steps {
        match *step {
            Step::Allocate { pools, stream, bytes } => {
                let pools = [PoolId::DEFAULT, graph][pools];
                allocate(&mut allocator, &mut model, (pools, stream, bytes))?;
            }
            Step::Free { which } if !model.live.is_empty() => {
                let account = model.live.swap_remove(which % model.live.len());
                let address = account.block.address;
                allocator.free(address).unwrap();
                prop_assert_eq!(allocator.free(address), Err(PolicyError::NotLive { address }));
                if !account.uses.is_empty() {
                    model.waiting.push(account);
                }
            }
            Step::Record { which, stream } if !model.live.is_empty() => {
                let index = which % model.live.len();
                let account = &mut model.live[index];
                allocator.record_stream(account.block.address, Stream(stream)).unwrap();
                if stream != account.stream {
                    account.uses.insert(stream);
                }
            }
            Step::Free { .. } | Step::Record { .. } => {}
            Step::Complete { stream } => {
                allocator.complete_events(Stream(stream));
                model.complete(stream);
            }
            Step::Process => {
                allocator.process_events();
                model.process();
            }
            Step::ReleaseUnused => {
                let before = reserved(&allocator);
                let released = allocator.release_unused().unwrap();
                prop_assert_eq!(released, before - reserved(&allocator));
                model.waiting.clear();
                model.passed.clear();
            }
        }
        check(&allocator);
        agree(&allocator, &model)?;
    }
    for account in model.live {
        allocator.free(account.block.address).unwrap();
    }
    allocator.retire_pools(graph);
    allocator.release_unused().unwrap();
    check(&allocator);
    prop_assert_eq!(allocator.source().free_bytes(), capacity_bytes);
    prop_assert_eq!(allocator.usage(), Usage::default());
    // As in PyTorch, addresses stay reserved of which no page could ever be mapped.
    prop_assert!(allocator.blocks.iter().all(|(_, block)| block.tag.state == State::Unmapped));
    prop_assert!(allocator.config.expandable_segments || allocator.blocks.iter().count() == 0);
    Ok(())
}

/// The allocator's blocks are those of the account.
fn agree(allocator: &Caching<SimulatedSource>, model: &Model) -> Result<(), TestCaseError> {
    let told = |state: BlockState| {
        let blocks = allocator.blocks().filter(move |block| block.state == state);
        blocks
            .map(|block| (block.address, block.bytes, block.requested_bytes))
            .collect::<BTreeSet<_>>()
    };
    let kept = |accounts: &[Account]| {
        let blocks = accounts.iter().map(|account| account.block);
        blocks
            .map(|block| (block.address, block.rounded_bytes, block.requested_bytes))
            .collect::<BTreeSet<_>>()
    };
    prop_assert_eq!(told(BlockState::Allocated), kept(&model.live));
    prop_assert_eq!(told(BlockState::PendingFree), kept(&model.waiting));
    let usage = allocator.usage();
    let requested_bytes: u64 = model.live.iter().map(|account| account.block.requested_bytes).sum();
    prop_assert_eq!(usage.live_blocks, model.live.len() as u64);
    prop_assert_eq!(usage.requested_bytes, requested_bytes);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_program_is_accounted_for(
        settings in prop::sample::select(SETTINGS),
        capacity_mib in prop::sample::select(vec![120u64, 240, 1 << 20]),
        seed in prop::option::of(any::<u64>()),
        steps in prop::collection::vec(any_step(), 1..120),
    ) {
        let placement = seed.map_or(Placement::Contiguous, |seed| Placement::Scattered { seed });
        // Pages of 1 MiB divide every page of an expandable segment.
        let source = SimulatedSource::new(capacity_mib * MIB, MIB, placement).unwrap();
        run(settings, source, &steps)?;
    }
}
