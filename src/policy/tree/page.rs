//! Pages of the tree: sorted entries side by side.

use std::ops::Range;

use super::Entry;

/// Entries that are compared side by side, without a branch.
const BLOCK: usize = 8;

/// Blocks of a page. Timed with 40,000 holes: 2 are as fast.
const BLOCKS: usize = 4;

/// Entries of a page.
pub(super) const WIDTH: usize = BLOCK * BLOCKS;

/// Keys and lengths, and what is below each: nothing in a leaf. Further up a key is the first of a
/// child page, a length the longest in it.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Page<B> {
    /// Behind the last entry the highest.
    keys: [[u64; BLOCK]; BLOCKS],
    /// Behind the last entry 0.
    longest: [[u64; BLOCK]; BLOCKS],
    below: [B; WIDTH],
    len: usize,
}

impl<B: Copy + Default> Default for Page<B> {
    fn default() -> Self {
        Self {
            keys: [[u64::MAX; BLOCK]; BLOCKS],
            longest: [[0; BLOCK]; BLOCKS],
            below: [B::default(); WIDTH],
            len: 0,
        }
    }
}

impl<B: Copy + Default> Page<B> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == WIDTH
    }

    /// The last entry whose key is not above `key`; else the first.
    pub(super) fn position(&self, key: u64) -> usize {
        let rank = self.rank(key);
        let is_there = rank < self.len && self.key(rank) == key;
        if is_there { rank } else { rank.saturating_sub(1) }
    }

    /// How many keys are below `key`. Comparisons that do not wait for each other are faster than a
    /// binary search.
    pub(super) fn rank(&self, key: u64) -> usize {
        let lasts = self.keys.iter().map(|block| block[BLOCK - 1]);
        let blocks = lasts.map(|last| usize::from(last < key)).sum::<usize>();
        let Some(block) = self.keys.get(blocks) else { return WIDTH };
        BLOCK * blocks + block.iter().map(|other| usize::from(*other < key)).sum::<usize>()
    }

    /// The first entry from `from` on of at least `bytes` bytes, which are not 0.
    pub(super) fn first_long(&self, bytes: u64, from: usize) -> Option<usize> {
        let first = from / BLOCK;
        let mut wanted = u32::MAX << (from % BLOCK);
        for (n, block) in self.longest.iter().enumerate().skip(first) {
            let long =
                block.iter().rev().fold(0, |long, &other| long << 1 | u32::from(other >= bytes));
            if long & wanted != 0 {
                return Some(n * BLOCK + (long & wanted).trailing_zeros() as usize);
            }
            wanted = u32::MAX;
        }
        None
    }

    pub(super) fn longest(&self) -> u64 {
        let mut lanes = self.longest[0].map(f64::from_bits);
        for block in &self.longest[1..] {
            for (lane, &bytes) in lanes.iter_mut().zip(block) {
                *lane = longer(*lane, f64::from_bits(bytes));
            }
        }
        for half in [BLOCK / 2, BLOCK / 4, BLOCK / 8] {
            for i in 0..half {
                lanes[i] = longer(lanes[i], lanes[i + half]);
            }
        }
        lanes[0].to_bits()
    }

    pub(super) fn key(&self, i: usize) -> u64 {
        self.keys.as_flattened()[i]
    }

    pub(super) fn entry(&self, i: usize) -> Entry {
        Entry { key: self.key(i), bytes: self.longest.as_flattened()[i] }
    }

    pub(super) fn below(&self, i: usize) -> B {
        self.below[i]
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (Entry, B)> {
        (0..self.len).map(|i| (self.entry(i), self.below[i]))
    }

    pub(super) fn set(&mut self, i: usize, entry: Entry) {
        self.keys.as_flattened_mut()[i] = entry.key;
        self.longest.as_flattened_mut()[i] = entry.bytes;
    }

    pub(super) fn insert(&mut self, i: usize, entry: Entry, below: B) {
        self.shift(i..self.len, i + 1);
        self.set(i, entry);
        self.below[i] = below;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, i: usize) {
        self.shift(i + 1..self.len, i);
        self.truncate(self.len - 1);
    }

    fn shift(&mut self, from: Range<usize>, to: usize) {
        self.keys.as_flattened_mut().copy_within(from.clone(), to);
        self.longest.as_flattened_mut().copy_within(from.clone(), to);
        self.below.copy_within(from, to);
    }

    fn truncate(&mut self, len: usize) {
        self.keys.as_flattened_mut()[len..self.len].fill(u64::MAX);
        self.longest.as_flattened_mut()[len..self.len].fill(0);
        self.len = len;
    }

    /// What the page above holds of it.
    fn bound(&self) -> Entry {
        Entry { key: self.key(0), bytes: self.longest() }
    }
}

/// Pages of one kind, by number.
#[derive(Debug)]
pub(super) struct Pages<B> {
    pages: Vec<Page<B>>,
    vacant: Vec<u32>,
}

impl<B> Default for Pages<B> {
    fn default() -> Self {
        Self { pages: Vec::new(), vacant: Vec::new() }
    }
}

impl<B: Copy + Default> Pages<B> {
    /// A new page, empty.
    pub(super) fn make(&mut self) -> u32 {
        if let Some(number) = self.vacant.pop() {
            return number;
        }
        self.pages.push(Page::default());
        (self.pages.len() - 1) as u32
    }

    /// Frees a page.
    pub(super) fn give_up(&mut self, number: u32) {
        self.get_mut(number).truncate(0);
        self.vacant.push(number);
    }

    /// Moves the upper half of a page to a new one: what the page above is to hold of both, and the
    /// number of the new one.
    pub(super) fn split(&mut self, number: u32) -> (Entry, Entry, u32) {
        let upper = self.make();
        let mut page = self.get(number).clone();
        page.shift(WIDTH / 2..WIDTH, 0);
        page.truncate(WIDTH / 2);
        let upper_bound = page.bound();
        *self.get_mut(upper) = page;
        let lower = self.get_mut(number);
        lower.truncate(WIDTH / 2);
        (lower.bound(), upper_bound, upper)
    }

    pub(super) fn bound(&self, number: u32) -> Entry {
        self.get(number).bound()
    }

    /// Lengths in all pages; free ones are empty.
    pub(super) fn lengths(&self) -> Vec<u64> {
        self.pages
            .iter()
            .flat_map(|page| &page.longest.as_flattened()[..page.len])
            .copied()
            .collect()
    }

    pub(super) fn get(&self, number: u32) -> &Page<B> {
        &self.pages[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Page<B> {
        &mut self.pages[number as usize]
    }

    /// Pages that are not free.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.pages.len() - self.vacant.len()
    }
}

/// The greater one. Bits of floats from 0 to infinity are in the order of the floats, and no range is
/// longer than those of infinity; so two lanes take one instruction, which whole numbers do not have
/// on every processor.
fn longer(one: f64, other: f64) -> f64 {
    if one > other { one } else { other }
}
