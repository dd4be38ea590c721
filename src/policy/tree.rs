//! An ordered tree of ranges in which every subtree knows its longest.

mod page;
#[cfg(test)]
mod tests;

use page::{Page, Pages};

/// Pages between a root and its leaves. A tree of height `h` takes some 16^h insertions to make.
const MAX_HEIGHT: usize = 8;

/// A range under the key that orders it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: u64,
    pub(super) bytes: u64,
}

/// A B+-tree (Comer, "The ubiquitous B-tree", ACM Computing Surveys 11, 1979) whose inner entries
/// hold the length of the longest range below them, so that the first range that is long enough, in
/// the order of the keys, is found in one descent.
///
/// A page is freed when it is empty, and never merged before that (Johnson and Shasha, "B-trees with
/// inserts and deletes: why free-at-empty is better than merge-at-half", JCSS 47, 1993).
#[derive(Debug)]
pub(super) struct Tree {
    leaves: Pages<()>,
    inner: Pages<u32>,
    /// An inner page, or where the height is 0 a leaf.
    root: u32,
    height: usize,
}

/// Where a range stands, as long as the tree does not change: the page and the entry on each level,
/// from the root to the leaf.
#[derive(Clone, Default)]
pub(super) struct Place([Step; MAX_HEIGHT + 1]);

#[derive(Clone, Copy, Default)]
struct Step {
    page: u32,
    at: u32,
}

impl Default for Tree {
    fn default() -> Self {
        let mut leaves = Pages::default();
        let root = leaves.make();
        Self { leaves, inner: Pages::default(), root, height: 0 }
    }
}

impl Tree {
    /// The first range of at least `bytes` bytes.
    pub(super) fn first(&self, bytes: u64) -> Option<Place> {
        let i = self.first_long(0, self.root, bytes)?;
        Some(self.first_below(Place::default(), 0, Step::new(self.root, i), bytes))
    }

    /// The first range of at least `bytes` bytes under a key of at least `from`.
    pub(super) fn first_from(&self, from: u64, bytes: u64) -> Option<Place> {
        let mut place = self.descend(from);
        let leaf = self.leaf(&place);
        if let Some(i) = leaf.first_long(bytes, leaf.rank(from)) {
            place.0[self.height].at = i as u32;
            return Some(place);
        }
        self.first_behind(place, bytes)
    }

    /// The last range under a key of at most `key`.
    pub(super) fn last_to(&self, key: u64) -> Option<Place> {
        let place = self.descend(key);
        self.is_to(&place, key).then_some(place)
    }

    /// Whether there is a range at a place, under a key of at most `key`.
    pub(super) fn is_to(&self, place: &Place, key: u64) -> bool {
        let leaf = self.leaf(place);
        leaf.len() > 0 && leaf.key(place.0[self.height].at as usize) <= key
    }

    /// The range behind another.
    pub(super) fn next(&self, mut place: Place) -> Option<Place> {
        let step = &mut place.0[self.height];
        if (step.at as usize + 1) < self.leaves.get(step.page).len() {
            step.at += 1;
            return Some(place);
        }
        self.first_behind(place, 1)
    }

    /// The range at a place.
    pub(super) fn entry(&self, place: &Place) -> Entry {
        self.leaf(place).entry(place.0[self.height].at as usize)
    }

    /// Every range, in the order of the keys.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut pages = vec![self.root];
        for _ in 0..self.height {
            let children = |&page: &u32| self.inner.get(page).entries().map(|(_, child)| child);
            pages = pages.iter().flat_map(children).collect();
        }
        let leaves = pages.into_iter().map(|page| self.leaves.get(page));
        leaves.flat_map(|leaf| leaf.entries().map(|(entry, ())| entry)).collect()
    }

    /// Lengths of all ranges, in no order.
    pub(super) fn lengths(&self) -> Vec<u64> {
        self.leaves.lengths()
    }

    /// Adds a range under a key that is not there yet.
    pub(super) fn insert(&mut self, entry: Entry) {
        if self.is_full(0, self.root) {
            let child = self.root;
            let bound = match self.height {
                0 => self.leaves.bound(child),
                _ => self.inner.bound(child),
            };
            self.root = self.inner.make();
            self.inner.get_mut(self.root).insert(0, bound, child);
            self.height += 1;
        }
        let mut page = self.root;
        for level in 0..self.height {
            let mut i = self.inner.get(page).position(entry.key);
            if self.is_full(level + 1, self.inner.get(page).below(i)) {
                self.split(level, page, i);
                i += usize::from(entry.key >= self.inner.get(page).key(i + 1));
            }
            let this = self.inner.get_mut(page);
            let Entry { key, bytes } = this.entry(i);
            this.set(i, Entry { key: key.min(entry.key), bytes: bytes.max(entry.bytes) });
            page = this.below(i);
        }
        let leaf = self.leaves.get_mut(page);
        leaf.insert(leaf.rank(entry.key), entry, ());
    }

    /// Adds a range whose key comes between that at a place and the next, or before all where the
    /// place is the first and behind it.
    pub(super) fn insert_beside(&mut self, place: &Place, entry: Entry) {
        let Step { page, at } = place.0[self.height];
        let leaf = self.leaves.get_mut(page);
        if leaf.is_full() {
            return self.insert(entry);
        }
        let is_behind = leaf.len() > 0 && leaf.key(at as usize) < entry.key;
        leaf.insert(at as usize + usize::from(is_behind), entry, ());
        for level in (0..self.height).rev() {
            if !self.renew(level, place, 0, entry.bytes) {
                break;
            }
        }
    }

    /// Removes the range at a place.
    pub(super) fn remove(&mut self, place: &Place) {
        let bytes = self.entry(place).bytes;
        let Step { page, at } = place.0[self.height];
        self.leaves.get_mut(page).remove(at as usize);
        for level in (0..self.height).rev() {
            let Step { page: child, .. } = place.0[level + 1];
            let Step { page, at } = place.0[level];
            if self.len(level + 1, child) > 0 {
                if !self.renew(level, place, bytes, 0) {
                    break;
                }
                continue;
            }
            self.inner.get_mut(page).remove(at as usize);
            match level + 1 == self.height {
                true => self.leaves.give_up(child),
                false => self.inner.give_up(child),
            }
        }
        self.lower();
    }

    /// Gives the range at a place another key and length. The order of the keys stays.
    pub(super) fn replace(&mut self, place: &Place, entry: Entry) {
        let bytes = self.entry(place).bytes;
        let Step { page, at } = place.0[self.height];
        self.leaves.get_mut(page).set(at as usize, entry);
        for level in (0..self.height).rev() {
            if !self.renew(level, place, bytes, entry.bytes) {
                break;
            }
        }
    }

    /// Makes the entry on a level what the page below it is, in which a length went from `from` to
    /// `to`; whether that changed it.
    fn renew(&mut self, level: usize, place: &Place, from: u64, to: u64) -> bool {
        let Step { page, at } = place.0[level];
        let before = self.inner.get(page).entry(at as usize);
        let child = self.inner.get(page).below(at as usize);
        let (key, longest) = match level + 1 == self.height {
            true => renewed(self.leaves.get(child), before.bytes, from, to),
            false => renewed(self.inner.get(child), before.bytes, from, to),
        };
        let after = Entry { key, bytes: longest };
        self.inner.get_mut(page).set(at as usize, after);
        after != before
    }

    /// Takes away roots that part nothing.
    fn lower(&mut self) {
        while self.height > 0 && self.inner.get(self.root).len() <= 1 {
            let root = self.inner.get(self.root);
            let child = (root.len() == 1).then(|| root.below(0));
            self.inner.give_up(self.root);
            self.height = if child.is_some() { self.height - 1 } else { 0 };
            self.root = child.unwrap_or_else(|| self.leaves.make());
        }
    }

    /// The way to the last key of at most `key`; else to the first.
    pub(super) fn descend(&self, key: u64) -> Place {
        let mut place = Place::default();
        let mut page = self.root;
        for step in &mut place.0[..self.height] {
            let this = self.inner.get(page);
            *step = Step::new(page, this.position(key));
            page = this.below(step.at as usize);
        }
        place.0[self.height] = Step::new(page, self.leaves.get(page).position(key));
        place
    }

    /// The first range of at least `bytes` bytes in the leaves behind that of a place.
    fn first_behind(&self, place: Place, bytes: u64) -> Option<Place> {
        let (level, step) = (0..self.height).rev().find_map(|level| {
            let Step { page, at } = place.0[level];
            let i = self.inner.get(page).first_long(bytes, at as usize + 1)?;
            Some((level, Step::new(page, i)))
        })?;
        Some(self.first_below(place, level, step, bytes))
    }

    /// Follows the first long enough entries down from a step on a level.
    fn first_below(&self, mut place: Place, level: usize, mut step: Step, bytes: u64) -> Place {
        for level in level..self.height {
            place.0[level] = step;
            let child = self.inner.get(step.page).below(step.at as usize);
            let i = self.first_long(level + 1, child, bytes);
            step = Step::new(child, i.expect("the page above says that there is one"));
        }
        place.0[self.height] = step;
        place
    }

    /// Moves the upper half of a full child into a page of its own.
    fn split(&mut self, level: usize, page: u32, i: usize) {
        let child = self.inner.get(page).below(i);
        let (lower_bound, upper_bound, upper) = match level + 1 == self.height {
            true => self.leaves.split(child),
            false => self.inner.split(child),
        };
        let this = self.inner.get_mut(page);
        this.set(i, lower_bound);
        this.insert(i + 1, upper_bound, upper);
    }

    fn leaf(&self, place: &Place) -> &Page<()> {
        self.leaves.get(place.0[self.height].page)
    }

    fn first_long(&self, level: usize, page: u32, bytes: u64) -> Option<usize> {
        match level == self.height {
            true => self.leaves.get(page).first_long(bytes, 0),
            false => self.inner.get(page).first_long(bytes, 0),
        }
    }

    fn len(&self, level: usize, page: u32) -> usize {
        match level == self.height {
            true => self.leaves.get(page).len(),
            false => self.inner.get(page).len(),
        }
    }

    fn is_full(&self, level: usize, page: u32) -> bool {
        match level == self.height {
            true => self.leaves.get(page).is_full(),
            false => self.inner.get(page).is_full(),
        }
    }
}

impl Step {
    fn new(page: u32, at: usize) -> Self {
        Self { page, at: at as u32 }
    }
}

/// First key and longest length of a page that had `longest`, after a length went from `from` to
/// `to`.
fn renewed<B: Copy + Default>(page: &Page<B>, longest: u64, from: u64, to: u64) -> (u64, u64) {
    (page.key(0), if from == longest { page.longest() } else { longest.max(to) })
}
