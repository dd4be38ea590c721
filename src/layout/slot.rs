//! The closed form: where one fragment lies.

use super::{Layout, Pattern, Permutation, below, draw, mix};
use crate::record::Order;

/// A run of bytes in an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// Distance from the begin of the arena, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// How the slot of a fragment follows from its number.
pub(super) enum Rule<'a> {
    /// Slot `i`.
    Identity,
    /// The first slot of stride `i`.
    First { stride: u64 },
    /// A random slot of a stride.
    OneOfStride(OneOfStride, Turn<'a>),
    /// Every other slot.
    EveryOther(Turn<'a>),
    /// Any slot.
    Any { key: u64, slots: u64 },
    /// The slots that a permutation of all slots takes first.
    Free(&'a Permutation),
}

/// In which order strides are visited.
pub(super) enum Turn<'a> {
    /// In address order.
    Sorted,
    /// Permuted.
    Permuted(&'a Permutation),
    /// Permuted within each window of so many fragments.
    Windowed { key: u64, window: u64, fragments: u64 },
}

impl Turn<'_> {
    #[inline]
    fn of(&self, i: u64) -> u64 {
        match *self {
            Turn::Sorted => i,
            Turn::Permuted(permutation) => permutation.apply(i),
            Turn::Windowed { key, window, fragments } => {
                let number = i / window;
                let first = number * window;
                let size = window.min(fragments - first);
                first + Permutation::new(mix(key ^ (number + 1)), size).apply(i - first)
            }
        }
    }
}

pub(super) struct OneOfStride {
    key: u64,
    stride: u64,
}

impl OneOfStride {
    #[inline]
    fn slot(&self, k: u64) -> u64 {
        k * self.stride + below(draw(self.key, k), self.stride)
    }
}

impl Rule<'_> {
    /// The slot of fragment `i`.
    #[inline]
    pub(super) fn slot(&self, i: u64) -> u64 {
        match self {
            Rule::Identity => i,
            Rule::First { stride } => i * stride,
            Rule::OneOfStride(choice, turn) => choice.slot(turn.of(i)),
            Rule::EveryOther(turn) => 2 * turn.of(i),
            Rule::Any { key, slots } => below(draw(*key, i), *slots),
            Rule::Free(permutation) => permutation.apply(i),
        }
    }
}

impl Layout {
    /// The rule of an order, and whether its slots have to be sorted afterwards; `None` for an order
    /// of another version.
    pub(super) fn rule(&self, order: &Order) -> Option<(Rule<'_>, bool)> {
        let sorted = match order {
            Order::Packed => return Some((Rule::Identity, false)),
            Order::Sorted => true,
            Order::Scattered => false,
            Order::Other(_) => return None,
        };
        let stride = self.stride();
        let turn = match self.window() {
            _ if sorted => Turn::Sorted,
            Some(window) => Turn::Windowed { key: self.key, window, fragments: self.fragments() },
            None => Turn::Permuted(&self.permutation),
        };
        // The permutation draws from the key itself: the complement keeps the two apart.
        let key = !self.key;
        let rule = match self.pattern() {
            Pattern::Contiguous => Rule::Identity,
            Pattern::Strided { .. } => Rule::First { stride },
            Pattern::Shuffled { .. } => Rule::OneOfStride(OneOfStride { key, stride }, turn),
            Pattern::Random => Rule::Any { key, slots: self.slots() },
            Pattern::Checkerboard => Rule::EveryOther(turn),
            Pattern::Holes { .. } => Rule::Free(&self.permutation),
        };
        Some((rule, sorted && !self.pattern().has_sorted_form()))
    }

    /// The slot of the fragment that is visited as the `i`-th, from 0, in this order.
    ///
    /// `None` behind the last fragment, for an order of another version, and in address order for
    /// patterns [without a closed form](Pattern::has_sorted_form) there, whose slots follow only
    /// from the whole [index](Layout::index).
    pub fn slot(&self, order: &Order, i: u64) -> Option<u64> {
        let (rule, needs_sorting) = self.rule(order)?;
        (i < self.fragments() && !needs_sorting).then(|| rule.slot(i))
    }

    /// The bytes of that fragment; `None` where [`slot`](Layout::slot) is.
    pub fn fragment(&self, order: &Order, i: u64) -> Option<Fragment> {
        let offset = self.spec.offset_bytes + self.slot(order, i)? * self.fragment_bytes();
        Some(Fragment { offset, bytes: self.fragment_bytes() })
    }
}
