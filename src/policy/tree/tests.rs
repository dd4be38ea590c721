//! Tests of the tree.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A tree and what it should hold.
#[derive(Default)]
struct Both {
    tree: Tree,
    model: BTreeMap<u64, u64>,
}

impl Both {
    fn insert(&mut self, key: u64, bytes: u64) {
        if self.model.insert(key, bytes).is_some() {
            self.remove(key);
        }
        self.tree.insert(Entry { key, bytes });
    }

    fn remove(&mut self, key: u64) {
        let place = self.tree.last_to(key).unwrap();
        self.tree.remove(&place);
    }

    fn remove_near(&mut self, key: u64) {
        if let Some(key) = self.near(key) {
            self.model.remove(&key);
            self.remove(key);
        }
    }

    /// Gives a range another length, and any key between those beside it.
    fn replace_near(&mut self, key: u64, random: u64, bytes: u64) {
        let Some(key) = self.near(key) else { return };
        let least = self.model.range(..key).next_back().map_or(0, |(key, _)| key + 1);
        let most = self.model.range(key + 1..).next().map_or(20_000, |(key, _)| key - 1);
        let to = least + random % (most - least + 1);
        self.model.remove(&key);
        self.model.insert(to, bytes);
        let place = self.tree.last_to(key).unwrap();
        self.tree.replace(&place, Entry { key: to, bytes });
    }

    fn near(&self, key: u64) -> Option<u64> {
        self.model.range(key..).chain(&self.model).next().map(|(key, _)| *key)
    }

    fn check(&self, key: u64, bytes: u64) {
        let is_long = |(_, long): &(&u64, &u64)| **long >= bytes;
        let is = |place: Option<Place>, found: Option<(&u64, &u64)>| {
            let found = found.map(|(&key, &bytes)| Entry { key, bytes });
            assert_eq!(place.map(|place| self.tree.entry(&place)), found);
        };
        is(self.tree.first(bytes), self.model.iter().find(is_long));
        is(self.tree.first_from(key, bytes), self.model.range(key..).find(is_long));
        is(self.tree.last_to(key), self.model.range(..=key).next_back());
        if let Some(place) = self.tree.last_to(key) {
            is(self.tree.next(place), self.model.range(key + 1..).next());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_finds_what_a_plain_search_finds(
        steps in prop::collection::vec((0..8u8, 0..20_000u64, 1..1000u64), 1..3000),
        falling in any::<bool>(),
    ) {
        let mut both = Both::default();
        let half = steps.len() / 2;
        for (n, (kind, key, bytes)) in steps.into_iter().enumerate() {
            // In the second half more is removed than added, down to nothing.
            let removes = if falling && n > half { 7 } else { 3 };
            match kind {
                0 => both.replace_near(key, bytes * 7919, bytes.div_ceil(2)),
                kind if kind < removes => both.remove_near(key),
                _ => both.insert(key, bytes),
            }
            both.check((key + 10_000) % 20_000, bytes);
        }
        let expected = both.model.iter().map(|(&key, &bytes)| Entry { key, bytes });
        prop_assert!(expected.eq(both.tree.entries()));
    }
}

#[test]
fn it_grows_and_shrinks_to_nothing_in_any_order() {
    for step in [1, 7919, 99_999] {
        let mut tree = Tree::default();
        let keys = || (0..100_000u64).map(|i| i * step % 100_000);
        for key in keys() {
            tree.insert(Entry { key, bytes: key + 1 });
        }
        assert!((3..=5).contains(&tree.height), "{}", tree.height);
        let first = tree.first(50_001).unwrap();
        assert_eq!(tree.entry(&first).key, 50_000);
        for key in keys() {
            let place = tree.last_to(key).unwrap();
            assert_eq!(tree.entry(&place).key, key);
            tree.remove(&place);
        }
        assert!(tree.height == 0 && tree.first(1).is_none());
        assert_eq!((tree.leaves.used(), tree.inner.used()), (1, 0));
    }
}
