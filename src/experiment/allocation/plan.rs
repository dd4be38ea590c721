//! One case of an allocator before it is measured.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::{Allocator, Factor, Freed, classic};
use crate::record::{Allocation, Experiment, MemoryKind, Phases, Status, size};

/// What is asked of an allocator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Study {
    /// Ten blocks of which any may have been freed, and a request of 512 MiB.
    Classic,
    /// A window full of blocks, half of them freed: what that is worth.
    Capacity {
        /// The blocks' length, in bytes.
        block_bytes: u64,
        /// Which of them are freed.
        freed: Freed,
        /// The window, in bytes; none for all of the device.
        window_bytes: Option<u64>,
    },
    /// What requests of many lengths take.
    Granule,
    /// How long calls take.
    Latency {
        /// What is different from the base state.
        factor: Factor,
        /// The blocks' length, in bytes.
        request_bytes: u64,
        /// Samples of each call. No part of the case: a suite says how many.
        samples: u32,
    },
}

/// A case of an allocator that is to be measured. Nothing in it depends on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocationPlan {
    /// What is asked.
    pub study: Study,
    /// The allocator.
    pub allocator: Allocator,
    /// Whose memory it hands out.
    pub memory: MemoryKind,
}

impl AllocationPlan {
    /// The experiment.
    pub fn experiment(&self) -> Experiment {
        match self.study {
            Study::Classic => Experiment::Classic,
            Study::Capacity { .. } => Experiment::Capacity,
            Study::Granule => Experiment::Granule,
            Study::Latency { .. } => Experiment::Latency,
        }
    }

    /// The case id: nothing in it is derived from the device or the seed.
    pub fn case(&self) -> String {
        let Self { allocator, memory, .. } = self;
        let keys = match &self.study {
            Study::Classic | Study::Granule => String::new(),
            Study::Capacity { block_bytes, freed, window_bytes } => {
                let window = window_bytes.map_or_else(|| "device".to_owned(), size::exact);
                let block = size::exact(*block_bytes);
                format!("/block={block}/freed={}/window={window}", freed.name())
            }
            Study::Latency { factor, request_bytes, .. } => {
                format!("/state={factor}/request={}", size::exact(*request_bytes))
            }
        };
        format!("{}/allocator={allocator}/memory={memory}{keys}", self.experiment())
    }

    /// Whether it uses a device at all.
    pub fn is_on_device(&self) -> bool {
        self.memory == MemoryKind::Device
    }

    /// Whether it fills the device, so that nobody else may be on it.
    pub fn fills_device(&self) -> bool {
        let fills = match self.study {
            Study::Classic | Study::Capacity { .. } => true,
            Study::Granule => false,
            Study::Latency { factor, .. } => factor.is_tight(),
        };
        fills && self.is_on_device()
    }

    /// Device memory that it needs at least, in bytes; where it fills the device, what else is free
    /// is taken by ballast.
    pub fn memory_bytes(&self) -> u64 {
        if !self.is_on_device() {
            return 0;
        }
        match self.study {
            Study::Classic => classic::blocks_bytes(),
            Study::Capacity { window_bytes, .. } => window_bytes.unwrap_or(1 << 30),
            Study::Granule => 4 << 30,
            Study::Latency { factor, request_bytes, samples } => {
                let sampled = match factor {
                    Factor::Fill => request_bytes.saturating_mul(u64::from(samples)),
                    Factor::Threads { count } => u64::from(count) * request_bytes,
                    Factor::LargeFree => request_bytes + (1 << 30),
                    _ => request_bytes,
                };
                factor.bytes().saturating_add(sampled)
            }
        }
    }

    /// A rough guess of its wall time: a process of its own, and calls of 100 us.
    pub fn estimate(&self) -> Duration {
        if !self.is_on_device() {
            return Duration::from_millis(50);
        }
        let calls = match self.study {
            Study::Classic => 60_000,
            Study::Capacity { block_bytes, window_bytes, .. } => {
                4 * (window_bytes.unwrap_or(128 << 30) / block_bytes).min(1 << 17)
            }
            Study::Granule => 80_000,
            Study::Latency { factor, request_bytes, samples } => {
                let long = 1 + request_bytes / (128 << 20);
                2 * factor.blocks() + 2 * u64::from(samples) * long
            }
        };
        Duration::from_secs(2) + Duration::from_micros(100 * calls)
    }

    /// Its record before anything was measured, with this status and reason.
    pub fn record(&self, status: Status, reason: Option<String>) -> Allocation {
        let (state, request_bytes) = match self.study {
            Study::Latency { factor, request_bytes, .. } => {
                (Some(factor.to_string()), Some(request_bytes))
            }
            Study::Capacity { block_bytes, freed, .. } => {
                (Some(format!("{}.{}", freed.name(), size::exact(block_bytes))), None)
            }
            Study::Classic => (None, Some(classic::REQUEST_BYTES)),
            Study::Granule => (None, None),
        };
        Allocation {
            case: self.case(),
            process: 0,
            experiment: self.experiment(),
            allocator: self.allocator.to_string(),
            memory: self.memory.clone(),
            asked_state: state,
            request_bytes,
            status,
            reason,
            lost: None,
            free_bytes: None,
            subsets: None,
            quantities: Vec::new(),
            state: None,
            calls: Vec::new(),
            condition: None,
            phases: Phases::default(),
            extra: Map::new(),
        }
    }
}
