//! Blocks that know their neighbours in address.

/// A block's index.
pub(super) type Id = u32;

/// No block.
pub(super) const NONE: Id = Id::MAX;

/// A block: a range of addresses, and what a policy knows of it.
#[derive(Clone, Debug)]
pub(super) struct Link<T> {
    pub(super) address: u64,
    /// 0 where the index is to be used again.
    pub(super) bytes: u64,
    /// The blocks that end where it begins, and begin where it ends.
    pub(super) prev: Id,
    pub(super) next: Id,
    pub(super) tag: T,
}

impl<T> Link<T> {
    pub(super) fn end(&self) -> u64 {
        self.address + self.bytes
    }

    /// Whether it is a part of something.
    pub(super) fn is_split(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }
}

/// Blocks linked with their neighbours (boundary tags: Knuth, TAOCP volume 1, section 2.5), so that a
/// freed one finds these without a search. Indexes of blocks that are gone are used again.
#[derive(Debug)]
pub(super) struct Chain<T> {
    links: Vec<Link<T>>,
    gone: Vec<Id>,
}

impl<T> Default for Chain<T> {
    fn default() -> Self {
        Self { links: Vec::new(), gone: Vec::new() }
    }
}

impl<T: Clone> Chain<T> {
    /// Adds a block without neighbours.
    pub(super) fn add(&mut self, address: u64, bytes: u64, tag: T) -> Id {
        self.put(Link { address, bytes, prev: NONE, next: NONE, tag })
    }

    /// Cuts the block after `bytes` bytes and returns the part behind, which is otherwise the same.
    pub(super) fn split(&mut self, id: Id, bytes: u64) -> Id {
        let front = &mut self[id];
        let mut back = front.clone();
        front.bytes = bytes;
        back.address += bytes;
        back.bytes -= bytes;
        back.prev = id;
        let next = back.next;
        let back = self.put(back);
        self[id].next = back;
        if next != NONE {
            self[next].prev = back;
        }
        back
    }

    fn put(&mut self, link: Link<T>) -> Id {
        match self.gone.pop() {
            Some(id) => {
                self[id] = link;
                id
            }
            None => {
                self.links.push(link);
                (self.links.len() - 1) as Id
            }
        }
    }
}

impl<T> Chain<T> {
    /// Links two blocks, of which one ends where the other begins.
    pub(super) fn link(&mut self, before: Id, after: Id) {
        self[before].next = after;
        self[after].prev = before;
    }

    /// Forgets a block; its neighbours have none there then.
    pub(super) fn remove(&mut self, id: Id) {
        let Link { prev, next, .. } = self[id];
        if prev != NONE {
            self[prev].next = NONE;
        }
        if next != NONE {
            self[next].prev = NONE;
        }
        self.forget(id);
    }

    /// Joins a block with the one behind it, which is gone then.
    pub(super) fn join_next(&mut self, id: Id) {
        let gone = self[id].next;
        let Link { bytes, next, .. } = self[gone];
        self[id].bytes += bytes;
        self[id].next = next;
        if next != NONE {
            self[next].prev = id;
        }
        self.forget(gone);
    }

    /// Joins a block with the one before it, which is gone then.
    pub(super) fn join_prev(&mut self, id: Id) {
        let gone = self[id].prev;
        let Link { address, bytes, prev, .. } = self[gone];
        self[id].address = address;
        self[id].bytes += bytes;
        self[id].prev = prev;
        if prev != NONE {
            self[prev].next = id;
        }
        self.forget(gone);
    }

    /// The block, unless it is none.
    pub(super) fn get(&self, id: Id) -> Option<&Link<T>> {
        (id != NONE).then(|| &self[id])
    }

    /// All that are not gone, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &Link<T>)> {
        let all = self.links.iter().enumerate().map(|(id, link)| (id as Id, link));
        all.filter(|(_, link)| link.bytes > 0)
    }

    fn forget(&mut self, id: Id) {
        self[id].bytes = 0;
        self.gone.push(id);
    }
}

impl<T> std::ops::Index<Id> for Chain<T> {
    type Output = Link<T>;

    #[inline]
    fn index(&self, id: Id) -> &Link<T> {
        &self.links[id as usize]
    }
}

impl<T> std::ops::IndexMut<Id> for Chain<T> {
    #[inline]
    fn index_mut(&mut self, id: Id) -> &mut Link<T> {
        &mut self.links[id as usize]
    }
}
