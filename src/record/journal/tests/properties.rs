//! Any run and any group.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Map;

use super::super::reader::GZIP_MAGIC;
use super::*;
use crate::record::{Arm, DeviceKind, Order, Refined, Samples, Status};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_extra() -> impl Strategy<Value = Map<String, Value>> {
    // No field has such a name.
    prop::collection::btree_map("new_\\PC{0,6}", any_json(), 0..3)
        .prop_map(|map| map.into_iter().collect())
}

fn any_run() -> impl Strategy<Value = Run> {
    (
        any_extra(),
        any_extra(),
        any_extra(),
        any::<String>(),
        any::<[Option<u64>; 2]>(),
        prop::collection::btree_map(any::<String>(), any::<String>(), 0..3),
    )
        .prop_map(|(of_run, of_host, of_device, text, numbers, modules)| {
            let mut run = sample_run();
            run.extra = of_run;
            run.host.extra = of_host;
            run.device.extra = of_device;
            run.device.kind = DeviceKind::from(text.clone());
            run.device.uuid = numbers[0].map(|_| text.clone());
            run.device.l2_bytes = numbers[1];
            run.selection.filters = vec![text];
            run.selection.memory_limit_bytes = numbers[0];
            run.modules = BTreeMap::from_iter(modules);
            run
        })
}

fn any_arm() -> impl Strategy<Value = Arm> {
    let samples = prop::collection::vec(any::<(u32, u32, u32, u64)>(), 0..5);
    (any::<String>(), any::<Option<String>>(), any::<[u64; 4]>(), samples, any_extra()).prop_map(
        |(name, order, bytes, rows, extra)| {
            let mut samples = Samples::default();
            for (round, position, launches, ns) in rows {
                samples.push(round, position, launches, ns);
            }
            Arm {
                kernel: Refined::parse(&name),
                pattern: Refined::parse(&name),
                name,
                order: order.clone().map(Order::from),
                backing: order,
                read_bytes: bytes[0],
                written_bytes: bytes[1],
                index_bytes: bytes[2],
                touched_bytes: bytes[3],
                samples,
                extra,
            }
        },
    )
}

fn any_group() -> impl Strategy<Value = Group> {
    (
        any::<String>(),
        prop_oneof!["ok|skipped|failed", any::<String>()],
        any::<Option<String>>(),
        any::<[Option<u64>; 2]>(),
        prop::collection::vec(any_arm(), 0..3),
        any_extra(),
    )
        .prop_map(|(case, status, reason, bytes, arms, extra)| {
            let mut group = sample_group(&case);
            group.status = Status::from(status);
            group.reason = reason;
            group.fragment_bytes = bytes[0];
            group.alignment_bytes = bytes[1];
            group.arms = arms;
            group.extra = extra;
            group
        })
}

/// What is read of groups: a lost one gives way to a later one of its case, a repeated one counts once.
fn that_stand(groups: &[Group]) -> Vec<Group> {
    let mut stand: Vec<Group> = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        let is_of_it = |later: &Group| later.case == group.case && later.process == group.process;
        let gives_way = group.lost.is_some() && groups[at + 1..].iter().any(is_of_it);
        if !gives_way && !stand.contains(group) {
            stand.push(group.clone());
        }
    }
    stand
}

/// Ranges of a text that are changed, taken out or repeated.
fn any_damage() -> impl Strategy<Value = (u8, Index, Index, Vec<u8>)> {
    (0..4u8, any::<Index>(), any::<Index>(), prop::collection::vec(any::<u8>(), 1..8))
}

fn damage(text: &mut Vec<u8>, (kind, from, to, bytes): &(u8, Index, Index, Vec<u8>)) {
    if text.is_empty() {
        return;
    }
    let (from, to) = (from.index(text.len()), to.index(text.len()));
    let range = from.min(to)..from.max(to) + 1;
    match kind {
        0 => text[from] ^= bytes[0].max(1),
        1 => drop(text.drain(range)),
        2 => {
            let copy = text[range.clone()].to_vec();
            drop(text.splice(range.end..range.end, copy));
        }
        _ => drop(text.splice(from..text.len().min(from + bytes.len()), bytes.iter().copied())),
    }
}

proptest! {
    #[test]
    fn damage_makes_no_wrong_row(damages in prop::collection::vec(any_damage(), 1..4)) {
        let mut text = sample_text();
        let sound = parse(&text).unwrap();
        damages.iter().for_each(|one| damage(&mut text, one));
        // What is taken out or repeated line by line is no damage to the others.
        if let Ok(journal) = parse(&text) {
            prop_assert_eq!(&journal.run, &sound.run);
            prop_assert!(journal.groups.iter().all(|group| sound.groups.contains(group)));
            prop_assert!(journal.groups.len() <= sound.groups.len(), "a case stands twice");
            prop_assert!(journal.unknown.iter().all(|line| sound.unknown.contains(line)));
            prop_assert!(journal.selftests.is_empty());
        }
    }

    #[test]
    fn what_is_written_is_read(
        run in any_run(),
        groups in prop::collection::vec(any_group(), 0..4),
        resumed in any_group(),
    ) {
        let folder = Folder::new();
        let mut writer = JournalWriter::create(&folder.path()).unwrap();
        writer.write_run(&run).unwrap();
        for group in &groups {
            writer.write_group(group).unwrap();
        }
        drop(writer);
        let journal = Journal::read(&folder.path()).unwrap();
        prop_assert_eq!(&journal.run, &run);
        prop_assert_eq!(&journal.groups, &that_stand(&groups));
        prop_assert_eq!(&journal.torn, &None);

        let mut writer = JournalWriter::resume(&folder.path(), journal.whole_bytes).unwrap();
        writer.write_group(&resumed).unwrap();
        let mut all = groups;
        all.push(resumed);
        let read = Journal::read(&folder.path()).unwrap().groups;
        prop_assert_eq!(read, that_stand(&all));
    }

    #[test]
    fn unknown_lines_are_kept(kind in "[a-z]{1,8}", body in any_extra()) {
        prop_assume!(!["run", "group", "selftest"].contains(&kind.as_str()));
        let mut line = body;
        line.insert("type".into(), kind.into());
        let line = Value::Object(line);
        let run = unsealed_run();
        prop_assert_eq!(parse_with(&run, &line.to_string()).unwrap().unknown, [line]);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>(), at in any::<Index>()) {
        let _ = parse(&bytes);
        let _ = parse(&[&GZIP_MAGIC[..], &bytes].concat());
        for mut damaged in [sample_text(), gzip(&sample_text())] {
            let at = at.index(damaged.len());
            let end = damaged.len().min(at + bytes.len());
            damaged.splice(at..end, bytes.iter().copied());
            let _ = parse(&damaged);
        }
    }
}
