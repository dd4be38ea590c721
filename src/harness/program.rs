//! The program that ages a heap: what it allocates and frees next, whatever policy serves it.

use super::distribution::{Class, Distribution, Lifetime, Sampler};
use super::lives::{Blocks, Held, Slot};

/// Sizes in a row that do not fit what is left of a class's share, after which it counts as full.
const MISFITS_IN_A_ROW: u32 = 8;

/// What the program asks of its policy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Allocate { slot: Slot, bytes: u64 },
    Free { slot: Slot },
}

/// A block that lives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Live {
    /// Where the policy has put it, once it was asked.
    pub(super) address: u64,
    pub(super) requested_bytes: u64,
    /// How many blocks were made before it.
    pub(super) made: u64,
}

/// A program: what of it lives, how it goes on. Every step is O(1), whatever lives. It never looks at
/// what the policy does with its calls, so that they can be worked out ahead of it.
pub(super) struct Program {
    distribution: Distribution,
    sampler: Sampler,
    /// Draws of the classes whose blocks end.
    draws: Vec<u64>,
    pub(super) classes: Vec<Books>,
    /// Live blocks by slot. A slot that is vacant is used again by a later call.
    live: Vec<Live>,
    vacant: Vec<Slot>,
    ended: Vec<Held>,
    made: u64,
}

/// What lives of one class.
pub(super) struct Books {
    pub(super) budget_bytes: u64,
    pub(super) live_bytes: u64,
    pub(super) blocks: Blocks,
}

/// Classes that are being filled.
pub(super) struct Filling {
    /// How many sizes in a row were too large for each class.
    misfits: Vec<u32>,
    draws: Vec<u64>,
}

impl Program {
    /// One that keeps `live_bytes` of requested bytes alive, once it is filled.
    pub(super) fn new(
        distribution: Distribution,
        live_bytes: u64,
        scale_shift: i32,
        key: u64,
    ) -> Self {
        let sampler = Sampler::new(distribution, scale_shift, key);
        let draws = sampler.draws(|_, class| class.lifetime != Lifetime::Lasting);
        let books = |class: &Class| Books {
            budget_bytes: (u128::from(live_bytes) * u128::from(class.live_percent) / 100) as u64,
            live_bytes: 0,
            blocks: Blocks::new(class.lifetime),
        };
        let classes = distribution.classes().iter().map(books).collect();
        Self {
            distribution,
            sampler,
            draws,
            classes,
            live: Vec::new(),
            vacant: Vec::new(),
            ended: Vec::new(),
            made: 0,
        }
    }

    /// The start of an allocation until each of some classes has its share.
    pub(super) fn filling(&self, is_filled: impl Fn(&Class) -> bool) -> Filling {
        let draws = self.sampler.draws(|_, class| is_filled(class));
        let full = |class| if is_filled(class) { 0 } else { MISFITS_IN_A_ROW };
        let misfits = self.distribution.classes().iter().map(full).collect();
        Filling { misfits, draws }
    }

    /// Adds one call to those that fill; whether there was one left.
    pub(super) fn fill(&mut self, filling: &mut Filling, calls: &mut Vec<Call>) -> bool {
        while let Some(class) = self.sampler.class(&filling.draws) {
            let bytes = self.sampler.size(class);
            let books = &self.classes[class];
            let misfits = &mut filling.misfits[class];
            if books.live_bytes + bytes <= books.budget_bytes {
                *misfits = 0;
                self.allocate(class, bytes, calls);
                return true;
            }
            *misfits += 1;
            if *misfits == MISFITS_IN_A_ROW {
                let misfits = &filling.misfits;
                filling.draws = self.sampler.draws(|number, _| misfits[number] < MISFITS_IN_A_ROW);
            }
        }
        false
    }

    /// Adds the calls of one step: an allocation, after freeing of its class what has to go for it.
    pub(super) fn step(&mut self, calls: &mut Vec<Call>) {
        let Some(class) = self.sampler.class(&self.draws) else { return };
        let bytes = self.sampler.size(class);
        while self.classes[class].is_full_for(bytes) {
            let books = &mut self.classes[class];
            books.blocks.end_some(&mut self.sampler, &mut self.ended);
            while let Some(Held { slot, requested_bytes }) = self.ended.pop() {
                books.live_bytes -= requested_bytes;
                self.vacant.push(slot);
                calls.push(Call::Free { slot });
            }
        }
        self.allocate(class, bytes, calls);
    }

    fn allocate(&mut self, class: usize, bytes: u64, calls: &mut Vec<Call>) {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.live.push(Live::default());
            (self.live.len() - 1) as Slot
        });
        // Its address is still that of the block before it, which may be yet to be freed.
        let live = &mut self.live[slot as usize];
        (live.requested_bytes, live.made) = (bytes, self.made);
        self.made += 1;
        let books = &mut self.classes[class];
        books.live_bytes += bytes;
        books.blocks.add(Held { slot, requested_bytes: bytes }, &mut self.sampler);
        calls.push(Call::Allocate { slot, bytes });
    }

    pub(super) fn address(&self, slot: Slot) -> u64 {
        self.live[slot as usize].address
    }

    pub(super) fn set_address(&mut self, slot: Slot, address: u64) {
        self.live[slot as usize].address = address;
    }

    /// All live blocks in the order in which they were made.
    pub(super) fn into_live(self) -> Vec<Live> {
        let held = self.classes.into_iter().flat_map(|books| books.blocks.into_all());
        let mut live: Vec<Live> = held.map(|held| self.live[held.slot as usize]).collect();
        live.sort_unstable_by_key(|live| live.made);
        live
    }
}

impl Books {
    /// Whether a block has to wait until another ends; a block beyond the whole share does not.
    #[inline]
    fn is_full_for(&self, bytes: u64) -> bool {
        self.live_bytes > 0 && self.live_bytes + bytes > self.budget_bytes
    }
}
