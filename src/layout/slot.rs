//! The closed form: where one fragment lies.

use super::{Layout, Pattern, Permutation, below, draw};
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
    /// A random slot of stride `i`.
    OneOfStride(OneOfStride),
    /// A random slot of a stride that no other fragment has.
    Permuted(OneOfStride, &'a Permutation),
    /// Any slot.
    Any { key: u64, slots: u64 },
    /// Any slot, in address order: no closed form.
    AnySorted { key: u64, slots: u64 },
}

pub(super) struct OneOfStride {
    key: u64,
    stride: u64,
}

impl OneOfStride {
    #[inline]
    pub(super) fn slot(&self, k: u64) -> u64 {
        k * self.stride + below(draw(self.key, k), self.stride)
    }
}

#[inline]
pub(super) fn any_slot(key: u64, slots: u64, i: u64) -> u64 {
    below(draw(key, i), slots)
}

impl Layout {
    /// The rule of an order, or `None` for an order of another version.
    pub(super) fn rule(&self, order: &Order) -> Option<Rule<'_>> {
        let sorted = match order {
            Order::Packed => return Some(Rule::Identity),
            Order::Sorted => true,
            Order::Scattered => false,
            Order::Other(_) => return None,
        };
        let stride = self.stride();
        // The permutation draws from the key itself: the complement keeps the two apart.
        let key = !self.key;
        let slots = self.slots();
        Some(match (self.pattern, sorted) {
            (Pattern::Contiguous, _) => Rule::Identity,
            (Pattern::Strided, _) => Rule::First { stride },
            (Pattern::Shuffled, true) => Rule::OneOfStride(OneOfStride { key, stride }),
            (Pattern::Shuffled, false) => {
                Rule::Permuted(OneOfStride { key, stride }, &self.permutation)
            }
            (Pattern::Random, true) => Rule::AnySorted { key, slots },
            (Pattern::Random, false) => Rule::Any { key, slots },
        })
    }

    /// The slot of the fragment that is visited as the `i`-th, from 0, in this order.
    ///
    /// `None` behind the last fragment, for an order of another version, and for a sorted random
    /// layout, whose slots follow only from the whole [index](Layout::index).
    pub fn slot(&self, order: &Order, i: u64) -> Option<u64> {
        if i >= self.fragments() {
            return None;
        }
        match self.rule(order)? {
            Rule::Identity => Some(i),
            Rule::First { stride } => Some(i * stride),
            Rule::OneOfStride(choice) => Some(choice.slot(i)),
            Rule::Permuted(choice, permutation) => Some(choice.slot(permutation.apply(i))),
            Rule::Any { key, slots } => Some(any_slot(key, slots, i)),
            Rule::AnySorted { .. } => None,
        }
    }

    /// The bytes of that fragment; `None` where [`slot`](Layout::slot) is.
    pub fn fragment(&self, order: &Order, i: u64) -> Option<Fragment> {
        let slot = self.slot(order, i)?;
        Some(Fragment { offset: slot * self.fragment_bytes(), bytes: self.fragment_bytes() })
    }
}
