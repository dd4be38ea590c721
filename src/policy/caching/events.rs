//! Streams that blocks were recorded on, and freed blocks that wait for them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::blocks::Id;

/// Freed blocks in the order in which a stream has to come past them.
#[derive(Debug, Default)]
struct Queue {
    blocks: VecDeque<Id>,
    /// How many of the first ones it has come past.
    complete: usize,
}

/// Uses of live blocks, and events of pending ones.
#[derive(Debug, Default)]
pub(super) struct Events {
    uses: HashMap<Id, BTreeSet<u64>>,
    queues: BTreeMap<u64, Queue>,
    complete: usize,
}

impl Events {
    /// Notes that `stream` uses the block, which is of another stream.
    pub(super) fn record(&mut self, id: Id, stream: u64) {
        self.uses.entry(id).or_default().insert(stream);
    }

    /// The block is freed: an event for each stream that uses it. Returns how many.
    pub(super) fn insert(&mut self, id: Id) -> u32 {
        // Most programs record nothing.
        if self.uses.is_empty() {
            return 0;
        }
        let streams = self.uses.remove(&id).unwrap_or_default();
        for &stream in &streams {
            self.queues.entry(stream).or_default().blocks.push_back(id);
        }
        streams.len() as u32
    }

    /// The stream has come past all its events so far.
    pub(super) fn complete(&mut self, stream: u64) {
        if let Some(queue) = self.queues.get_mut(&stream) {
            self.complete += queue.blocks.len() - queue.complete;
            queue.complete = queue.blocks.len();
        }
    }

    pub(super) fn complete_all(&mut self) {
        let streams: Vec<u64> = self.queues.keys().copied().collect();
        streams.into_iter().for_each(|stream| self.complete(stream));
    }

    /// Whether [`take_complete`](Self::take_complete) has anything.
    #[inline]
    pub(super) fn any_complete(&self) -> bool {
        self.complete > 0
    }

    /// Takes the events that are complete, by stream: a block for each.
    pub(super) fn take_complete(&mut self) -> Vec<Id> {
        let mut taken = Vec::with_capacity(self.complete);
        for queue in self.queues.values_mut() {
            taken.extend(queue.blocks.drain(..queue.complete));
            queue.complete = 0;
        }
        self.queues.retain(|_, queue| !queue.blocks.is_empty());
        self.complete = 0;
        taken
    }

    /// Events that are outstanding.
    pub(super) fn outstanding(&self) -> usize {
        self.queues.values().map(|queue| queue.blocks.len()).sum()
    }
}
