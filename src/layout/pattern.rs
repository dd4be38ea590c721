//! Patterns, with what their names leave open.

use serde::{Deserialize, Serialize};

use super::LayoutError;
use crate::record::{Mechanism, PatternName, Refined, size};

/// The recipe of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Pattern {
    /// Fragment after fragment.
    Contiguous,
    /// The first slot of each stride.
    Strided {
        /// Slots of a stride; none where it follows from footprint and payload.
        stride: Option<u64>,
    },
    /// One random slot of each stride, in permuted order.
    Shuffled {
        /// Bytes of footprint that the order stays within; none where it goes over all of it.
        window_bytes: Option<u64>,
    },
    /// Any slot, with replacement.
    Random,
    /// Every other slot, in permuted order.
    Checkerboard,
    /// The free slots of a random occupancy, in permuted order.
    Holes {
        /// How many of 100 slots are occupied: 1 to 99.
        occupancy_percent: u32,
    },
}

impl Pattern {
    /// The strided pattern whose stride follows from footprint and payload.
    pub const STRIDED: Pattern = Pattern::Strided { stride: None };
    /// The shuffle over the whole footprint.
    pub const SHUFFLED: Pattern = Pattern::Shuffled { window_bytes: None };

    /// The pattern's name in the vocabulary.
    pub fn name(self) -> PatternName {
        match self {
            Pattern::Contiguous => PatternName::Contiguous,
            Pattern::Strided { .. } => PatternName::Strided,
            Pattern::Shuffled { .. } => PatternName::Shuffled,
            Pattern::Random => PatternName::Random,
            Pattern::Checkerboard => PatternName::Checkerboard,
            Pattern::Holes { .. } => PatternName::Holes,
        }
    }

    /// The name with what it leaves open, and how far its slots lie behind an aligned address:
    /// `holes.occupancy_50`, `shuffled.window_2MiB.offset_4B`.
    pub fn refined(self, offset_bytes: u64) -> Refined<PatternName> {
        let own = match self {
            Pattern::Strided { stride: Some(stride) } => Some(format!("stride_{stride}")),
            Pattern::Shuffled { window_bytes: Some(bytes) } => {
                Some(format!("window_{}", size::exact(bytes)))
            }
            Pattern::Holes { occupancy_percent } => Some(format!("occupancy_{occupancy_percent}")),
            _ => None,
        };
        let offset = (offset_bytes > 0).then(|| format!("offset_{}", size::exact(offset_bytes)));
        let parts: Vec<String> = own.into_iter().chain(offset).collect();
        let refinement = (!parts.is_empty()).then(|| parts.join("."));
        Refined { base: self.name(), refinement }
    }

    /// Reads what [`refined`](Pattern::refined) writes: the pattern and the offset in bytes.
    ///
    /// # Errors
    ///
    /// [`LayoutError::UnknownPattern`] where the text is no pattern, and
    /// [`LayoutError::Refinement`] where its refinement is not one of that pattern.
    pub fn parse(name: &Refined<PatternName>) -> Result<(Pattern, u64), LayoutError> {
        let mut pattern = match name.base {
            PatternName::Contiguous => Pattern::Contiguous,
            PatternName::Strided => Pattern::STRIDED,
            PatternName::Shuffled => Pattern::SHUFFLED,
            PatternName::Random => Pattern::Random,
            PatternName::Checkerboard => Pattern::Checkerboard,
            PatternName::Holes => Pattern::Holes { occupancy_percent: 50 },
            PatternName::Aged | PatternName::Preset | PatternName::Other(_) => {
                return Err(LayoutError::UnknownPattern(name.base.clone()));
            }
        };
        let mut offset_bytes = 0;
        for part in name.refinement.iter().flat_map(|text| text.split('.')) {
            let refused =
                || LayoutError::Refinement { pattern: name.base.clone(), part: part.to_owned() };
            let (key, value) = part.split_once('_').ok_or_else(refused)?;
            let number = || value.parse::<u64>().map_err(|_| refused());
            let bytes = || size::parse(value).map_err(|_| refused());
            match (key, &mut pattern) {
                ("offset", _) => offset_bytes = bytes()?,
                ("stride", Pattern::Strided { stride }) => *stride = Some(number()?),
                ("window", Pattern::Shuffled { window_bytes }) => *window_bytes = Some(bytes()?),
                ("occupancy", Pattern::Holes { occupancy_percent }) => {
                    *occupancy_percent = u32::try_from(number()?).map_err(|_| refused())?;
                }
                _ => return Err(refused()),
            }
        }
        Ok((pattern, offset_bytes))
    }

    /// What the pattern stands for: nothing where it is contiguous, else rows behind an index.
    pub fn mechanism(self) -> Mechanism {
        match self {
            Pattern::Contiguous => Mechanism::None,
            _ => Mechanism::Indirect,
        }
    }

    /// The most fragments that lie in so many slots.
    pub fn capacity(self, slots: u64) -> u64 {
        match self {
            Pattern::Strided { stride: Some(stride) } => slots / stride.max(1),
            Pattern::Checkerboard => slots / 2,
            Pattern::Holes { occupancy_percent } => {
                let free = u128::from(100u32.saturating_sub(occupancy_percent));
                (u128::from(slots) * free / 100) as u64
            }
            _ => slots,
        }
    }

    /// Whether the pattern says how many fragments there are, and no fewer will do.
    pub fn fills_its_capacity(self) -> bool {
        matches!(self, Pattern::Checkerboard | Pattern::Holes { .. })
    }

    /// Whether slots in address order follow from a closed form.
    pub fn has_sorted_form(self) -> bool {
        !matches!(self, Pattern::Random | Pattern::Holes { .. })
    }

    /// Whether a slot may be taken more than once.
    pub fn repeats(self) -> bool {
        self == Pattern::Random
    }

    /// The pattern's number in `cuda/fragment.h` and in the layout's key.
    pub(super) fn code(self) -> u64 {
        match self {
            Pattern::Contiguous => 0,
            Pattern::Strided { .. } => 1,
            Pattern::Shuffled { .. } => 2,
            Pattern::Random => 3,
            Pattern::Checkerboard => 4,
            Pattern::Holes { .. } => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let patterns = [
            Pattern::Contiguous,
            Pattern::STRIDED,
            Pattern::Strided { stride: Some(16) },
            Pattern::SHUFFLED,
            Pattern::Shuffled { window_bytes: Some(2 << 20) },
            Pattern::Random,
            Pattern::Checkerboard,
            Pattern::Holes { occupancy_percent: 90 },
        ];
        for pattern in patterns {
            for offset in [0, 4, 64] {
                let name = pattern.refined(offset);
                assert_eq!(Pattern::parse(&name), Ok((pattern, offset)), "{name}");
                assert_eq!(Refined::parse(&name.to_string()), name);
            }
        }
        let window = Pattern::Shuffled { window_bytes: Some(2 << 20) };
        assert_eq!(window.refined(4).to_string(), "shuffled.window_2MiB.offset_4B");
    }

    #[test]
    fn foreign_refinements_are_refused() {
        for text in ["zigzag", "holes.stride_2", "shuffled.window", "random.offset_x", "strided."] {
            assert!(Pattern::parse(&Refined::parse(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn capacities_follow_from_the_recipe() {
        assert_eq!(Pattern::Checkerboard.capacity(7), 3);
        assert_eq!(Pattern::Holes { occupancy_percent: 90 }.capacity(1005), 100);
        assert_eq!(Pattern::Strided { stride: Some(4) }.capacity(9), 2);
        assert_eq!(Pattern::Random.capacity(9), 9);
    }
}
