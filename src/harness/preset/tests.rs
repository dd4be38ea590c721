//! Situations one by one.

use proptest::prelude::*;

use super::*;
use crate::policy::PolicyName;

fn situation(text: &str, seed: u64) -> Situation {
    text.parse::<Preset>().unwrap().situation(seed).unwrap()
}

fn refused(text: &str) -> String {
    text.parse::<Preset>().unwrap_err().to_string()
}

/// Small ones of each.
const SMALL: [&str; 4] = [
    "embedding:rows=20000,lookups=3000",
    "kv_cache:layers=2,blocks=300,sequences=8,tokens=400",
    "null_mask:rows=20001,null=30,run=2",
    "optimizer:layers=2,width=64,vocabulary=500,context=64,tokens=256",
];

#[test]
fn texts_are_read_as_they_are_written() {
    for preset in Preset::all() {
        assert_eq!(preset.to_string(), preset.name());
        assert_eq!(preset.to_string().parse(), Ok(preset));
        let whole = format!("{}:{}", preset.name(), preset.parameters_text());
        assert_eq!(whole.parse(), Ok(preset));
    }
    for text in SMALL {
        let preset: Preset = text.parse().unwrap();
        assert_eq!(preset.to_string(), text);
        assert_ne!(preset.parameters_text(), text);
    }
    let preset: Preset = "optimizer:policy=buddy".parse().unwrap();
    let Preset::Optimizer(optimizer) = preset else { panic!("{preset}") };
    assert_eq!(optimizer.policy, PolicyName::Buddy);
    for text in ["embedding:row=64B", "embedding:row=4KiB", "kv_cache:layers=1024"] {
        assert_eq!(text.parse::<Preset>().map(|preset| preset.to_string()), Ok(text.to_owned()));
    }
    assert_eq!("embedding:row=1KiB".parse::<Preset>().unwrap().to_string(), "embedding:row=1KiB");
}

#[test]
fn bad_texts_are_told_with_what_would_work() {
    let says = |text: &str, part: &str| {
        let error = refused(text);
        assert!(error.contains(part), "{text}: {error}");
    };
    says("kvcache", "no situation `kvcache`, perhaps kv_cache: there are embedding, kv_cache");
    says("", "there are embedding");
    says("kv_cache:layer=3", "no parameter `layer=3`, perhaps layers: write key=value");
    says("kv_cache:layers", "`` cannot be read: write a whole number");
    says("kv_cache:layers=-1", "layers=`-1` cannot be read");
    says("kv_cache:layers=1,layers=2", "layers is given twice");
    says("kv_cache:layers=0", "layers=0 cannot be; it must be from 1 to 1024");
    says("kv_cache:layers=1025", "layers=1025 cannot be; it must be from 1 to 1024");
    says("kv_cache:heads=1,head=1,element=2", "= 2 B a layer, which must be a multiple of 4 B");
    says("kv_cache:blocks=90", "may need 96 blocks and the pool has 90: ask for blocks=96");
    says("embedding:row=2B", "row=2B cannot be; it must be from 64B to 4KiB");
    says("embedding:row=100B", "a multiple of 16 B");
    says("embedding:row=5 GB", "is no size");
    says("embedding:rows=10,lookups=11", "a density over 1: ask for lookups=10 at most");
    says("null_mask:null=100", "null=100 cannot be; it must be from 1 to 99");
    says("null_mask:element=6", "4 or 8 B");
    says("null_mask:null=90,run=8", "ask for run=9 or more");
    says("embedding:rows=4294967296,lookups=4294967296", "4294967296 fragments: 268435456 are");
    says("null_mask:columns=4096,rows=1000000000", "163840000000 fragments: 268435456 are");
    says("kv_cache:layers=1024,blocks=16777216,sequences=4096", "fragments: 268435456 are");
    says("kv_cache:block=1,blocks=16777216,tokens=1048576,sequences=4096", "blocks to be served");
    says("optimizer:policy=bestfit", "perhaps best_fit");
    let slab: Preset = "optimizer:policy=slab".parse().unwrap();
    let error = slab.situation(1).unwrap_err().to_string();
    assert!(error.contains("slab") && error.contains("it takes"), "{error}");
}

#[test]
fn a_table_is_looked_up_row_by_row() {
    let situation = situation(SMALL[0], 3);
    assert_eq!(situation.mechanism, Mechanism::Indirect);
    let extents = situation.extents;
    assert_eq!(extents.fragments().len(), 3000);
    assert_eq!((extents.alignment_bytes(), extents.footprint_bytes()), (512, 20_000 * 512));
    assert!(extents.fragments().iter().all(|row| row.bytes == 512));
    assert!(!extents.fragments().is_sorted_by_key(|row| row.offset));
}

#[test]
fn a_cache_is_read_through_its_block_tables() {
    let defaults = KvCache::default();
    assert_eq!(defaults.block_bytes(), 32 << 10);
    let situation = situation(SMALL[1], 3);
    assert_eq!(situation.mechanism, Mechanism::Paged);
    let fragments = situation.extents.fragments();
    // Both layers, keys and values, go through the same tables.
    let array_bytes = 300 * (32 << 10);
    assert_eq!(situation.extents.footprint_bytes(), 4 * array_bytes);
    let (first, second) = fragments.split_at(fragments.len() / 2);
    for (first, second) in first.iter().zip(second) {
        assert_eq!((first.offset + 2 * array_bytes, first.bytes), (second.offset, second.bytes));
    }
    for both in first.chunks(2) {
        assert_eq!(both[0].offset + array_bytes, both[1].offset);
        assert!(both[0].bytes.is_multiple_of(2048) && both[0].bytes <= 32 << 10);
    }
    // Only the last block of a sequence may have room for more tokens.
    let partial = first.iter().filter(|fragment| fragment.bytes < 32 << 10).count();
    assert!((2..=2 * 8).contains(&partial), "{partial}");
    assert!(situation.words.contains("32KiB of keys and of values each"), "{}", situation.words);
}

#[test]
fn columns_are_read_between_their_nulls() {
    let situation = situation(SMALL[2], 3);
    let extents = situation.extents;
    assert_eq!((extents.alignment_bytes(), situation.mechanism), (4, Mechanism::Indirect));
    let column_bytes = (20_001u64 * 4).next_multiple_of(256);
    assert_eq!(extents.footprint_bytes(), 4 * column_bytes);
    let valid = extents.payload_bytes() / 4;
    assert!(valid.abs_diff(4 * 20_001 * 7 / 10) < 1500, "{valid}");
    let is_within = |column: u64, offset: u64| offset % column_bytes < 20_001 * 4 && column < 4;
    for run in extents.fragments() {
        assert!(is_within(run.offset / column_bytes, run.offset), "{run:?}");
        assert!(is_within(run.offset / column_bytes, run.end() - 4), "{run:?}");
    }
    // Columns are not copies of each other.
    let column = |number: u64| -> Vec<u64> {
        let own = extents.fragments().iter().map(|run| run.offset);
        own.filter(|offset| offset / column_bytes == number)
            .map(|offset| offset % column_bytes)
            .collect()
    };
    assert_ne!(column(0), column(1));
}

#[test]
fn moments_lie_where_the_policy_put_them() {
    let situation = situation(SMALL[3], 1);
    assert_eq!(situation.mechanism, Mechanism::Placement);
    let optimizer = Optimizer {
        layers: 2,
        width: 64,
        vocabulary: 500,
        context: 64,
        step_tokens: 256,
        ..Optimizer::default()
    };
    let elements: u64 = optimizer.elements().iter().sum();
    assert_eq!(situation.extents.payload_bytes(), 2 * 4 * elements);
    assert_eq!(situation.extents.fragments().len(), 2 * (2 + 2 * 12 + 2));
    // Between gradients and what activations left: not packed, and not in order.
    assert!(situation.extents.footprint_bytes() > situation.extents.payload_bytes());
    for policy in PolicyName::OF_ANY_SIZE {
        let preset = Preset::Optimizer(Optimizer { policy: *policy, ..optimizer });
        let placed = preset.situation(1).unwrap();
        assert_eq!(placed.extents.payload_bytes(), 2 * 4 * elements, "{policy}");
        assert!(placed.words.contains(policy.name()), "{}", placed.words);
    }
}

#[test]
fn the_same_seed_gives_the_same_situation_everywhere() {
    let golden = [
        16_395_027_520_025_548_786,
        3_301_314_365_364_239_024,
        7_602_397_397_950_301_277,
        16_903_300_792_769_372_332,
    ];
    assert_eq!(SMALL.map(|text| situation(text, 42).extents.hash()), golden);
    for text in &SMALL[..3] {
        assert_ne!(situation(text, 42).extents, situation(text, 43).extents, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_panics(
        number in 0..4usize,
        pairs in prop::collection::vec((any::<prop::sample::Index>(), "[0-9]{1,20}|[a-z]{0,9}"), 0..4),
    ) {
        let mut preset = Preset::all()[number];
        let keys: Vec<&str> = preset.parameters().iter().map(|known| known.key).collect();
        let pairs: Vec<String> =
            pairs.iter().map(|(key, value)| format!("{}={value}", key.get(&keys))).collect();
        let text = format!("{}:{}", preset.name(), pairs.join(","));
        if let Ok(preset) = text.parse::<Preset>() {
            prop_assert_eq!(preset.to_string().parse(), Ok(preset));
        }
    }

    #[test]
    fn lookups_are_distinct_rows(
        (rows, share, units, seed) in (1..5000u64, 1..=100u64, 4..=256u64, any::<u64>()),
    ) {
        let lookups = (rows * share / 100).max(1);
        let preset = Preset::Embedding(Embedding { row_bytes: 16 * units, rows, lookups });
        // Extents refuse fragments that overlap or leave the footprint.
        let extents = preset.situation(seed).unwrap().extents;
        prop_assert_eq!(extents.payload_bytes(), lookups * 16 * units);
        prop_assert!(extents.fragments().iter().all(|row| row.offset % (16 * units) == 0));
    }
}
