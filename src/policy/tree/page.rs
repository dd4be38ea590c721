//! Pages of the tree: sorted entries side by side.

use std::fmt::Debug;
use std::ops::Range;

use super::Entry;

/// Entries that are compared side by side, without a branch.
const BLOCK: usize = 8;

/// Blocks of a page. Timed with 40,000 holes: 2 are as fast, 8 are slower for best fit.
const BLOCKS: usize = 4;

/// Entries of a page.
pub(super) const WIDTH: usize = BLOCK * BLOCKS;

/// What orders ranges: a number, and what decides between equal ones.
pub(in crate::policy) trait Key: Copy + Ord {
    type Tie: Copy + Ord + Default + Debug;

    fn parts(self) -> (u64, Self::Tie);

    fn from_parts(parts: (u64, Self::Tie)) -> Self;
}

impl Key for u64 {
    type Tie = ();

    fn parts(self) -> (u64, ()) {
        (self, ())
    }

    fn from_parts((number, ()): (u64, ())) -> Self {
        number
    }
}

impl Key for (u64, u64) {
    type Tie = u64;

    fn parts(self) -> (u64, u64) {
        self
    }

    fn from_parts(parts: (u64, u64)) -> Self {
        parts
    }
}

/// Keys and lengths, and what is below each: nothing in a leaf. Further up a key is the first of a
/// child page, a length the longest in it.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Page<K: Key, B> {
    /// The numbers of keys; behind the last entry the highest.
    numbers: [[u64; BLOCK]; BLOCKS],
    ties: [K::Tie; WIDTH],
    /// Behind the last entry 0.
    longest: [[u64; BLOCK]; BLOCKS],
    below: [B; WIDTH],
    len: usize,
}

impl<K: Key, B: Copy + Default> Default for Page<K, B> {
    fn default() -> Self {
        Self {
            numbers: [[u64::MAX; BLOCK]; BLOCKS],
            ties: [K::Tie::default(); WIDTH],
            longest: [[0; BLOCK]; BLOCKS],
            below: [B::default(); WIDTH],
            len: 0,
        }
    }
}

impl<K: Key, B: Copy + Default> Page<K, B> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == WIDTH
    }

    /// How many keys are below `key`.
    pub(super) fn rank(&self, key: K) -> usize {
        let (number, tie) = key.parts();
        let first = self.numbers_below(number);
        let is_below = |&i: &usize| self.number(i) == number && self.ties[i] < tie;
        first + (first..self.len).take_while(is_below).count()
    }

    /// The last entry whose key is not above `key`; else the first.
    pub(super) fn position(&self, key: K) -> usize {
        let rank = self.rank(key);
        let is_there = rank < self.len && self.key(rank) == key;
        if is_there { rank } else { rank.saturating_sub(1) }
    }

    /// How many numbers are below another. Comparisons that do not wait for each other are faster
    /// than a binary search.
    fn numbers_below(&self, number: u64) -> usize {
        let lasts = self.numbers.iter().map(|block| block[BLOCK - 1]);
        let blocks = lasts.map(|last| usize::from(last < number)).sum::<usize>();
        let Some(block) = self.numbers.get(blocks) else { return WIDTH };
        BLOCK * blocks + block.iter().map(|other| usize::from(*other < number)).sum::<usize>()
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
        self.longest.as_flattened().iter().fold(0, |longest, &bytes| longest.max(bytes))
    }

    pub(super) fn key(&self, i: usize) -> K {
        K::from_parts((self.number(i), self.ties[i]))
    }

    fn number(&self, i: usize) -> u64 {
        self.numbers.as_flattened()[i]
    }

    pub(super) fn entry(&self, i: usize) -> Entry<K> {
        Entry { key: self.key(i), bytes: self.longest.as_flattened()[i] }
    }

    pub(super) fn below(&self, i: usize) -> B {
        self.below[i]
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (Entry<K>, B)> {
        (0..self.len).map(|i| (self.entry(i), self.below[i]))
    }

    pub(super) fn set(&mut self, i: usize, entry: Entry<K>) {
        (self.numbers.as_flattened_mut()[i], self.ties[i]) = entry.key.parts();
        self.longest.as_flattened_mut()[i] = entry.bytes;
    }

    pub(super) fn insert(&mut self, i: usize, entry: Entry<K>, below: B) {
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
        self.numbers.as_flattened_mut().copy_within(from.clone(), to);
        self.ties.copy_within(from.clone(), to);
        self.longest.as_flattened_mut().copy_within(from.clone(), to);
        self.below.copy_within(from, to);
    }

    fn truncate(&mut self, len: usize) {
        self.numbers.as_flattened_mut()[len..self.len].fill(u64::MAX);
        self.longest.as_flattened_mut()[len..self.len].fill(0);
        self.len = len;
    }

    /// What the page above holds of it.
    fn bound(&self) -> Entry<K> {
        Entry { key: self.key(0), bytes: self.longest() }
    }
}

/// Pages of one kind, by number.
#[derive(Debug)]
pub(super) struct Pages<K: Key, B> {
    pages: Vec<Page<K, B>>,
    vacant: Vec<u32>,
}

impl<K: Key, B> Default for Pages<K, B> {
    fn default() -> Self {
        Self { pages: Vec::new(), vacant: Vec::new() }
    }
}

impl<K: Key, B: Copy + Default> Pages<K, B> {
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
    pub(super) fn split(&mut self, number: u32) -> (Entry<K>, Entry<K>, u32) {
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

    pub(super) fn bound(&self, number: u32) -> Entry<K> {
        self.get(number).bound()
    }

    pub(super) fn get(&self, number: u32) -> &Page<K, B> {
        &self.pages[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Page<K, B> {
        &mut self.pages[number as usize]
    }

    /// Pages that are not free.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.pages.len() - self.vacant.len()
    }
}
