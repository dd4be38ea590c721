//! One group before it is measured.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::kernel::{COPY_BACK_BYTES, GUARD_BYTES};
use crate::layout::{Layout, LayoutError, UNIT_BYTES};
use crate::measure::Budget;
use crate::record::{
    Clocks, Experiment, Group, KernelName, Mechanism, PatternName, Phases, Status, size,
};

/// A group that is to be measured. Nothing in it depends on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The experiment.
    pub experiment: Experiment,
    /// The access kernel, or `ceiling`.
    pub kernel: KernelName,
    /// The layout's pattern.
    pub pattern: PatternName,
    /// Length of a fragment in bytes; none for ceilings.
    pub fragment_bytes: Option<u64>,
    /// The footprint in bytes.
    pub footprint_bytes: u64,
    /// The payload in bytes.
    pub payload_bytes: u64,
    /// The half-width of the ratio's interval that is aimed at, in parts per million.
    pub target_half_width_ppm: Option<u32>,
    /// The time that the rounds may take, in milliseconds.
    pub rounds_ms: u64,
}

impl Plan {
    /// The case id: nothing in it is derived from the device or the seed.
    pub fn case(&self) -> String {
        let mut case =
            format!("{}/kernel={}/pattern={}", self.experiment, self.kernel, self.pattern);
        if let Some(bytes) = self.fragment_bytes {
            case += &format!("/fragment={}", size::exact(bytes));
        }
        case + &format!("/footprint={}", size::exact(self.footprint_bytes))
    }

    /// The layout that it asks for.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] where the sizes do not fit each other.
    pub fn layout(&self, seed: u64) -> Result<Layout, LayoutError> {
        let fragment = self.fragment_bytes.unwrap_or(UNIT_BYTES);
        let pattern = self.pattern.clone();
        Layout::new(pattern, fragment, self.footprint_bytes, self.payload_bytes, seed)
    }

    /// Whether a destination is written.
    pub fn writes(&self) -> bool {
        matches!(self.kernel, KernelName::Copy | KernelName::GatherCopy | KernelName::Ceiling)
    }

    /// Bytes beside the footprint: destination and guard, or the staging of what is copied back;
    /// and the index of three arms.
    pub fn extra_bytes(&self) -> u64 {
        let written = match self.writes() {
            true => self.payload_bytes + GUARD_BYTES,
            false => self.payload_bytes.min(COPY_BACK_BYTES),
        };
        let index = self
            .layout(0)
            .ok()
            .filter(|_| self.fragment_bytes.is_some())
            .map_or(0, |layout| 3 * layout.fragments() * u64::from(layout.index_entry_bytes()));
        // Sums, events and the allocator's own rounding.
        const SMALL_CHANGE: u64 = 16 << 20;
        written + index + SMALL_CHANGE
    }

    /// Device memory that the group takes at its peak, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.footprint_bytes + self.extra_bytes()
    }

    /// A rough guess of the group's wall time on a device of this memory bandwidth, in bytes a
    /// second: data and verification touch the footprint and the payload a few times each.
    pub fn estimate(&self, bytes_per_s: f64) -> Duration {
        let touched = 3 * self.footprint_bytes + 40 * self.payload_bytes;
        Duration::from_secs_f64(0.2 + touched as f64 / bytes_per_s)
            + Duration::from_millis(self.rounds_ms / 2)
    }

    pub(super) fn budget(&self) -> Budget {
        Budget {
            target_half_width_ppm: self.target_half_width_ppm,
            time: Duration::from_millis(self.rounds_ms),
        }
    }

    /// The group's record before anything was measured, with this status and reason.
    pub fn record(&self, status: Status, reason: Option<String>) -> Group {
        let mechanism = match self.pattern {
            PatternName::Contiguous => Mechanism::None,
            _ => Mechanism::Indirect,
        };
        Group {
            case: self.case(),
            experiment: self.experiment.clone(),
            mechanism,
            kernel: self.kernel.clone(),
            pattern: self.pattern.clone(),
            fragment_bytes: self.fragment_bytes,
            alignment_bytes: self.fragment_bytes,
            footprint_bytes: self.footprint_bytes,
            payload_bytes: self.payload_bytes,
            layout: None,
            status,
            reason,
            arms: Vec::new(),
            checks: Vec::new(),
            held: None,
            void_samples: 0,
            pilot_rounds: 0,
            stop: None,
            target_half_width_ppm: self.target_half_width_ppm,
            clocks: Clocks::default(),
            phases: Phases::default(),
            extra: Map::new(),
        }
    }
}
