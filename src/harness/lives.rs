//! Blocks that live, by how they end.

use super::distribution::{Lifetime, Sampler};

/// What a live block is called by.
pub(super) type Slot = u32;

/// A live block as its class holds it: packed, so that of many more stay in a core's cache.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub(super) struct Held {
    pub(super) slot: Slot,
    pub(super) requested_bytes: u64,
}

/// Blocks of one class. Every step is O(1) for each block that ends, whatever lives.
pub(super) enum Blocks {
    Lasting(Vec<Held>),
    Reverse(Vec<Held>),
    Memoryless(Vec<Held>),
    Together { groups: Vec<Vec<Held>>, open: Vec<Held>, wanted: u64, least: u64, most: u64 },
}

impl Blocks {
    pub(super) fn new(lifetime: Lifetime) -> Self {
        match lifetime {
            Lifetime::Lasting => Blocks::Lasting(Vec::new()),
            Lifetime::Reverse => Blocks::Reverse(Vec::new()),
            Lifetime::Memoryless => Blocks::Memoryless(Vec::new()),
            Lifetime::Together { least_blocks: least, most_blocks: most } => {
                Blocks::Together { groups: Vec::new(), open: Vec::new(), wanted: 0, least, most }
            }
        }
    }

    #[inline]
    pub(super) fn add(&mut self, held: Held, sampler: &mut Sampler) {
        match self {
            Blocks::Lasting(blocks) | Blocks::Reverse(blocks) | Blocks::Memoryless(blocks) => {
                blocks.push(held);
            }
            Blocks::Together { groups, open, wanted, least, most } => {
                if open.is_empty() {
                    *wanted = *least + sampler.below(*most - *least + 1);
                }
                open.push(held);
                if open.len() as u64 >= *wanted {
                    groups.push(std::mem::take(open));
                }
            }
        }
    }

    /// Moves those that end next to `ended`, the last to be freed first.
    #[inline]
    pub(super) fn end_some(&mut self, sampler: &mut Sampler, ended: &mut Vec<Held>) {
        match self {
            Blocks::Lasting(_) => {}
            Blocks::Reverse(blocks) => {
                let depth = sampler.below(blocks.len() as u64) as usize;
                ended.extend(blocks.drain(depth..));
            }
            Blocks::Memoryless(blocks) => {
                let any = sampler.below(blocks.len() as u64) as usize;
                ended.push(blocks.swap_remove(any));
            }
            Blocks::Together { groups, open, .. } => {
                let any = sampler.below(groups.len() as u64) as usize;
                let group = if groups.is_empty() { open } else { &mut groups.swap_remove(any) };
                ended.extend(group.drain(..).rev());
            }
        }
    }

    pub(super) fn into_all(self) -> Vec<Held> {
        match self {
            Blocks::Lasting(blocks) | Blocks::Reverse(blocks) | Blocks::Memoryless(blocks) => {
                blocks
            }
            Blocks::Together { groups, open, .. } => {
                groups.into_iter().flatten().chain(open).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Distribution;
    use super::*;

    fn sampler() -> Sampler {
        Sampler::new(Distribution::Uniform, 0, 11)
    }

    /// What ends next, in the order in which it is freed.
    fn end(blocks: &mut Blocks, sampler: &mut Sampler) -> Vec<Slot> {
        let mut ended = Vec::new();
        blocks.end_some(sampler, &mut ended);
        ended.iter().rev().map(|held| held.slot).collect()
    }

    fn filled(lifetime: Lifetime, sampler: &mut Sampler) -> Blocks {
        let mut blocks = Blocks::new(lifetime);
        (0..1000).for_each(|made| blocks.add(Held { slot: made, requested_bytes: 16 }, sampler));
        blocks
    }

    #[test]
    fn activations_end_the_newest_first() {
        let mut sampler = sampler();
        let mut blocks = filled(Lifetime::Reverse, &mut sampler);
        let mut left = 1000;
        while left > 0 {
            let ended = end(&mut blocks, &mut sampler);
            let expected: Vec<Slot> = (left - ended.len() as Slot..left).rev().collect();
            assert_eq!(ended, expected);
            left -= ended.len() as Slot;
        }
    }

    #[test]
    fn a_group_ends_as_a_whole_and_others_stay() {
        let mut sampler = sampler();
        let lifetime = Lifetime::Together { least_blocks: 5, most_blocks: 9 };
        let mut blocks = filled(lifetime, &mut sampler);
        let mut firsts = Vec::new();
        let mut seen = 0;
        while seen < 1000 {
            let group = end(&mut blocks, &mut sampler);
            assert!(group.windows(2).all(|two| two[0] + 1 == two[1]), "{group:?}");
            // The open group, which is the last to end, may be shorter.
            seen += group.len();
            assert!((5..=9).contains(&group.len()) || seen == 1000, "{group:?}");
            firsts.push(group[0]);
        }
        assert!(!firsts.is_sorted());
    }

    #[test]
    fn memoryless_blocks_end_one_by_one_whatever_their_age() {
        let mut sampler = sampler();
        let mut blocks = filled(Lifetime::Memoryless, &mut sampler);
        let ended: Vec<Vec<Slot>> = (0..1000).map(|_| end(&mut blocks, &mut sampler)).collect();
        assert!(ended.iter().all(|ended| ended.len() == 1));
        // Of the first half to end, half are old: 250 expected, deviation 11.
        let old = ended[..500].iter().filter(|ended| ended[0] < 500).count();
        assert!((200..300).contains(&old), "{old}");
        let mut all: Vec<Slot> = ended.into_iter().flatten().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1000));
    }
}
