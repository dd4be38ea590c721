//! The journal: JSON Lines, the run first, then a line per group.
