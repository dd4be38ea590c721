//! Lists that any of their nodes can leave.

/// No node.
const NONE: u32 = u32::MAX;

/// Doubly linked lists of nodes that are numbers, each node on one list at most. The last that came
/// is the first.
#[derive(Default)]
pub(super) struct Lists {
    first: Vec<u32>,
    links: Vec<Link>,
}

#[derive(Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
}

impl Lists {
    /// So many lists, all empty.
    pub(super) fn new(lists: usize) -> Self {
        Self { first: vec![NONE; lists], links: Vec::new() }
    }

    /// The first node of a list.
    pub(super) fn first(&self, list: usize) -> Option<u32> {
        Some(self.first[list]).filter(|&node| node != NONE)
    }

    /// Puts a node, which is on none, in front of a list.
    pub(super) fn push(&mut self, list: usize, node: u32) {
        if node as usize >= self.links.len() {
            self.links.resize(node as usize + 1, Link { before: NONE, after: NONE });
        }
        let after = std::mem::replace(&mut self.first[list], node);
        self.links[node as usize] = Link { before: NONE, after };
        if after != NONE {
            self.links[after as usize].before = node;
        }
    }

    /// Takes a node off the list that it is on.
    pub(super) fn remove(&mut self, list: usize, node: u32) {
        let Link { before, after } = self.links[node as usize];
        match before {
            NONE => self.first[list] = after,
            before => self.links[before as usize].after = after,
        }
        if after != NONE {
            self.links[after as usize].before = before;
        }
    }

    /// The nodes of a list, the first first.
    pub(super) fn nodes(&self, list: usize) -> impl Iterator<Item = u32> {
        let next =
            |&node: &u32| Some(self.links[node as usize].after).filter(|&after| after != NONE);
        std::iter::successors(self.first(list), next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_leave_from_anywhere() {
        let mut lists = Lists::new(2);
        for node in [3, 0, 5, 1] {
            lists.push(0, node);
        }
        lists.push(1, 4);
        let all = |lists: &Lists| lists.nodes(0).collect::<Vec<u32>>();
        assert_eq!(all(&lists), [1, 5, 0, 3]);
        lists.remove(0, 5);
        lists.remove(0, 3);
        lists.remove(0, 1);
        lists.push(0, 5);
        assert_eq!(all(&lists), [5, 0]);
        lists.remove(0, 0);
        lists.remove(0, 5);
        assert_eq!((lists.first(0), lists.first(1)), (None, Some(4)));
    }
}
