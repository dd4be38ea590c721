//! Settings as texts: what they mean, what is refused, and that they print as they read.

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Config {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    text.parse::<Config>().unwrap_err().to_string()
}

#[test]
fn nothing_is_the_default() {
    let config = Config::default();
    assert_eq!(parse(""), config);
    assert_eq!(parse(" \t"), config);
    assert_eq!(config.to_string(), "large_segment_size_mb:20,expandable_segments:False");
    assert_eq!(config.large_segment_bytes, 20_971_520);
    assert_eq!(config.max_non_split_rounding_bytes, 20_971_520);
    assert_eq!(config.max_split_bytes, None);
    assert_eq!(config.without_effect(), []);
}

#[test]
fn every_key_is_read() {
    let config = parse(
        "large_segment_size_mb:12, max_split_size_mb:40,max_non_split_rounding_mb:30,\
         garbage_collection_threshold:0.5,roundup_power2_divisions:4,expandable_segments:True,\
         expandable_segments_reserve:0.25,per_process_memory_fraction:0.9,backend:native,",
    );
    assert_eq!(
        config,
        Config {
            large_segment_bytes: 12 << 20,
            max_split_bytes: Some(40 << 20),
            max_non_split_rounding_bytes: 30 << 20,
            garbage_collection_threshold: Share::new(0.5),
            roundup_power2_divisions: [4; INTERVALS],
            expandable_segments: true,
            expandable_segments_reserve: Share::new(0.25).map(Reserve::Share),
            memory_fraction: Share::new(0.9),
            inert: Vec::new(),
            releases_cache_on_failure: true,
        }
    );
    assert_eq!(parse("per_process_memory_fraction:1.0").memory_fraction, None);
    let reserve = parse("expandable_segments_reserve:40G").expandable_segments_reserve;
    assert_eq!(reserve, Some(Reserve::Bytes(40 << 30)));
}

/// The lists and results of PyTorch's own test, `AllocatorConfig_test.cpp`.
#[test]
fn lists_of_divisions_mean_what_they_mean_to_pytorch() {
    let at = |text: &str, mib: u64| {
        let divisions = parse(&format!("roundup_power2_divisions:{text}")).roundup_power2_divisions;
        divisions[(mib.ilog2() as usize).min(INTERVALS - 1)]
    };
    let first = "[64:8,128:2,256:4,512:2,1024:4,>:1]";
    for (mib, divisions) in
        [(32, 8), (64, 8), (128, 2), (256, 4), (512, 2), (1024, 4), (2048, 1), (8192, 1)]
    {
        assert_eq!(at(first, mib), divisions, "{mib} MiB of {first}");
    }
    // A boundary that is left out between two others divides nothing.
    let second = "[128:8,256:16,512:1,2048:8,>:2]";
    for (mib, divisions) in
        [(64, 8), (128, 8), (256, 16), (512, 1), (1024, 0), (2048, 8), (4096, 2)]
    {
        assert_eq!(at(second, mib), divisions, "{mib} MiB of {second}");
    }
    // `>` alone begins above the first interval.
    assert_eq!([1, 2, 512, 65536].map(|mib| at("[>:2]", mib)), [0, 2, 2, 2]);
    // Boundaries above the last interval stand for it.
    assert_eq!([1, 16384, 65536].map(|mib| at("[131072:2]", mib)), [2, 2, 2]);
    assert_eq!(at("[]", 64), 0);
    assert_eq!(at("[64:8,]", 64), 8);
}

#[test]
fn refusals_name_key_value_and_cure() {
    for (text, says) in [
        (
            "max_split_size:128",
            "`max_split_size` is no setting of the caching allocator; did you mean \
             `max_split_size_mb`?",
        ),
        (
            "max_split_size_mb:19",
            "`max_split_size_mb:19` cannot be: it takes at least 20 (MB), the \
             large_segment_size_mb",
        ),
        (
            "max_split_size_mb:20,large_segment_size_mb:25",
            "`max_split_size_mb:20` cannot be: it takes at least 25 (MB), the \
             large_segment_size_mb",
        ),
        (
            "max_non_split_rounding_mb:10",
            "`max_non_split_rounding_mb:10` cannot be: it takes at least 20 (MB), the \
             large_segment_size_mb",
        ),
        (
            "max_split_size_mb:-1",
            "`max_split_size_mb:-1` cannot be: it takes a whole number of MB, at least 20",
        ),
        (
            "large_segment_size_mb:10",
            "`large_segment_size_mb:10` cannot be: it takes a whole number of MB, more than 10",
        ),
        (
            "garbage_collection_threshold:1.0",
            "`garbage_collection_threshold:1.0` cannot be: it takes a number between 0 and 1, as \
             in 0.8",
        ),
        (
            "garbage_collection_threshold:NaN",
            "`garbage_collection_threshold:NaN` cannot be: it takes a number between 0 and 1, as \
             in 0.8",
        ),
        (
            "per_process_memory_fraction:1.5",
            "`per_process_memory_fraction:1.5` cannot be: it takes a number from 0 to 1",
        ),
        (
            "roundup_power2_divisions:3",
            "`roundup_power2_divisions:3` cannot be: it takes a power of two, or a list as in \
             [64:8,256:4,>:1]",
        ),
        (
            "roundup_power2_divisions:[64:3]",
            "`roundup_power2_divisions:[64:3]` cannot be: it takes 0 or a power of two as \
             divisions",
        ),
        (
            "roundup_power2_divisions:[63:4]",
            "`roundup_power2_divisions:[63:4]` cannot be: it takes a power of two of MB, or >, as \
             boundary",
        ),
        (
            "expandable_segments:true",
            "`expandable_segments:true` cannot be: it takes True or False, written so",
        ),
        (
            "expandable_segments_reserve:0",
            "`expandable_segments_reserve:0` cannot be: it takes a share of the device's memory \
             above 0, as in 0.5, or a size, as in 40G",
        ),
        ("backend:malloc", "`backend:malloc` cannot be: it takes native or cudaMallocAsync"),
        (
            "backend:cudaMallocAsync",
            "`backend:cudaMallocAsync` leaves all blocks to the driver's pool, where no setting \
             of the caching allocator acts: write backend:native",
        ),
        (
            "pinned_num_register_threads:256",
            "`pinned_num_register_threads:256` cannot be: it takes a power of two up to 128",
        ),
        (
            "pinned_reserve_segment_size_mb:0",
            "`pinned_reserve_segment_size_mb:0` cannot be: it takes a whole number from 1 on",
        ),
        (
            "max_split_size_mb",
            "after `max_split_size_mb` stands nothing: write a colon and a value",
        ),
        ("max_split_size_mb:", "after `max_split_size_mb:` stands nothing: write a value"),
        (
            "max_split_size_mb=128",
            "`max_split_size_mb=128` is no setting of the caching allocator; did you mean \
             `max_split_size_mb`?",
        ),
        (
            "expandable_segments:True;max_split_size_mb:128",
            "`expandable_segments:True;max_split_size_mb` cannot be: it takes True or False, \
             written so",
        ),
        (
            "expandable_segments:True:False",
            "after `expandable_segments:True` stands `:`: write a comma, then the next key",
        ),
        (
            "roundup_power2_divisions:[64:8",
            "after `roundup_power2_divisions:[64:8` stands nothing: write a comma and the next \
             boundary, or ]",
        ),
        (
            "roundup_power2_divisions:[64]",
            "after `roundup_power2_divisions:[64` stands `]`: write a colon, then the number of \
             divisions",
        ),
        (",", "at the beginning stands `,`: write a key"),
    ] {
        assert_eq!(refusal(text), says, "{text}");
    }
}

#[test]
fn settings_that_change_nothing_are_named() {
    let config = parse(
        "pinned_use_background_threads:True,throw_on_cudamalloc_oom:False,\
         expandable_segments_reserve_by_class:[serving:0.25,ads:8G],\
         pinned_use_background_threads:False,garbage_collection_threshold:0.8,\
         max_non_split_rounding_mb:64,expandable_segments_reserve:0.5",
    );
    let keys: Vec<&str> = config.without_effect().iter().map(|setting| setting.key).collect();
    assert_eq!(
        keys,
        [
            "throw_on_cudamalloc_oom",
            "expandable_segments_reserve_by_class",
            "pinned_use_background_threads",
            "garbage_collection_threshold",
            "max_non_split_rounding_mb",
            "expandable_segments_reserve",
        ]
    );
    let config = parse(
        "garbage_collection_threshold:0.8,per_process_memory_fraction:0.5,max_split_size_mb:64,\
         max_non_split_rounding_mb:64,expandable_segments:True,expandable_segments_reserve:0.5",
    );
    assert_eq!(config.without_effect(), []);
}

#[test]
fn every_known_key_is_taken() {
    for key in parse::keys() {
        let values = ["True", "1", "0.5", "[a:1G]", "native", "64"];
        let taken = values.iter().any(|value| format!("{key}:{value}").parse::<Config>().is_ok());
        assert!(taken, "{key}");
    }
}

#[test]
fn shares_are_exact() {
    let share = |value| Share::new(value).unwrap();
    assert_eq!(share(0.8).of(10), 8);
    assert_eq!(share(1.0).of(u64::MAX), u64::MAX);
    assert_eq!(share(0.0).of(u64::MAX), 0);
    assert_eq!(share(0.1).to_string(), "0.1");
    assert_eq!(Share::new(-0.1), None);
    assert_eq!(Share::new(f64::NAN), None);
}

/// PyTorch has no such setting, so its text has none.
#[test]
fn what_is_no_setting_of_pytorch_is_in_no_text() {
    let keeps = Config { releases_cache_on_failure: false, ..Config::default() };
    assert_eq!(keeps.to_string(), Config::default().to_string());
    assert!("releases_cache_on_failure:False".parse::<Config>().is_err());
}

/// Any settings that act.
fn any_config() -> impl Strategy<Value = Config> {
    let share = || prop::option::of((1..1_000_000_000u32).prop_map(Share));
    let divisions = prop::collection::vec(prop::sample::select(vec![0, 1, 2, 8]), INTERVALS);
    let divisions = (divisions, 0..INTERVALS, 0..INTERVALS).prop_map(|(all, first, last)| {
        // Runs at both ends, which have a short form.
        let clamped = |i: usize| all[i.max(first.min(last)).min(first.max(last))];
        std::array::from_fn(clamped)
    });
    let reserve = prop_oneof![
        Just(None),
        (1..1_000_000_000u32).prop_map(|of| Some(Reserve::Share(Share(of)))),
        (1..100u64).prop_map(|quarters| Some(Reserve::Bytes(quarters << 28))),
    ];
    let sizes = (11..300u64, prop::option::of(0..300u64), prop::option::of(0..300u64));
    (sizes, share(), share(), divisions, any::<bool>(), reserve).prop_map(
        |((large, split, rounding), threshold, fraction, divisions, expandable, reserve)| Config {
            large_segment_bytes: large * MIB,
            max_split_bytes: split.map(|more| (large + more) * MIB),
            max_non_split_rounding_bytes: rounding.map_or(20 * MIB, |more| (large + more) * MIB),
            garbage_collection_threshold: threshold,
            roundup_power2_divisions: divisions,
            expandable_segments: expandable,
            expandable_segments_reserve: reserve,
            memory_fraction: fraction,
            inert: Vec::new(),
            // No text holds it.
            releases_cache_on_failure: true,
        },
    )
}

proptest! {
    #[test]
    fn settings_read_as_they_print(config in any_config()) {
        let text = config.to_string();
        prop_assert_eq!(text.parse::<Config>(), Ok(config), "{}", text);
    }

    #[test]
    fn no_text_panics(text in "[a-z_0-9.:,>\\[\\] TFG-]{0,40}", key in 0..40usize) {
        let keys: Vec<&str> = parse::keys().collect();
        let key = keys[key % keys.len()];
        for text in [text.clone(), format!("{key}:{text}"), format!("{key}:[{text}")] {
            if let Err(error) = text.parse::<Config>() {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
