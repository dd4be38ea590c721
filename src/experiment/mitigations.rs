//! What is done against misses of the TLB, each beside the gather that it is done for.

use super::Plan;
use super::arms::Ground;
use super::fragments::{Directory, Fragments};
use super::plan::Subject;
use super::tlb::deal;
use crate::device::DeviceError;
use crate::kernel::WindowBuffers;
use crate::layout::{Index, Layout, Permutation, Spec, draw, mix};
use crate::record::Order;

/// The arm whose fragments lie as they do, but in a footprint that every TLB known reaches over.
pub(super) const IN_REACH: &str = "in_reach";

/// That footprint, in bytes.
pub(super) const IN_REACH_BYTES: u64 = 32 << 30;

/// How many windows the arena is cut into.
const WINDOWS: [usize; 3] = [2, 3, 4];

/// The number of windows that other ways to deal them out are compared at.
const COMPARED: usize = 3;

/// How many arms there are by windows.
const ARMS: u64 = WINDOWS.len() as u64 + 2;

/// Windows for multiprocessors, and the same fragments within reach.
pub(super) struct Mitigations {
    /// Each with the name of its arm.
    pub windows: Vec<(String, WindowBuffers)>,
    /// Fragments within reach, where the arena is longer than that.
    pub in_reach: Option<(Fragments, Directory)>,
}

/// Bytes of device memory beside those of the group's other arms.
pub(super) fn extra_bytes(plan: &Plan) -> u64 {
    match plan.subject {
        Subject::Mitigations => {
            ARMS * WindowBuffers::bytes(plan.scene.index_bytes()) + plan.scene.index_bytes()
        }
        _ => 0,
    }
}

impl Mitigations {
    /// Brings to the device what the group's arms need. Without groups of multiprocessors that share
    /// a TLB there are no windows.
    ///
    /// # Errors
    ///
    /// Whatever the device says.
    pub fn make(
        ground: &Ground<'_>,
        layout: &Layout,
        index: &Index,
    ) -> Result<Mitigations, DeviceError> {
        let mut windows = Vec::new();
        for (name, dealt) in dealt(ground) {
            let buffers = WindowBuffers::upload(ground.device, layout, index, &dealt)?;
            windows.push((name, buffers));
        }
        let spec = Spec { footprint_bytes: IN_REACH_BYTES, ..*layout.spec() };
        let in_reach = match spec.footprint_bytes < layout.footprint_bytes() {
            false => None,
            true => {
                let layout = Layout::new(spec, ground.seed).map_err(|error| {
                    DeviceError::Refused { entry: "layout", what: error.to_string() }
                })?;
                let is_wide = index_is_wide(index);
                let fragments = match is_wide {
                    true => Fragments::Uniform(layout.with_wide_index()),
                    false => Fragments::Uniform(layout),
                };
                let directory = fragments.directory(&Order::Scattered, ground)?;
                Some((fragments, directory))
            }
        };
        Ok(Mitigations { windows, in_reach })
    }
}

fn index_is_wide(index: &Index) -> bool {
    matches!(index, Index::U64(_))
}

/// The window of each multiprocessor, for each arm: by groups that share a TLB; and beside them, to see
/// whether it is the groups that help, by random groups of the same sizes and by number.
fn dealt(ground: &Ground<'_>) -> Vec<(String, Vec<(u32, usize)>)> {
    let Some((duels, sharing)) = ground.tlb else { return Vec::new() };
    if sharing.groups.len() < WINDOWS[0] {
        return Vec::new();
    }
    let numbers = &duels.multiprocessors;
    let named = |dealt: Vec<(usize, usize)>| -> Vec<(u32, usize)> {
        dealt.into_iter().map(|(unit, window)| (numbers[unit], window)).collect()
    };
    let fits = WINDOWS.into_iter().filter(|windows| *windows <= sharing.groups.len());
    let mut all: Vec<(String, Vec<(u32, usize)>)> = fits
        .map(|windows| (format!("windows.{windows}"), named(deal(&sharing.groups, windows))))
        .collect();
    if sharing.groups.len() < COMPARED {
        return all;
    }
    let count = numbers.len();
    let permutation = Permutation::new(draw(mix(ground.seed), 0x7a6e), count as u64);
    let mut next = (0..count as u64).map(|unit| permutation.apply(unit) as usize);
    let random: Vec<Vec<usize>> =
        sharing.groups.iter().map(|group| next.by_ref().take(group.len()).collect()).collect();
    all.push((format!("random_groups.{COMPARED}"), named(deal(&random, COMPARED))));
    let by_number = (0..count).map(|unit| (unit, unit % COMPARED)).collect();
    all.push((format!("by_number.{COMPARED}"), named(by_number)));
    all
}
