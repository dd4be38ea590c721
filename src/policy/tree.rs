//! An ordered tree of free ranges in which every subtree knows its longest.

/// Entries of a page. Timed: 16 and 64 are slower.
const WIDTH: usize = 32;

/// Pages on a way from the root to a leaf. A tree of height `h` takes some 16^h insertions to make.
const MAX_HEIGHT: usize = 16;

/// A free range: which node it is, under the key that orders it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<K> {
    pub(super) key: K,
    pub(super) bytes: u64,
    pub(super) node: u32,
}

/// A B+-tree (Comer, "The ubiquitous B-tree", ACM Computing Surveys 11, 1979) whose inner entries
/// hold the length of the longest range below them, so that the first range that is long enough, in
/// the order of the keys, is found in one descent.
///
/// A page is freed when it is empty, and never merged before that (Johnson and Shasha, "B-trees with
/// inserts and deletes: why free-at-empty is better than merge-at-half", JCSS 47, 1993).
pub(super) struct Tree<K> {
    pages: Vec<Page<K>>,
    vacant: Vec<u32>,
    root: u32,
    height: usize,
}

/// In a leaf: keys, lengths and nodes of ranges. Above: of each child page its first key, its longest
/// length and its number.
struct Page<K> {
    len: usize,
    keys: [K; WIDTH],
    longest: [u64; WIDTH],
    below: [u32; WIDTH],
}

/// The page and the entry on each level, from the root to the leaf.
struct Path {
    pages: [u32; MAX_HEIGHT + 1],
    at: [usize; MAX_HEIGHT + 1],
}

impl<K: Copy + Ord + Default> Default for Tree<K> {
    fn default() -> Self {
        Self { pages: vec![Page::default()], vacant: Vec::new(), root: 0, height: 0 }
    }
}

impl<K: Copy + Ord + Default> Tree<K> {
    /// Adds a range under a key that is not there yet.
    pub(super) fn insert(&mut self, entry: Entry<K>) {
        if self.page(self.root).is_full() {
            let root = self.page(self.root);
            let mut above = Page::default();
            above.insert(0, Entry { key: root.keys[0], bytes: root.most(), node: self.root });
            self.root = self.make(above);
            self.height += 1;
        }
        let mut page = self.root;
        for _ in 0..self.height {
            let mut i = self.page(page).position(entry.key);
            if self.page(self.page(page).below[i]).is_full() {
                self.split(page, i);
                i += usize::from(entry.key >= self.page(page).keys[i + 1]);
            }
            let this = self.page_mut(page);
            this.keys[i] = this.keys[i].min(entry.key);
            this.longest[i] = this.longest[i].max(entry.bytes);
            page = this.below[i];
        }
        let leaf = self.page_mut(page);
        leaf.insert(leaf.rank(entry.key), entry);
    }

    /// Removes the range under a key that is there.
    pub(super) fn remove(&mut self, key: K) {
        let path = self.path(key);
        let (leaf, at) = (path.pages[self.height], path.at[self.height]);
        let bytes = self.page(leaf).longest[at];
        self.page_mut(leaf).remove(at);
        for level in (0..self.height).rev() {
            let child = path.pages[level + 1];
            if self.page(child).len == 0 {
                self.page_mut(path.pages[level]).remove(path.at[level]);
                self.vacant.push(child);
            } else if !self.renew(path.pages[level], path.at[level], bytes, 0) {
                break;
            }
        }
        if self.page(self.root).len == 0 {
            self.height = 0;
        }
        while self.height > 0 && self.page(self.root).len == 1 {
            self.vacant.push(self.root);
            self.root = self.page(self.root).below[0];
            self.height -= 1;
        }
    }

    /// Gives the range under a key another key and length. Its place in the order stays.
    pub(super) fn change(&mut self, key: K, to: Entry<K>) {
        let path = self.path(key);
        let (leaf, at) = (path.pages[self.height], path.at[self.height]);
        let bytes = self.page(leaf).longest[at];
        self.page_mut(leaf).set(at, to);
        for level in (0..self.height).rev() {
            if !self.renew(path.pages[level], path.at[level], bytes, to.bytes) {
                break;
            }
        }
    }

    /// The first range of at least `bytes` bytes.
    pub(super) fn first(&self, bytes: u64) -> Option<Entry<K>> {
        let i = self.page(self.root).first_long(bytes, 0)?;
        Some(self.first_below(self.root, i, self.height, bytes))
    }

    /// The first range of at least `bytes` bytes under a key of at least `from`.
    pub(super) fn first_from(&self, from: K, bytes: u64) -> Option<Entry<K>> {
        let path = self.path(from);
        let leaf = self.page(path.pages[self.height]);
        if let Some(i) = leaf.first_long(bytes, leaf.rank(from)) {
            return Some(leaf.entry(i));
        }
        (0..self.height).rev().find_map(|level| {
            let page = path.pages[level];
            let i = self.page(page).first_long(bytes, path.at[level] + 1)?;
            Some(self.first_below(page, i, self.height - level, bytes))
        })
    }

    /// Every range, in the order of the keys.
    pub(super) fn entries(&self) -> Vec<Entry<K>> {
        let mut pages = vec![self.root];
        for _ in 0..self.height {
            pages = pages.iter().flat_map(|&page| self.page(page).all_below()).copied().collect();
        }
        let leaves = pages.into_iter().map(|page| self.page(page));
        leaves.flat_map(|leaf| (0..leaf.len).map(|i| leaf.entry(i))).collect()
    }

    /// Follows the first long enough entries down from entry `i` of a page.
    fn first_below(&self, page: u32, i: usize, height: usize, bytes: u64) -> Entry<K> {
        let (mut page, mut i) = (self.page(page), i);
        for _ in 0..height {
            page = self.page(page.below[i]);
            i = page.first_long(bytes, 0).expect("the page above says that there is one");
        }
        page.entry(i)
    }

    /// Makes entry `i` of a page what its child is, in which a length went from `from` to `to`;
    /// whether that changed it.
    fn renew(&mut self, page: u32, i: usize, from: u64, to: u64) -> bool {
        let this = self.page(page);
        let (key, longest, child) = (this.keys[i], this.longest[i], self.page(this.below[i]));
        let key_now = child.keys[0];
        let longest_now = if from == longest { child.most() } else { longest.max(to) };
        let this = self.page_mut(page);
        (this.keys[i], this.longest[i]) = (key_now, longest_now);
        key_now != key || longest_now != longest
    }

    fn path(&self, key: K) -> Path {
        let mut path = Path { pages: [self.root; MAX_HEIGHT + 1], at: [0; MAX_HEIGHT + 1] };
        for level in 0..self.height {
            let page = self.page(path.pages[level]);
            path.at[level] = page.position(key);
            path.pages[level + 1] = page.below[path.at[level]];
        }
        path.at[self.height] = self.page(path.pages[self.height]).position(key);
        path
    }

    /// Moves the upper half of a full child into a page of its own.
    fn split(&mut self, page: u32, i: usize) {
        let child = self.page(page).below[i];
        let lower = self.page_mut(child);
        let mut upper = Page::default();
        for from in WIDTH / 2..WIDTH {
            upper.insert(from - WIDTH / 2, lower.entry(from));
        }
        lower.len = WIDTH / 2;
        let most = lower.most();
        let (key, bytes) = (upper.keys[0], upper.most());
        let node = self.make(upper);
        let this = self.page_mut(page);
        this.longest[i] = most;
        this.insert(i + 1, Entry { key, bytes, node });
    }

    fn make(&mut self, page: Page<K>) -> u32 {
        if let Some(number) = self.vacant.pop() {
            *self.page_mut(number) = page;
            return number;
        }
        self.pages.push(page);
        (self.pages.len() - 1) as u32
    }

    fn page(&self, number: u32) -> &Page<K> {
        &self.pages[number as usize]
    }

    fn page_mut(&mut self, number: u32) -> &mut Page<K> {
        &mut self.pages[number as usize]
    }
}

impl<K: Copy + Ord + Default> Default for Page<K> {
    fn default() -> Self {
        let keys = [K::default(); WIDTH];
        Self { len: 0, keys, longest: [0; WIDTH], below: [0; WIDTH] }
    }
}

impl<K: Copy + Ord> Page<K> {
    fn is_full(&self) -> bool {
        self.len == WIDTH
    }

    /// How many keys are below `key`.
    fn rank(&self, key: K) -> usize {
        self.keys[..self.len].partition_point(|other| *other < key)
    }

    /// The last entry whose key is not above `key`; else the first.
    fn position(&self, key: K) -> usize {
        self.keys[..self.len].partition_point(|other| *other <= key).saturating_sub(1)
    }

    fn first_long(&self, bytes: u64, from: usize) -> Option<usize> {
        (from..self.len).find(|&i| self.longest[i] >= bytes)
    }

    fn most(&self) -> u64 {
        self.longest[..self.len].iter().fold(0, |most, &bytes| most.max(bytes))
    }

    fn all_below(&self) -> &[u32] {
        &self.below[..self.len]
    }

    fn entry(&self, i: usize) -> Entry<K> {
        Entry { key: self.keys[i], bytes: self.longest[i], node: self.below[i] }
    }

    fn set(&mut self, i: usize, entry: Entry<K>) {
        self.keys[i] = entry.key;
        self.longest[i] = entry.bytes;
        self.below[i] = entry.node;
    }

    fn insert(&mut self, i: usize, entry: Entry<K>) {
        self.keys.copy_within(i..self.len, i + 1);
        self.longest.copy_within(i..self.len, i + 1);
        self.below.copy_within(i..self.len, i + 1);
        self.set(i, entry);
        self.len += 1;
    }

    fn remove(&mut self, i: usize) {
        self.keys.copy_within(i + 1..self.len, i);
        self.longest.copy_within(i + 1..self.len, i);
        self.below.copy_within(i + 1..self.len, i);
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// A tree and what it should hold.
    #[derive(Default)]
    struct Both {
        tree: Tree<u64>,
        model: BTreeMap<u64, (u64, u32)>,
    }

    impl Both {
        fn insert(&mut self, key: u64, bytes: u64, node: u32) {
            if self.model.insert(key, (bytes, node)).is_some() {
                self.tree.remove(key);
            }
            self.tree.insert(Entry { key, bytes, node });
        }

        fn remove_near(&mut self, key: u64) {
            if let Some(key) = self.near(key) {
                self.model.remove(&key);
                self.tree.remove(key);
            }
        }

        fn change_near(&mut self, key: u64, by: u64, bytes: u64) {
            let Some(key) = self.near(key) else { return };
            let least = self.model.range(..key).next_back().map_or(0, |(key, _)| key + 1);
            let most = self.model.range(key + 1..).next().map_or(u64::MAX, |(key, _)| key - 1);
            let to = (least + by % (most - least).saturating_add(1)).min(key + by);
            let (_, node) = self.model.remove(&key).unwrap();
            self.model.insert(to, (bytes, node));
            self.tree.change(key, Entry { key: to, bytes, node });
        }

        fn near(&self, key: u64) -> Option<u64> {
            self.model.range(key..).chain(&self.model).next().map(|(key, _)| *key)
        }

        fn check(&self, from: u64, bytes: u64) {
            let found = self.model.range(from..).find(|(_, (long, _))| *long >= bytes);
            let entry = |(&key, &(bytes, node)): (&u64, &(u64, u32))| Entry { key, bytes, node };
            assert_eq!(self.tree.first_from(from, bytes), found.map(entry));
            let found = self.model.iter().find(|(_, (long, _))| *long >= bytes);
            assert_eq!(self.tree.first(bytes), found.map(entry));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn it_finds_what_a_plain_search_finds(
            steps in prop::collection::vec((0..8u8, 0..20_000u64, 0..1000u64), 1..4000),
            falling in any::<bool>(),
        ) {
            let mut both = Both::default();
            let half = steps.len() / 2;
            for (n, (kind, key, bytes)) in steps.into_iter().enumerate() {
                // In the second half more is removed than added, down to nothing.
                let removes = if falling && n > half { 7 } else { 3 };
                match kind {
                    0 => both.change_near(key, bytes, bytes / 2),
                    kind if kind < removes => both.remove_near(key),
                    _ => both.insert(key, bytes, n as u32),
                }
                both.check(key / 2, bytes);
            }
            let entries = both.tree.entries();
            let expected = both.model.iter();
            let expected = expected.map(|(&key, &(bytes, node))| Entry { key, bytes, node });
            prop_assert!(expected.eq(entries));
        }
    }

    #[test]
    fn it_grows_and_shrinks_to_nothing_in_any_order() {
        for step in [1, 7919, 99_999] {
            let mut tree = Tree::<u64>::default();
            let keys = || (0..100_000u64).map(|i| i * step % 100_000);
            for key in keys() {
                tree.insert(Entry { key, bytes: key, node: 0 });
            }
            assert!((3..=5).contains(&tree.height), "{}", tree.height);
            assert_eq!(tree.first(50_000).unwrap().key, 50_000);
            for key in keys() {
                tree.remove(key);
            }
            assert_eq!((tree.height, tree.first(0)), (0, None));
            assert_eq!(tree.vacant.len() + 1, tree.pages.len());
        }
    }
}
