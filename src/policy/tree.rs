//! An ordered tree of ranges in which every subtree knows its longest.

/// Entries of a page. Timed: 16 and 64 are slower.
const WIDTH: usize = 32;

/// Pages between a root and its leaves. A tree of height `h` takes some 16^h insertions to make.
const MAX_HEIGHT: usize = 11;

/// A range under the key that orders it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<K> {
    pub(super) key: K,
    pub(super) bytes: u64,
}

/// A B+-tree (Comer, "The ubiquitous B-tree", ACM Computing Surveys 11, 1979) whose inner entries
/// hold the length of the longest range below them, so that the first range that is long enough, in
/// the order of the keys, is found in one descent.
///
/// A page is freed when it is empty, and never merged before that (Johnson and Shasha, "B-trees with
/// inserts and deletes: why free-at-empty is better than merge-at-half", JCSS 47, 1993).
#[derive(Debug)]
pub(super) struct Tree<K> {
    pages: Vec<Page<K>>,
    vacant: Vec<u32>,
    root: u32,
    height: usize,
}

/// In a leaf: keys and lengths of ranges. Above: of each child page its first key, its longest length
/// and its number.
#[derive(Debug)]
struct Page<K> {
    len: usize,
    keys: [K; WIDTH],
    longest: [u64; WIDTH],
    below: [u32; WIDTH],
}

/// Where a range stands, as long as the tree does not change: the page and the entry on each level,
/// from the root to the leaf.
#[derive(Clone)]
pub(super) struct Place([Step; MAX_HEIGHT + 1]);

#[derive(Clone, Copy, Default)]
struct Step {
    page: u32,
    at: u32,
}

impl<K: Copy + Ord + Default> Default for Tree<K> {
    fn default() -> Self {
        Self { pages: vec![Page::default()], vacant: Vec::new(), root: 0, height: 0 }
    }
}

impl<K: Copy + Ord + Default> Tree<K> {
    /// The first range of at least `bytes` bytes.
    pub(super) fn first(&self, bytes: u64) -> Option<Place> {
        let i = self.page(self.root).first_long(bytes, 0)?;
        Some(self.first_below(Place::default(), 0, self.root, i, bytes))
    }

    /// The first range of at least `bytes` bytes under a key of at least `from`.
    pub(super) fn first_from(&self, from: K, bytes: u64) -> Option<Place> {
        let mut place = self.descend(from);
        let leaf = self.page(place.0[self.height].page);
        if let Some(i) = leaf.first_long(bytes, leaf.count(|key| key < from)) {
            place.0[self.height].at = i as u32;
            return Some(place);
        }
        self.first_behind(place, bytes)
    }

    /// The last range under a key of at most `key`.
    pub(super) fn last_to(&self, key: K) -> Option<Place> {
        let place = self.descend(key);
        let Step { page, at } = place.0[self.height];
        let leaf = self.page(page);
        (leaf.len > 0 && leaf.keys[at as usize] <= key).then_some(place)
    }

    /// The range behind another.
    pub(super) fn next(&self, mut place: Place) -> Option<Place> {
        let leaf = &mut place.0[self.height];
        if (leaf.at as usize + 1) < self.page(leaf.page).len {
            leaf.at += 1;
            return Some(place);
        }
        self.first_behind(place, 0)
    }

    /// The range at a place.
    pub(super) fn entry(&self, place: &Place) -> Entry<K> {
        let Step { page, at } = place.0[self.height];
        self.page(page).entry(at as usize)
    }

    /// Every range, in the order of the keys.
    pub(super) fn entries(&self) -> Vec<Entry<K>> {
        let mut pages = vec![self.root];
        for _ in 0..self.height {
            pages = pages.iter().flat_map(|&page| self.page(page).children()).copied().collect();
        }
        let leaves = pages.into_iter().map(|page| self.page(page));
        leaves.flat_map(|leaf| (0..leaf.len).map(|i| leaf.entry(i))).collect()
    }

    /// Adds a range under a key that is not there yet.
    pub(super) fn insert(&mut self, entry: Entry<K>) {
        if self.page(self.root).is_full() {
            let below = self.root;
            self.root = self.make(Page::default());
            let bound = self.page(below).bound();
            self.page_mut(self.root).insert(0, bound, below);
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
        leaf.insert(leaf.count(|key| key < entry.key), entry, 0);
    }

    /// Removes the range at a place.
    pub(super) fn remove(&mut self, place: &Place) {
        let bytes = self.entry(place).bytes;
        let Step { page, at } = place.0[self.height];
        self.page_mut(page).remove(at as usize);
        for level in (0..self.height).rev() {
            let child = place.0[level + 1].page;
            if self.page(child).len == 0 {
                let Step { page, at } = place.0[level];
                self.page_mut(page).remove(at as usize);
                self.vacant.push(child);
            } else if !self.renew(place.0[level], bytes, 0) {
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

    /// Gives the range at a place another key and length. The order of the keys stays.
    pub(super) fn replace(&mut self, place: &Place, entry: Entry<K>) {
        let bytes = self.entry(place).bytes;
        let Step { page, at } = place.0[self.height];
        self.page_mut(page).set(at as usize, entry);
        for level in (0..self.height).rev() {
            if !self.renew(place.0[level], bytes, entry.bytes) {
                break;
            }
        }
    }

    /// Makes an entry what its child page is, in which a length went from `from` to `to`; whether
    /// that changed it.
    fn renew(&mut self, Step { page, at }: Step, from: u64, to: u64) -> bool {
        let this = self.page(page);
        let before = this.entry(at as usize);
        let child = self.page(this.below[at as usize]);
        let bytes = if from == before.bytes { child.longest() } else { before.bytes.max(to) };
        let after = Entry { key: child.keys[0], bytes };
        self.page_mut(page).set(at as usize, after);
        after != before
    }

    /// The way to the last key of at most `key`; else to the first.
    fn descend(&self, key: K) -> Place {
        let mut place = Place::default();
        let mut page = self.root;
        for level in 0..self.height {
            let at = self.page(page).position(key);
            place.0[level] = Step { page, at: at as u32 };
            page = self.page(page).below[at];
        }
        let at = self.page(page).position(key) as u32;
        place.0[self.height] = Step { page, at };
        place
    }

    /// The first range of at least `bytes` bytes in the leaves behind that of a place.
    fn first_behind(&self, place: Place, bytes: u64) -> Option<Place> {
        (0..self.height)
            .rev()
            .find_map(|level| {
                let Step { page, at } = place.0[level];
                let i = self.page(page).first_long(bytes, at as usize + 1)?;
                Some((level, page, i))
            })
            .map(|(level, page, i)| self.first_below(place, level, page, i, bytes))
    }

    /// Follows the first long enough entries down from entry `i` of a page.
    fn first_below(
        &self,
        mut place: Place,
        level: usize,
        mut page: u32,
        mut i: usize,
        bytes: u64,
    ) -> Place {
        for level in level..self.height {
            place.0[level] = Step { page, at: i as u32 };
            page = self.page(page).below[i];
            i = self
                .page(page)
                .first_long(bytes, 0)
                .expect("the page above says that there is one");
        }
        place.0[self.height] = Step { page, at: i as u32 };
        place
    }

    /// Moves the upper half of a full child into a page of its own.
    fn split(&mut self, page: u32, i: usize) {
        let child = self.page(page).below[i];
        let upper = self.make(Page::default());
        for from in WIDTH / 2..WIDTH {
            let lower = self.page(child);
            let (entry, below) = (lower.entry(from), lower.below[from]);
            self.page_mut(upper).insert(from - WIDTH / 2, entry, below);
        }
        self.page_mut(child).len = WIDTH / 2;
        let (lower_bound, upper_bound) = (self.page(child).bound(), self.page(upper).bound());
        let this = self.page_mut(page);
        this.set(i, lower_bound);
        this.insert(i + 1, upper_bound, upper);
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

impl Default for Place {
    fn default() -> Self {
        Self([Step::default(); MAX_HEIGHT + 1])
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

    /// How many keys, all of them first, are so. Loads that do not wait for each other are faster
    /// than a binary search.
    fn count(&self, is_so: impl Fn(K) -> bool) -> usize {
        self.keys[..self.len].iter().map(|key| usize::from(is_so(*key))).sum()
    }

    /// The last entry whose key is not above `key`; else the first.
    fn position(&self, key: K) -> usize {
        self.count(|other| other <= key).saturating_sub(1)
    }

    fn first_long(&self, bytes: u64, from: usize) -> Option<usize> {
        (from..self.len).find(|&i| self.longest[i] >= bytes)
    }

    fn longest(&self) -> u64 {
        self.longest[..self.len].iter().fold(0, |longest, &bytes| longest.max(bytes))
    }

    /// What the page above holds of it.
    fn bound(&self) -> Entry<K> {
        Entry { key: self.keys[0], bytes: self.longest() }
    }

    fn children(&self) -> &[u32] {
        &self.below[..self.len]
    }

    fn entry(&self, i: usize) -> Entry<K> {
        Entry { key: self.keys[i], bytes: self.longest[i] }
    }

    fn set(&mut self, i: usize, entry: Entry<K>) {
        self.keys[i] = entry.key;
        self.longest[i] = entry.bytes;
    }

    fn insert(&mut self, i: usize, entry: Entry<K>, below: u32) {
        self.keys.copy_within(i..self.len, i + 1);
        self.longest.copy_within(i..self.len, i + 1);
        self.below.copy_within(i..self.len, i + 1);
        self.set(i, entry);
        self.below[i] = below;
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
mod tests;
